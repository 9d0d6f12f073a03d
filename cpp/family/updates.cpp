#include "family/updates.hpp"

#include <algorithm>
#include <cmath>

#include "family/shared_state.hpp"

namespace blockgreedy {

namespace {

constexpr int max_line_steps = 100;

// The clock is read once in so many nonzeros.
constexpr std::int64_t work_between_looks = 1 << 14;

// Whether there is no time left, asked after each piece of work.
class Late {
 public:
  Late(const ThreadTeam& team, std::int64_t work) : team_(team), work_(work) {}
  bool operator()() {
    if ((since_ += work_) < work_between_looks) return false;
    since_ = 0;
    return team_.is_late();
  }

 private:
  const ThreadTeam& team_;
  std::int64_t work_, since_ = 0;
};

// Cyclic descent that stops when a sweep's largest change is a small part of the first sweep's.
template <class OneSweep>
void sweep_until_settled(const BlockGreedyOptions& options, Late is_late, OneSweep one_sweep) {
  double first = 0;
  for (std::int64_t count = 0; count < options.max_sweeps; ++count) {
    const double largest = one_sweep();
    if (count == 0) first = largest;
    if (!(largest > options.inner_tol * first) || is_late()) return;
  }
}

}  // namespace

template <class View>
Updates<View>::Updates(const View& view, const CoreProblem& problem, const BlockGreedyOptions& options, State& state,
                       ThreadTeam& team)
    : view_(view),
      problem_(problem),
      options_(options),
      state_(state),
      team_(team),
      row_scale_(problem.row_scale(view.n_rows)),
      scale_(problem.loss.traits().curvature_bound * row_scale_),
      slices_(view.n_rows),
      scratch_(team.size()) {}

template <class View>
void Updates<View>::apply(std::vector<Proposal>& accepted) {
  if (accepted.empty()) return;
  switch (options_.update) {
    case UpdateRule::add:
      break;
    case UpdateRule::line_search:
      line_search(accepted);
      break;
    case UpdateRule::sweep:
      sweep(accepted);
      return;
    case UpdateRule::joint:
      if (accepted.size() == 1) break;  // alone, it is solved by its proposal
      joint(accepted);
      return;
  }
  move_to_targets(accepted);
}

template <class View>
std::int64_t Updates<View>::count_nonzeros(const std::vector<Proposal>& accepted) const {
  std::int64_t total = 0;
  for (const Proposal& proposal : accepted) total += view_.count(proposal.feature);
  return total;
}

template <class View>
void Updates<View>::add_column(std::int64_t j, double step) {
  double* Xw = state_.Xw.data();
  view_.for_each_nonzero(j, [&](std::int32_t i, double x) { Xw[i] += step * x; });
}

// State::derivs of n rows that stand side by side.
template <class View>
BLOCKGREEDY_INLINE void Updates<View>::compute_derivs(const double* y, const double* t, const double* row_weights,
                                                      std::int64_t n, double* out) const {
  kernels().of(problem_.loss).derivs(y, t, n, problem_.loss.delta, out);
  if (!row_weights) return;
  for (std::int64_t k = 0; k < n; ++k) out[k] *= row_weights[k];
}

// derivs of the rows that column j touches, through a small contiguous buffer so that the loss is vectorised.
template <class View>
void Updates<View>::refresh_rows_of(std::int64_t j) {
  constexpr int capacity = 256;
  double y[capacity], t[capacity], d[capacity], weights[capacity];
  std::int32_t rows[capacity];
  int filled = 0;
  const double* row_weights = problem_.row_weights;
  const auto flush = [&] {
    compute_derivs(y, t, row_weights ? weights : nullptr, filled, d);
    for (int k = 0; k < filled; ++k) store_shared(state_.derivs[rows[k]], d[k]);
    filled = 0;
  };
  view_.for_each_nonzero(j, [&](std::int32_t i, double) {
    rows[filled] = i;
    y[filled] = problem_.y[i];
    t[filled] = load_shared(state_.Xw[i]);
    if (row_weights) weights[filled] = row_weights[i];
    if (++filled == capacity) flush();
  });
  if (filled > 0) flush();
}

template <class View>
void Updates<View>::refresh_slice(std::int64_t slice) {
  const std::int64_t first = slices_.begin(slice);
  compute_derivs(problem_.y + first, state_.Xw.data() + first,
                 problem_.row_weights ? problem_.row_weights + first : nullptr, slices_.end(slice) - first,
                 state_.derivs.data() + first);
}

template <class View>
void Updates<View>::rebuild() {
  std::fill(state_.Xw.begin(), state_.Xw.end(), state_.intercept);
  if (problem_.offset) {
    for (std::int64_t i = 0; i < view_.n_rows; ++i) state_.Xw[i] += problem_.offset[i];
  }
  for (std::int64_t j = 0; j < view_.n_cols; ++j) {
    const double w = state_.weight(j);
    if (w != 0) add_column(j, w);
  }
  refresh();
}

template <class View>
void Updates<View>::refresh() {
  for (std::int64_t slice = 0; slice < slices_.count(); ++slice) refresh_slice(slice);
}

// With so many nonzeros touched, a plain vector loop over all derivs is cheaper than addressing rows one by one.
template <class View>
bool Updates<View>::touches_all_rows(std::int64_t nonzeros) const {
  return 4 * nonzeros >= view_.n_rows;
}

// Calls change(first, last) for every slice of rows and recomputes its derivs; in parallel when `work` is worth it.
template <class View>
template <class Change>
void Updates<View>::refresh_all_rows(std::int64_t work, Change change) {
  const auto run_slice = [&](std::int64_t slice, int) {
    change(slices_.begin(slice), slices_.end(slice));
    refresh_slice(slice);
  };
  if (work < min_parallel_work) {
    for (std::int64_t slice = 0; slice < slices_.count(); ++slice) run_slice(slice, 0);
  } else {
    team_.for_all(slices_.count(), run_slice);
  }
}

template <class View>
void Updates<View>::shift_intercept(double by) {
  state_.intercept += by;
  refresh_all_rows(2 * view_.n_rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) state_.Xw[i] += by;
  });
}

// Adds all steps together. Threads own rows, so each row receives its terms in block order for any number of threads.
template <class View>
void Updates<View>::move_to_targets(const std::vector<Proposal>& accepted) {
  const std::int64_t nonzeros = count_nonzeros(accepted);
  const auto step_of = [&](const Proposal& p) { return p.target - state_.weight(p.feature); };
  if (options_.atomic) add_atomically(accepted);
  if (touches_all_rows(nonzeros)) {
    refresh_all_rows(nonzeros + 2 * view_.n_rows, [&](std::int64_t first, std::int64_t last) {
      if (options_.atomic) return;
      double* Xw = state_.Xw.data();
      for (const Proposal& proposal : accepted) {
        const double step = step_of(proposal);
        view_.for_each_nonzero(proposal.feature, first, last, [&](std::int32_t i, double x) { Xw[i] += step * x; });
      }
    });
  } else {
    for (const Proposal& proposal : accepted) {
      if (!options_.atomic) add_column(proposal.feature, step_of(proposal));
    }
    for (const Proposal& proposal : accepted) refresh_rows_of(proposal.feature);
  }
  for (const Proposal& proposal : accepted) state_.set_weight(proposal.feature, proposal.target);
}

// As the paper's OpenMP atomics did it: columns in parallel, rows shared.
template <class View>
void Updates<View>::add_atomically(const std::vector<Proposal>& accepted) {
  team_.for_all(static_cast<std::int64_t>(accepted.size()), [&](std::int64_t s, int) {
    const Proposal& proposal = accepted[s];
    add_column_shared(proposal.feature, proposal.target - state_.weight(proposal.feature));
  });
}

template <class View>
void Updates<View>::add_column_shared(std::int64_t j, double step) {
  view_.for_each_nonzero(j, [&](std::int32_t i, double x) { add_shared(state_.Xw[i], step * x); });
}

// The paper's Implementation section: every accepted coordinate by itself, the others frozen.
template <class View>
void Updates<View>::line_search(std::vector<Proposal>& accepted) {
  std::int64_t longest = 0;
  for (const Proposal& proposal : accepted) longest = std::max(longest, view_.count(proposal.feature));
  for (auto& buffer : scratch_) {
    if (buffer.size() < static_cast<std::size_t>(buffer_per_nonzero * longest))
      buffer.resize(buffer_per_nonzero * longest);
  }
  const auto refine = [&](std::int64_t s, int executor) {
    Proposal& proposal = accepted[s];
    proposal.target = refined_target(proposal, scratch_[executor].data());
  };
  const auto n_accepted = static_cast<std::int64_t>(accepted.size());
  if (count_nonzeros(accepted) < min_parallel_work) {
    for (std::int64_t s = 0; s < n_accepted; ++s) refine(s, 0);
  } else {
    team_.for_all(n_accepted, refine);
  }
}

template <class View>
double Updates<View>::refined_target(const Proposal& proposal, double* buffer) const {
  const std::int64_t j = proposal.feature, n = view_.count(j);
  // The column's rows side by side, so that every step is a plain vector loop.
  double *y = buffer, *start = y + n, *x = start + n, *t = x + n, *d = t + n, *weights = d + n;
  std::int64_t k = 0;
  view_.for_each_nonzero(j, [&](std::int32_t i, double value) {
    y[k] = problem_.y[i];
    start[k] = load_shared(state_.Xw[i]);
    x[k++] = value;
  });
  const double* row_weights = problem_.row_weights;
  if (row_weights) {
    k = 0;
    view_.for_each_nonzero(j, [&](std::int32_t i, double) { weights[k++] = row_weights[i]; });
    row_weights = weights;
  }
  const DenseView<double> column{n, 1, x};
  const CoordinatePenalty coordinate = problem_.penalty.at(j);
  const double w = state_.weight(j);
  const double first_step = std::fabs(proposal.target - w);
  double z = proposal.target;
  Late is_late(team_, n);
  for (int count = 1; count < max_line_steps; ++count) {
    const double moved = z - w;
    for (k = 0; k < n; ++k) t[k] = start[k] + moved * x[k];
    compute_derivs(y, t, row_weights, n, d);
    const double next = coordinate.prox(z, row_scale_ * column_dot(column, 0, d), proposal.curvature);
    const double change = std::fabs(next - z);
    z = next;
    if (!(change > options_.inner_tol * first_step) || is_late()) break;
  }
  return z;
}

// Cyclic 1-D steps on the shared state. A step whose gain is lost in rounding is not taken.
template <class View>
void Updates<View>::sweep(std::vector<Proposal>& accepted) {
  sweep_until_settled(options_, Late(team_, count_nonzeros(accepted)), [&] {
    double largest = 0;
    for (Proposal& proposal : accepted) {
      const std::int64_t j = proposal.feature;
      const CoordinatePenalty coordinate = problem_.penalty.at(j);
      const double grad = row_scale_ * column_dot(view_, j, state_.derivs.data());
      const double w = state_.weight(j), z = coordinate.prox(w, grad, proposal.curvature);
      if (!(coordinate.gain(w, z, grad, proposal.curvature) > 0)) continue;
      add_column(j, z - w);
      refresh_rows_of(j);
      state_.set_weight(j, z);
      largest = std::max(largest, std::fabs(z - w));
    }
    return largest;
  });
}

// Coordinate descent on  g·d + (beta/2) Σ ω_i (X_S d)_i² + Σ penalty(w + d), which lies above the objective and
// touches it at d = 0: since every step lowers it, the objective cannot rise. Best gains first: then a single
// sweep does as well as the exact minimum (measured on four text and chemistry sets), which is why no Gram
// matrix is ever formed.
template <class View>
void Updates<View>::joint(std::vector<Proposal>& accepted) {
  Xd_.resize(view_.n_rows);
  const double* row_weights = problem_.row_weights;
  if (row_weights) weighted_Xd_.resize(view_.n_rows);
  for (Proposal& proposal : accepted) {
    const double w = state_.weight(proposal.feature);
    proposal.score =
        problem_.penalty.at(proposal.feature).gain(w, proposal.target, proposal.grad, proposal.curvature);
    proposal.target = w;
  }
  std::stable_sort(accepted.begin(), accepted.end(),
                   [](const Proposal& a, const Proposal& b) { return a.score > b.score; });
  bool untouched = true;
  sweep_until_settled(options_, Late(team_, count_nonzeros(accepted)), [&] {
    double largest = 0;
    for (std::size_t s = 0; s < accepted.size(); ++s) {
      Proposal& proposal = accepted[s];
      if (s + 1 < accepted.size()) view_.prefetch_entries(accepted[s + 1].feature);
      const CoordinatePenalty coordinate = problem_.penalty.at(proposal.feature);
      const double* coupled = row_weights ? weighted_Xd_.data() : Xd_.data();
      const double coupling = untouched ? 0.0 : column_dot(view_, proposal.feature, coupled);
      const double grad = proposal.grad + scale_ * coupling;
      const double now = proposal.target, z = coordinate.prox(now, grad, proposal.curvature);
      if (!(coordinate.gain(now, z, grad, proposal.curvature) > 0)) continue;
      const double step = z - now;
      double* Xd = Xd_.data();
      view_.for_each_nonzero(proposal.feature, [&](std::int32_t i, double x) { Xd[i] += step * x; });
      if (row_weights) {
        double* weighted = weighted_Xd_.data();
        view_.for_each_nonzero(proposal.feature,
                               [&](std::int32_t i, double) { weighted[i] = row_weights[i] * Xd[i]; });
      }
      proposal.target = z;
      untouched = false;
      largest = std::max(largest, std::fabs(step));
    }
    return largest;
  });
  absorb_Xd(accepted);
}

// Xw += Xd, leaving Xd and ω∘Xd at zero for the next call.
template <class View>
void Updates<View>::absorb_Xd(const std::vector<Proposal>& accepted) {
  double *Xw = state_.Xw.data(), *Xd = Xd_.data(), *weighted = problem_.row_weights ? weighted_Xd_.data() : nullptr;
  if (touches_all_rows(count_nonzeros(accepted))) {
    refresh_all_rows(2 * view_.n_rows, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        Xw[i] += Xd[i];
        Xd[i] = 0;
      }
      if (weighted) std::fill(weighted + first, weighted + last, 0.0);
    });
    // By this thread alone: it filled Xd, which is still in its cache.
  } else {
    for (const Proposal& proposal : accepted) {
      view_.for_each_nonzero(proposal.feature, [&](std::int32_t i, double) {
        Xw[i] += Xd[i];
        Xd[i] = 0;
        if (weighted) weighted[i] = 0;
      });
    }
    for (const Proposal& proposal : accepted) refresh_rows_of(proposal.feature);
  }
  for (const Proposal& proposal : accepted) state_.set_weight(proposal.feature, proposal.target);
}

template class Updates<CscView<float>>;
template class Updates<CscView<double>>;
template class Updates<DenseView<float>>;
template class Updates<DenseView<double>>;

}  // namespace blockgreedy
