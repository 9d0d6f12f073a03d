"""Paths: every point is the solution that solve finds, with its own proof; rules that end a path; choices."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, lasso_path

import blockgreedy as bg
from blockgreedy.solvers.solve import ENGINES
from conftest import LOSSES, random_design, random_targets

N, P = 80, 40
PENALTIES = {
    "l1": {},
    "elastic net": {"l2": 0.02},
    "weights": {"penalty_weights": np.tile([0.5, 1.0, 2.0, np.inf], P // 4)},
    "positive": {"positive": True},
    "box": {"lower": -0.1, "upper": np.tile([0.1, np.inf], P // 2)},
    "unpenalised": {"penalty_weights": np.r_[0.0, 0.0, np.ones(P - 2)]},
}


def make(rng, loss="squared", dense=False, n=N, p=P, dtype=np.float64, **options):
    X = random_design(rng, n, p, density=0.3, dense=dense)
    y = random_targets(rng, n, loss)
    return bg.Problem(X.astype(dtype), y, loss=loss, alpha=1.0, **options)


@pytest.mark.parametrize("rows", ["plain", "all"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_points_are_solutions_with_proof(rng, loss, penalty, rows):
    given = {}
    if rows == "all":
        weights = rng.gamma(1.0, size=N) * (rng.random(N) < 0.8)
        weights[:4] = 1.0
        given = {"fit_intercept": True, "sample_weight": weights, "offset": rng.normal(size=N)}
    problem = make(rng, loss, **PENALTIES[penalty], **given)
    path = bg.solve_path(problem, n_alphas=6, eps=0.02, tol=1e-7, keep_duals=True)
    assert path.status == "converged"
    assert len(path) == 6
    scale = problem.null_model.objective
    for k, point in enumerate(path.points):
        here = problem.with_alpha(point.alpha)
        gap = here.duality_gap(path.coef(k), point.intercept, point.dual)
        assert gap <= 1.01e-7 * scale
        assert gap == pytest.approx(point.gap, abs=1e-12 * scale)
        assert here.objective(path.coef(k), point.intercept) == pytest.approx(point.objective, rel=1e-12)
        assert abs(point.objective - bg.solve(here, tol=1e-7).objective) <= 1.01e-7 * scale


@pytest.mark.parametrize(("dense", "dtype"), [(True, np.float64), (True, np.float32), (False, np.float32)])
def test_storage(rng, dense, dtype):
    problem = make(rng, "logistic", dense=dense, dtype=dtype)
    path = bg.solve_path(problem, tol=1e-8, n_alphas=8)
    direct = bg.solve(problem.with_alpha(path.alphas[-1]), tol=1e-8)
    assert path.objectives[-1] == pytest.approx(direct.objective, abs=1e-8)


def test_agrees_with_scikit_learn(rng):
    problem = make(rng, dense=True)
    path = bg.solve_path(problem, n_alphas=20, tol=1e-10)
    _, coefs, _ = lasso_path(problem.X, problem.y, alphas=path.alphas, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(path.coefs.toarray(), coefs, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"positive": True}])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_elastic_net_whose_parts_fall_together(rng, loss, options):
    problem = make(rng, loss, **options)
    path = bg.solve_path(problem, l1_ratio=0.3, n_alphas=8, tol=1e-8, keep_duals=True)
    assert path.alphas[0] == pytest.approx(problem.alpha_max / 0.3)
    assert path.nonzeros[0] == 0
    for k, point in enumerate(path.points):
        here = problem.with_alpha(0.3 * point.alpha, 0.7 * point.alpha)
        gap = here.duality_gap(path.coef(k), point.intercept, point.dual)
        assert gap <= 1.01e-8 * path.null_loss
        assert here.objective(path.coef(k), point.intercept) == pytest.approx(point.objective, rel=1e-12)
        assert problem.mean(problem.loss.value(problem.y, here.decision(path.coef(k), point.intercept))) == (
            pytest.approx(point.loss, rel=1e-10)
        )


def test_columns_that_cannot_enter_at_large_alpha_return(rng):
    """A bound on the gradient rules rare features out at the first alphas, not at the last."""
    X = sp.random_array((400, 300), density=0.01, rng=rng, data_sampler=lambda size: np.ones(size), format="csc")
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    problem = bg.Problem(X, y, loss="logistic", alpha=1.0)
    path = bg.solve_path(problem, tol=1e-9)
    bound = np.asarray(abs(X).sum(axis=0)).ravel() / 400
    last = path.coef(-1)
    assert np.any(last[bound < path.alphas[0]] != 0)
    direct = bg.solve(problem.with_alpha(path.alphas[-1]), tol=1e-9)
    assert path.objectives[-1] == pytest.approx(direct.objective, abs=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_first_point_is_the_null_model(rng, loss):
    for options in ({}, {"positive": True}, {"sample_weight": rng.gamma(1.0, size=N)}):
        problem = make(rng, loss, fit_intercept=True, **options)
        path = bg.solve_path(problem, [problem.alpha_max, 0.999 * problem.alpha_max])
        assert path.nonzeros.tolist() == [0, 1]
        assert path.deviance_explained[0] == pytest.approx(0.0, abs=1e-12)
        assert path.intercepts[0] == problem.null_model.intercept


def wild_problem(rng):
    """Anything goes: column norms far apart, features without penalty, bounds, weights, an intercept."""
    n, p = int(rng.integers(5, 120)), int(rng.integers(2, 300))
    X = random_design(rng, n, p, density=float(rng.choice([0.02, 0.1, 0.4, 1.0]))).toarray()
    X *= 10.0 ** rng.uniform(-8, 8, size=p) if rng.random() < 0.5 else 1.0
    loss = str(rng.choice(LOSSES))
    options = {"fit_intercept": bool(rng.random() < 0.4), "lower": 0.0 if rng.random() < 0.3 else -np.inf}
    if rng.random() < 0.3:
        options["sample_weight"] = rng.random(n) * (rng.random(n) < 0.8) + (np.arange(n) < 2)
    if rng.random() < 0.4:
        options["penalty_weights"] = rng.choice([0.0, 0.5, 1.0, 3.0, np.inf], size=p, p=[0.05, 0.3, 0.4, 0.2, 0.05])
    X = sp.csc_array(X) if rng.random() < 0.8 else np.asfortranarray(X)
    return bg.Problem(X, random_targets(rng, n, loss), loss=loss, alpha=1.0, **options)


@pytest.mark.parametrize("seed", range(60))
def test_proofs_hold_whatever_the_problem(seed):
    """What is left of each threshold is tracked in float32 along the path; no broken constraint may slip through."""
    rng = np.random.default_rng(seed)
    problem = wild_problem(rng)
    alphas = problem.alpha_max * np.geomspace(1, 10 ** rng.uniform(-3, -0.5), int(rng.integers(3, 20)))
    tol = 10 ** rng.uniform(-7, -1)
    path = bg.solve_path(problem, alphas, tol=tol, keep_duals=True, max_iter=200)
    # features without penalty may explain everything: then nothing but rounding is left
    rounding = 1e-9 * problem.mean(problem.loss.value(problem.y, np.zeros(problem.n_samples)))
    for k, point in enumerate(path.points):
        here = problem.with_alpha(point.alpha)
        gap = here.duality_gap(path.coef(k), point.intercept, point.dual)  # inf if θ or w breaks a constraint
        assert gap <= point.gap + rounding
        if point.status == "converged":
            assert gap <= tol * problem.null_model.objective + rounding


def test_unpenalised_columns_far_smaller_than_the_others_move(rng):
    """The proof looks at a point where their gradients are 0; the step after it must not."""
    X = random_design(rng, 60, 80, density=0.1)
    u = np.ones(80)
    u[:4] = 0.0
    X = sp.csc_array(X @ sp.diags_array(np.r_[1e-3, 1e6, 1e4, 1e3, 10.0 ** rng.uniform(0, 7, 76)]))
    problem = bg.Problem(X, rng.normal(size=60), loss="squared", alpha=1.0, penalty_weights=u)
    path = bg.solve_path(problem, n_alphas=10, tol=1e-6)
    assert path.status == "converged"
    assert np.all(path.n_iters <= 5)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"positive": True}])
def test_columns_that_come_and_go_keep_their_products(options, monkeypatch):
    """More columns pass through the support than products are kept for, and fewer rows than columns."""
    rng = np.random.default_rng(3)
    X = random_design(rng, 62, 330, density=0.2)
    assert X.nnz < 2 * 64**2
    problem = bg.Problem(X, rng.normal(size=62), loss="squared", alpha=1.0, **options)
    engines = []
    make = ENGINES["auto"]
    monkeypatch.setitem(
        ENGINES, "auto", lambda *args, **options: engines.append(make(*args, **options)) or engines[-1]
    )
    path = bg.solve_path(problem, n_alphas=60, tol=1e-9, keep_duals=True)
    assert path.status == "converged"
    assert engines[-1].core.n_subproblems_by_products > 20  # of more than 60
    if not options:
        assert len(np.unique(np.concatenate([point.features for point in path.points]))) > 64
    for k, point in enumerate(path.points):
        here = problem.with_alpha(point.alpha)
        assert here.duality_gap(path.coef(k), point.intercept, point.dual) <= 1.01e-9 * problem.null_model.objective


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_loose_tolerances_take_a_step_at_every_alpha(loss):
    data = bg.data.text_like(1500, 2500, 30.0, seed=6)
    problem = bg.Problem(data.X, data.y.astype(float), loss=loss, alpha=1.0)
    fine = bg.solve_path(problem, n_alphas=40, eps=1e-2, tol=1e-8)
    loose = bg.solve_path(problem, n_alphas=40, eps=1e-2, tol=0.05)
    f_null = problem.null_model.objective
    assert np.all(loose.gaps <= 0.05 * f_null)
    assert np.max(loose.objectives - fine.objectives) <= 1e-4 * f_null  # where no step was made it would be 1e-2
    moves = np.asarray(abs(loose.coefs[:, 1:] - loose.coefs[:, :-1]).sum(axis=0)).ravel()
    assert np.all(moves > 0)


@pytest.mark.threads
def test_threads_change_nothing(rng):
    problem = make(rng, "logistic", n=1000, p=400)
    one, two = (bg.solve_path(problem, n_alphas=5, eps=0.05, n_threads=n) for n in (1, 2))
    assert np.array_equal(one.coefs.toarray(), two.coefs.toarray())
    assert np.array_equal(one.gaps, two.gaps)


def test_alphas(rng):
    problem = make(rng)
    path = bg.solve_path(problem, n_alphas=5, eps=0.01)
    np.testing.assert_allclose(path.alphas, problem.alpha_max * np.geomspace(1, 0.01, 5))
    again = bg.solve_path(problem, path.alphas[::-1])
    assert np.array_equal(again.alphas, path.alphas)
    assert np.array_equal(again.coefs.toarray(), path.coefs.toarray())
    assert path.coefs.shape == (P, 5)
    assert np.array_equal(path.nonzeros, np.count_nonzero(path.coefs.toarray(), axis=0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": []}, "alphas must be"),
        ({"alphas": [1.0, -1.0]}, "alphas must be"),
        ({"alphas": [[1.0]]}, "alphas must be"),
        ({"n_alphas": 0}, "n_alphas=0"),
        ({"eps": 1.0}, "eps=1.0"),
        ({"l1_ratio": 0.0}, "l1_ratio=0.0"),
        ({"l1_ratio": 1.5}, "l1_ratio=1.5"),
        ({"l1_ratio": 0.5, "alphas": [1.0, 0.0]}, "above 0 with l1_ratio"),
        ({"max_nonzeros": -1}, "max_nonzeros=-1"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_seconds": 0.0}, "max_seconds=0.0"),
    ],
)
def test_refusals(rng, options, message):
    with pytest.raises(ValueError, match=message):
        bg.solve_path(make(rng), **options)


def test_nothing_to_explain():
    path = bg.solve_path(bg.Problem(np.eye(3), np.zeros(3), alpha=1.0))
    assert path.status == "converged"
    assert path.nonzeros.tolist() == [0]


def test_rules_that_end_a_path(rng):
    problem = make(rng, dense=True, n=60)
    full = bg.solve_path(problem, eps=1e-4)
    few = bg.solve_path(problem, eps=1e-4, max_nonzeros=5)
    assert few.status == "stopped"
    assert few.nonzeros[-1] > 5 >= few.nonzeros[-2]
    assert len(bg.solve_path(problem, callback=lambda point: point.alpha < 0.5 * problem.alpha_max)) < 20
    early = bg.solve_path(problem, eps=1e-4, early_stop=True)
    assert early.status == "stopped"
    assert len(early) < len(full)
    late, before = early.deviance_explained[-1], early.deviance_explained[-2]
    assert late > 0.999 or late - before < 1e-5 * late
    np.testing.assert_array_equal(early.objectives, full.objectives[: len(early)])


def test_out_of_budget(rng):
    problem = make(rng, "logistic")
    path = bg.solve_path(problem, max_iter=1, tol=1e-12, eps=1e-4)
    assert path.status == "max_iter"
    assert "raise max_iter" in path.message
    assert all(point.gap >= 0 and np.isfinite(point.gap) for point in path.points)
    path = bg.solve_path(problem, max_seconds=1e-9)
    assert path.status == "max_seconds"
    assert len(path) == 1  # the null model needs no step
    assert path.gaps[-1] < 0.1 * path.null_loss

    def interrupt(point):
        if point.alpha < 0.5 * problem.alpha_max:
            raise KeyboardInterrupt

    path = bg.solve_path(problem, callback=interrupt)
    assert path.status == "interrupted"
    assert path.nonzeros[-1] > 0


def test_deviance_and_criteria(rng):
    problem = make(rng, "logistic", fit_intercept=True)
    path = bg.solve_path(problem, n_alphas=6)
    decision = problem.X @ path.coefs.toarray() + path.intercepts
    deviance = 2 * np.sum(np.log1p(np.exp(-problem.y[:, None] * decision)), axis=0)
    null = 2 * N * problem.null_model.objective
    np.testing.assert_allclose(path.deviance_explained, 1 - deviance / null, atol=1e-9)
    np.testing.assert_allclose(path.aic(), deviance + 2 * (path.nonzeros + 1), rtol=1e-9)
    np.testing.assert_allclose(path.bic(), deviance + np.log(N) * (path.nonzeros + 1), rtol=1e-9)
    assert np.array_equal(path.ebic(gamma=0), path.bic())
    assert path.ebic()[-1] > path.bic()[-1]
    problem = make(rng)
    path = bg.solve_path(problem, n_alphas=6)
    squares = np.sum((problem.y[:, None] - problem.X @ path.coefs.toarray()) ** 2, axis=0)
    np.testing.assert_allclose(path.aic(), N * np.log(squares / N) + 2 * path.nonzeros, rtol=1e-9)
    with pytest.raises(ValueError, match="no likelihood"):
        bg.solve_path(make(rng, "squared_hinge"), n_alphas=2).aic()
    with pytest.raises(ValueError, match="gamma=2"):
        path.ebic(gamma=2)


def test_choice_by_nonzeros(rng):
    path = bg.solve_path(make(rng))
    for k in (0, 5, 17):
        chosen = path.index_of_nonzeros(k)
        assert abs(path.nonzeros[chosen] - k) == np.min(np.abs(path.nonzeros - k))
        assert chosen == np.flatnonzero(path.nonzeros == path.nonzeros[chosen])[0]


def test_refit_has_no_penalty(rng):
    problem = make(rng, dense=True, fit_intercept=True)
    path = bg.solve_path(problem)
    k = path.index_of_nonzeros(6)
    features = path.points[k].features
    design = np.column_stack([problem.X[:, features], np.ones(N)])
    expected = np.linalg.lstsq(design, problem.y, rcond=None)[0]
    relaxed = path.refit(k)
    np.testing.assert_allclose(relaxed.coef[features], expected[:-1], atol=1e-3)
    assert relaxed.intercept == pytest.approx(expected[-1], abs=1e-3)
    assert np.count_nonzero(relaxed.coef) == len(features)

    problem = make(rng, "logistic", n=300, fit_intercept=True)
    path = bg.solve_path(problem)
    k = path.index_of_nonzeros(4)
    features = path.points[k].features
    model = LogisticRegression(C=np.inf, tol=1e-8).fit(problem.X[:, features], problem.y)
    np.testing.assert_allclose(path.refit(k, tol=1e-9).coef[features], model.coef_[0], rtol=1e-3)


def test_plot_shows_the_path(rng):
    path = bg.solve_path(make(rng), n_alphas=10)
    names = [f"word{j}" for j in range(P)]
    upper, lower = path.plot(n_named=3, feature_names=names).axes
    assert len(upper.lines) == np.count_nonzero(np.abs(path.coefs.toarray()).max(axis=1))
    largest = np.argsort(-np.abs(path.coefs.toarray()).max(axis=1), kind="stable")[:3]
    assert [text.get_text() for text in upper.get_legend().get_texts()] == [names[j] for j in largest]
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), path.nonzeros)
    with pytest.raises(ValueError, match="feature_names"):
        path.plot(feature_names=["one"])


def test_names_beside_the_plot_tell_the_weights_apart(rng):
    figure = bg.solve_path(make(rng), n_alphas=10, eps=0.01).plot(n_named=9)
    figure.draw_without_rendering()
    upper = figure.axes[0]
    named = [line for line in upper.lines if line.get_label().startswith("feature")]
    assert len({(line.get_color(), line.get_linestyle()) for line in named}) == len(named) == 9
    assert upper.get_legend().get_window_extent().x0 >= upper.get_window_extent().x1
    assert upper.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_plot_without_matplotlib_names_the_extra(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"blockgreedy\[report\]"):
        bg.solve_path(make(rng), n_alphas=2).plot()


def test_repr(rng):
    assert "10 alphas" in repr(bg.solve_path(make(rng), n_alphas=10))
