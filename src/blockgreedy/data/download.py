"""One file over HTTP, resumed where it broke off."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blockgreedy.base.files import growing, replacing_text

Seen = Callable[[int, int | None], None]  # bytes so far, bytes in all

_BLOCK = 1 << 16
_TIMEOUT = 60.0  # seconds without a byte
_ATTEMPTS = 5  # in a row without a new byte
_PAUSE = 1.0  # seconds, doubled from attempt to attempt
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Download:
    """A downloader for pooch.

    Bytes go to ``NAME.part`` in the cache folder and not to pooch's temporary file, so that they outlive the
    process. ``NAME.part.json`` keeps what the server calls this version of the file (ETag, or the time of the last
    change), and ``If-Range`` asks for the rest of that version only: a file that has changed comes whole.
    """

    def __init__(self, path: Path, seen: Seen = lambda done, total: None) -> None:
        self.part, self.seen = path.with_name(f"{path.name}.part"), seen
        self.version_file = path.with_name(f"{path.name}.part.json")

    def __call__(self, url: str, output_file: str, pooch: Any = None) -> None:
        failures, had = 0, self._size()
        while (problem := self._try(url)) != "":
            if problem is None:  # the part is of no use: begin again
                self._forget()
            had, before = self._size(), had
            failures = 1 if had > before else failures + 1
            if failures >= _ATTEMPTS:
                kept = (
                    f"{had:,} bytes are kept, and the next fetch resumes from there"
                    if had
                    else "nothing was received"
                )
                raise OSError(f"{url} broke off {_ATTEMPTS} times in a row ({problem or 'no usable answer'}); {kept}")
            time.sleep(_PAUSE * 2 ** (failures - 1))
        self.part.replace(output_file)
        self.version_file.unlink(missing_ok=True)

    def _try(self, url: str) -> str | None:
        """Go on with the file: "" when it is complete, a problem that may pass, or None where to begin again."""
        import http.client  # here: they take longer to import than the rest of the package together
        import urllib.error
        import urllib.request

        have = self._size()
        headers = {"Accept-Encoding": "identity", "User-Agent": "blockgreedy"}
        version = self._version()
        if have:
            headers |= {"Range": f"bytes={have}-"} | ({"If-Range": version} if version else {})
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as answer:
                return self._take(answer, have)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and have:  # nothing beyond what is there: it is complete, or of another file
                return "" if error.headers.get("Content-Range") == f"bytes */{have}" else None
            if error.code >= 500 or error.code == 429:
                return f"{error.code} {error.reason}"
            raise OSError(f"{url} cannot be fetched: the server answers {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:  # no connection, or it broke
            return str(getattr(error, "reason", None) or error) or type(error).__name__

    def _take(self, answer: Any, have: int) -> str | None:
        length = answer.headers.get("Content-Length")
        total = int(length) if length is not None else None
        if answer.status == 206:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != have:
                return None
            total = int(found[2]) if found[2] != "*" else None if total is None else have + total
        else:  # the whole file, asked for or not
            have = 0
            self._note_version(answer.headers)
        with growing(self.part, anew=not have) as file:
            self.seen(have, total)
            while block := answer.read(_BLOCK):
                file.write(block)
                have += len(block)
                self.seen(have, total)
        if self._size() != have:  # another process writes to it
            return None
        return "" if total is None or have == total else f"{have:,} of {total:,} bytes were received"

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _version(self) -> str | None:
        try:
            return str(json.loads(self.version_file.read_text())["version"])
        except (OSError, ValueError, KeyError):
            return None

    def _note_version(self, headers: Any) -> None:
        etag = headers.get("ETag")
        version = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")
        if version:
            with replacing_text(self.version_file) as file:
                file.write(json.dumps({"version": version}))
        else:
            self.version_file.unlink(missing_ok=True)

    def _forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.version_file.unlink(missing_ok=True)
