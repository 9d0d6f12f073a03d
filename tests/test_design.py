"""Rows become columns when they are needed, and only those needed; results are those of columns, bit for bit."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy import _core
from blockgreedy.problem.design import Design

N, P = 3000, 60_000


@pytest.fixture(scope="module")
def text():
    data = bg.data.text_like(N, P, 60.0)
    X = sp.csr_array(data.X)
    assert X.nnz > 150_000
    return X, np.asarray(data.y, dtype=np.float64)


def both(X, y, **options):
    """The same problem from rows and from columns."""
    return bg.Problem(X, y, **options), bg.Problem(sp.csc_array(X), y, **options)


def is_turned(problem):
    return problem.design._rows is None


def entries_kept(problem):
    columns = problem.design._kept[-1].columns
    return int(columns.indptr[-1])


def same(one, other):
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.dual, other.dual)
    assert (one.intercept, one.objective, one.gap) == (other.intercept, other.objective, other.gap)
    assert (one.n_iter, one.status) == (other.n_iter, other.status)
    assert list(one.trace["nonzeros_touched"]) == list(other.trace["nonzeros_touched"])


def options_of(kind):
    rng = np.random.default_rng(3)
    u = rng.uniform(0.5, 2.0, P)
    u[rng.choice(P, 3, replace=False)] = 0.0
    u[rng.choice(P, 5000, replace=False)] = np.inf
    return {
        "plain": {},
        "intercept": {"fit_intercept": True},
        "ridge": {"l2": 1e-4},
        "bounds": {"lower": -0.5, "upper": 2.0},
        "positive": {"positive": True, "fit_intercept": True},
        "weights": {"sample_weight": rng.uniform(0.0, 3.0, N).round(1)},
        "fold": {"sample_weight": (np.arange(N) % 5 != 0).astype(float), "fit_intercept": True},
        "penalties": {"penalty_weights": u, "fit_intercept": True},
        "offset": {"offset": rng.standard_normal(N), "fit_intercept": True},
        "standardize": {"standardize": True, "fit_intercept": True},
    }[kind]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("ratio", [0.3, 0.03])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
def test_rows_and_columns_give_the_same_bits(text, loss, ratio, n_threads):
    X, y = text
    alpha = ratio * bg.Problem(X, y, loss=loss, alpha=1.0).alpha_max
    rows, columns = both(X, y, loss=loss, alpha=alpha, n_threads=n_threads)
    same(bg.solve(rows, tol=1e-6), bg.solve(columns, tol=1e-6, n_threads=1))


@pytest.mark.parametrize(
    "kind",
    ["intercept", "ridge", "bounds", "positive", "weights", "fold", "penalties", "offset", "standardize"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_columns_give_the_same_bits_of_every_kind_of_problem(text, kind, dtype):
    X, y = text
    options = {"loss": "logistic", **options_of(kind)}
    alpha = 0.2 * bg.Problem(X, y, alpha=1.0, **options).alpha_max
    rows, columns = both(X.astype(dtype), y, alpha=alpha, **options)
    solution = bg.solve(rows)
    same(solution, bg.solve(columns))
    assert rows.duality_gap(solution.coef, solution.intercept, solution.dual) == pytest.approx(
        solution.gap, abs=1e-12 * solution.objective
    )


@pytest.mark.parametrize("kind", ["plain", "intercept", "fold", "penalties"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_a_solve_turns_only_columns_that_may_get_a_weight(text, loss, kind):
    X, y = text
    options = {"loss": loss, **{name: value for name, value in options_of(kind).items() if kind != "penalties"}}
    if kind == "penalties":
        options["penalty_weights"] = np.linspace(1.0, 3.0, P)
    alpha = 0.3 * bg.Problem(X, y, alpha=1.0, **options).alpha_max
    problem = bg.Problem(X, y, alpha=alpha, **options)
    bg.solve(problem)
    assert not is_turned(problem)
    assert entries_kept(problem) < 0.7 * X.nnz
    assert problem.X.nnz == X.nnz
    assert is_turned(problem)


@pytest.mark.parametrize(("estimator", "loss"), [("LogisticRegression", "logistic"), ("HuberLasso", "huber")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_turn_no_more(text, estimator, loss, dtype, monkeypatch):
    X, y = text
    alpha = 0.3 * bg.Problem(X, y, loss=loss, alpha=1.0, fit_intercept=True).alpha_max
    model = getattr(bg, estimator)(alpha=alpha)
    expected = model.fit(sp.csc_array(X, dtype=dtype), y).coef_.copy()
    monkeypatch.setattr(Design, "_all", lambda self: pytest.fail("all columns were made"))
    np.testing.assert_array_equal(model.fit(X.astype(dtype), y).coef_, expected)


def test_a_start_with_weights_on_columns_that_screening_would_drop_is_taken_as_it_is(text):
    X, y = text
    alpha = 0.5 * bg.Problem(X, y, loss="logistic", alpha=1.0).alpha_max
    rows, columns = both(X, y, loss="logistic", alpha=alpha)
    rare = np.argsort(np.asarray(abs(X).sum(axis=0)).ravel())[:40]
    start = np.zeros(P)
    start[rare] = 0.1
    for coef in (start, np.full(P, 1e-3)):
        same(bg.solve(rows, coef_init=coef, tol=1e-8), bg.solve(columns, coef_init=coef, tol=1e-8))


def test_what_was_kept_serves_larger_alphas_and_all_columns_are_made_for_smaller_ones(text):
    X, y = text
    problem = bg.Problem(X, y, loss="logistic", alpha=1.0)
    problem = bg.Problem(X, y, loss="logistic", alpha=0.3 * problem.alpha_max)
    bg.solve(problem)
    kept = problem.design._kept[-1].columns
    bg.solve(problem.with_alpha(2 * problem.alpha))
    bg.solve(problem.with_targets(-y))
    assert problem.design._kept[-1].columns is kept
    smaller = problem.with_alpha(0.1 * problem.alpha)
    expected = bg.solve(bg.Problem(sp.csc_array(X), y, loss="logistic", alpha=smaller.alpha))
    same(bg.solve(smaller), expected)
    assert is_turned(problem)


def test_a_path_from_rows_is_a_path_from_columns(text):
    X, y = text
    rows, columns = both(X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    alphas = columns.alpha_max * np.array([0.9, 0.6, 0.4])
    one, other = (bg.solve_path(problem, alphas=alphas) for problem in (rows, columns))
    assert not is_turned(rows)
    assert (one.coefs != other.coefs).nnz == 0
    assert [point.gap for point in one.points] == [point.gap for point in other.points]


def test_a_solve_out_of_iterations_is_proven_with_all_columns(text):
    X, y = text
    alpha = 0.1 * bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True).alpha_max
    rows, columns = both(X, y, loss="logistic", alpha=alpha, fit_intercept=True)
    one, other = (bg.solve(problem, tol=1e-12, max_iter=2) for problem in (rows, columns))
    assert one.status == "max_iter"
    same(one, other)
    assert rows.duality_gap(one.coef, one.intercept, one.dual) == pytest.approx(one.gap, rel=1e-9)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda problem: pickle.loads(pickle.dumps(problem))])
def test_a_problem_of_rows_can_be_copied(text, again):
    X, y = text
    problem = bg.Problem(X, y, loss="logistic", alpha=2e-3)
    same(bg.solve(again(problem)), bg.solve(problem))


def changed(X, change):
    X = X.copy()
    change(X)
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.indices.__setitem__(170_000, P), "its indices are broken"),
        (lambda X: X.indices.__setitem__(5, -1), "its indices are broken"),
        (lambda X: X.indptr.__setitem__(7, 10**6), "its indptr are broken"),
        (lambda X: X.data.__setitem__(60_000, np.nan), "NaN or infinite"),
        (lambda X: X.data.__setitem__(-1, np.inf), "NaN or infinite"),
    ],
)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_broken_rows_are_refused_when_the_problem_is_made(text, change, message, n_threads):
    X, y = text
    with pytest.raises(ValueError, match=message):
        bg.Problem(changed(X, change), y, loss="logistic", alpha=1e-3, n_threads=n_threads)


@pytest.mark.parametrize("number", [0, P - 1, P, -1, 10**9])
@pytest.mark.parametrize("ratio", [0.3, 0.0])
@pytest.mark.parametrize("is_solved", [False, True])
def test_rows_that_change_behind_our_back_are_refused(text, number, ratio, is_solved):
    X, y = text[0].copy(), text[1]
    problem = bg.Problem(X, y, loss="logistic", alpha=1.0, n_threads=1)
    if is_solved:
        bg.solve(problem)
    X.indices[: X.nnz // 2] = number
    with pytest.raises(ValueError, match="has been changed"):
        bg.solve(problem.with_alpha(ratio * 1e-4))


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.data.__setitem__(90_000, 50.0),  # a column that was dropped could get a weight now
        lambda X: X.data.__setitem__(slice(None), X.data[::-1].copy()),
        lambda X: X.indptr.__setitem__(slice(1, None), 10**6),
    ],
)
def test_values_and_pointers_that_change_behind_our_back_are_refused(text, change, n_threads):
    X, y = text[0].copy(), text[1]
    problem = bg.Problem(X, y, loss="logistic", alpha=2e-3, n_threads=n_threads)
    change(X)
    with pytest.raises(ValueError, match="has been changed"):
        bg.solve(problem)


def test_rows_with_repeated_or_unsorted_entries_are_added_up(text):
    X, y = text
    order = np.random.default_rng(0).permutation(X.nnz)
    entries = X.tocoo()
    shuffled = sp.coo_array((entries.data[order], (entries.row[order], entries.col[order])), shape=X.shape)
    halves = sp.coo_array(
        (np.tile(shuffled.data / 2, 2), (np.tile(shuffled.row, 2), np.tile(shuffled.col, 2))), shape=X.shape
    )
    starts = np.append(0, np.cumsum(np.bincount(halves.row, minlength=N)))
    by_row = np.argsort(halves.row, kind="stable")
    repeated = sp.csr_array((halves.data[by_row], halves.col[by_row], starts), shape=X.shape)
    assert repeated.nnz == 2 * X.nnz
    expected = bg.solve(bg.Problem(sp.csc_array(X), y, loss="logistic", alpha=1e-3))
    solution = bg.solve(bg.Problem(repeated, y, loss="logistic", alpha=1e-3))
    np.testing.assert_array_equal(solution.coef, expected.coef)
    rows = np.repeat(np.arange(N), np.diff(X.indptr))
    backwards = np.lexsort((-X.indices, rows))
    unsorted = sp.csr_array((X.data[backwards], X.indices[backwards], X.indptr), shape=X.shape)
    same(bg.solve(bg.Problem(unsorted, y, loss="logistic", alpha=1e-3)), expected)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_column_above_the_limit_is_left_out(dtype, n_threads):
    rng = np.random.default_rng(8)
    X = sp.random_array((2000, 300), density=0.4, rng=rng, format="csr", dtype=np.float64)
    X.data = (X.data * 10.0 ** rng.integers(-44, 38, X.nnz)).astype(dtype)
    sums = np.asarray(abs(X.astype(np.longdouble)).sum(axis=0)).ravel()
    rows = _core.Rows(*X.shape, X.indptr, X.indices, X.data, n_threads)
    assert rows.fault == ""
    counts = np.bincount(X.indices, minlength=300)
    for j in range(0, 300, 7):
        for factor in (1 - 1e-15, 1 - 1e-7, 1.0):
            limit = float(sums[j]) * factor
            n_entries = rows.keep_above(limit, None, np.zeros(0, dtype=np.int32))
            above = np.flatnonzero(sums > limit)
            assert rows.has_kept(above.astype(np.int32))
            assert n_entries <= counts[sums > limit * (1 - 1e-3)].sum()
