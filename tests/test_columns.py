"""What may be handed over as X, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.problem.columns import as_columns, column_norms, unit_columns
from conftest import random_design


def dense(columns):
    return columns.toarray() if sp.issparse(columns) else np.asarray(columns)


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", ["csc", "csr", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_scipy_format_gives_the_same_columns(rng, kind, form, dtype):
    X = random_design(rng, 20, 12, dtype=dtype)
    given = X.asformat(form) if kind == "array" else sp.csc_matrix(X).asformat(form)
    columns = as_columns(given)
    assert columns.format == "csc"
    assert columns.dtype == dtype
    assert columns.indices.dtype == np.int32
    np.testing.assert_array_equal(dense(columns), X.toarray())


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_both_index_types_are_accepted(rng, index_type):
    X = random_design(rng, 20, 12)
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    columns = as_columns(X)
    np.testing.assert_array_equal(dense(columns), X.toarray())
    assert bg.solve(bg.Problem(X, np.arange(20.0), alpha=0.1)).status == "converged"


def test_canonical_csc_is_not_copied(rng):
    X = random_design(rng)
    columns = as_columns(X)
    for name in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(columns, name), getattr(X, name))


def test_fortran_ordered_array_is_not_copied(rng):
    X = random_design(rng, dense=True)
    assert np.shares_memory(as_columns(X), X)


def test_read_only_buffers_are_accepted(rng, tmp_path):
    X = random_design(rng)
    for name in ("data", "indices", "indptr"):
        getattr(X, name).flags.writeable = False
    y = rng.normal(size=60)
    y.flags.writeable = False
    expected = bg.solve(bg.Problem(X.copy(), y.copy(), alpha=0.1)).coef
    np.testing.assert_array_equal(bg.solve(bg.Problem(X, y, alpha=0.1)).coef, expected)
    np.save(tmp_path / "x.npy", np.asfortranarray(X.toarray()))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_allclose(
        bg.solve(bg.Problem(mapped, y, alpha=0.1), tol=1e-10).coef,
        bg.solve(bg.Problem(X, y, alpha=0.1), tol=1e-10).coef,
        atol=1e-4,
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16])
def test_other_real_types_become_float64(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    assert as_columns(X).dtype == np.float64
    assert as_columns(sp.csr_array(X) if dtype != np.float16 else X).dtype == np.float64


def test_unsorted_and_duplicate_indices_are_put_in_order_without_touching_the_input():
    data, indices, indptr = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    X = sp.csc_array((data.copy(), indices.copy(), indptr.copy()), shape=(3, 2))
    columns = as_columns(X)
    np.testing.assert_array_equal(dense(columns), [[2.0, 0.0], [0.0, 8.0], [5.0, 0.0]])
    np.testing.assert_array_equal(X.data, data)
    np.testing.assert_array_equal(X.indices, indices)


def test_duplicates_in_csr_and_coo_are_added():
    rows, cols, values = [0, 0, 1], [1, 1, 0], [1.0, 2.0, 5.0]
    expected = [[0.0, 3.0], [5.0, 0.0]]
    np.testing.assert_array_equal(dense(as_columns(sp.coo_array((values, (rows, cols)), shape=(2, 2)))), expected)
    csr = sp.csr_array((np.array(values), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(dense(as_columns(csr)), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(rng, bad):
    X = random_design(rng)
    X.data[17] = bad
    for form in (X, X.tocsr(), X.toarray()):
        with pytest.raises(ValueError, match="X holds NaN or infinite values"):
            as_columns(form)


def test_wrong_shapes_and_types_are_refused():
    with pytest.raises(ValueError, match=r"X has 1 dimension\(s\), expected 2"):
        as_columns(np.ones(3))
    with pytest.raises(ValueError, match=r"X has shape \(0, 3\); it needs at least one row"):
        as_columns(np.ones((0, 3)))
    with pytest.raises(ValueError, match=r"X has shape \(3, 0\)"):
        as_columns(sp.csc_array((3, 0)))
    with pytest.raises(TypeError, match="X has dtype complex128"):
        as_columns(np.ones((2, 2), dtype=complex))
    with pytest.raises(TypeError, match="X has dtype object"):
        as_columns(np.array([["a", None]], dtype=object))


def test_broken_index_arrays_are_refused(rng):
    X = random_design(rng)
    X.indices[5] = 10_000
    with pytest.raises(ValueError, match="not a valid sparse matrix: its indices are broken"):
        as_columns(X)
    X = random_design(rng)
    X.indptr[3] = X.indptr[4] + 1
    with pytest.raises(ValueError, match="not a valid sparse matrix: its indptr are broken"):
        as_columns(X)


def broken(form, name, change):
    """A small valid matrix with one of its arrays changed behind scipy's back."""
    X = sp.csc_array(np.array([[1.0, 0, 0], [0, 2, 0], [3, 0, 4]])).asformat(form)
    if form == "coo":
        X.coords = tuple(
            change(part.copy()) if name == own else part for own, part in zip(("rows", "cols"), X.coords, strict=True)
        )
    else:
        setattr(X, name, change(getattr(X, name).copy()))
    return X


def set_to(number, dtype=np.int64):
    def change(array):
        array = array.astype(dtype)
        array[-1] = number
        return array

    return change


@pytest.mark.parametrize(
    ("form", "name"),
    [("csc", "indices"), ("csr", "indices"), ("bsr", "indices"), ("coo", "rows"), ("coo", "cols")],
)
@pytest.mark.parametrize("number", [2**32 + 1, 2**32, 2**31, -1, -(2**32), 2**62, 3])
def test_indices_outside_of_the_matrix_are_refused_before_they_are_narrowed(form, name, number):
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        as_columns(broken(form, name, set_to(number)))


@pytest.mark.parametrize("form", ["csc", "csr", "bsr"])
@pytest.mark.parametrize("number", [2**62, -1, 5, -(2**62)])
def test_pointers_past_the_end_are_refused(form, number):
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        as_columns(broken(form, "indptr", set_to(number)))


@pytest.mark.parametrize("form", ["csc", "csr"])
@pytest.mark.parametrize("name", ["indices", "indptr"])
@pytest.mark.parametrize("dtype", [np.uint64, np.uint32, np.uint8, np.int16, np.int64, ">i4", ">i8"])
def test_whole_numbers_of_any_type_are_accepted_as_indices(form, name, dtype):
    X = broken(form, name, lambda array: array.astype(dtype))
    np.testing.assert_array_equal(dense(as_columns(X)), [[1.0, 0, 0], [0, 2, 0], [3, 0, 4]])


@pytest.mark.parametrize("form", ["csc", "csr"])
@pytest.mark.parametrize("name", ["indices", "indptr"])
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.astype(np.float64),
        lambda array: array.astype(object),
        lambda array: array.astype("U2"),
        lambda array: array.reshape(-1, 1),
        lambda array: array[:-1],
        lambda array: array[:0],
        set_to(2**63, np.uint64),
        set_to(2**64 - 1, np.uint64),
    ],
)
def test_index_arrays_of_other_types_and_lengths_are_refused(form, name, change):
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        as_columns(broken(form, name, change))


@pytest.mark.parametrize("number", [3, 2**32 + 1, -1])
def test_a_lil_matrix_with_an_index_outside_is_refused(number):
    X = sp.lil_array(np.eye(3))
    X.rows[1] = [number]
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        as_columns(X)


def test_what_lies_behind_the_last_pointer_does_not_matter():
    X = broken("csc", "indices", lambda array: np.append(array.astype(np.int64), 2**40))
    X.data = np.append(X.data, np.nan)
    assert as_columns(X).sum() == 10


def test_every_other_entry_of_a_buffer_can_be_a_matrix():
    X = broken("csc", "indices", lambda array: np.repeat(array, 2)[::2])
    X.data, X.indptr = np.repeat(X.data, 2)[::2], np.repeat(X.indptr, 2)[::2]
    np.testing.assert_array_equal(dense(as_columns(X)), [[1.0, 0, 0], [0, 2, 0], [3, 0, 4]])
    np.testing.assert_array_equal(dense(as_columns(X.T)), np.transpose([[1.0, 0, 0], [0, 2, 0], [3, 0, 4]]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_unit_columns_have_norm_one_whatever_their_size_and_empty_ones_stay_empty(kind):
    X = np.random.default_rng(0).standard_normal((30, 6)) * 10.0 ** np.array([-9, 0, 6, 0, 3, -3])
    X[:, 3] = 0
    unit = unit_columns(kind(X))
    norms = column_norms(unit)
    np.testing.assert_allclose(norms, [1, 1, 1, 0, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(dense(unit) * np.linalg.norm(X, axis=0), X, rtol=1e-14)
