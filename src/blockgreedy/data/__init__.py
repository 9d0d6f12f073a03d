"""LOAD: labelled sparse data from files, to files, from public collections and from generators."""

from blockgreedy.data.collection import SETS, PublicSet
from blockgreedy.data.conversion import convert
from blockgreedy.data.dataset import Dataset
from blockgreedy.data.fetching import fetch
from blockgreedy.data.formats import COMPRESSION_SUFFIXES, SVMLIGHT_SUFFIXES, TABLE_SUFFIXES
from blockgreedy.data.generate import kdda_like, shaped, text_like
from blockgreedy.data.generate_crosses import crosses_like
from blockgreedy.data.loading import load
from blockgreedy.data.npz import save
from blockgreedy.data.store import Store
from blockgreedy.data.summary import Summary, summarize
from blockgreedy.data.writing import write

__all__ = [
    "COMPRESSION_SUFFIXES",
    "SETS",
    "SVMLIGHT_SUFFIXES",
    "TABLE_SUFFIXES",
    "Dataset",
    "PublicSet",
    "Store",
    "Summary",
    "convert",
    "crosses_like",
    "fetch",
    "kdda_like",
    "load",
    "save",
    "shaped",
    "summarize",
    "text_like",
    "write",
]
