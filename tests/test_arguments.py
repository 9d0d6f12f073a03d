"""What Problem says to arguments that it cannot use, and that it keeps none of the caller's vectors."""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.solvers.family_arguments import FamilyArguments
from blockgreedy.solvers.options import FamilyOptions

X = np.array([[1.0, 0.5], [2.0, -1.0], [0.0, 3.0], [1.0, 1.0]])
Y = np.array([1.0, 2.0, 3.0, 5.0])
VECTORS = ["y", "sample_weight", "offset", "penalty_weights", "lower", "upper"]


def problem(**changed):
    given = {"X": X, "y": Y, "alpha": 0.1, **changed}
    return bg.Problem(given.pop("X"), given.pop("y"), **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"huber_delta": "x", "loss": "huber"}, "huber_delta='x' must be a finite number above 0"),
        ({"huber_delta": None}, "huber_delta=None must be a finite number above 0"),
        ({"loss": ["squared"]}, r"loss=\['squared'\] is not known; use one of 'squared'"),
        ({"lower": "a"}, "lower has dtype <U1 .* 'a'.* must hold real numbers"),
        ({"upper": 1j}, "upper has dtype complex128 .* must hold real numbers"),
        ({"upper": [1, -2]}, r"upper must satisfy lower ≤ 0 ≤ upper; upper\[1\] is -2.0"),
        ({"lower": [None, 0]}, r"lower has dtype object and lower\[0\] is None; fill missing values in"),
        ({"penalty_weights": "ab"}, "penalty_weights has dtype <U2 .* 'ab'.* must hold real numbers"),
        ({"penalty_weights": [1, np.nan]}, r"penalty_weights must be at least 0 .*; penalty_weights\[1\] is nan"),
        ({"penalty_weights": ["1", "2"]}, "penalty_weights has dtype <U1"),
        ({"alpha": "0.1"}, "alpha='0.1' must be a finite number"),
        ({"alpha": True}, "alpha=True must be a finite number"),
        ({"alpha": np.complex128(1)}, r"alpha=np.complex128\(1\+0j\) must be a finite number"),
        ({"alpha": np.timedelta64(1, "s")}, r"alpha=np.timedelta64\(1,'s'\) must be a finite number"),
        ({"alpha": [0.1]}, r"alpha=\[0.1\] must be a finite number"),
        ({"alpha": 10**400}, "alpha=1000.*… must be a finite number"),
        ({"alpha": 10**5000}, "alpha=<int> must be a finite number"),
        ({"l2": np.array([1.0])}, r"l2=array\(\[1.\]\) must be a finite number"),
        ({"positive": "no"}, "positive='no' must be True or False"),
        ({"standardize": 1}, "standardize=1 must be True or False"),
        ({"sample_weight": [1j] * 4}, "sample_weight has dtype complex128"),
        ({"sample_weight": [1, 2, None, 4]}, r"sample_weight\[2\] is None; fill missing values in"),
        ({"sample_weight": [[1, 2], [3]]}, "sample_weight cannot be read as an array"),
        ({"offset": "a"}, "offset has dtype <U1"),
        ({"offset": [0, 1, 2, 10**400]}, "offset holds a number beyond the range of float64"),
        ({"y": np.ma.masked_array(Y, mask=[0, 0, 1, 0])}, "y has masked values; fill them in or drop"),
        ({"y": sp.csc_array(Y[:, None])}, "y is a sparse matrix; a dense array is accepted"),
        ({"y": [1, 2, None, 4]}, r"y\[2\] is None; drop the rows without a target"),
        ({"y": np.array([1, 2, 3, 4j])}, "y has dtype complex128"),
        ({"y": [decimal.Decimal("Infinity")] * 4}, r"y holds NaN or infinite values: y\[0\] is inf"),
        ({"y": ["a", "b", "c", "d"]}, "y has dtype <U1; a regression loss needs numbers"),
        ({"y": np.array(["a", 1, "b", 2], dtype=object), "loss": "logistic"}, "y holds values of different kinds"),
        ({"y": ["a", "b", "c", "d"], "loss": "logistic"}, r"y holds 4 distinct value\(s\) \('a', 'b', 'c', 'd'\)"),
        ({"y": np.array(Y, dtype="M8[s]")}, "y has dtype datetime64.*convert dates and times to numbers first"),
        ({"X": X.astype("m8[s]")}, "X has dtype timedelta64.*convert dates and times to numbers first"),
        ({"X": X.astype(complex)}, "X has dtype complex128"),
        ({"X": [["1", "2"]] * 4}, "X has dtype <U1 .* must hold real numbers"),
        ({"X": [[1, 2], [3]]}, "X cannot be read as an array"),
        ({"X": np.ma.masked_invalid(np.where(X > 2, np.nan, X))}, "X has masked values"),
        ({"X": None}, r"X has 0 dimension\(s\), expected 2"),
    ],
)
def test_arguments_that_cannot_be_used_are_named_with_their_value(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        problem(**arguments)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("value", ["a", 1j, None, float("nan"), datetime.datetime(2020, 1, 1), object(), [1, 2], {}])
def test_no_vector_takes_what_is_not_a_number(name, value):
    length = 2 if name in ("penalty_weights", "lower", "upper") else 4
    vector = np.empty(length, dtype=object)
    vector[:] = 0
    vector[1] = value
    with pytest.raises((ValueError, TypeError), match=name):
        problem(**{name: vector})


class OnAnotherDevice:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("use .get() to copy to the host")


@pytest.mark.parametrize("name", ["X", *VECTORS])
def test_arrays_that_numpy_cannot_read_are_named_with_their_library_s_advice(name):
    with pytest.raises(ValueError, match=rf"{name} cannot be read as an array \(OnAnotherDevice\): use \.get\(\)"):
        problem(**{name: OnAnotherDevice()})


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([1, 2, 3, 5], dtype=object),
        [decimal.Decimal(1), decimal.Decimal(2), decimal.Decimal(3), decimal.Decimal(5)],
        [fractions.Fraction(1), 2, 3.0, np.float32(5)],
        pd.Series([1, 2, 3, 5], dtype="Int64"),
        pd.Series([1, 2, 3, 5], dtype="Float32"),
        pd.array([1, 2, 3, 5], dtype="UInt8"),
        pd.Series([1, 2, 3, 5], dtype=object),
    ],
)
def test_numbers_of_any_kind_are_converted(numbers):
    expected = problem(sample_weight=Y, offset=Y)
    found = problem(y=numbers, sample_weight=numbers, offset=numbers)
    for name in ("y", "row_weights", "offset"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)


@pytest.mark.parametrize("dtype", [object, "Int64", "Float64", "float32", "boolean", bool])
def test_tables_of_numbers_are_converted(dtype):
    table = pd.DataFrame({"a": [1, 0, 1, 0], "b": [0, 0, 1, 1]}).astype(dtype)
    np.testing.assert_array_equal(problem(X=table).X, table.astype(float))
    mixed = table.assign(c=[0.5, 1.5, 2.5, 3.5])
    np.testing.assert_array_equal(problem(X=mixed).X, mixed.astype(float))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2020", periods=4), r"X\[0, 1\] \(column 'b'\) is Timestamp.*for example seconds"),
        (pd.date_range("2020", periods=4, tz="UTC"), r"\(column 'b'\) is Timestamp.*for example seconds"),
        (pd.to_timedelta([1, 2, 3, 4], unit="s"), r"\(column 'b'\) is Timedelta.*for example seconds"),
        (list("abcd"), r"X\[0, 1\] \(column 'b'\) is 'a'; it must hold real numbers"),
        (pd.array([1, 2, None, 4], dtype="Int64"), r"X\[2, 1\] \(column 'b'\) is <NA>; fill missing values in"),
    ],
)
def test_the_column_of_a_table_that_cannot_be_used_is_named(column, message):
    with pytest.raises(TypeError, match=message):
        problem(X=pd.DataFrame({"a": [1, 2, 3, 4], "b": column}))


def test_the_advice_on_dates_works():
    t = pd.date_range("2020-01-01", periods=4, freq="min")
    np.testing.assert_array_equal(
        problem(X=np.asarray((t - t.min()) / np.timedelta64(1, "s"))[:, None]).X.ravel(), [0, 60, 120, 180]
    )


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([True, False, True, False], [False, True]),
        (pd.Series([True, False, True, False], dtype="boolean"), [False, True]),
        (pd.Series([1, 0, 1, 0], dtype="Int64"), [0, 1]),
        (np.array([1, 0, 1, 0], dtype=object), [0, 1]),
        (pd.Series(list("baba")), ["a", "b"]),
        (pd.Series(list("baba"), dtype="string"), ["a", "b"]),
        (pd.Series(pd.Categorical(list("baba"))), ["a", "b"]),
        ([decimal.Decimal(2), decimal.Decimal(1)] * 2, [decimal.Decimal(1), decimal.Decimal(2)]),
    ],
)
def test_labels_of_any_kind_make_two_classes(labels, classes):
    found = problem(y=labels, loss="logistic")
    np.testing.assert_array_equal(found.y, [1, -1, 1, -1])
    assert list(found.classes) == classes


def test_booleans_are_targets_of_a_regression():
    np.testing.assert_array_equal(problem(y=[True, False, True, False]).y, [1, 0, 1, 0])


@pytest.mark.parametrize("name", [*VECTORS, "coef_init"])
def test_a_problem_does_not_change_with_the_caller_s_vectors(name):
    values = {
        "y": Y,
        "sample_weight": Y,
        "offset": Y,
        "penalty_weights": np.array([1.0, 2.0]),
        "lower": np.array([-1.0, -2.0]),
        "upper": np.array([1.0, 2.0]),
    }
    mine = {key: value.copy() for key, value in values.items()}
    given = problem(**mine)
    start = np.array([0.5, 0.5])
    expected = bg.solve(problem(**values), coef_init=start)

    def scribble(_):
        if name == "coef_init":
            start[:] = np.nan

    if name != "coef_init":
        mine[name][:] = np.nan
    found = bg.solve(given, coef_init=start, callback=scribble)
    np.testing.assert_array_equal(found.coef, expected.coef)
    assert not np.shares_memory(found.coef, start)
    assert given.null_model.objective == problem(**values).null_model.objective


def test_other_targets_are_copied_too():
    y = Y.copy()
    other = problem().with_targets(y)
    y[:] = 0
    np.testing.assert_array_equal(other.y, Y)


@pytest.mark.parametrize("point", ["objective", "gradient", "kkt_residual", "duality_gap", "decision"])
def test_points_that_are_no_numbers_are_named(point):
    with pytest.raises(TypeError, match="w has dtype <U1"):
        getattr(problem(), point)(["a", "b"])
    with pytest.raises(ValueError, match="intercept='a' must be a finite number"):
        getattr(problem(), point)([0, 0], "a")


class Odd:
    """Neither a number nor showable."""

    def __index__(self):
        raise RuntimeError("no")

    __float__ = __repr__ = __index__


ODD = [
    None, True, np.True_, 0, -1, 2**31, 2**64, 10**400, 10**5000, 0.5, -0.5, 1e308, np.nan, np.inf, 1j, "a", b"1",
    np.float32(0.5), np.complex64(1), np.datetime64("2020"), np.timedelta64(5), np.array([1.0]), np.array([1, 2]),
    [], [1], {}, {1}, object(), int, Odd(), decimal.Decimal("0.5"), decimal.Decimal("sNaN"), fractions.Fraction(1, 3),
    pd.NA, pd.NaT, pd.Series([1.0, 2.0]), sp.csc_array(np.eye(2)), np.longdouble("1e4000"), iter([1]),
]  # fmt: skip
GIVEN = bg.Problem(X, Y, alpha=0.1)
HALVES = bg.make_partition(X, n_blocks=2)
CALLS = {
    bg.Problem: ({"X": X, "y": Y, "alpha": 0.1}, set()),
    bg.solve: ({"problem": GIVEN, "max_iter": 20}, {"family"}),
    bg.solve_path: ({"problem": GIVEN}, set()),
    bg.make_partition: ({"X": X, "n_blocks": 2, "y": Y, "kind": "balanced"}, set()),
    bg.diagnose: ({"X": X, "partition": HALVES, "y": Y}, set()),
    bg.theory.rate_bound: (
        {"n_iter": 5, "blocks_per_iter": 1, "n_blocks": 3, "rho": 1.2, "radius": 1.0, "greedy_rule": "step",
         "norm_ratio": 2}, set(),
    ),
    FamilyOptions: ({"n_blocks": 2, "blocks_per_iter": 1}, {"n_blocks", "blocks_per_iter"}),  # solve resolves those
}  # fmt: skip


def refusal(call, *given, **named):
    """What is said to these arguments, None if they are used."""
    try:
        call(*given, **named)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_odd_values_are_used_or_refused_by_name(call):
    """And nothing but ValueError and TypeError comes out."""
    given, others = CALLS[call]
    for name in sorted(set(inspect.signature(call).parameters) - others):
        for value in ODD:
            if name == "callback" and callable(value):
                continue  # what it raises is its own
            said = refusal(call, **given | {name: value})
            assert said is None or name in said
            assert said is None or ("incompatible function arguments" not in said and len(said) < 400)


@pytest.mark.parametrize("method", ["thread-greedy", "shotgun", "greedy", "scd", "block-greedy"])
def test_odd_values_of_the_family_are_used_or_refused_by_name(method):
    for name in sorted(FamilyArguments.__annotations__ | {"n_blocks": int, "partition": str, "seed": int}):
        for value in ODD:
            said = refusal(bg.solve, GIVEN, method, max_iter=5, **{name: value})
            assert said is None or name in said


def test_numbers_that_are_no_floats_limit_a_run():
    settings = {"tol": fractions.Fraction(1, 10**9), "max_seconds": decimal.Decimal(60), "max_iter": np.int8(50)}
    assert bg.solve(GIVEN, **settings).status == "converged"
    assert bg.solve_path(GIVEN, n_alphas=np.int16(3), eps=fractions.Fraction(1, 10), **settings).status == "converged"


@pytest.mark.parametrize("make", [sp.coo_array, sp.csc_array, sp.csr_array])
def test_wide_pointers_are_diagnosed(make):
    """Conversions of scipy give all index arrays the type of the widest."""
    wide = make(X)
    if make is sp.coo_array:
        wide.coords = tuple(part.astype(np.int64) for part in wide.coords)
    else:
        wide.indptr = wide.indptr.astype(np.int64)
    assert bg.diagnose(wide, HALVES).to_dict() == bg.diagnose(sp.csc_array(X), HALVES).to_dict()


def test_a_mean_far_from_0_without_an_intercept_is_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), 1e6 + rng.normal(size=30)
    with pytest.warns(UserWarning, match="mean 1e\\+06 and standard deviation 1.1.*no intercept"):
        bg.Problem(X, y, alpha=1.0)
    bg.Problem(X, y, alpha=1.0, fit_intercept=True)
    bg.Problem(X, y, alpha=1.0, offset=1e6)
    bg.Problem(np.column_stack([X, np.full(30, 2.0)]), y, alpha=1.0)  # an intercept of their own
    bg.Problem(sp.csr_array(np.column_stack([X, np.full(30, 2.0)])), y, alpha=1.0)
