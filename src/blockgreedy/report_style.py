"""The look of a page: light and dark, on a phone, on a desk and on paper. Drawings use the same colours by name."""

LIGHT = {
    "ink": "#1b1f24",
    "soft": "#57606a",
    "grid": "#d3d9df",
    "red": "#cf222e",
    "teal": "#0a7f8f",
    "amber": "#b26a00",
    "violet": "#8250df",
    "blue": "#0969da",
    "green": "#2f8132",
    "paper": "#ffffff",
    "line": "#d0d7de",
    "card": "#f6f8fa",
}
DARK = {
    "ink": "#e6e9ed",
    "soft": "#a3acb6",
    "grid": "#343b43",
    "red": "#ff6b6b",
    "teal": "#3fc6d6",
    "amber": "#ffb648",
    "violet": "#bc8cff",
    "blue": "#58a6ff",
    "green": "#56d364",
    "paper": "#14171b",
    "line": "#3a424b",
    "card": "#1d2126",
}


def _colors(scheme: str, colors: dict[str, str]) -> str:
    return f"color-scheme: {scheme}; " + " ".join(f"--{name}: {color};" for name, color in colors.items())


STYLE = f"""
:root {{ {_colors("light", LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_colors("dark", DARK)} }} }}
:root[data-theme=light] {{ {_colors("light", LIGHT)} }}
:root[data-theme=dark] {{ {_colors("dark", DARK)} }}
""".lstrip()

STYLE += """
* { box-sizing: border-box; }
[hidden] { display: none !important; }
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
a, summary { color: var(--blue); }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
nav { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 1rem;
  margin: 1rem 0; }
nav ol { margin: 0.2rem 0; padding-left: 1.5rem; }
nav > ol { columns: 20rem; column-gap: 2.5rem; }
nav li { break-inside: avoid; padding: 0.12rem 0; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 0.8rem;
  font-size: 0.875rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.6rem 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 10.5rem), 1fr)); gap: 0.7rem;
  margin: 1rem 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.5rem 0.8rem; }
.facts dt { color: var(--soft); font-size: 0.875rem; }
.facts dd { margin: 0; font-size: 0.875rem; color: var(--soft); }
.facts dt + dd { font-size: 1.1rem; line-height: 1.4; font-weight: 600; color: var(--ink);
  font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23.5rem), 1fr)); gap: 1.2rem;
  margin: 1rem 0; }
figure { margin: 0; min-width: 0; max-width: 36rem; position: relative; }
figure svg { width: 100%; height: auto; display: block; }
figure[data-curves] svg { touch-action: pan-y; }
.pointer line { stroke: var(--soft); stroke-width: 0.7; stroke-dasharray: 2 2; }
.pointer circle { stroke: var(--paper); stroke-width: 1; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: 0.3rem 0.6rem; font-size: 0.8rem; line-height: 1.45; box-shadow: 0 1px 6px #0003;
  font-variant-numeric: tabular-nums; max-width: 75%; z-index: 1; }
.tip div { display: flex; gap: 0.45rem; align-items: baseline; justify-content: space-between; }
.tip div span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tip i { flex: none; width: 0.6rem; height: 0.6rem; border-radius: 50%; align-self: center; }
.tip i + span { flex: 1; }
.switches { display: flex; flex-wrap: wrap; gap: 0.5rem 1.4rem; margin: 0.8rem 0; }
.switch { display: inline-flex; align-items: center; font-size: 0.875rem; color: var(--soft); }
.switch span { margin-right: 0.5rem; }
.switch button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line);
  padding: 0.3rem 0.75rem; min-height: 2.2rem; margin-left: -1px; cursor: pointer; }
.switch button:first-of-type { border-radius: 6px 0 0 6px; margin-left: 0; }
.switch button:last-of-type { border-radius: 0 6px 6px 0; }
.switch button:focus-visible { position: relative; z-index: 1; }
.switch button[aria-pressed=true] { background: var(--ink); color: var(--paper); border-color: var(--ink); }
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
td:not(.number, .short, .bar) { overflow-wrap: anywhere; min-width: 9rem; }
.weights { width: min(100%, 46rem); table-layout: fixed; min-width: 0; }
.weights th:first-child { width: 45%; overflow-wrap: anywhere; }
.weights .number { width: 6.2rem; }
.weights .bar { padding-inline: 0; position: relative;
  background: linear-gradient(var(--line), var(--line)) center / 1px 100% no-repeat; }
.bar span { position: absolute; top: 0.55rem; height: 0.85rem; }
.bar .plus { left: 50%; background: var(--teal); border-radius: 0 3px 3px 0; }
.bar .minus { right: 50%; background: var(--red); border-radius: 3px 0 0 3px; }
summary { cursor: pointer; padding: 0.3rem 0; }
.findings { list-style: none; padding: 0; display: grid; gap: 0.7rem; }
.findings li { max-width: 60rem; background: var(--card); border-left: 5px solid var(--soft);
  border-radius: 0 6px 6px 0; padding: 0.5rem 0.9rem; }
.findings p { max-width: none; margin: 0.25rem 0; }
.findings p + p { color: var(--soft); }
.outcome { text-transform: uppercase; font-size: 0.76rem; letter-spacing: 0.04em; margin-right: 0.4rem; }
.findings .agrees { border-color: var(--green); } .agrees .outcome { color: var(--green); }
.findings .in-part { border-color: var(--amber); } .in-part .outcome { color: var(--amber); }
.findings .differs { border-color: var(--red); } .differs .outcome { color: var(--red); }
@media (prefers-reduced-motion: no-preference) {
  html { scroll-behavior: smooth; }
  .switch button { transition: background-color 0.12s, color 0.12s; }
}
""".lstrip()

STYLE += f"""
@media print {{
  :root, :root[data-theme] {{ {_colors("light", LIGHT)} }}
  body {{ max-width: none; padding: 0; font-size: 10.5pt; }}
  .switches, .tip, .pointer, summary {{ display: none; }}
  details::details-content {{ content-visibility: visible; block-size: auto; }}
  figure, tr, .facts div, .findings li, pre {{ break-inside: avoid; }}
  h2, h3, h4, caption {{ break-after: avoid; }}
  .figures {{ grid-template-columns: 1fr 1fr; }}
  .table {{ overflow: visible; }}
  .bar span, .facts div, pre, nav {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
""".lstrip()
STYLE = STYLE.strip()
