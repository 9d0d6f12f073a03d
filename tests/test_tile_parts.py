"""Parts of the tile solver by themselves, against NumPy."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from blockgreedy import _core
from blockgreedy.backends.tiles.grid import Grid
from blockgreedy.backends.tiles.local import column_keys, products_of
from blockgreedy.backends.tiles.model import Model, WorkingPenalty
from blockgreedy.backends.tiles.selection import bins_that_fit
from blockgreedy.backends.tiles.sparse_columns import as_csc, cut_rows, gather, packed, unpacked
from blockgreedy.backends.tiles.threads import run_in_threads
from blockgreedy.base.names import LOSS_NAMES
from blockgreedy.problem.losses import make_loss
from blockgreedy.problem.passes import core_matrix
from blockgreedy.solvers.interrupt import Deferred


def columns(n, p, dtype, seed=0, density=0.3):
    X = sp.csc_array(sp.random(n, p, density=density, random_state=seed)).astype(dtype)
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [7, 3000])
def test_products_of_the_working_set(dtype, n_rows):
    random = np.random.default_rng(1)
    first, second = columns(n_rows, 40, dtype, 1), columns(n_rows, 30, dtype, 2)
    places = np.array([[0, 3], [1, 29], [0, 0], [1, 5], [0, 39]] * 4, dtype=np.int32)
    X = np.column_stack([(first, second)[m].toarray()[:, j] for m, j in places]).astype(np.float64)
    h, p = random.random(n_rows), random.standard_normal(len(places))
    p[::3] = 0
    wanted = np.array([4, 0, 7], dtype=np.int32)
    results = []
    for n_threads in (1, 3):
        working = _core.WorkingColumns(
            [core_matrix(first), core_matrix(second)], places.ravel(), _core.Team(n_threads)
        )
        sums = working.bend(np.sqrt(h).astype(np.float32))
        assert sums[: len(places)] == pytest.approx(np.sum(h[:, None] * X**2, axis=0), rel=1e-5)
        assert sums[len(places) :] == pytest.approx(X.T @ h, rel=1e-5)
        found = working.gram_product(p, wanted)
        assert found == pytest.approx((X.T @ (h * (X @ p)))[wanted], rel=1e-4, abs=1e-4)
        assert working.combine(p) == pytest.approx(X @ p, rel=1e-12, abs=1e-12)
        results.append((sums, found))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))  # any number of threads


def test_products_of_many_short_columns_are_summed_by_parts_of_them():
    """Pieces of them in blocks of rows would be shorter than 64 entries: there are 5,000 columns of 90 entries."""
    random, X = np.random.default_rng(2), columns(3000, 5000, np.float64, 3, density=0.03)
    places = np.column_stack([np.zeros(5000, dtype=np.int32), np.arange(5000, dtype=np.int32)])
    h, p = random.random(3000), np.where(random.random(5000) < 0.8, random.standard_normal(5000), 0.0)
    wanted = np.sort(random.choice(5000, 900, replace=False)).astype(np.int32)
    results = []
    for n_threads in (1, 3):
        working = _core.WorkingColumns([core_matrix(X)], places.ravel(), _core.Team(n_threads))
        working.bend(np.sqrt(h).astype(np.float32))
        found = working.gram_product(p, wanted)
        assert found == pytest.approx((X.T @ (h * (X @ p)))[wanted], rel=1e-3, abs=1e-3)
        assert working.combine(p) == pytest.approx(X @ p, rel=1e-12, abs=1e-12)
        results.append((found, working.combine(p)))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_the_core_refuses_columns_that_are_not_there():
    matrix, team = core_matrix(columns(5, 3, np.float64)), _core.Team(1)
    with pytest.raises(ValueError, match="places"):
        _core.WorkingColumns([matrix], np.array([0, 3], dtype=np.int32), team)
    with pytest.raises(ValueError, match="columns"):
        _core.gather_columns(team, [matrix], [0], [0], [5], [np.array([7], dtype=np.int32)])
    with pytest.raises(ValueError, match="rows"):
        _core.gather_columns(team, [matrix], [0], [2], [6], [np.array([1], dtype=np.int32)])
    working = _core.WorkingColumns([matrix], np.array([0, 1], dtype=np.int32), team)
    with pytest.raises(ValueError, match="wanted"):
        working.gram_product(np.ones(1), np.array([1], dtype=np.int32))
    other = core_matrix(columns(5, 3, np.float32))
    with pytest.raises(ValueError, match="one type"):
        _core.WorkingColumns([matrix, other], np.array([0, 1], dtype=np.int32), team)


def test_products_of_some_columns():
    X, theta = columns(50, 20, np.float64), np.linspace(-1, 1, 50)
    numbers = np.array([17, 0, 3, 4, 9], dtype=np.int32)
    found, read = products_of(X, theta, numbers, _core.Team(2))
    assert found == pytest.approx((X.T @ theta)[numbers])
    assert read == int(np.sum(np.diff(X.indptr)[numbers]))
    with pytest.raises(ValueError, match="columns"):
        products_of(X, theta, np.array([20], dtype=np.int32), _core.Team(1))


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_losses_along_a_direction(loss):
    random = np.random.default_rng(2)
    n, made = 700, make_loss(loss, 1.35)
    y = np.where(random.random(n) > 0.5, 1.0, -1.0)
    t, d, weights = random.standard_normal(n), random.standard_normal(n), random.random(n)
    steps = np.array([0.0, 0.5, 2.0])
    delta = getattr(made, "delta", 1.0)
    found = _core.losses_along(_core.Team(1), y, weights, made.code, delta, t, d, steps)
    assert found == pytest.approx([np.sum(weights * made.value(y, t + s * d)) for s in steps], rel=1e-12)
    theta, root = np.empty(n), np.empty(n, dtype=np.float32)
    value = _core.evaluate_rows(_core.Team(1), y, weights, made.code, delta, t, -np.inf, 1e-3, theta, root)
    assert value == pytest.approx(found[0], rel=1e-12)
    assert theta == pytest.approx(weights * made.deriv(y, t), rel=1e-12, abs=1e-15)


def test_columns_are_gathered_cut_and_sent():
    top, bottom, team = columns(6, 9, np.float32, 1), columns(5, 9, np.float32, 2), _core.Team(1)
    wanted = np.array([8, 0, 4], dtype=np.int32)
    found = gather(team, 11, [(top, 0, wanted), (bottom, 6, wanted)])
    whole = np.vstack([top.toarray(), bottom.toarray()])[:, wanted]
    assert np.array_equal(found.toarray(), whole)
    assert found.indices.dtype == np.int32
    pieces = cut_rows(team, found, np.array([0, 4, 4, 11]))
    assert [piece.shape[0] for piece in pieces] == [4, 0, 7]
    assert np.array_equal(np.vstack([piece.toarray() for piece in pieces]), whole)
    again = unpacked(packed(found), 11, found.dtype)
    assert np.array_equal(again.toarray(), whole)
    dense = np.asfortranarray(whole)
    assert np.array_equal(as_csc(dense).toarray(), whole)


def test_keys_tell_columns_apart_and_add_up_over_rows():
    X = columns(60, 30, np.float64, 3)
    twice = sp.csc_array(sp.hstack([X, X, 2 * X]))
    twice.sort_indices()
    keys = column_keys(twice, 0)
    filled = np.diff(X.indptr) > 0
    assert np.array_equal(keys[:30], keys[30:60])
    assert not np.any((keys[:30] == keys[60:])[filled])
    assert len(np.unique(keys[:30][filled])) == np.count_nonzero(filled)
    upper, lower = cut_rows(_core.Team(1), twice, np.array([0, 25, 60]))
    assert np.array_equal(column_keys(upper, 0) + column_keys(lower, 25), keys)


def test_keys_of_whole_numbers_and_of_opposite_columns_differ():
    random = np.random.default_rng(0)
    tables = [random.integers(low, high, (200, 300)).astype(np.float64) for low, high in ((0, 2), (1, 5))]
    X = columns(200, 300, np.float64, 4, density=0.2)
    for table in (*tables, -tables[1], sp.hstack([X, -X, 2 * X, 0.5 * X])):
        made = sp.csc_array(table)
        made.sort_indices()
        keys = column_keys(as_csc(made), 0)
        assert len(np.unique(keys)) == len(keys)
        bits = np.unpackbits(keys.view(np.uint8)).reshape(len(keys), 64)
        assert np.all(np.abs(np.mean(bits, axis=0) - 0.5) < 0.2)  # each is as good as random


def made_model(seed, n=40, m=25, upper=np.inf):
    random = np.random.default_rng(seed)
    Z = random.standard_normal((n, m))
    penalty = WorkingPenalty(np.full(m, 0.3), np.full(m, 0.01), np.full(m, -upper), np.full(m, upper))
    w = np.where(random.random(m) > 0.5, 0.1 * random.standard_normal(m), 0.0)
    w = penalty.clip(w)
    g = random.standard_normal(m)

    def value(z):
        step = z - w
        l2 = 0.5 * float(penalty.l2 @ (z * z - w * w))
        l1 = float(penalty.l1 @ (np.abs(z) - np.abs(w)))
        return float(g @ step) + 0.5 * float(np.sum((Z @ step) ** 2)) + l2 + l1

    def product(p, wanted):
        return (Z.T @ (Z @ p))[wanted]

    return Model(w, g, np.sum(Z**2, axis=0), penalty, product, 2.0), value


@pytest.mark.parametrize("upper", [np.inf, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_cycles_lower_the_model_by_what_they_say(seed, upper):
    model, value = made_model(seed, upper=upper)
    before = 0.0
    for _ in range(6):
        model.cycle(False)
        assert model.change <= before + 1e-12
        assert model.change == pytest.approx(value(model.z), abs=1e-9)
        assert np.all(np.abs(model.z) <= upper)
        before = model.change


@pytest.mark.parametrize("seed", range(20))
def test_the_best_step_along_a_line_is_found_without_products(seed):
    model, _ = made_model(seed)
    random = np.random.default_rng(seed)
    model.z = np.where(random.random(25) > 0.3, random.standard_normal(25), 0.0)
    model.slope = random.standard_normal(25)
    direction = np.where(model.z != 0, random.standard_normal(25), 0.0)
    bent = model.product(direction)
    sizes = np.linspace(0, 1, 20001)

    def along(size):
        linear = size * float(model.slope @ direction) + 0.5 * size**2 * float(direction @ bent)
        return linear + float(model.penalty.l1 @ (np.abs(model.z + size * direction) - np.abs(model.z)))

    best = min(along(size) for size in sizes)
    assert along(model._best_size(direction, bent)) <= best + 1e-12


def test_bins_fill_the_room_that_is_left():
    counts = np.zeros(256)
    counts[:4] = [3, 100, 400, 400]
    both = np.concatenate([counts, 10 * counts])
    assert bins_that_fit(both, 10, 1.0, np.inf) == (3, True)
    assert bins_that_fit(both, 10, 0.5, np.inf) == (256, False)
    assert bins_that_fit(both, 10, 1.0, 1100) == (2, True)  # entries are counted too
    both[0] = 5000  # columns of one bin enter together
    assert bins_that_fit(both, 0, 1.0, 0.0)[0] == 1


def test_ranks_that_are_threads_agree():
    def work(ranks):
        grid = Grid(ranks, 2, 2)
        total = grid.all.reduce(np.array([ranks.rank + 1.0]), "test")
        beside = np.concatenate(grid.beside.gather(np.array([ranks.rank]), "test"))
        above = grid.above.exchange([np.array([10 * ranks.rank + k]) for k in range(2)], "test")
        return total[0], beside.tolist(), np.concatenate(above).tolist(), grid.all.broadcast(ranks.rank)

    assert run_in_threads(4, work) == [
        (10.0, [0, 1], [0, 20], 0),
        (10.0, [0, 1], [10, 30], 0),
        (10.0, [2, 3], [1, 21], 0),
        (10.0, [2, 3], [11, 31], 0),
    ]


def test_a_grid_needs_as_many_ranks():
    with pytest.raises(ValueError, match="needs 6 ranks; there are 2"):
        run_in_threads(2, lambda ranks: Grid(ranks, 2, 3))


def test_ctrl_c_is_heard_when_the_work_is_done():
    done = []
    with Deferred() as ctrl_c:
        os.kill(os.getpid(), signal.SIGINT)
        done.append(1)
    assert done == [1]
    assert ctrl_c.pressed
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)

    def elsewhere():
        with Deferred() as inside:
            done.append(inside.pressed)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done == [1, False]
