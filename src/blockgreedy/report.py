"""REPORT: one self-contained HTML page of sections, sentences, findings, tables and pictures.

    page = Page("Run of 3 May", "What was fitted, and how.")
    part = page.section("Objective")
    part.text("Lower is better.")
    part.table(["alpha", "objective"], [["1e-3", "0.41"]], caption="Objective per alpha")
    page.save("run.html")

The page needs no network and no script, follows the reader's choice of light or dark, and fits a phone. All text
is escaped. It knows nothing of solvers: whoever has results hands over words, numbers and pictures.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal

Outcome = Literal["agrees", "in part", "differs", "not measured"]


@dataclass(frozen=True)
class Picture:
    """An SVG for light and one for dark pages, the same as PNG for other uses, and what it shows in words."""

    name: str  # of its file, without suffix
    light: str
    dark: str
    png: bytes
    alt: str
    caption: str = ""

    def html(self) -> str:
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_data_url(self.dark)}">'
            f'<img src="{_data_url(self.light)}" alt="{escape(self.alt)}"></picture>{caption}</figure>'
        )


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
    parts: list[str | Section] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def section(self, title: str) -> Section:
        part = Section(title, self.level + 1)
        self.parts.append(part)
        return part

    def text(self, *paragraphs: str) -> None:
        self.parts += [f"<p>{escape(text)}</p>" for text in paragraphs]

    def bullets(self, lines: Iterable[str]) -> None:
        self.parts.append(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>")

    def findings(self, findings: Iterable[Finding]) -> None:
        self.parts.append(f'<ul class="findings">{"".join(f.html() for f in findings)}</ul>')

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str]],
        caption: str,
        note: str = "",
        *,
        folded: bool = False,
    ) -> None:
        """The first cell of a row is its heading; numbers are set to the right. A folded table opens on a click."""
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
        text = (
            f'<div class="table" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
            f"<caption><span>{escape(caption)}</span></caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
            + (f'<p class="note">{escape(note)}</p>' if note else "")
        )
        summary = f"<summary>{escape(caption)}: {len(rows):,} rows</summary>"
        self.parts.append(f"<details>{summary}{text}</details>" if folded else text)

    def figures(self, *pictures: Picture) -> None:
        """Side by side where there is room."""
        self.pictures += pictures
        if pictures:
            self.parts.append(f'<div class="figures">{"".join(picture.html() for picture in pictures)}</div>')

    @property
    def sections(self) -> list[Section]:
        return [part for part in self.parts if isinstance(part, Section)]

    def all_pictures(self) -> list[Picture]:
        return self.pictures + [picture for part in self.sections for picture in part.all_pictures()]


@dataclass
class Page:
    title: str
    lead: str = ""
    language: str = "en"
    sections: list[Section] = field(default_factory=list)

    def section(self, title: str) -> Section:
        part = Section(title)
        self.sections.append(part)
        return part

    def all_pictures(self) -> list[Picture]:
        return [picture for part in self.sections for picture in part.all_pictures()]

    def html(self) -> str:
        names: set[str] = set()
        body, contents = [], []
        for part in self.sections:
            text, entry = _render(part, names)
            body.append(text)
            contents.append(entry)
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        return (
            f'<!doctype html><html lang="{escape(self.language)}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head><body>"
            f"<header><h1>{escape(self.title)}</h1>{lead}</header>"
            f'<nav aria-label="Contents"><ol>{"".join(contents)}</ol></nav>'
            f"<main>{''.join(body)}</main></body></html>\n"
        )

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.html(), encoding="utf-8")


def _render(part: Section, names: set[str]) -> tuple[str, str]:
    """The section's HTML and its line in the table of contents."""
    name = _anchor(part.title, names)
    inner, below = [], []
    for item in part.parts:
        if isinstance(item, str):
            inner.append(item)
        else:
            text, entry = _render(item, names)
            inner.append(text)
            below.append(entry)
    heading = f"h{min(part.level, 6)}"
    text = f'<section id="{name}"><{heading}>{escape(part.title)}</{heading}>{"".join(inner)}</section>'
    sub = f"<ol>{''.join(below)}</ol>" if below else ""
    return text, f'<li><a href="#{name}">{escape(part.title)}</a>{sub}</li>'


def _anchor(title: str, names: set[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
    name, k = base, 1
    while name in names:
        k += 1
        name = f"{base}-{k}"
    names.add(name)
    return name


def _data_url(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _column_class(cells: Sequence[str]) -> str:
    if cells and all(_is_number(cell) for cell in cells):
        return ' class="number"'
    return ' class="short"' if all(len(cell) <= 24 for cell in cells) else ""


def _is_number(cell: str) -> bool:
    return bool(re.match(r"^[-−+]?[\d.,]+(e[-+]?\d+)?( ?(s|ms|%|×|M|K))?$|^[–—]?$", cell.strip()))


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --line: #d0d7de; --card: #f6f8fa;
  --good: #1a7f37; --mixed: #8a5a00; --bad: #c1121f; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #a3acb6; --paper: #14171b; --line: #3a424b;
  --card: #1d2126; --good: #56d364; --mixed: #e3b341; --bad: #ff7b72; --link: #79b8ff; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1.5rem clamp(0.9rem, 3vw, 2.5rem) 4rem; max-width: 108rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: clamp(1.6rem, 4vw, 2.3rem); line-height: 1.2; margin: 0 0 0.6rem; }
h2 { font-size: 1.45rem; margin: 3rem 0 0.6rem; padding-top: 0.6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.12rem; margin: 2rem 0 0.4rem; }
h4 { font-size: 1rem; margin: 1.4rem 0 0.3rem; }
p, li { max-width: 46rem; }
p { margin: 0.5rem 0; }
.lead { font-size: 1.1rem; color: var(--soft); }
.note, figcaption { color: var(--soft); font-size: 0.875rem; }
a { color: var(--link); }
nav { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 1rem;
  margin: 1rem 0; }
nav ol { margin: 0.2rem 0; padding-left: 1.5rem; }
nav > ol { columns: 20rem; column-gap: 2.5rem; }
nav li { break-inside: avoid; padding: 0.12rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23.5rem), 1fr)); gap: 1.2rem;
  margin: 1rem 0; }
figure { margin: 0; min-width: 0; }
figure img { width: 100%; height: auto; display: block; }
.table { overflow-x: auto; margin: 1rem 0 0.4rem; max-width: 100%; }
table { min-width: min(100%, 24rem); border-collapse: collapse;
  font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.2rem 0 0.4rem; }
caption span { position: sticky; left: 0; display: inline-block; max-width: calc(100vw - 2.2rem); }
th, td { text-align: left; padding: 0.28rem 0.7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { vertical-align: bottom; border-bottom: 2px solid var(--soft); min-width: 4.2rem; }
tbody th { font-weight: 500; }
.number { text-align: right; }
tbody .number, tbody .short { white-space: nowrap; }
summary { cursor: pointer; color: var(--link); padding: 0.3rem 0; }
.findings { list-style: none; padding: 0; display: grid; gap: 0.7rem; }
.findings li { max-width: 60rem; background: var(--card); border-left: 5px solid var(--soft);
  border-radius: 0 6px 6px 0; padding: 0.5rem 0.9rem; }
.findings p { max-width: none; margin: 0.25rem 0; }
.findings p + p { color: var(--soft); }
.outcome { text-transform: uppercase; font-size: 0.76rem; letter-spacing: 0.04em; margin-right: 0.4rem; }
.findings .agrees { border-color: var(--good); } .agrees .outcome { color: var(--good); }
.findings .in-part { border-color: var(--mixed); } .in-part .outcome { color: var(--mixed); }
.findings .differs { border-color: var(--bad); } .differs .outcome { color: var(--bad); }
""".strip()
