"""Pages that show all they have without a network: what a built site would fetch from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

# Attributes that a browser follows by itself, unlike the href of <a>.
_FETCHED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
_IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


class _Fetches(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        target = values.get(_FETCHED.get(tag, ""))
        if target and re.match(r"(https?:)?//", target):
            self.found.append(target)
        self.found += _IN_STYLE.findall(values.get("style") or "")


def foreign_assets(site: Path) -> list[str]:
    """``page: address`` of every script, style, font or picture that is not part of the site."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            text = path.read_text(encoding="utf-8")
            parser = _Fetches()
            parser.feed(text)
            styles = re.findall(r"<style[^>]*>(.*?)</style>", text, flags=re.DOTALL)
            addresses = parser.found + [address for style in styles for address in _IN_STYLE.findall(style)]
        elif path.suffix == ".css":
            addresses = _IN_STYLE.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        found += [f"{path.relative_to(site)}: {address}" for address in addresses]
    return found
