"""Rows become columns when they are needed, and only those needed; what is proven holds for all columns."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.problem import some_columns
from blockgreedy.problem.design import Design
from blockgreedy.solvers import working_set

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
    return problem.design._columns is not None


def entries_made(problem):
    return int(problem.design._some.columns.indptr[-1])


def same(one, other):
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.dual, other.dual)
    assert (one.intercept, one.objective, one.gap) == (other.intercept, other.objective, other.gap)
    assert (one.n_iter, one.status) == (other.n_iter, other.status)
    assert list(one.trace["nonzeros_touched"]) == list(other.trace["nonzeros_touched"])


def agree(solution, columns, tol):
    """A solution from rows keeps what it says when all columns are looked at, and is as good as asked for."""
    assert solution.status == "converged"
    own = columns.duality_gap(solution.coef, solution.intercept, solution.dual)
    assert own == pytest.approx(solution.gap, abs=1e-12 * solution.objective)
    assert own <= tol * columns.null_model.objective
    expected = bg.solve(columns, tol=tol)
    assert abs(solution.objective - expected.objective) <= max(solution.gap, expected.gap)


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


@pytest.mark.parametrize("ratio", [0.3, 0.03])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
def test_what_rows_prove_holds_for_all_columns_and_does_not_depend_on_threads(text, loss, ratio):
    X, y = text
    alpha = ratio * bg.Problem(X, y, loss=loss, alpha=1.0).alpha_max
    rows, columns = both(X, y, loss=loss, alpha=alpha, n_threads=1)
    solution = bg.solve(rows, tol=1e-6)
    agree(solution, columns, 1e-6)
    assert rows.X.nnz == X.nnz  # all columns are there now
    same(bg.solve(rows, tol=1e-6), solution)
    for n_threads in (2, 4):
        same(bg.solve(bg.Problem(X, y, loss=loss, alpha=alpha, n_threads=n_threads), tol=1e-6), solution)


@pytest.mark.parametrize(
    "kind",
    ["intercept", "ridge", "bounds", "positive", "weights", "fold", "penalties", "offset", "standardize"],
)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_prove_every_kind_of_problem(text, kind, loss, dtype):
    X, y = text
    options = {"loss": loss, **options_of(kind)}
    alpha = 0.3 * bg.Problem(X, y, alpha=1.0, **options).alpha_max
    rows, columns = both(X.astype(dtype), y, alpha=alpha, **options)
    agree(bg.solve(rows), columns, 1e-4)
    if kind != "standardize":
        assert not is_turned(rows)


@pytest.mark.parametrize("kind", ["plain", "intercept", "positive", "penalties"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_columns_that_turn_out_to_be_missing_are_added(text, loss, kind, monkeypatch):
    X, y = text
    options = {"loss": loss, **options_of(kind)}
    alpha = 0.1 * bg.Problem(X, y, alpha=1.0, **options).alpha_max
    rows, columns = both(X, y, alpha=alpha, **options)
    monkeypatch.setattr(some_columns, "_NEAR_START", 5.0)  # far too few
    solution = bg.solve(rows, tol=1e-6)
    assert not is_turned(rows)
    agree(solution, columns, 1e-6)
    assert np.all(np.diff(solution.trace["objective"]) <= 0)
    assert np.all(np.diff(solution.trace["nonzeros_touched"]) >= 0)
    # no record of the trace claims more than it could know
    best = bg.solve(columns, tol=1e-8).objective
    assert np.all(solution.trace["objective"] - solution.trace["gap"] <= best * (1 + 1e-9))


def test_a_solve_that_can_go_no_further_looks_for_missing_columns_too(text, monkeypatch):
    X, y = text
    alpha = 0.1 * bg.Problem(X, y, loss="logistic", alpha=1.0).alpha_max
    rows, columns = both(X, y, loss="logistic", alpha=alpha)
    monkeypatch.setattr(some_columns, "_NEAR_START", 5.0)
    solution = bg.solve(rows, tol=0.0)
    assert solution.objective <= bg.solve(columns, tol=1e-10).objective * (1 + 1e-9)


def test_all_columns_are_made_where_too_many_turn_out_to_be_missing(text, monkeypatch):
    X, y = text
    alpha = 0.01 * bg.Problem(X, y, loss="squared", alpha=1.0).alpha_max
    rows, columns = both(X, y, loss="squared", alpha=alpha)
    monkeypatch.setattr(some_columns, "_NEAR_START", 1000.0)
    monkeypatch.setattr(some_columns, "_MOST_REACHABLE", 0.1)  # from the second choice on as well
    chosen, make = [], working_set.working_set
    begin = some_columns.SomeColumns.begin
    monkeypatch.setattr(some_columns.SomeColumns, "begin", lambda self, *a: chosen.append(self) or begin(self, *a))
    cores = []
    monkeypatch.setattr(working_set, "working_set", lambda *a, **k: cores.append(made := make(*a, **k)) or made)
    solution = bg.solve(rows)
    assert is_turned(rows)
    touched = solution.trace["nonzeros_touched"]
    assert np.all(np.diff(touched) >= 0)
    assert chosen[0].n_touched >= X.nnz
    assert touched[-1] == chosen[0].n_touched + sum(core.nonzeros_touched for core in cores)
    agree(solution, columns, 1e-4)


def test_columns_that_no_dual_point_can_reach_are_left_out_without_a_look():
    data = bg.data.crosses_like(3000)
    X = sp.csr_array(data.X)
    alpha = 0.1 * bg.Problem(X, data.y, loss="logistic", alpha=1.0, fit_intercept=True).alpha_max
    rows, columns = both(X, data.y, loss="logistic", alpha=alpha, fit_intercept=True)
    agree(bg.solve(rows), columns, 1e-4)
    assert not is_turned(rows)
    assert entries_made(rows) < 0.5 * X.nnz
    counts = np.diff(columns.X.indptr)
    assert entries_made(rows) == counts[counts > X.shape[0] * alpha].sum()


@pytest.mark.parametrize("kind", ["plain", "intercept", "positive", "weights", "penalties"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_columns_whose_values_are_too_small_are_left_out(text, loss, kind, monkeypatch):
    X, y = text[0].copy(), text[1]
    X.data[0] = 50.0  # by their length alone nearly all columns could get a weight
    options = {"loss": loss, **options_of(kind)}
    alpha = 0.3 * bg.Problem(text[0], y, alpha=1.0, **options).alpha_max
    rows, columns = both(X, y, alpha=alpha, **options)
    monkeypatch.setattr(some_columns, "_MOST_NEAR", 0.0)
    agree(bg.solve(rows, tol=1e-6), columns, 1e-6)
    assert not is_turned(rows)
    assert entries_made(rows) < 0.75 * X.nnz
    weights = np.full(N, 1 / N) if columns.row_weights is None else columns.row_weights
    reach = columns.loss.derivative_bound * (abs(columns.X).T @ weights)
    u = np.ones(P) if columns.penalty_weights is None else columns.penalty_weights
    counts = np.diff(columns.X.indptr)
    assert entries_made(rows) == counts[(reach > alpha * u) | (u == 0)].sum()
    monkeypatch.setattr(some_columns, "_MOST_NEAR_REACHING", 0.0)
    bg.solve(rows)
    assert is_turned(rows)


@pytest.mark.parametrize("kind", ["plain", "intercept", "fold", "penalties"])
@pytest.mark.parametrize("loss", ["logistic", "huber", "squared"])
def test_a_solve_turns_few_columns(text, loss, kind):
    X, y = text
    options = {"loss": loss, **{name: value for name, value in options_of(kind).items() if kind != "penalties"}}
    if kind == "penalties":
        options["penalty_weights"] = np.linspace(1.0, 3.0, P)
    alpha = 0.3 * bg.Problem(X, y, alpha=1.0, **options).alpha_max
    problem = bg.Problem(X, y, alpha=alpha, **options)
    bg.solve(problem)
    assert not is_turned(problem)
    assert entries_made(problem) < 0.5 * X.nnz
    assert problem.X.nnz == X.nnz
    assert is_turned(problem)


@pytest.mark.parametrize(
    ("estimator", "loss"), [("LogisticRegression", "logistic"), ("HuberLasso", "huber"), ("Lasso", "squared")]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_turn_no_more(text, estimator, loss, dtype, monkeypatch):
    X, y = text
    alpha = 0.3 * bg.Problem(X, y, loss=loss, alpha=1.0, fit_intercept=True).alpha_max
    model = getattr(bg, estimator)(alpha=alpha)
    expected = model.fit(sp.csc_array(X, dtype=dtype), y).coef_.copy()
    monkeypatch.setattr(Design, "_all", lambda self: pytest.fail("all columns were made"))
    np.testing.assert_allclose(model.fit(X.astype(dtype), y).coef_, expected, atol=0.02 * np.abs(expected).max())


def test_several_problems_on_one_matrix_share_all_columns(text):
    X, y = text
    problem = bg.Problem(X, y, loss="logistic", alpha=2e-3)
    other = problem.with_targets(-y)
    same(bg.solve(other), bg.solve(bg.Problem(sp.csc_array(X), -y, loss="logistic", alpha=2e-3)))
    assert is_turned(problem)
    classes = np.arange(N) % 3
    model = bg.LogisticRegression(alpha=2e-3).fit(X, classes)
    np.testing.assert_array_equal(model.coef_, bg.LogisticRegression(alpha=2e-3).fit(sp.csc_array(X), classes).coef_)


def test_a_matrix_goes_with_its_problem(text):
    X, y = text
    gc.disable()
    try:
        problem = bg.Problem(X, y, loss="logistic", alpha=2e-3, fit_intercept=True)
        bg.solve(problem)
        design = weakref.ref(problem.design)
        del problem
        assert design() is None
    finally:
        gc.enable()


def test_a_start_with_weights_on_columns_that_would_be_left_out_is_taken_as_it_is(text):
    X, y = text
    alpha = 0.5 * bg.Problem(X, y, loss="logistic", alpha=1.0).alpha_max
    rows, columns = both(X, y, loss="logistic", alpha=alpha)
    rare = np.argsort(np.asarray(abs(X).sum(axis=0)).ravel())[:40]
    start = np.zeros(P)
    start[rare] = 0.1
    for coef in (start, np.full(P, 1e-3)):
        one, other = (bg.solve(problem, coef_init=coef, tol=1e-8) for problem in (rows, columns))
        assert one.trace["objective"][0] == pytest.approx(other.trace["objective"][0], rel=1e-12)
        agree(bg.solve(rows, coef_init=coef, tol=1e-8), columns, 1e-8)


def test_a_path_from_rows_is_a_path_from_columns(text):
    X, y = text
    rows, columns = both(X, y, loss="logistic", alpha=1.0, fit_intercept=True)
    alphas = columns.alpha_max * np.array([0.9, 0.6, 0.4])
    one, other = (bg.solve_path(problem, alphas=alphas) for problem in (rows, columns))
    assert (one.coefs != other.coefs).nnz == 0
    assert [point.gap for point in one.points] == [point.gap for point in other.points]


@pytest.mark.parametrize("max_iter", [1, 2])
def test_a_solve_out_of_iterations_is_proven_with_all_columns(text, max_iter):
    X, y = text
    alpha = 0.1 * bg.Problem(X, y, loss="logistic", alpha=1.0, fit_intercept=True).alpha_max
    rows, columns = both(X, y, loss="logistic", alpha=alpha, fit_intercept=True)
    one = bg.solve(rows, tol=1e-12, max_iter=max_iter)
    assert one.status == "max_iter"
    assert columns.duality_gap(one.coef, one.intercept, one.dual) == pytest.approx(one.gap, rel=1e-9)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda problem: pickle.loads(pickle.dumps(problem))])
def test_a_problem_of_rows_can_be_copied(text, again):
    X, y = text
    problem = bg.Problem(X, y, loss="logistic", alpha=2e-3)
    copied = again(problem)
    same(bg.solve(copied), bg.solve(bg.Problem(sp.csc_array(X), y, loss="logistic", alpha=2e-3)))


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
        lambda X: X.data.__imul__(-1),  # every sign: changes that cancel in pairs
        lambda X: X.data.__setitem__([10, 20], X.data[[20, 10]]),
        lambda X: X.indices.__setitem__(slice(None), np.random.default_rng(0).permutation(X.indices)),
        lambda X: X.indices.__setitem__(slice(None), (X.indices + 1) % P),
        lambda X: X.indices.__setitem__(3, P + 10**6),
        lambda X: X.indices.__setitem__(-1, -1),
        lambda X: X.indptr.__setitem__(5, X.indptr[6]),
        lambda X: X.indptr.__setitem__(slice(1, -1), X.indptr[1:-1] + 1),
        lambda X: X.indptr.__setitem__(3, -5),
    ],
)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_values_and_pointers_that_change_behind_our_back_are_refused(text, change, n_threads, index_type):
    X, y = text[0].copy(), text[1]
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
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
    rows, columns = both(X, y, loss="logistic", alpha=1e-3)
    agree(bg.solve(bg.Problem(repeated, y, loss="logistic", alpha=1e-3)), columns, 1e-4)
    assert bg.Problem(repeated, y, alpha=1e-3).X.nnz == X.nnz
    within = np.repeat(np.arange(N), np.diff(X.indptr))
    backwards = np.lexsort((-X.indices, within))
    unsorted = sp.csr_array((X.data[backwards], X.indices[backwards], X.indptr), shape=X.shape)
    same(bg.solve(bg.Problem(unsorted, y, loss="logistic", alpha=1e-3)), bg.solve(rows))


def test_values_that_hide_thresholds_behind_rounding_are_solved_with_all_columns(text, monkeypatch):
    X, y = text
    X = X.copy()
    X.data[7] = 1e12
    rows, columns = both(X, y, loss="squared", alpha=0.5 * bg.Problem(text[0], y, alpha=1.0).alpha_max)
    monkeypatch.setattr(some_columns, "_NEAR_START", 5.0)
    one, other = bg.solve(rows), bg.solve(columns)
    assert one.status == other.status
    assert one.objective == pytest.approx(other.objective, rel=1e-3)
