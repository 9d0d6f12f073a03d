"""The tile solver: a Newton method on a working set, for a grid of ranks.

Rank (r, c) of the grid holds the tile X_rc, which serves gradients only. The working set, small, is cut anew by rows
over all ranks; then a product Zᵀ(Zp) of the quadratic model is local up to one all-reduce of a vector as long as the
working set, and everything else of the model is the same on every rank. All ranks run this text; what decides is
computed of numbers that are the same bits on all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockgreedy import _core
from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.dual import DualPoint, Equalities
from blockgreedy.backends.tiles.model import Model, WorkingPenalty
from blockgreedy.backends.tiles.recut import Entrants, Recut
from blockgreedy.backends.tiles.shard import Shard
from blockgreedy.problem.columns import as_dense
from blockgreedy.problem.passes import core_matrix

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class TileSolver:
    """A point of the problem, in this rank's columns and rows, and one outer iteration after the other."""

    def __init__(self, shard: Shard, tol: float, team: _core.Team) -> None:
        self.shard, self.tol, self._team = shard, tol, team
        tile, penalty = shard.tile, shard.penalty
        self.weights, self.intercept = np.zeros(tile.n_features), 0.0
        self.norms = shard.norms()
        self._recut = Recut(shard.grid, tile, shard.row_cuts, shard.first_row, len(shard.rows))
        self._always = (penalty.unit == 0) & (penalty.lower < penalty.upper) & (self.norms > 0)
        self._is_alias = np.zeros(tile.n_features, dtype=np.bool_)
        self.dual = DualPoint(shard, self.norms, self._equalities())
        self.n_iter = self.n_products = self.n_gradients = 0
        self.nonzeros_touched = 0
        self.objective = self.penalty_value = np.nan
        self._start_anew()

    def _equalities(self) -> Equalities:
        """The unpenalised columns of all ranks: few, so every rank has its rows of them as dense columns."""
        shard, free = self.shard, self.shard.penalty.is_free & (self.norms > 0)
        self._equal_ids = np.zeros(0, dtype=np.int64)
        if shard.sum_over_columns(np.array([np.count_nonzero(free)], dtype=np.float64))[0] == 0:
            return Equalities(shard, np.zeros((len(shard.rows), 0)))
        places = self._enter(np.flatnonzero(free))
        self._equal_ids = self._recut.facts.ids[places]
        return Equalities(shard, as_dense(self._recut.chosen(places)))

    def _start_anew(self) -> None:
        """What is known of columns and of steps belongs to the point that was left."""
        self._kappa, self._effort = tuning.FIRST_KAPPA, 1
        self._careful, self._damping, self._largest_change = True, tuning.FIRST_DAMPING, 1.0
        self._forced = self._always
        self._slack = np.full(self.shard.tile.n_features, -np.inf)
        self._known = np.zeros(self.shard.tile.n_features)  # x_j·θ of the columns that were due
        self._scanned: Array | None = None  # the θ of these products
        self._last_decrease, self._was_truncated, self._has_failed = np.inf, True, False

    # -- where it stands

    @property
    def gap(self) -> float:
        return self.objective - self.dual.value

    @property
    def enough(self) -> float:
        return max(self.tol * self.shard.f_null, self.shard.floor)

    def start(self, weights: Array, intercept: float) -> None:
        """Goes to these weights of this rank's columns."""
        self.weights, self.intercept = np.array(weights), intercept
        self._start_anew()
        self.objective, self.penalty_value = self.evaluate(self.shard.predictions(self.weights, intercept))

    def evaluate(self, predictions: Array) -> tuple[float, float]:
        """Takes these predictions for those of the weights; objective and penalty there."""
        shard, support = self.shard, np.flatnonzero(self.weights)
        own = shard.penalty.value(support, self.weights[support])
        penalty = float(shard.sum_over_columns(np.array([own]))[0])
        loss = float(shard.over_rows(shard.rows.move_to(predictions, *self._safeguard()))[0])
        return loss + penalty, penalty

    def lower_alpha(self, alpha: float, l2: Array) -> None:
        """Goes on with the same weights at another alpha and l2."""
        shard = self.shard
        shard.penalty.alpha, shard.penalty.l2 = alpha, l2
        self._start_anew()
        self.dual.forget()
        self.objective, self.penalty_value = self.evaluate(shard.rows.predictions)

    # -- one outer iteration

    def step(self) -> bool:
        """False if it cannot go on in floating point."""
        shard, rows = self.shard, self.shard.rows
        self.n_iter += 1
        products = self._scan()
        if not self.dual.equalities.count:
            self.dual.offer(rows.theta, products, np.zeros(0))
            if self.gap <= self.enough:
                return True
        truncated, places = self._choose(products)
        model, columns = self._model(places, products)
        self._minimise(model, truncated)
        self._kappa = model.kappa
        self.n_products += model.n_products
        direction = model.z - model.start
        along = columns.combine(direction)
        candidate, curvature = rows.theta + rows.curvature * along, rows.curvature
        self.nonzeros_touched += columns.nonzeros_touched
        decrease = self._line_search(model, direction, along)
        if decrease is None:
            self._effort, self._careful = min(tuning.MOST_EFFORT, 2 * self._effort), True
            self._kappa *= 2
            again, self._has_failed = not self._has_failed, True
            return again
        self._has_failed = False
        if -model.change <= tuning.PROOF_NEAR * self.enough:
            self.prove(candidate, curvature)
        self._pace(decrease, truncated)
        return True

    def _scan(self) -> Array:
        """x_j·θ of the columns that may break their thresholds, 0 for the others.

        A column whose product was below its threshold by some slack keeps it until θ has moved that far.
        """
        theta, penalty = self.shard.rows.theta, self.shard.penalty
        if self._scanned is not None:
            self._slack -= self.norms * (self._distance(theta) * (1 + 1e-12))
        due = (self._slack <= 0) | (self.weights != 0) | self._forced
        found = self._products(theta, due)
        self._slack[due] = penalty.l1[due] - np.abs(found[due])
        self._slack -= tuning.PRODUCT_ROUNDING * self.norms
        self._scanned = theta
        return found

    def _distance(self, theta: Array) -> float:
        assert self._scanned is not None
        return float(np.sqrt(self.shard.over_rows(float(np.sum((theta - self._scanned) ** 2)))[0]))

    def _products(self, theta: Array, due: Mask) -> Array:
        self.n_gradients += 1
        before = self.shard.tile.nonzeros_touched
        found = self.shard.products(theta, due)
        self.nonzeros_touched += self.shard.tile.nonzeros_touched - before
        return found

    def _choose(self, products: Array) -> tuple[bool, NDArray[np.intp]]:
        """Whether columns that want to enter have to wait, and the places of the working set's columns."""
        shard, penalty = self.shard, self.shard.penalty
        support = (self.weights != 0) | self._forced
        outwards = np.where(products > 0, penalty.lower < 0, penalty.upper > 0)
        excess = np.abs(products) - penalty.l1
        wants = (excess > 0) & outwards & ~support & ~self._is_alias & (self.norms > 0)
        score = np.divide(excess, self.norms, out=np.zeros(len(excess)), where=wants)
        best = shard.max_over_columns(float(np.max(score, initial=0.0)))
        bins = np.full(len(score), -1, dtype=np.int64)
        if best > 0:
            depth = -2 * tuning.BINS_PER_OCTAVE * np.log2(score[wants] / best)
            bins[wants] = np.minimum(depth, tuning.BINS - 1).astype(np.int64)
        counts = np.bincount(bins[bins >= 0], minlength=tuning.BINS)
        sums = shard.sum_over_columns(np.append(counts, np.count_nonzero(support)).astype(np.float64))
        totals, n_support = np.cumsum(sums[:-1]), sums[-1]
        room = tuning.SET_MARGIN * max(tuning.LEAST_SET, tuning.SET_GROWTH * n_support) - n_support
        allowed = int(np.searchsorted(totals, max(room, totals[0]), side="right"))
        truncated = allowed < tuning.BINS and totals[-1] > totals[allowed - 1]
        return bool(truncated), self._enter(np.flatnonzero(support | ((bins >= 0) & (bins < allowed))))

    def _enter(self, own: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where the columns stand that all ranks chose, this one these; new ones are sent round."""
        shard, penalty = self.shard, self.shard.penalty
        ids = (own + shard.first_feature).astype(np.int64)
        everybodys = np.concatenate(shard.grid.beside.gather(ids, "working set"))
        _, held = self._recut.places(everybodys)
        if not np.all(held):
            new = own[~self._recut.places(ids)[1]]
            facts = (penalty.unit[new], penalty.l2[new], penalty.lower[new], penalty.upper[new])
            entrants = Entrants((new + shard.first_feature).astype(np.int64), *facts, np.zeros(len(new), np.uint64))
            self._recut.add(entrants, new)
        places = self._recut.places(everybodys)[0]
        return self._without_aliases(places)

    def _without_aliases(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Of columns that are equal, and equally penalised, one is enough: the first."""
        facts = self._recut.facts.at(places)
        if not len(places):
            return places
        same = np.stack([facts.key, *(part.view(np.uint64) for part in (facts.unit, facts.lower, facts.upper))])
        _, first, group = np.unique(same, axis=1, return_index=True, return_inverse=True)
        is_first = first[group.ravel()] == np.arange(len(places))
        may_go = ~is_first & (facts.unit > 0) & (facts.l2 == 0)
        if not np.any(may_go):
            return places
        mine = facts.ids[may_go] - self.shard.first_feature
        mine = mine[(mine >= 0) & (mine < len(self.weights))]
        mine = mine[self.weights[mine] == 0]
        self._is_alias[mine] = True
        weights = self._gathered(facts.ids, self.weights)
        return places[~(may_go & (weights == 0))]

    def _gathered(self, ids: NDArray[np.int64], values: Array) -> Array:
        """Numbers of columns, each known to its owners, on every rank."""
        own = ids - self.shard.first_feature
        mine = (own >= 0) & (own < len(values))
        found = np.zeros(len(ids))
        found[mine] = values[own[mine]]
        return self.shard.grid.beside.reduce(found, "working set")

    def _model(self, places: NDArray[np.intp], products: Array) -> tuple[Model, _core.WorkingColumns]:
        shard, rows = self.shard, self.shard.rows
        facts, matrix = self._recut.facts.at(places), self._recut.chosen(places)
        both = np.concatenate([self._gathered(facts.ids, self.weights), self._gathered(facts.ids, products)])
        w, g = np.split(both, 2)
        self._ids = facts.ids
        l1, l2, lower, upper = shard.penalty.alpha * facts.unit, facts.l2, facts.lower, facts.upper
        if shard.fit_intercept:
            slope = float(shard.over_rows(float(np.sum(rows.theta)))[0])
            w, g, l1, l2 = np.append(w, self.intercept), np.append(g, slope), np.append(l1, 0.0), np.append(l2, 0.0)
            lower, upper = np.append(lower, -np.inf), np.append(upper, np.inf)
        columns = _core.WorkingColumns(core_matrix(matrix), shard.fit_intercept, self._team)
        diagonal = shard.grid.all.reduce(columns.bend(rows.curvature), "diagonal")

        def product(p: Array, wanted: NDArray[np.int32]) -> NDArray[np.float32]:
            return shard.grid.all.reduce(columns.gram_product(p, wanted), "products")

        return Model(w, g, diagonal, WorkingPenalty(l1, l2, lower, upper), product, self._kappa), columns

    def _minimise(self, model: Model, truncated: bool) -> None:
        for _ in range((1 if truncated else tuning.CYCLES) * self._effort):
            model.cycle(truncated)
        if truncated:
            return
        for _ in range(tuning.ENDGAME_CYCLES):
            # near the end the model is solved until the dual point that it predicts loses less than the gap by scaling
            norm = float(np.sum(model.penalty.l1 * np.abs(model.z)))
            if -model.change > tuning.ENDGAME * self.enough or model.excess * norm <= self.enough:
                return
            model.cycle(truncated)

    def _line_search(self, model: Model, direction: Array, along: Array) -> float | None:
        """Moves; returns the decrease of the objective, None where no step lowers it."""
        shard, rows, before = self.shard, self.shard.rows, self.objective
        linear = model.linear_change(model.z)
        if not linear < 0:
            return None
        is_rounding = -linear <= tuning.ROUNDING * before
        for sizes in (tuning.STEPS, tuning.SHORT_STEPS):
            steps = np.array(sizes)
            losses = shard.over_rows(*rows.losses_along(along, steps))
            penalties = np.array([model.penalty.value_or_inf(model.start + s * direction) for s in steps])
            values = losses + penalties
            if is_rounding:  # the objective cannot show the gain, the gradient can
                good = (steps == 1) & (values <= before * (1 + tuning.ROUNDING))
            else:
                good = values <= before + tuning.ARMIJO * np.minimum(steps, 1.0) * linear
            if np.any(good):
                best = int(np.argmin(np.where(good, values, np.inf)))
                self._accept(model, direction, along, float(steps[best]), before - float(values[best]))
                self.objective, self.penalty_value = float(values[best]), float(penalties[best])
                return before - self.objective
            if is_rounding:
                return None
        return None

    def _accept(self, model: Model, direction: Array, along: Array, size: float, decrease: float) -> None:
        shard, rows = self.shard, self.shard.rows
        z = model.z if size == 1 else model.start + size * direction
        if shard.fit_intercept:
            self.intercept = float(z[-1])
        own = self._ids - shard.first_feature
        mine = (own >= 0) & (own < len(self.weights))
        self.weights = np.zeros(len(self.weights))
        self.weights[own[mine]] = z[: len(own)][mine]
        self._careful = size < 1 or decrease > tuning.LARGE_DECREASE * self.objective
        if rows.loss.has_flat_parts:
            change = shard.grid.all.reduce(np.array([np.max(np.abs(along), initial=0.0)]), "rows", "max")
            self._largest_change = size * float(change[0])
            by = tuning.DAMPING_DOWN if size >= 1 else tuning.DAMPING_UP
            self._damping = float(np.clip(by * self._damping, tuning.LEAST_DAMPING, tuning.MOST_DAMPING))
        rows.move_to(rows.predictions + size * along, *self._safeguard())

    def _safeguard(self) -> tuple[float, float]:
        """Which rows count as curved, and how much those do where the loss is flat."""
        if self.shard.rows.loss.has_flat_parts:
            return self._largest_change, self._damping
        return (tuning.MAJORISED_MARGIN if self._careful else -np.inf), self._damping

    def _pace(self, decrease: float, truncated: bool) -> None:
        if decrease > 0.5 * self._last_decrease and not truncated and not self._was_truncated:
            self._effort = min(tuning.MOST_EFFORT, 2 * self._effort)
        elif decrease < 0.02 * self.objective:
            self._effort = max(1, self._effort // 2)
        self._last_decrease, self._was_truncated = decrease, truncated

    # -- proofs

    def prove(self, theta: Array, curvature: Array, all_columns: bool = False) -> None:
        """Offers a dual point near θ; columns that it would have to be scaled for enter the next working set."""
        moved = self.dual.equalities.moved_onto(self.shard.rows.into_domain(theta), curvature)
        if moved is None:
            return
        due = np.ones(len(self.weights), dtype=np.bool_)
        if not all_columns and self._scanned is not None:
            due = (self._slack - self.norms * (self._distance(moved) * (1 + 1e-12)) <= 0) | (self.weights != 0)
        products = self._products(moved, due)
        self.dual.offer(moved, products, self.multipliers())
        l1 = self.shard.penalty.l1
        self._forced = self._always | ((np.abs(products) > l1) & (self.weights == 0) & ~self._is_alias & (l1 > 0))

    def multipliers(self) -> Array:
        """The weights that belong to the dual point's equalities."""
        found = self._gathered(self._equal_ids, self.weights) if len(self._equal_ids) else np.zeros(0)
        return np.append(found, self.intercept) if self.shard.fit_intercept else found
