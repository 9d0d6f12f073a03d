"""What the core says about columns of rows that it has not turned."""

import numpy as np
import pytest
import scipy.sparse as sp

from blockgreedy import _core


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(20_000, 40), (3000, 60_000)])
def test_products_of_rows_are_those_of_columns_for_any_number_of_threads(shape, dtype):
    rng = np.random.default_rng(8)
    X = sp.csr_array(sp.random_array(shape, density=200_000 / np.prod(shape), rng=rng), dtype=dtype)
    theta = rng.standard_normal(shape[0])
    found = []
    for n_threads in (1, 2, 5):
        rows = _core.Rows(*X.shape, X.indptr, X.indices, X.data, n_threads)
        found.append(
            [rows.products(theta, every, n_threads) for every in (1, 7)] + [rows.reaches(abs(theta), n_threads)]
        )
    wide = X.astype(np.float64)
    np.testing.assert_allclose(found[0][0], wide.T @ theta, atol=1e-10)
    np.testing.assert_allclose(found[0][1], 7 * (wide[::7].T @ theta[::7]), atol=1e-9)
    np.testing.assert_allclose(found[0][2], abs(wide).T @ abs(theta), atol=1e-10)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_columns_are_marked_by_their_thresholds():
    X = sp.csr_array(np.array([[1.0, 0.0, -2.0, 0.0, 1.0], [1.0, 0.5, 0.0, 0.0, 1.0]]))
    rows = _core.Rows(*X.shape, X.indptr, X.indices, X.data, 1)
    everything = np.full(5, -np.inf), np.full(5, np.inf)

    def marked(name, first, *penalty):
        kept = np.zeros(5, dtype=np.uint8)
        getattr(rows, name)(*first, *penalty, kept)
        return np.flatnonzero(kept).tolist()

    products = np.array([0.9, -0.4, 0.71, 0.0, np.nan])
    assert marked("mark_near", (products, 0.7), 1.0, None, *everything) == [0, 2, 4]
    assert marked("mark_near", (products, 0.7), 1.0, np.array([2.0, 0.5, np.inf, 0.0, 1.0]), *everything) == [1, 3, 4]
    assert marked("mark_near", (products, 0.7), 1.0, None, 0.0, np.inf) == [4]  # weights ≥ 0 need products < 0
    assert marked("mark_near", (-products, 0.7), 1.0, None, 0.0, np.inf) == [0, 2, 4]
    # at most so many entries of at most 2 each
    assert marked("mark_reachable", (0.3,), 1.0, None, *everything) == [0, 4]
    assert marked("mark_reachable", (0.3,), 1.0, np.array([2.0, 0.5, np.inf, 0.0, 1.0]), *everything) == [1, 3, 4]
    reaches = rows.reaches(np.array([0.4, 0.6]), 1)
    np.testing.assert_allclose(reaches, [1.0, 0.3, 0.8, 0.0, 1.0])
    assert marked("mark_reaching", (reaches,), 0.7, None, *everything) == [0, 2, 4]
    assert marked("mark_reaching", (reaches,), 0.7, None, 0.0, np.inf) == [0, 2, 4]
    assert marked("mark_reaching", (reaches,), 0.7, None, 0.0, 0.0) == []
    assert marked("mark_reaching", (reaches,), 1.0, np.array([2.0, 0.2, np.inf, 0.0, 1.0]), *everything) == [1, 3, 4]
    kept = np.array([1, 0, 0, 0, 1], dtype=np.uint8)
    assert rows.count_missing(np.array([9.0, 0.99, -0.99, 0.0, 9.0]), 1.0, 1.0, None, *everything, kept) == 0
    assert rows.count_missing(np.array([9.0, 1.0, -1.1, 0.0, 9.0]), 1.0, 1.0, None, *everything, kept) == 2
    with pytest.raises(ValueError, match="kept must hold 0 and 1"):
        rows.n_entries(np.full(5, 2, dtype=np.uint8))
