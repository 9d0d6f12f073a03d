// Coordinate descent on the subproblem: sweeps of the blocks, and the step sizes that join them.
#include "working_set/subproblem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace blockgreedy {

double Subproblem::sweep_run(std::int64_t first, std::int64_t last, float* residual, bool support_only) {
  double decrease = 0;
  for (std::int64_t k = first; k < last; ++k) {
    SubproblemColumn& column = columns[k];
    if (support_only && column.point == 0 && column.penalty.l1 > 0) continue;
    const double grad = column.grad + product(column, residual) + column.dropped_curvature * column.step();
    const double to = column.penalty.prox(column.point, grad, column.curvature);
    const double step = to - column.point;
    if (step == 0) continue;
    decrease += column.penalty.gain(column.point, to, grad, column.curvature);
    add(column, step, residual);
    column.point = to;
  }
  return decrease;
}

// The columns that are too long for a block, one after the other, each shared by slabs of rows.
double Subproblem::sweep_shared(bool support_only) {
  const std::int64_t n_slabs = rows_.slices().count();
  const auto run_slabs = [&](std::int64_t work, auto&& f) {  // a few slabs at a time where they hold little
    const std::int64_t n_parts = std::clamp<std::int64_t>(work / Tuning::Layout::slab_part_work, 1,
                                                          std::min(n_slabs, Tuning::Layout::max_slab_parts));
    team_.for_work(n_parts, work, [&](std::int64_t part) {
      for (std::int64_t slab = n_slabs * part / n_parts; slab < n_slabs * (part + 1) / n_parts; ++slab) f(slab);
    });
  };
  double decrease = 0;
  for (auto k = static_cast<std::size_t>(first_shared_); k < columns.size(); ++k) {
    SubproblemColumn& column = columns[k];
    if (support_only && column.point == 0 && column.penalty.l1 > 0) continue;
    const std::int64_t* starts = slab_starts_of(static_cast<std::int64_t>(k));
    const float* z = z_ + column.start;
    std::array<double, 64> partial{};
    run_slabs(column.count, [&](std::int64_t slab) {
      const std::int64_t at = starts[slab], count = starts[slab + 1] - at;
      partial[slab] = column.dense ? kernels().float_dense_dot(z + at, Zd_.data() + rows_.slices().begin(slab), count)
                                   : kernels().float_dot(column.rows + at, z + at, count, Zd_.data());
    });
    double grad = column.grad + column.dropped_curvature * column.step();
    for (double v : partial) grad += v;
    const double to = column.penalty.prox(column.point, grad, column.curvature);
    const double step = to - column.point;
    if (step == 0) continue;
    decrease += column.penalty.gain(column.point, to, grad, column.curvature);
    run_slabs(column.count, [&](std::int64_t slab) {
      const std::int64_t at = starts[slab], count = starts[slab + 1] - at;
      const auto length = static_cast<float>(step);
      if (column.dense) {
        kernels().float_dense_axpy(z + at, length, Zd_.data() + rows_.slices().begin(slab), count);
      } else {
        kernels().float_axpy(column.rows + at, z + at, count, length, Zd_.data());
      }
    });
    column.point = to;
  }
  return decrease;
}

double Subproblem::sweep(bool support_only) {
  nonzeros_touched += 2 * n_nonzeros_;
  if (is_tiled_) {
    const ColumnTiles::Outcome outcome = tiles_.sweep(columns, support_only, Zd_);
    excess_ = support_only ? infinity : outcome.excess;
    return outcome.decrease;
  }
  const auto n_blocks = static_cast<std::int64_t>(block_starts_.size()) - 1;
  double decrease = sweep_shared(support_only);
  if (n_blocks == 1) return decrease + sweep_run(0, block_starts_[1], Zd_.data(), support_only);
  if (static_cast<std::int64_t>(private_sums_.size()) < n_blocks) private_sums_.resize(n_blocks);
  old_points_.resize(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) old_points_[k] = columns[k].point;
  std::vector<double> change(static_cast<std::size_t>(n_blocks)), quadratic(change);
  for (std::int64_t round = 0; round < n_rounds_; ++round) {
    team_.for_work(n_blocks, n_nonzeros_ / n_rounds_, [&](std::int64_t block) {
      std::vector<float>& own = private_sums_[block];
      own.assign(Zd_.begin(), Zd_.end());
      const auto at = static_cast<std::size_t>(block * n_rounds_ + round);
      sweep_run(run_starts_[at], run_starts_[at + 1], own.data(), support_only);
      double linear = 0, square = 0;
      for (std::int64_t k = run_starts_[at]; k < run_starts_[at + 1]; ++k) {
        const SubproblemColumn& column = columns[k];
        const double step = column.point - old_points_[k];
        linear += (column.grad + column.dropped_curvature * (old_points_[k] - column.weight)) * step +
                  column.penalty_change(old_points_[k], column.point);
        square += column.dropped_curvature * step * step;
      }
      change[block] = linear;
      quadratic[block] = square;
    });
    decrease += join_blocks(change, quadratic, round);
  }
  return decrease;
}

// The blocks moved by u_b = (private residual − Zd) each; finds the step sizes 0 ≤ tau_b ≤ 1 that minimise
// Σ tau_b linear_b + ½ ‖Zd + Σ tau_b u_b‖², an upper bound of the subproblem that is exact at 0 and 1 in every tau_b,
// and takes these steps. Private residuals become the u_b.
double Subproblem::join_blocks(const std::vector<double>& linear, const std::vector<double>& quadratic,
                               std::int64_t round) {
  const std::size_t n_blocks = linear.size();
  BlockProducts products = multiply_blocks(n_blocks);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    for (std::size_t c = 0; c < b; ++c) products.gram[c * n_blocks + b] = products.gram[b * n_blocks + c];
    products.slope[b] += linear[b];
    products.gram[b * n_blocks + b] += quadratic[b];
  }
  std::vector<double> tau(n_blocks, 0.0);
  const double change = choose_step_sizes(products, tau);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const std::size_t at = b * static_cast<std::size_t>(n_rounds_) + static_cast<std::size_t>(round);
    for (std::int64_t k = run_starts_[at]; k < run_starts_[at + 1]; ++k) {
      if (tau[b] < 1) columns[k].point = old_points_[k] + tau[b] * (columns[k].point - old_points_[k]);
    }
  }
  team_.for_work(rows_.slices().count(), n_rows_ * static_cast<std::int64_t>(n_blocks), [&](std::int64_t slice) {
    const std::int64_t first = rows_.slices().begin(slice), count = rows_.slices().end(slice) - first;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      if (tau[b] > 0) {
        kernels().float_dense_axpy(private_sums_[b].data() + first, static_cast<float>(tau[b]), Zd_.data() + first,
                                   count);
      }
    }
  });
  return -change;
}

// Turns the private residuals into the u_b and multiplies them: with each other (below the diagonal) and with Zd.
Subproblem::BlockProducts Subproblem::multiply_blocks(std::size_t n_blocks) {
  const std::size_t n_entries = n_blocks * n_blocks + n_blocks;
  std::vector<double> partial(n_entries * 64);
  team_.for_work(rows_.slices().count(), n_rows_ * static_cast<std::int64_t>(n_blocks), [&](std::int64_t slice) {
    constexpr std::int64_t chunk = 1024;
    double* sums = partial.data() + n_entries * static_cast<std::size_t>(slice);
    for (std::int64_t first = rows_.slices().begin(slice); first < rows_.slices().end(slice); first += chunk) {
      const std::int64_t count = std::min(chunk, rows_.slices().end(slice) - first);
      const float* base = Zd_.data() + first;
      for (std::size_t b = 0; b < n_blocks; ++b) {
        float* own = private_sums_[b].data() + first;
        kernels().float_subtract(own, base, count);
        sums[n_blocks * n_blocks + b] += kernels().float_dense_dot(own, base, count);
        for (std::size_t c = 0; c <= b; ++c) {
          sums[b * n_blocks + c] += kernels().float_dense_dot(own, private_sums_[c].data() + first, count);
        }
      }
    }
  });
  BlockProducts products{std::vector<double>(n_blocks * n_blocks), std::vector<double>(n_blocks)};
  for (std::int64_t slice = 0; slice < rows_.slices().count(); ++slice) {
    const double* sums = partial.data() + n_entries * static_cast<std::size_t>(slice);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      for (std::size_t c = 0; c <= b; ++c) products.gram[b * n_blocks + c] += sums[b * n_blocks + c];
      products.slope[b] += sums[n_blocks * n_blocks + b];
    }
  }
  return products;
}

// min slope·tau + ½ tau·gram·tau over 0 ≤ tau ≤ 1, by coordinate descent from 0. Returns the minimum.
double Subproblem::choose_step_sizes(const BlockProducts& products, std::vector<double>& tau) {
  using T = Tuning::Sweeps;
  const std::size_t n_blocks = tau.size();
  const auto& [gram, slope] = products;
  std::vector<double> gradient = slope;
  for (int round = 0; round < T::max_join_rounds; ++round) {
    double largest = 0;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const double curvature = gram[b * n_blocks + b];
      if (!(curvature > 0)) continue;
      const double to = std::clamp(tau[b] - gradient[b] / curvature, 0.0, 1.0);
      const double step = to - tau[b];
      if (step == 0) continue;
      for (std::size_t c = 0; c < n_blocks; ++c) gradient[c] += step * gram[b * n_blocks + c];
      tau[b] = to;
      largest = std::max(largest, std::fabs(step));
    }
    if (largest < T::join_accuracy) break;
  }
  double change = 0, full = 0;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    change += 0.5 * tau[b] * (slope[b] + gradient[b]);
    full += slope[b];
    for (std::size_t c = 0; c < n_blocks; ++c) full += 0.5 * gram[b * n_blocks + c];
  }
  if (!(full <= T::full_step_share * change)) return change;
  std::fill(tau.begin(), tau.end(), 1.0);
  return full;
}

}  // namespace blockgreedy
