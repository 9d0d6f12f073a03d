"""CITATION.cff and docs/citing.md name the same works, and the version that is cited is the package's."""

import re
from pathlib import Path

import pytest
import yaml

import blockgreedy as bg

ROOT = Path(__file__).parent.parent
CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")


def entries():
    """Kind and fields of each BibTeX entry of the page, by key; braces inside of values are dropped."""
    found = {}
    for block in re.findall(r"^```bibtex\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE):
        kind, key = re.match(r"@(\w+)\{(\w+),\n", block).groups()
        fields = dict(re.findall(r"^  (\w+) *= \{(.*)\},?$", block, flags=re.MULTILINE))
        assert block.endswith("}\n}\n")  # the last field has no comma, and the entry is closed
        assert block.count("{") == block.count("}")
        found[key] = (kind, {name: re.sub("[{}]", "", value) for name, value in fields.items()})
    return found


def names(authors):
    return " and ".join(
        author.get("name") or f"{author['family-names']}, {author['given-names']}" for author in authors
    )


def test_the_version_that_is_cited_is_the_packages():
    assert CFF["version"] == bg.__version__
    kind, fields = entries()["blockgreedy"]
    assert (kind, fields["version"]) == ("software", bg.__version__)
    assert fields["author"] == names(CFF["authors"])
    assert fields["title"].startswith(f"{CFF['title']}:")


@pytest.mark.parametrize(
    ("key", "cited"),
    [("scherrer2012feature", CFF["preferred-citation"]), ("scherrer2012scaling", CFF["references"][0])],
)
def test_the_page_and_the_file_say_the_same_of_each_paper(key, cited):
    kind, fields = entries()[key]
    assert (kind, cited["type"]) == ("inproceedings", "conference-paper")
    assert fields["title"].replace(r"$\ell_1$", "ℓ1") == cited["title"]
    assert fields["author"] == names(cited["authors"])
    assert fields["booktitle"] == cited["collection-title"]
    assert fields["year"] == str(cited["year"])
    assert fields.get("volume") == (str(cited["volume"]) if "volume" in cited else None)
    assert fields.get("pages") == (f"{cited['start']}--{cited['end']}" if "start" in cited else None)


def test_the_preferred_citation_is_complete():
    cited = CFF["preferred-citation"]
    assert {"authors", "title", "collection-title", "conference", "volume", "start", "end", "year"} <= set(cited)
    assert len(cited["authors"]) == 4
    assert (cited["volume"], cited["year"]) == (25, 2012)
    assert CFF["cff-version"] == "1.2.0"
    assert {"title", "authors", "message", "license"} <= set(CFF)


def test_every_work_of_the_page_is_in_the_file():
    assert len(entries()) == 2 + len(CFF["references"])
