#include "blockgreedy/updates.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace blockgreedy {

namespace {

// Up to this many accepted columns their Gram matrix is formed; beyond it, products with a private Xd.
constexpr std::int64_t max_gram_columns = 64;
constexpr std::int64_t gram_window = 256;  // rows collected at a time: fits the second-level cache
constexpr int max_line_steps = 100;

// Cyclic descent that stops when a sweep's largest change is a small part of the first sweep's.
template <class OneSweep>
void sweep_until_settled(const BlockGreedyOptions& options, OneSweep one_sweep) {
  double first = 0;
  for (std::int64_t count = 0; count < options.max_sweeps; ++count) {
    const double largest = one_sweep();
    if (count == 0) first = largest;
    if (!(largest > options.inner_tol * first)) return;
  }
}

}  // namespace

template <class View>
Updates<View>::Updates(const View& view, const Target& target, const BlockGreedyOptions& options, State& state,
                       ThreadTeam& team)
    : view_(view), target_(target), options_(options), state_(state), team_(team),
      inverse_n_(1.0 / static_cast<double>(view.n_rows)), scale_(target.loss.smoothness() * inverse_n_),
      slices_(view.n_rows), scratch_(static_cast<std::size_t>(team.size())) {}

template <class View>
void Updates<View>::apply(std::vector<Proposal>& accepted) {
  if (accepted.empty()) return;
  switch (options_.update) {
    case UpdateRule::add: break;
    case UpdateRule::line_search: line_search(accepted); break;
    case UpdateRule::sweep: sweep(accepted); return;
    case UpdateRule::joint:
      if (accepted.size() > 1) joint(accepted);  // one coordinate alone is solved by its proposal
      break;
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

// derivs of the rows that column j touches, through a small contiguous buffer so that the loss is vectorised.
template <class View>
void Updates<View>::refresh_rows_of(std::int64_t j) {
  constexpr int capacity = 256;
  double y[capacity], t[capacity], d[capacity];
  std::int32_t rows[capacity];
  int filled = 0;
  const auto derivs = loss_kernels(target_.loss).derivs;
  const auto flush = [&] {
    derivs(y, t, filled, target_.loss.delta, d);
    for (int k = 0; k < filled; ++k) state_.derivs[static_cast<std::size_t>(rows[k])] = d[k];
    filled = 0;
  };
  view_.for_each_nonzero(j, [&](std::int32_t i, double) {
    rows[filled] = i;
    y[filled] = target_.y[i];
    t[filled] = state_.Xw[static_cast<std::size_t>(i)];
    if (++filled == capacity) flush();
  });
  if (filled > 0) flush();
}

template <class View>
void Updates<View>::refresh_slice(std::int64_t slice) {
  const std::int64_t first = slices_.begin(slice);
  loss_kernels(target_.loss).derivs(target_.y + first, state_.Xw.data() + first, slices_.end(slice) - first,
                                    target_.loss.delta, state_.derivs.data() + first);
}

template <class View>
void Updates<View>::rebuild() {
  std::fill(state_.Xw.begin(), state_.Xw.end(), 0.0);
  for (std::int64_t j = 0; j < view_.n_cols; ++j) {
    const double w = state_.w[static_cast<std::size_t>(j)];
    if (w != 0) add_column(j, w);
  }
  for (std::int64_t slice = 0; slice < slices_.count(); ++slice) refresh_slice(slice);
}

// Adds all steps together. Each row receives its terms in block order whoever does it: threads own rows.
template <class View>
void Updates<View>::move_to_targets(const std::vector<Proposal>& accepted) {
  const std::int64_t nonzeros = count_nonzeros(accepted);
  const bool all_rows = 4 * nonzeros >= view_.n_rows;  // then a plain vector loop over derivs is cheaper
  const bool parallel = team_.size() > 1 && all_rows && nonzeros + 2 * view_.n_rows >= min_parallel_work;
  const auto step_of = [&](const Proposal& p) { return p.target - state_.w[static_cast<std::size_t>(p.feature)]; };
  if (options_.atomic) {
    team_.for_each(static_cast<std::int64_t>(accepted.size()), [&](std::int64_t s, int) {
      const Proposal& proposal = accepted[static_cast<std::size_t>(s)];
      const double step = step_of(proposal);
      view_.for_each_nonzero(proposal.feature, [&](std::int32_t i, double x) {
        std::atomic_ref<double>(state_.Xw[static_cast<std::size_t>(i)]).fetch_add(step * x, std::memory_order_relaxed);
      });
    });
  } else if (!parallel) {
    for (const Proposal& proposal : accepted) add_column(proposal.feature, step_of(proposal));
  }
  if (all_rows) {
    const bool add_here = parallel && !options_.atomic;
    const auto run_slice = [&](std::int64_t slice, int) {
      if (add_here) {
        double* Xw = state_.Xw.data();
        for (const Proposal& proposal : accepted) {
          const double step = step_of(proposal);
          view_.for_each_nonzero(proposal.feature, slices_.begin(slice), slices_.end(slice),
                                 [&](std::int32_t i, double x) { Xw[i] += step * x; });
        }
      }
      refresh_slice(slice);
    };
    if (parallel) {
      team_.for_each(slices_.count(), run_slice);
    } else {
      for (std::int64_t slice = 0; slice < slices_.count(); ++slice) run_slice(slice, 0);
    }
  } else {
    for (const Proposal& proposal : accepted) refresh_rows_of(proposal.feature);
  }
  for (const Proposal& proposal : accepted) weight(proposal) = proposal.target;
}

// The paper's Implementation section: every accepted coordinate by itself, the others frozen.
template <class View>
void Updates<View>::line_search(std::vector<Proposal>& accepted) {
  std::int64_t longest = 0;
  for (const Proposal& proposal : accepted) longest = std::max(longest, view_.count(proposal.feature));
  for (auto& buffer : scratch_) {
    if (buffer.size() < static_cast<std::size_t>(5 * longest)) buffer.resize(static_cast<std::size_t>(5 * longest));
  }
  const auto refine = [&](std::int64_t s, int executor) {
    Proposal& proposal = accepted[static_cast<std::size_t>(s)];
    proposal.target = refined_target(proposal, scratch_[static_cast<std::size_t>(executor)].data());
  };
  const auto n_accepted = static_cast<std::int64_t>(accepted.size());
  if (count_nonzeros(accepted) < min_parallel_work) {
    for (std::int64_t s = 0; s < n_accepted; ++s) refine(s, 0);
  } else {
    team_.for_each(n_accepted, refine);
  }
}

template <class View>
double Updates<View>::refined_target(const Proposal& proposal, double* buffer) const {
  const std::int64_t j = proposal.feature, n = view_.count(j);
  // The column's rows side by side, so that every step is a plain vector loop.
  double *y = buffer, *start = y + n, *x = start + n, *t = x + n, *d = t + n;
  std::int64_t k = 0;
  view_.for_each_nonzero(j, [&](std::int32_t i, double value) {
    y[k] = target_.y[i];
    start[k] = state_.Xw[static_cast<std::size_t>(i)];
    x[k++] = value;
  });
  const DenseView<double> column{n, 1, x};
  const CoordinatePenalty coordinate = target_.penalty.at(j);
  const double w = state_.w[static_cast<std::size_t>(j)];
  const double first_step = std::fabs(proposal.target - w);
  double z = proposal.target;
  for (int count = 1; count < max_line_steps; ++count) {
    const double moved = z - w;
    for (k = 0; k < n; ++k) t[k] = start[k] + moved * x[k];
    loss_kernels(target_.loss).derivs(y, t, n, target_.loss.delta, d);
    const double next = coordinate.prox(z, inverse_n_ * column_dot(column, 0, d), proposal.curvature);
    const double change = std::fabs(next - z);
    z = next;
    if (!(change > options_.inner_tol * first_step)) break;
  }
  return z;
}

// Cyclic 1-D steps on the shared state. A step whose gain is lost in rounding is not taken.
template <class View>
void Updates<View>::sweep(std::vector<Proposal>& accepted) {
  sweep_until_settled(options_, [&] {
    double largest = 0;
    for (Proposal& proposal : accepted) {
      const std::int64_t j = proposal.feature;
      const CoordinatePenalty coordinate = target_.penalty.at(j);
      const double grad = inverse_n_ * column_dot(view_, j, state_.derivs.data());
      const double w = weight(proposal), z = coordinate.prox(w, grad, proposal.curvature);
      if (!(coordinate.gain(w, z, grad, proposal.curvature) > 0)) continue;
      add_column(j, z - w);
      refresh_rows_of(j);
      weight(proposal) = z;
      largest = std::max(largest, std::fabs(z - w));
    }
    return largest;
  });
}

// Coordinate descent on  g·d + (beta/2n) ‖X_S d‖² + Σ penalty(w + d), which lies above the objective and
// touches it at d = 0: since every step lowers it, the objective cannot rise. Leaves the result in `target`.
template <class View>
void Updates<View>::joint(std::vector<Proposal>& accepted) {
  const auto m = static_cast<std::int64_t>(accepted.size());
  // A Gram matrix walks all rows: worth it when the accepted columns cover a fair part of them.
  if (m <= max_gram_columns && 8 * count_nonzeros(accepted) >= view_.n_rows) {
    joint_by_gram(accepted);
  } else {
    joint_matrix_free(accepted);
  }
}

template <class View>
void Updates<View>::joint_by_gram(std::vector<Proposal>& accepted) {
  const std::size_t m = accepted.size();
  fill_gram(accepted);
  model_grad_.resize(m);
  for (std::size_t s = 0; s < m; ++s) {
    model_grad_[s] = accepted[s].grad;
    accepted[s].target = weight(accepted[s]);
  }
  sweep_until_settled(options_, [&] {
    double largest = 0;
    for (std::size_t s = 0; s < m; ++s) {
      Proposal& proposal = accepted[s];
      const CoordinatePenalty coordinate = target_.penalty.at(proposal.feature);
      const double now = proposal.target, grad = model_grad_[s];
      const double z = coordinate.prox(now, grad, proposal.curvature);
      if (!(coordinate.gain(now, z, grad, proposal.curvature) > 0)) continue;
      const double step = z - now;
      for (std::size_t other = 0; other < m; ++other) model_grad_[other] += step * scale_ * gram_[s * m + other];
      proposal.target = z;
      largest = std::max(largest, std::fabs(step));
    }
    return largest;
  });
}

template <class View>
void Updates<View>::joint_matrix_free(std::vector<Proposal>& accepted) {
  if (Xd_.empty()) Xd_.resize(static_cast<std::size_t>(view_.n_rows));
  for (Proposal& proposal : accepted) proposal.target = weight(proposal);
  sweep_until_settled(options_, [&] {
    double largest = 0;
    for (Proposal& proposal : accepted) {
      const CoordinatePenalty coordinate = target_.penalty.at(proposal.feature);
      const double grad = proposal.grad + scale_ * column_dot(view_, proposal.feature, Xd_.data());
      const double now = proposal.target, z = coordinate.prox(now, grad, proposal.curvature);
      if (!(coordinate.gain(now, z, grad, proposal.curvature) > 0)) continue;
      const double step = z - now;
      view_.for_each_nonzero(proposal.feature, [&](std::int32_t i, double x) { Xd_[static_cast<std::size_t>(i)] += step * x; });
      proposal.target = z;
      largest = std::max(largest, std::fabs(step));
    }
    return largest;
  });
  for (const Proposal& proposal : accepted) {
    view_.for_each_nonzero(proposal.feature, [&](std::int32_t i, double) { Xd_[static_cast<std::size_t>(i)] = 0; });
  }
}

// X_S'X_S by rows: a row touched by c accepted columns costs c²/2, far less than |S| passes over the columns.
template <class View>
void Updates<View>::fill_gram(const std::vector<Proposal>& accepted) {
  const std::size_t m = accepted.size(), size = m * m;
  const std::int64_t n_slices = slices_.count();
  gram_slices_.assign(size * static_cast<std::size_t>(n_slices), 0.0);
  // values, then column numbers and counts (as doubles' worth of room), then cursors
  const std::size_t room = static_cast<std::size_t>(gram_window) * (2 * m + 1) + m;
  for (auto& buffer : scratch_) {
    if (buffer.size() < room) buffer.resize(room);
  }
  const auto run_slice = [&](std::int64_t slice, int executor) {
    add_gram_of_rows(accepted, slices_.begin(slice), slices_.end(slice), executor,
                     gram_slices_.data() + size * static_cast<std::size_t>(slice));
  };
  if (count_nonzeros(accepted) + view_.n_rows < min_parallel_work) {
    for (std::int64_t slice = 0; slice < n_slices; ++slice) run_slice(slice, 0);
  } else {
    team_.for_each(n_slices, run_slice);
  }
  gram_.assign(size, 0.0);
  for (std::int64_t slice = 0; slice < n_slices; ++slice) {
    const double* part = gram_slices_.data() + size * static_cast<std::size_t>(slice);
    for (std::size_t k = 0; k < size; ++k) gram_[k] += part[k];
  }
  for (std::size_t a = 0; a < m; ++a) {
    gram_[a * m + a] = accepted[a].curvature / scale_;  // the same number that the proposal used
    for (std::size_t b = 0; b < a; ++b) gram_[b * m + a] = gram_[a * m + b];
  }
}

// Adds the lower triangle (without diagonal) of rows first..last.
template <class View>
void Updates<View>::add_gram_of_rows(const std::vector<Proposal>& accepted, std::int64_t first, std::int64_t last,
                                     int executor, double* gram) {
  const std::size_t m = accepted.size();
  double* values = scratch_[static_cast<std::size_t>(executor)].data();
  auto* numbers = reinterpret_cast<std::int32_t*>(values + static_cast<std::size_t>(gram_window) * m);
  std::int32_t counts[gram_window];
  for (std::int64_t window = first; window < last; window += gram_window) {
    const std::int64_t end = std::min(window + gram_window, last);
    std::fill(counts, counts + gram_window, 0);
    for (std::size_t s = 0; s < m; ++s) {
      view_.for_each_nonzero(accepted[s].feature, window, end, [&](std::int32_t i, double x) {
        const auto row = static_cast<std::size_t>(i - window);
        const std::size_t at = row * m + static_cast<std::size_t>(counts[row]++);
        values[at] = x;
        numbers[at] = static_cast<std::int32_t>(s);
      });
    }
    for (std::int64_t row = 0; row < end - window; ++row) {
      const double* v = values + static_cast<std::size_t>(row) * m;
      const std::int32_t* number = numbers + static_cast<std::size_t>(row) * m;
      for (std::int32_t a = 1; a < counts[row]; ++a) {
        double* gram_row = gram + static_cast<std::size_t>(number[a]) * m;
        for (std::int32_t b = 0; b < a; ++b) gram_row[number[b]] += v[a] * v[b];
      }
    }
  }
}

template class Updates<CscView<float>>;
template class Updates<CscView<double>>;
template class Updates<DenseView<float>>;
template class Updates<DenseView<double>>;

}  // namespace blockgreedy
