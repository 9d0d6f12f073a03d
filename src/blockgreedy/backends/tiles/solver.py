"""The tile solver: a Newton method on a working set, for a grid of ranks.

Rank (r, c) of the grid holds the tile X_rc, which serves gradients only. The working set, small, is cut anew by rows
over all ranks; then a product Zᵀ(Zp) of the quadratic model is local up to one all-reduce of a vector as long as the
working set, and everything else of the model is the same on every rank. All ranks run this text; what decides is
computed of numbers that are the same bits on all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockgreedy.backends.tiles import tuning
from blockgreedy.backends.tiles.dual import Candidate, DualPoint, Equalities
from blockgreedy.backends.tiles.local import WorkingColumns
from blockgreedy.backends.tiles.model import InterceptModel, Model, WorkingPenalty
from blockgreedy.backends.tiles.own_rows import RowSums
from blockgreedy.backends.tiles.recut import Entrants, Recut
from blockgreedy.backends.tiles.selection import Selection, bins_that_fit
from blockgreedy.backends.tiles.shard import Shard
from blockgreedy.backends.tiles.time_left import NO_LIMIT, TimeLeft
from blockgreedy.problem.certificate import most_penalty

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class TileSolver:
    """A point of the problem, in this rank's columns and rows, and one outer iteration after the other."""

    def __init__(self, shard: Shard, tol: float) -> None:
        self.shard, self.tol = shard, tol
        tile, penalty = shard.tile, shard.penalty
        self.weights, self.intercept = np.zeros(tile.n_features), 0.0
        self.norms, self._entries = shard.norms, shard.entries
        self._has_l2 = shard.has_l2
        self._recut = Recut(shard.grid, tile, shard.row_cuts, shard.first_row, len(shard.rows), shard.team)
        self._recut.most_entries = shard.most_entries
        self._always = (penalty.unit == 0) & (penalty.lower < penalty.upper) & (self.norms > 0)
        self._is_alias = np.zeros(tile.n_features, dtype=np.bool_)
        self._distinct = 1.0  # of columns that enter: the part that repeats no other
        self._equalities = self._find_equalities()
        self.dual = DualPoint(len(shard.rows), shard.lowest)
        self._time = NO_LIMIT
        self.n_iter = self.n_products = self.n_gradients = 0
        self.nonzeros_touched = 0
        self.objective = np.nan
        self._start_anew()

    def _find_equalities(self) -> Equalities:
        """The unpenalised columns of all ranks: few, so every rank has its rows of them as dense columns."""
        shard, free = self.shard, self.shard.penalty.is_free & (self.norms > 0)
        self._equal_ids = np.zeros(0, dtype=np.int64)
        if not shard.may_be_free:
            return Equalities(shard, np.zeros((len(shard.rows), 0)), np.zeros(0), np.zeros(0))
        places, _ = self._enter(np.flatnonzero(free), np.zeros(len(free)))
        columns, facts = self._recut.dense(places)
        self._equal_ids = facts.ids
        return Equalities(shard, columns, facts.lower, facts.upper)

    def _start_anew(self) -> None:
        """What is known of columns and of steps belongs to the point that was left."""
        self._kappa, self._effort = tuning.FIRST_KAPPA, 1
        self._careful, self._damping, self._largest_change = True, tuning.FIRST_DAMPING, 1.0
        self._forced = self._always
        self._slack = np.full(self.shard.tile.n_features, -np.inf)
        self._scanned: Array | None = None  # the θ of the last scan
        self._last_decrease, self._is_slow, self._was_truncated, self._has_failed = np.inf, False, True, False
        self._n_idle = 0  # steps in a row that changed nothing that counts

    # -- where it stands

    @property
    def n_support(self) -> int:
        return self._n_support

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
        self.objective = self.evaluate(self.shard.predictions(self.weights, intercept))

    def evaluate(self, predictions: Array) -> float:
        """Takes these predictions for those of the weights; the objective there."""
        shard, support = self.shard, np.flatnonzero(self.weights)
        own_loss = shard.rows.move_to(predictions, *self._safeguard())
        own = np.array([shard.penalty.value(support, self.weights[support]), len(support)])
        of_columns = own if shard.grid.row == 0 else 0 * own
        sums = shard.over_rows(own_loss, *of_columns, *self._measure(shard.rows.theta)).tolist()
        loss, penalty, n_support = sums[:3]
        self._n_support, self._theta = int(n_support), RowSums(*sums[3:])
        return float(loss + penalty)

    def _measure(self, theta: Array) -> tuple[float, ...]:
        """This rank's share of RowSums."""
        rows, before = self.shard.rows, self._scanned
        moved = 0.0 if before is None else float(np.sum((theta - before) ** 2))
        along, square = rows.best_scale_sums(theta) if rows.loss.is_quadratic else (0.0, 0.0)
        return float(np.sum(theta * theta)), moved, float(np.sum(theta)), along, square

    def lower_alpha(self, alpha: float, l2: float) -> None:
        """Goes on with the same weights at another alpha and l2."""
        shard, before = self.shard, self.shard.penalty.l1
        if (l2 > 0) != self._has_l2:
            raise ValueError("l2 must stay 0, or above 0, along a path")
        if alpha < shard.least_alpha * (1 - 1e-12):
            raise ValueError(f"alpha={alpha:g} lies below the least that was announced, {shard.least_alpha:g}")
        shard.penalty.move_to(alpha, l2)
        self._slack += shard.penalty.l1 - before  # what is known of columns still holds
        self._forced, self._careful, self._effort = self._always, True, 1
        self._last_decrease, self._is_slow, self._was_truncated, self._has_failed = np.inf, False, True, False
        self._n_idle = 0
        self.dual.forget()
        self.objective = self.evaluate(shard.rows.predictions)

    # -- one outer iteration

    def step(self, time: TimeLeft = NO_LIMIT) -> bool:
        """False if it cannot go on in floating point."""
        self._time = time
        objective, dual_value = self.objective, self.dual.value
        goes_on = self._iterate()
        # steps that promise less than rounding are taken without a gain that shows; they must not go on for ever
        least = tuning.ROUNDING * abs(objective)
        is_idle = not (objective - self.objective > least or self.dual.value - dual_value > least)
        self._n_idle = self._n_idle + 1 if is_idle else 0
        return goes_on and self._n_idle < tuning.MOST_IDLE

    def _iterate(self) -> bool:
        shard, rows = self.shard, self.shard.rows
        self.n_iter += 1
        products = self._scan()
        support = (self.weights != 0) | self._forced
        selection = Selection(shard.penalty, self.norms, products, ~support & ~self._is_alias)
        candidate = self._candidate(rows.theta, products, self._theta.norm, self._theta.best_scale(self._is_lasso))
        ratio, best = shard.largest(candidate.ratio, selection.best)
        candidate.scale_to(ratio)
        own = [np.count_nonzero(support), np.sum(self._entries[support])]
        counts = np.concatenate([own, selection.counts(best, self._entries)])
        value = 0.0 if self._equalities.count else candidate.value  # θ itself keeps no equality
        sums = shard.over_rows(value, *(counts if shard.grid.row == 0 else 0 * counts))
        value, n_support, entries = sums[:3].tolist()
        if not self._equalities.count and self.dual.take(candidate, value) and self.gap <= self.enough:
            return True
        n_bins, truncated = bins_that_fit(sums[3:], n_support, self._distinct, shard.most_entries - entries)
        places, working = self._enter(np.flatnonzero(support | selection.chosen(n_bins)), products)
        model, columns = self._model(places, working)
        self._minimise(model, truncated)
        self._kappa = model.kappa
        self.n_products += model.n_products
        direction = model.z - model.start
        along = columns.combine(direction)
        shift = 0.0 if self._intercept_model is None else self._intercept_model.step(direction)
        along += shift
        predicted, curvature = rows.theta + rows.curvature * along, rows.curvature
        self.nonzeros_touched += columns.nonzeros_touched
        decrease = self._line_search(model, direction, along, shift)
        if self._time.is_up:  # whoever takes the result looks for a proof
            return True
        if decrease is None:
            self._effort, self._careful = min(tuning.MOST_EFFORT, 2 * self._effort), True
            self._kappa *= 2
            self.prove(predicted, curvature)
            again, self._has_failed = not self._has_failed, True
            return again
        self._has_failed = False
        if -model.change <= tuning.PROOF_NEAR * self.enough:
            self.prove(predicted, curvature)
        self._pace(decrease, truncated)
        return True

    def _scan(self) -> Array:
        """x_j·θ of the columns that may break their thresholds, 0 for the others.

        A column whose product was below its threshold by some slack keeps it until θ has moved that far.
        """
        theta, penalty = self.shard.rows.theta, self.shard.penalty
        self._slack -= self.norms * (self._theta.distance * (1 + 1e-12))
        due = (self._slack <= 0) | (self.weights != 0) | self._forced
        found = self._products(theta, due)
        left = penalty.l1 - np.abs(found)
        left -= tuning.PROOF_ROUNDING * self._theta.norm * self.norms
        np.copyto(self._slack, left, where=due)
        self._scanned = theta
        return found

    def _candidate(self, theta: Array, products: Array, norm: float, best_scale: float) -> Candidate:
        most = most_penalty(self.objective, self.shard.lowest)
        return Candidate(self.shard, self.norms, theta, products, norm, best_scale, most)

    def _products(self, theta: Array, due: Mask) -> Array:
        self.n_gradients += 1
        before = self.shard.tile.nonzeros_touched
        found = self.shard.products(theta, due)
        self.nonzeros_touched += self.shard.tile.nonzeros_touched - before
        return found

    def _enter(self, own: NDArray[np.intp], products: Array) -> tuple[NDArray[np.intp], Array]:
        """Where the columns stand that all ranks chose, this one these, and their weights and products.

        New columns are sent round; those that turn out to repeat others are left out, now and from here on.
        """
        shard, penalty = self.shard, self.shard.penalty
        facts = Entrants(
            (own + shard.first).astype(np.int64),
            penalty.unit[own],
            penalty.l2_unit[own],
            penalty.lower[own],
            penalty.upper[own],
            self._entries[own],
            np.zeros(len(own), dtype=np.uint64),
        )
        numbers = np.stack([self.weights[own], products[own]])
        n_before = len(self._recut.facts.ids)
        places, working, aliases = self._recut.enter(own, facts, numbers, merges=not self._has_l2)
        n_new = len(self._recut.facts.ids) - n_before + len(aliases)
        if n_new > 0:
            self._distinct = max(1 - len(aliases) / n_new, tuning.LEAST_DISTINCT)
            mine = aliases - shard.first
            self._is_alias[mine[(mine >= 0) & (mine < len(self.weights))]] = True
        return places, working

    def _gathered(self, ids: NDArray[np.int64], values: Array) -> Array:
        """Numbers of columns, each known to its owners, on every rank."""
        own = ids - self.shard.first
        mine = (own >= 0) & (own < len(values))
        found = np.zeros(len(ids))
        found[mine] = values[own[mine]]
        return self.shard.grid.beside.reduce(found, "working set")

    def _model(self, places: NDArray[np.intp], working: Array) -> tuple[Model, WorkingColumns]:
        shard, rows = self.shard, self.shard.rows
        columns, facts = self._recut.chosen(places)
        (w, g), self._ids = working, facts.ids
        bent = columns.bend(rows.root)  # the diagonal, and what the intercept has to do with each column
        self._intercept_model = None
        if shard.fit_intercept:
            sums = shard.grid.all.reduce(np.append(bent, np.sum(rows.curvature)), "diagonal")
            diagonal = sums[: len(w)]
            self._intercept_model = InterceptModel(sums[len(w) : -1], sums[-1], self._theta.sum)
        else:
            diagonal = shard.grid.all.reduce(bent[: len(w)], "diagonal")

        def product(p: Array, wanted: NDArray[np.int32]) -> Array:
            own = self._time.with_flag(columns.gram_product(p, wanted))
            found = self._time.without_flag(shard.grid.all.reduce(own, "products")).astype(np.float64)
            return found if self._intercept_model is None else found - self._intercept_model.share(p)[wanted]

        if self._intercept_model is not None:
            g = g - self._intercept_model.slope_share
            diagonal = np.maximum(diagonal - self._intercept_model.diagonal_share, 1e-9 * diagonal)
        penalty = WorkingPenalty(
            shard.penalty.alpha * facts.unit, shard.penalty.ridge * facts.l2_unit, facts.lower, facts.upper
        )
        return Model(w, g, diagonal, penalty, product, self._kappa, self._time), columns

    def _minimise(self, model: Model, truncated: bool) -> None:
        least = (1 if truncated else tuning.CYCLES) * self._effort
        for count in range(1, 1 + max(least, tuning.SLOW_CYCLES if self._is_slow else 0)):
            before = model.change
            model.cycle(truncated)
            if (count >= least and model.change - before >= tuning.CYCLE_SHARE * model.change) or self._time.is_up:
                break
        if truncated or self._time.is_up:
            return
        for _ in range(tuning.ENDGAME_CYCLES):
            # near the end the model is solved until the dual point that it predicts loses little by scaling
            norm = float(np.sum(model.penalty.l1 * np.abs(model.z)))
            if -model.change > tuning.ENDGAME * self.enough or model.excess * norm <= self.enough:
                return
            model.cycle(truncated, self.enough / norm if norm > 0 else None)
            if self._time.is_up:
                return

    def _line_search(self, model: Model, direction: Array, along: Array, shift: float) -> float | None:
        """Moves; returns the decrease of the objective, None where no step lowers it."""
        shard, rows, before = self.shard, self.shard.rows, self.objective
        linear = model.linear_change(model.z)
        if self._intercept_model is not None:
            linear += self._intercept_model.linear_change(direction, shift)
        if not linear < 0:
            return None
        is_rounding = -linear <= tuning.ROUNDING * before
        for sizes in (tuning.STEPS, tuning.SHORT_STEPS):
            steps = np.array(sizes)
            sums = shard.over_rows(*rows.losses_along(along, steps), *self._measure(rows.theta_after(along)))
            losses, whole = sums[: len(steps)], RowSums(*sums[len(steps) :].tolist())
            penalties = np.array([model.penalty.value_or_inf(model.start + s * direction) for s in steps])
            values = losses + penalties
            if is_rounding:  # the objective cannot show the gain, the gradient can
                good = (steps == 1) & (values <= before * (1 + tuning.ROUNDING))
            else:
                good = values <= before + tuning.ARMIJO * np.minimum(steps, 1.0) * linear
            if np.any(good):
                best = int(np.argmin(np.where(good, values, np.inf)))
                self._accept(model, along, shift, float(steps[best]), before - float(values[best]), whole)
                self.objective = float(values[best])
                return before - self.objective
            if is_rounding:
                return None
        return None

    def _accept(self, model: Model, along: Array, shift: float, size: float, decrease: float, whole: RowSums) -> None:
        """``whole``: the sums of θ after a step of size 1, which is taken most often and then saves a round."""
        shard, rows = self.shard, self.shard.rows
        z = model.z if size == 1 else model.start + size * (model.z - model.start)
        self.intercept += size * shift
        own = self._ids - shard.first
        mine = (own >= 0) & (own < len(self.weights))
        self.weights = np.zeros(len(self.weights))
        self.weights[own[mine]] = z[mine]
        self._n_support = int(np.count_nonzero(z))
        self._careful = size < 1 or decrease > tuning.LARGE_DECREASE * self.objective
        if rows.loss.has_flat_parts:
            change = shard.grid.all.reduce(np.array([np.max(np.abs(along), initial=0.0)]), "rows", "max")
            self._largest_change = size * float(change[0])
            by = tuning.DAMPING_DOWN if size >= 1 else tuning.DAMPING_UP
            self._damping = float(np.clip(by * self._damping, tuning.LEAST_DAMPING, tuning.MOST_DAMPING))
        rows.move_to(rows.predictions + size * along, *self._safeguard())
        self._theta = whole if size == 1 else RowSums(*shard.over_rows(*self._measure(rows.theta)).tolist())

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
        self._is_slow = decrease > tuning.SLOW_SHARE * self._last_decrease
        self._last_decrease, self._was_truncated = decrease, truncated

    # -- proofs

    def certify(self, time: TimeLeft) -> None:
        """Looks for a dual point where it stands."""
        self._time = time
        self.prove(self.shard.rows.theta, self.shard.rows.curvature)

    def prove(self, theta: Array, curvature: Array) -> None:
        """Offers a dual point near θ; columns that it would have to be scaled for enter the next working set."""
        shard, l1 = self.shard, self.shard.penalty.l1
        moved = self._equalities.moved_onto(theta, curvature, self._measure, self._time)
        if moved is None:
            return
        theta, left, measured = moved
        sums = RowSums(*measured.tolist())
        due = (self._slack - self.norms * (sums.distance * (1 + 1e-12)) <= 0) | (self.weights != 0)
        products = self._products(theta, due)
        candidate = self._candidate(theta, products, sums.norm, sums.best_scale(self._is_lasso))
        candidate.scale_to(float(shard.largest(candidate.ratio)[0]))
        leak = float(np.sum(np.abs(candidate.scale * left * self.multipliers())))
        self.dual.take(candidate, float(shard.over_rows(candidate.value)[0]) - leak)
        if np.isinf(shard.most_entries):  # else they have to compete for the room there is
            over = (np.abs(products) > l1) & (self.weights == 0) & ~self._is_alias & (l1 > 0)
            self._forced = self._always | over

    def verify(self, weights: Array, intercept: float) -> tuple[float, float, float]:
        """Objective and penalty at these weights, and the value of the best dual point: nothing is carried over."""
        shard, rows, support = self.shard, self.shard.rows, np.flatnonzero(weights)
        predictions = shard.predictions(weights, intercept)
        penalty = float(shard.over_columns(shard.penalty.value(support, weights[support]))[0])
        loss = float(shard.over_rows(float(np.sum(rows.weights * rows.loss.value(rows.y, predictions))))[0])
        theta = rows.into_domain(self.dual.theta)
        norm = float(np.sqrt(shard.over_rows(float(np.sum(theta * theta)))[0]))
        products = self._products(theta, np.ones(len(weights), dtype=np.bool_))
        most = most_penalty(loss + penalty, shard.lowest)
        # points are made with a larger margin, for what these products differ by from those
        candidate = Candidate(shard, self.norms, theta, products, norm, 1.0, most, tuning.PRODUCT_ROUNDING)
        ratio = float(shard.largest(candidate.ratio)[0])
        if not ratio <= 1 + 1e-12:
            return loss + penalty, penalty, -np.inf
        candidate.scale_to(ratio)
        left = self._equalities.left_of(theta)
        if not self._equalities.are_kept(left, norm):
            return loss + penalty, penalty, -np.inf
        leak = float(np.sum(np.abs(left * self.multipliers())))
        return loss + penalty, penalty, float(shard.over_rows(candidate.value)[0]) - leak

    @property
    def _is_lasso(self) -> bool:
        """Whether a dual point may be scaled freely to suit its rows."""
        return self.shard.rows.loss.is_quadratic and not self._has_l2

    def multipliers(self) -> Array:
        """The weights that belong to the dual point's equalities."""
        found = self._gathered(self._equal_ids, self.weights) if len(self._equal_ids) else np.zeros(0)
        return np.append(found, self.intercept) if self.shard.fit_intercept else found
