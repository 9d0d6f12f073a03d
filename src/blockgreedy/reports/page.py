"""REPORT: one self-contained HTML page of sections, sentences, findings, tables and pictures.

    page = Page("Run of 3 May", "What was fitted, and how.")
    part = page.section("Objective")
    part.text("Lower is better.")
    part.table(["alpha", "objective"], [["1e-3", "0.41"]], caption="Objective per alpha")
    page.save("run.html")

The page needs no network, follows the reader's choice of light or dark, fits a phone and can be printed. A small
script reads values off curves and switches between drawings; without it everything is there. All text is escaped. It
knows nothing of solvers: whoever has results hands over words, numbers and pictures.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from blockgreedy.base.cached import cached_property
from blockgreedy.base.files import replacing_text
from blockgreedy.reports.page_style import STYLE

SCRIPT = files("blockgreedy.reports").joinpath("page.js").read_text(encoding="utf-8")
Outcome = Literal["agrees", "in part", "differs", "not measured"]


def _draws_nothing(file: Any, form: str) -> None:
    """For pictures that are SVG only."""


@dataclass(frozen=True)
class Picture:
    """An SVG whose colours are the page's CSS variables, and what it shows in words.

    ``curves`` holds what the page's script reads values from: the labels of the axes, and for each line a label, a
    colour and its points [x on the drawing, y on the drawing, x in words, y in words]. ``picks`` says in which
    position of the page's switches it is shown ({"against": "seconds"}: where seconds are chosen); it is always shown
    where there is no script.
    """

    name: str  # of its file, without suffix
    svg: str
    alt: str
    caption: str = ""
    curves: Mapping[str, Any] = field(default_factory=dict, repr=False)
    picks: Mapping[str, str] = field(default_factory=dict)
    # draws it on white to a file, in a format of matplotlib's
    render: Callable[[Any, str], None] = field(default=_draws_nothing, repr=False, compare=False)

    @cached_property
    def png(self) -> bytes:
        """On white, for other uses than the page."""
        file = io.BytesIO()
        self.render(file, "png")
        return file.getvalue()

    def standalone_svg(self) -> str:
        """The SVG as a file of its own: colours as they are on a light page, with a size, on white."""
        svg = re.sub(r"var\(--[a-z]+, (#[0-9a-fA-F]+)\)", r"\1", self.svg)
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
        if size is not None:
            svg = svg.replace("<svg ", f'<svg width="{size[1]}pt" height="{size[2]}pt" ', 1)
            svg = svg.replace(">", '><rect width="100%" height="100%" fill="#ffffff"/>', 1)
        return f"<?xml version='1.0' encoding='utf-8'?>\n{svg}\n"

    def html(self) -> str:
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        data = f" data-curves={quoted(self.curves)}" if self.curves else ""
        data += f" data-pick={quoted(self.picks)}" if self.picks else ""
        svg = self.svg.replace("<svg ", f'<svg role="img" aria-label="{escape(self.alt)}" ', 1)
        return f"<figure{data}>{svg}{caption}</figure>"


@dataclass(frozen=True)
class Finding:
    """A claim, what was found, and whether the two agree."""

    claim: str
    found: str
    outcome: Outcome
    why: str = ""

    def html(self) -> str:
        why = f"<p>{escape(self.why)}</p>" if self.why else ""
        return (
            f'<li class="{self.outcome.replace(" ", "-")}"><p><strong class="outcome">{escape(self.outcome)}'
            f"</strong> {escape(self.claim)}</p><p>{escape(self.found)}</p>{why}</li>"
        )


@dataclass
class Section:
    title: str
    level: int = 2
    folded: bool = False  # opens on a click
    parts: list[str | Section] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def section(self, title: str) -> Section:
        part = Section(title, self.level + 1)
        self.parts.append(part)
        return part

    def html(self, html: str) -> None:
        """Something that is HTML already, with everything in it escaped."""
        self.parts.append(html)

    def text(self, *paragraphs: str) -> None:
        self.parts += [f"<p>{escape(text)}</p>" for text in paragraphs]

    def bullets(self, lines: Iterable[str]) -> None:
        self.parts.append(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>")

    def findings(self, findings: Iterable[Finding]) -> None:
        self.parts.append(f'<ul class="findings">{"".join(f.html() for f in findings)}</ul>')

    def code(self, text: str) -> None:
        """Something to type, as it is."""
        self.parts.append(f'<pre tabindex="0"><code>{escape(text)}</code></pre>')

    def facts(self, facts: Iterable[tuple[str, str, str]]) -> None:
        """The few numbers to see first: (what, number, note)."""
        cells = "".join(
            f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd>"
            + (f"<dd>{escape(note)}</dd>" if note else "")
            + "</div>"
            for what, value, note in facts
        )
        self.parts.append(f'<dl class="facts">{cells}</dl>')

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str]],
        caption: str,
        note: str = "",
        *,
        folded: bool = False,
        one_line: bool = False,
    ) -> None:
        """The first cell of a row is its heading; numbers are set to the right. A folded table opens on a click.

        With ``one_line`` no cell is broken into lines, however narrow the screen is.
        """
        rows = list(rows)
        for row in rows:
            if len(row) != len(head):
                raise ValueError(f"row {list(row)!r} has {len(row)} cells, the table {caption!r} has {len(head)}")
        kinds = [_column_class([row[c] for row in rows]) for c in range(len(head))]
        top = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(head, kinds, strict=True))
        body = "".join(
            f'<tr><th scope="row"{kinds[0]}>{escape(row[0])}</th>'
            + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True))
            + "</tr>"
            for row in rows
        )
        text = table_html(caption, top, body, note, "one-line" if one_line else "")
        summary = f"<summary>{escape(caption)}: {len(rows):,} rows</summary>"
        self.parts.append(f"<details>{summary}{text}</details>" if folded else text)

    def figures(self, *pictures: Picture) -> None:
        """Side by side where there is room. What they are picked by becomes switches above them."""
        self.pictures += pictures
        picks: dict[str, list[str]] = {}
        for picture in pictures:
            for name, value in picture.picks.items():
                known = picks.setdefault(name, [])
                known += [value] if value not in known else []
        switches = f" data-picks={quoted(picks)}" if picks else ""
        if pictures:
            drawn = "".join(picture.html() for picture in pictures)
            self.parts.append(f'<div class="figures"{switches}>{drawn}</div>')

    @property
    def sections(self) -> list[Section]:
        return [part for part in self.parts if isinstance(part, Section)]

    def all_pictures(self) -> list[Picture]:
        return self.pictures + [picture for part in self.sections for picture in part.all_pictures()]


@dataclass(frozen=True)
class Badge:
    """The one thing to know about a result, and the section that says more."""

    word: str
    text: str
    good: bool
    about: Section

    def html(self, name: str) -> str:
        kind = "good" if self.good else "open"
        word = f"<strong>{'✓' if self.good else '!'} {escape(self.word)}</strong>"
        text = re.sub(r"(\S*\de-\d+)", r'<span class="whole">\1</span>', escape(self.text))  # no break in a number
        return f'<p><a class="badge {kind}" href="#{name}">{word} {text}</a></p>'


@dataclass
class Page:
    title: str
    lead: str = ""
    language: str = "en"
    sections: list[Section] = field(default_factory=list)
    summary: Section = field(default_factory=lambda: Section(""))  # what stands before the contents, without a title
    badge: Badge | None = None

    def section(self, title: str, *, folded: bool = False) -> Section:
        part = Section(title, folded=folded)
        self.sections.append(part)
        return part

    def all_pictures(self) -> list[Picture]:
        return [picture for part in self.sections for picture in part.all_pictures()]

    def html(self) -> str:
        names: set[str] = set()
        body, contents, badge = [], [], ""
        for part in self.sections:
            name, text, entry = _render(part, names)
            body.append(text)
            contents.append(entry)
            if self.badge is not None and self.badge.about is part:
                badge = self.badge.html(name)
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        summary = "".join(part for part in self.summary.parts if isinstance(part, str))
        return (
            f'<!doctype html><html lang="{escape(self.language)}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head><body>"
            f"<header><h1>{escape(self.title)}</h1>{lead}{badge}{summary}</header>"
            f'<nav aria-label="Contents"><ol>{"".join(contents)}</ol></nav>'
            f"<main>{''.join(body)}</main><script>{SCRIPT}</script></body></html>\n"
        )

    def save(self, path: str | Path) -> None:
        """Appears complete or not at all."""
        with replacing_text(path) as file:
            file.write(self.html())


def _render(part: Section, names: set[str]) -> tuple[str, str, str]:
    """The section's anchor, its HTML and its line in the table of contents."""
    name = _anchor(part.title, names)
    inner, below = [], []
    for item in part.parts:
        if isinstance(item, str):
            inner.append(item)
        else:
            _, text, entry = _render(item, names)
            inner.append(text)
            below.append(entry)
    level = f"h{min(part.level, 6)}"
    text, heading = "".join(inner), f"<{level}>{escape(part.title)}</{level}>"
    text = f"<details><summary>{heading}</summary>{text}</details>" if part.folded else heading + text
    sub = f"<ol>{''.join(below)}</ol>" if below else ""
    return name, f'<section id="{name}">{text}</section>', f'<li><a href="#{name}">{escape(part.title)}</a>{sub}</li>'


def _anchor(title: str, names: set[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
    name, k = base, 1
    while name in names:
        k += 1
        name = f"{base}-{k}"
    names.add(name)
    return name


def signed(value: float) -> str:
    """Four digits, with a sign that is as wide as a plus."""
    text = f"{value:+#.4g}".removesuffix(".")
    return text.replace("-", "−", 1) if value < 0 else text


# Whatever text may get into a page, a browser runs the one script that is ours, and fetches nothing.
_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
_POLICY = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'"


def table_html(caption: str, head: str, body: str, note: str = "", kind: str = "") -> str:
    """Head and body are HTML. On a narrow screen the table scrolls sideways inside its box."""
    words, kind = escape(caption), f' class="{kind}"' if kind else ""
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{words}"><table{kind}>'
        f"<caption><span>{words}</span></caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f'<p class="note">{escape(note)}</p>' if note else "")
    )


def quoted(data: Any) -> str:
    """JSON as an attribute, in single quotes: it is full of double ones."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return "'" + text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;") + "'"


def _column_class(cells: Sequence[str]) -> str:
    if cells and all(_is_number(cell) for cell in cells):
        return ' class="number"'
    return ' class="short"' if all(len(cell) <= 24 for cell in cells) else ""


def _is_number(cell: str) -> bool:
    return bool(re.match(r"^[-−+]?[\d.,]+(e[-+]?\d+)?( ?(s|ms|%|×|M|K))?$|^[–—]?$", cell.strip()))
