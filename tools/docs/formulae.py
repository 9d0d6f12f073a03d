"""Formulae as MathML, which browsers draw by themselves: ```math blocks and $`inline`$, as GitHub reads them too."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_BLOCK = re.compile(r"^```math\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"\$`([^`]+)`\$")


def as_mathml(markdown: str) -> str:
    """The page with its formulae made HTML."""
    markdown = _BLOCK.sub(
        lambda found: f'<div class="formula">{convert(found[1].strip(), display="block")}</div>', markdown
    )
    # Without <span> a formula at the start of a line would be a paragraph of its own.
    return _INLINE.sub(lambda found: f"<span>{convert(found[1])}</span>", markdown)
