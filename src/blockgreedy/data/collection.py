"""The catalogue: public sets of the LIBSVM collection, as their pages and the papers that use them describe them."""

from __future__ import annotations

from dataclasses import dataclass

BASE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_COMPRESSED = (".bz2", ".xz", ".gz")


@dataclass(frozen=True)
class PublicSet:
    """A file of the LIBSVM collection of data sets.

    n_samples, n_features : as published; a test set has the number of features of its training set
    nonzeros : as published in papers, or None
    checksum : ``algorithm:digest`` from a public source, or None. The collection itself publishes none.
    """

    name: str
    url: str
    n_samples: int
    n_features: int
    nonzeros: int | None = None
    checksum: str | None = None

    @property
    def file_name(self) -> str:
        """The name in the cache: that of the collection, with ``.svm`` added if it has no such ending."""
        stem, compression = self.url.rsplit("/", 1)[-1], ""
        for suffix in _COMPRESSED:
            if stem.endswith(suffix):
                stem, compression = stem.removesuffix(suffix), suffix
        return f"{stem}{'' if stem.endswith('.svm') else '.svm'}{compression}"


def _of(kind: str, name: str, file: str, rows: int, features: int, nonzeros: int | None = None) -> PublicSet:
    return PublicSet(name, f"{BASE}/{kind}/{file}", rows, features, nonzeros, _CHECKSUMS.get(file))


# From public code that verifies its downloads with them; where two such sources have a file, they agree. No
# SHA-256 and nothing for the other files was found.
_CHECKSUMS = {
    "a9a": "md5:fb3596510d780aaf76a06dc721d49662",
    "a9a.t": "md5:f0bb16cf1ee3e80ff560e9d132ee647e",
    "covtype.libsvm.binary.bz2": "md5:0d3439b314ce13e2f8b903b12bb3ea20",
    "covtype.libsvm.binary.scale.bz2": "md5:d95f45e15c284005c2c7a4c82e4be102",
    "gisette_scale.bz2": "md5:8a8caa1628c98dafec8d5d7bfa67c20b",
    "ijcnn1.bz2": "md5:c3e9162f8e38e0b6c0e02d313a59de2b",
    "ijcnn1.t.bz2": "md5:66433ab8089acee9e56dc61ac89a2fe2",
    "ijcnn1.tr.bz2": "md5:9889c2e9d957dca5304ed2d285f1be6d",
    "rcv1_test.binary.bz2": "md5:d6e3ab397758fb5c036d9cced52aedae",
    "rcv1_train.binary.bz2": "md5:1aeda848408e621468c0fe6944d9382f",
    "w8a": "md5:05cdbfad8de0af3887c0e6f42fddc32b",
    "w8a.t": "md5:938543adbdc198246247d5d2015f01e8",
}

SETS = {
    entry.name: entry
    for entry in (
        _of("binary", "a9a", "a9a", 32_561, 123, 451_592),
        _of("binary", "a9a.t", "a9a.t", 16_281, 123),
        _of("binary", "avazu-app", "avazu-app.bz2", 14_596_137, 1_000_000),
        _of("binary", "avazu-app.t", "avazu-app.t.bz2", 1_719_304, 1_000_000),
        _of("binary", "colon-cancer", "colon-cancer.bz2", 62, 2_000),
        _of("binary", "covtype.binary", "covtype.libsvm.binary.bz2", 581_012, 54),
        _of("binary", "covtype.binary.scale", "covtype.libsvm.binary.scale.bz2", 581_012, 54),
        _of("binary", "duke", "duke.bz2", 44, 7_129),
        _of("binary", "epsilon", "epsilon_normalized.xz", 400_000, 2_000, 800_000_000),
        _of("binary", "epsilon.t", "epsilon_normalized.t.xz", 100_000, 2_000),
        _of("binary", "gisette", "gisette_scale.bz2", 6_000, 5_000),
        _of("binary", "gisette.t", "gisette_scale.t.bz2", 1_000, 5_000),
        _of("binary", "ijcnn1", "ijcnn1.bz2", 49_990, 22),
        _of("binary", "ijcnn1.t", "ijcnn1.t.bz2", 91_701, 22),
        _of("binary", "ijcnn1.tr", "ijcnn1.tr.bz2", 35_000, 22),
        _of("binary", "kdda", "kdda.bz2", 8_407_752, 20_216_830, 305_613_510),
        _of("binary", "kdda.t", "kdda.t.bz2", 510_302, 20_216_830),
        _of("binary", "kddb", "kddb.bz2", 19_264_097, 29_890_095, 566_345_888),
        _of("binary", "kddb.t", "kddb.t.bz2", 748_401, 29_890_095),
        _of("binary", "leukemia", "leu.bz2", 38, 7_129),
        _of("binary", "leukemia.t", "leu.t.bz2", 34, 7_129),
        _of("binary", "news20.binary", "news20.binary.bz2", 19_996, 1_355_191, 9_097_916),
        _of("binary", "rcv1_train.binary", "rcv1_train.binary.bz2", 20_242, 47_236, 1_498_952),
        _of("binary", "rcv1_test.binary", "rcv1_test.binary.bz2", 677_399, 47_236, 49_556_258),
        _of("binary", "real-sim", "real-sim.bz2", 72_309, 20_958, 3_709_083),
        _of("binary", "url", "url_combined.bz2", 2_396_130, 3_231_961, 277_058_644),
        _of("binary", "w8a", "w8a", 49_749, 300, 579_586),
        _of("binary", "w8a.t", "w8a.t", 14_951, 300),
        _of("binary", "webspam", "webspam_wc_normalized_trigram.svm.xz", 350_000, 16_609_143, 1_304_697_446),
        _of("regression", "E2006.train", "E2006.train.bz2", 16_087, 150_360),
        _of("regression", "E2006.test", "E2006.test.bz2", 3_308, 150_360),
        _of("regression", "log1p.E2006.train", "log1p.E2006.train.bz2", 16_087, 4_272_227),
        _of("regression", "log1p.E2006.test", "log1p.E2006.test.bz2", 3_308, 4_272_227),
        _of("regression", "YearPredictionMSD", "YearPredictionMSD.bz2", 463_715, 90),
    )
}
