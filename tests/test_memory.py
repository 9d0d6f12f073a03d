"""Amounts of memory as people write them."""

import pytest

from blockgreedy.base.memory import bytes_of, bytes_text, free


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1000, 1000),
        ("2000000", 2_000_000),
        ("2G", 2 << 30),
        ("2 GiB", 2 << 30),
        ("500m", 500 << 20),
        ("1.5K", 1536),
        ("1TB", 1 << 40),
    ],
)
def test_amounts_are_read(text, size):
    assert bytes_of("memory", text) == size


@pytest.mark.parametrize("text", [0, -1, True, 1.5, "", "G", "-2G", "2X", "0M", None])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(ValueError, match=r"memory=.* must be a number of bytes, or text such as 500M or 2G"):
        bytes_of("memory", text)


@pytest.mark.parametrize("text", ["1", "16", " 1000 ", "2.5"])
def test_small_amounts_need_their_unit(text):
    with pytest.raises(ValueError, match=r"memory=.* would be .* bytes; write the unit, such as 500M or 2G"):
        bytes_of("memory", text)


def test_amounts_are_shown_in_the_same_units():
    assert bytes_text(2 << 30) == "2 GB"
    assert bytes_text(1536) == "1.5 KB"
    assert bytes_text(12) == "12 bytes"


def test_free_memory_is_known_or_not():
    found = free()
    assert found is None or found > 0
