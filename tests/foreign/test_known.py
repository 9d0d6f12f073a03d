"""The list of tests that our estimators fail is in order; that it is true, the tests themselves show."""

import pytest

from foreign.suite import CLASSES, FILES, borrowed, known


def test_every_group_has_a_class_and_a_reason():
    for group in known():
        assert group["class"] in CLASSES
        assert len(group["why"]) > 20
        assert group["tests"]


@pytest.mark.parametrize("file", FILES)
def test_every_listed_test_exists(file):
    listed = {
        entry.partition("::")[2].partition("[")[0]
        for group in known()
        for entry in group["tests"]
        if entry.startswith(f"{file}::")
    }
    assert listed <= set(borrowed(file))
