"""LOAD: labelled sparse data from files, to files, from public collections and from generators."""

from blockgreedy.data.dataset import Dataset
from blockgreedy.data.generate import kdda_like, shaped, text_like
from blockgreedy.data.load import COMPRESSION_SUFFIXES, SVMLIGHT_SUFFIXES, TABLE_SUFFIXES, load
from blockgreedy.data.npz import save

__all__ = [
    "COMPRESSION_SUFFIXES",
    "SVMLIGHT_SUFFIXES",
    "TABLE_SUFFIXES",
    "Dataset",
    "kdda_like",
    "load",
    "save",
    "shaped",
    "text_like",
]
