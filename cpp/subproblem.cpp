#include "blockgreedy/subproblem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace blockgreedy {

namespace {

// What a slice of a parallel product must at least touch, and how many there may be.
constexpr std::int64_t slice_work = 40000;
constexpr std::int64_t max_slices = 16;

// How often conjugate gradients go on after signs changed.
const int max_clips = std::getenv("BG_CL") ? std::atoi(std::getenv("BG_CL")) : 3;

std::int64_t slices_for(std::int64_t work) { return std::clamp<std::int64_t>(work / slice_work, 1, max_slices); }

// From so many rows on, products go by slabs of rows, and long columns are shared by all threads.
constexpr std::int64_t tall_rows = 1 << 18;

// Blocks that a sweep works on side by side: enough for the threads that such a size is worth.
std::int64_t blocks_for(std::int64_t n_nonzeros) {
  if (n_nonzeros < 60000) return 1;
  if (n_nonzeros < 2000000) return 2;
  if (n_nonzeros < 8000000) return 4;
  return n_nonzeros < 16000000 ? 8 : 16;
}

double penalty_change(const ModelColumn& column, double from, double to) {
  const CoordinatePenalty& p = column.penalty;
  return p.l1 * (std::fabs(to) - std::fabs(from)) + 0.5 * p.l2 * (to - from) * (to + from);
}

// Free to move both ways without meeting a kink or a bound.
bool is_smooth_at(const ModelColumn& column, double z) {
  return (z != 0 || column.penalty.l1 == 0) && z > column.penalty.lower && z < column.penalty.upper &&
         column.curvature + column.penalty.l2 > 0;
}

double smooth_gradient(const ModelColumn& column) {
  const CoordinatePenalty& p = column.penalty;
  return p.l2 * column.point + (column.point > 0 ? p.l1 : column.point < 0 ? -p.l1 : 0.0);
}

}  // namespace

// Σ over fixed runs of rows of f(begin, end).
template <class F>
double Subproblem::sum_rows(F&& f) {
  std::array<double, 64> partial{};
  team_.for_work(slices_.count(), n_rows_, [&](std::int64_t slice) {
    partial[static_cast<std::size_t>(slice)] = f(slices_.begin(slice), slices_.end(slice));
  });
  double sum = 0;
  for (double v : partial) sum += v;
  return sum;
}

std::int64_t Subproblem::arrange(const std::int32_t* block_of, std::int64_t n_blocks) {
  const auto m = static_cast<std::int64_t>(columns.size());
  n_nonzeros_ = 0;
  for (const ModelColumn& column : columns) n_nonzeros_ += column.count;
  // On tall data threads share each long column: private residuals would cost more than the column.
  const bool tall = n_rows_ >= tall_rows;
  const auto is_short = [&](const ModelColumn& column) { return !tall || column.count < 2 * min_parallel_work; };
  std::stable_partition(columns.begin(), columns.end(), is_short);
  const auto n_short = static_cast<std::size_t>(std::count_if(columns.begin(), columns.end(), is_short));
  first_wide_ = static_cast<std::int64_t>(n_short);
  if (n_blocks == 0) {
    std::int64_t in_blocks = 0;
    for (std::int64_t k = 0; k < first_wide_; ++k) in_blocks += columns[static_cast<std::size_t>(k)].count;
    n_blocks = blocks_for(in_blocks);
  }
  n_blocks = std::clamp<std::int64_t>(n_blocks, 1, std::max<std::int64_t>(first_wide_, 1));
  std::vector<std::int32_t> block(n_short);
  if (n_blocks > 1) {
    if (block_of != nullptr) {
      for (std::size_t k = 0; k < block.size(); ++k) {
        block[k] = columns[k].feature < 0 ? 0 : block_of[columns[k].feature] % static_cast<std::int32_t>(n_blocks);
      }
    } else {  // longest first to the lightest block
      std::vector<std::int32_t> order(block.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return columns[static_cast<std::size_t>(a)].count > columns[static_cast<std::size_t>(b)].count;
      });
      std::vector<std::int64_t> load(static_cast<std::size_t>(n_blocks));
      for (std::int32_t k : order) {
        const auto lightest = std::min_element(load.begin(), load.end());
        block[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(lightest - load.begin());
        *lightest += columns[static_cast<std::size_t>(k)].count + 4;
      }
    }
    std::vector<ModelColumn> sorted;
    sorted.reserve(columns.size());
    block_starts_.assign(1, 0);
    for (std::int32_t b = 0; b < n_blocks; ++b) {
      for (std::size_t k = 0; k < block.size(); ++k) {
        if (block[k] == b) sorted.push_back(columns[k]);
      }
      block_starts_.push_back(static_cast<std::int64_t>(sorted.size()));
    }
    sorted.insert(sorted.end(), columns.begin() + first_wide_, columns.end());
    columns.swap(sorted);
  } else {
    block_starts_ = {0, first_wide_};
  }
  cut_rounds();
  std::int64_t at = 0;
  const std::int64_t n_slices = 4 * slices_for(n_nonzeros_);
  slice_starts_.assign(1, 0);
  for (std::int64_t k = 0; k < m; ++k) {
    columns[static_cast<std::size_t>(k)].start = at;
    at += columns[static_cast<std::size_t>(k)].count;
    while (static_cast<std::int64_t>(slice_starts_.size()) < n_slices &&
           at >= n_nonzeros_ / n_slices * static_cast<std::int64_t>(slice_starts_.size())) {
      slice_starts_.push_back(k + 1);
    }
  }
  slice_starts_.resize(static_cast<std::size_t>(n_slices), m);
  slice_starts_.push_back(m);
  if (capacity_ < n_nonzeros_) {
    capacity_ = n_nonzeros_ + n_nonzeros_ / 4;
    indices_.reset();  // nothing to carry over
    values_.reset();
    indices_.reset(new std::int32_t[static_cast<std::size_t>(capacity_)]);
    values_.reset(new float[static_cast<std::size_t>(capacity_)]);
  }
  return n_blocks;
}

// Blocks meet several times in a sweep, so that a residual is never stale for long. A meeting costs a few passes over
// the rows per block.
void Subproblem::cut_rounds() {
  const auto n_blocks = static_cast<std::int64_t>(block_starts_.size()) - 1;
  n_rounds_ =
      n_blocks == 1 ? 1 : std::clamp<std::int64_t>(n_nonzeros_ / (n_rows_ * n_blocks), 1, n_blocks == 2 ? 4 : 8);
  run_starts_.clear();
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const auto first = block_starts_[static_cast<std::size_t>(b)],
               last = block_starts_[static_cast<std::size_t>(b) + 1];
    std::int64_t total = 0, done = 0;
    for (std::int64_t k = first; k < last; ++k) total += columns[static_cast<std::size_t>(k)].count;
    run_starts_.push_back(first);
    std::int64_t k = first;
    for (std::int64_t round = 1; round < n_rounds_; ++round) {
      while (k < last && done < total * round / n_rounds_) done += columns[static_cast<std::size_t>(k++)].count;
      run_starts_.push_back(k);
    }
  }
  run_starts_.push_back(first_wide_);
}

void Subproblem::reset() {
  Zd_.assign(static_cast<std::size_t>(n_rows_), 0.0F);
  n_nonzeros_ = 0;
  for (ModelColumn& column : columns) {
    column.point = column.weight;
    n_nonzeros_ += column.count;
  }
  std::vector<std::int32_t> features(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) features[k] = columns[k].feature;
  memory_.follow(std::move(features));
  cut_slabs();
}

double Subproblem::sweep_run(std::int64_t first, std::int64_t last, float* residual, bool support_only) {
  double decrease = 0;
  for (std::int64_t k = first; k < last; ++k) {
    ModelColumn& column = columns[static_cast<std::size_t>(k)];
    if (support_only && column.point == 0 && column.penalty.l1 > 0) continue;
    const double grad = column.grad + product(column, residual) + column.extra * column.step();
    const double to = column.penalty.prox(column.point, grad, column.curvature);
    const double step = to - column.point;
    if (step == 0) continue;
    decrease += column.penalty.gain(column.point, to, grad, column.curvature);
    add(column, step, residual);
    column.point = to;
  }
  return decrease;
}

// One wide column after the other, each shared by slabs of rows.
double Subproblem::sweep_wide(bool support_only) {
  const std::int64_t n_slabs = slices_.count();
  const auto run_slabs = [&](std::int64_t work, auto&& f) {  // a few slabs at a time where they hold little
    const std::int64_t n_parts = std::clamp<std::int64_t>(work / 10000, 1, n_slabs);
    team_.for_work(n_parts, work, [&](std::int64_t part) {
      for (std::int64_t slab = n_slabs * part / n_parts; slab < n_slabs * (part + 1) / n_parts; ++slab) f(slab);
    });
  };
  double decrease = 0;
  for (auto k = static_cast<std::size_t>(first_wide_); k < columns.size(); ++k) {
    ModelColumn& column = columns[k];
    if (support_only && column.point == 0 && column.penalty.l1 > 0) continue;
    const std::int64_t* starts = slab_starts_.data() + static_cast<std::int64_t>(k) * (n_slabs + 1);
    const float* z = values_.get() + column.start;
    std::array<double, 64> partial{};
    run_slabs(column.count, [&](std::int64_t slab) {
      const std::int64_t at = starts[slab], count = starts[slab + 1] - at;
      partial[static_cast<std::size_t>(slab)] =
          column.dense ? kernels().float_dense_dot(z + at, Zd_.data() + slices_.begin(slab), count)
                       : kernels().float_dot(column.at + at, z + at, count, Zd_.data());
    });
    double grad = column.grad + column.extra * column.step();
    for (double v : partial) grad += v;
    const double to = column.penalty.prox(column.point, grad, column.curvature);
    const double step = to - column.point;
    if (step == 0) continue;
    decrease += column.penalty.gain(column.point, to, grad, column.curvature);
    run_slabs(column.count, [&](std::int64_t slab) {
      const std::int64_t at = starts[slab], count = starts[slab + 1] - at;
      const auto length = static_cast<float>(step);
      if (column.dense) {
        kernels().float_dense_axpy(z + at, length, Zd_.data() + slices_.begin(slab), count);
      } else {
        kernels().float_axpy(column.at + at, z + at, count, length, Zd_.data());
      }
    });
    column.point = to;
  }
  return decrease;
}

double Subproblem::sweep(bool support_only) {
  nonzeros_touched += 2 * n_nonzeros_;
  const auto n_blocks = static_cast<std::int64_t>(block_starts_.size()) - 1;
  double decrease = sweep_wide(support_only);
  if (n_blocks == 1) return decrease + sweep_run(0, block_starts_[1], Zd_.data(), support_only);
  if (static_cast<std::int64_t>(private_.size()) < n_blocks) private_.resize(static_cast<std::size_t>(n_blocks));
  old_points_.resize(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) old_points_[k] = columns[k].point;
  std::vector<double> change(static_cast<std::size_t>(n_blocks)), quadratic(change);
  for (std::int64_t round = 0; round < n_rounds_; ++round) {
    team_.for_work(n_blocks, n_nonzeros_ / n_rounds_, [&](std::int64_t block) {
      std::vector<float>& own = private_[static_cast<std::size_t>(block)];
      own.assign(Zd_.begin(), Zd_.end());
      const auto at = static_cast<std::size_t>(block * n_rounds_ + round);
      sweep_run(run_starts_[at], run_starts_[at + 1], own.data(), support_only);
      double linear = 0, square = 0;
      for (auto k = static_cast<std::size_t>(run_starts_[at]); k < static_cast<std::size_t>(run_starts_[at + 1]);
           ++k) {
        const ModelColumn& column = columns[k];
        const double step = column.point - old_points_[k];
        linear += (column.grad + column.extra * (old_points_[k] - column.weight)) * step +
                  penalty_change(column, old_points_[k], column.point);
        square += column.extra * step * step;
      }
      change[static_cast<std::size_t>(block)] = linear;
      quadratic[static_cast<std::size_t>(block)] = square;
    });
    decrease += join_blocks(change, quadratic, round);
  }
  return decrease;
}

// The blocks moved by u_b = (private residual − Zd) each; finds the step sizes 0 ≤ tau_b ≤ 1 that minimise
// Σ tau_b linear_b + ½ ‖Zd + Σ tau_b u_b‖², an upper bound of the model that is exact at 0 and 1 in every tau_b.
double Subproblem::join_blocks(const std::vector<double>& linear, const std::vector<double>& quadratic,
                               std::int64_t round) {
  const std::size_t n_blocks = linear.size();
  const std::size_t n_entries = n_blocks * n_blocks + n_blocks;
  std::vector<double> partial(n_entries * 64);
  team_.for_work(slices_.count(), n_rows_ * static_cast<std::int64_t>(n_blocks), [&](std::int64_t slice) {
    constexpr std::int64_t chunk = 1024;
    double* sums = partial.data() + n_entries * static_cast<std::size_t>(slice);
    for (std::int64_t first = slices_.begin(slice); first < slices_.end(slice); first += chunk) {
      const std::int64_t count = std::min(chunk, slices_.end(slice) - first);
      const float* base = Zd_.data() + first;
      for (std::size_t b = 0; b < n_blocks; ++b) {
        float* own = private_[b].data() + first;
        kernels().float_subtract(own, base, count);
        sums[n_blocks * n_blocks + b] += kernels().float_dense_dot(own, base, count);
        for (std::size_t c = 0; c <= b; ++c) {
          sums[b * n_blocks + c] += kernels().float_dense_dot(own, private_[c].data() + first, count);
        }
      }
    }
  });
  std::vector<double> gram(n_blocks * n_blocks), slope(n_blocks);
  for (std::int64_t slice = 0; slice < slices_.count(); ++slice) {
    const double* sums = partial.data() + n_entries * static_cast<std::size_t>(slice);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      for (std::size_t c = 0; c <= b; ++c) gram[b * n_blocks + c] += sums[b * n_blocks + c];
      slope[b] += sums[n_blocks * n_blocks + b];
    }
  }
  for (std::size_t b = 0; b < n_blocks; ++b) {
    for (std::size_t c = 0; c < b; ++c) gram[c * n_blocks + b] = gram[b * n_blocks + c];
    slope[b] += linear[b];
    gram[b * n_blocks + b] += quadratic[b];
  }
  std::vector<double> tau(n_blocks, 0.0), along = slope;  // along: gradient in tau
  for (int round = 0; round < 200; ++round) {
    double largest = 0;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const double curvature = gram[b * n_blocks + b];
      if (!(curvature > 0)) {
        continue;
      }
      const double to = std::clamp(tau[b] - along[b] / curvature, 0.0, 1.0);
      const double step = to - tau[b];
      if (step == 0) continue;
      for (std::size_t c = 0; c < n_blocks; ++c) along[c] += step * gram[b * n_blocks + c];
      tau[b] = to;
      largest = std::max(largest, std::fabs(step));
    }
    if (largest < 1e-3) break;
  }
  double change = 0, full = 0;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    change += 0.5 * tau[b] * (slope[b] + along[b]);
    full += slope[b];
    for (std::size_t c = 0; c < n_blocks; ++c) full += 0.5 * gram[b * n_blocks + c];
  }
  if (full <= 0.5 * change) {  // full steps keep exact zeros: worth more than a little decrease
    std::fill(tau.begin(), tau.end(), 1.0);
    change = full;
  }
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const std::size_t at = b * static_cast<std::size_t>(n_rounds_) + static_cast<std::size_t>(round);
    for (auto k = static_cast<std::size_t>(run_starts_[at]); k < static_cast<std::size_t>(run_starts_[at + 1]); ++k) {
      if (tau[b] < 1) columns[k].point = old_points_[k] + tau[b] * (columns[k].point - old_points_[k]);
    }
  }
  team_.for_work(slices_.count(), n_rows_ * static_cast<std::int64_t>(n_blocks), [&](std::int64_t slice) {
    const std::int64_t first = slices_.begin(slice), count = slices_.end(slice) - first;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      if (tau[b] > 0) {
        kernels().float_dense_axpy(private_[b].data() + first, static_cast<float>(tau[b]), Zd_.data() + first, count);
      }
    }
  });
  return -change;
}

void Subproblem::cut(Subset& subset) const {
  subset.work = 0;
  for (std::int32_t k : subset.members) subset.work += columns[static_cast<std::size_t>(k)].count;
  const auto n_parts = static_cast<std::size_t>(std::clamp<std::int64_t>(std::getenv("BG_P") ? std::atoi(std::getenv("BG_P")) : subset.work / (10 * n_rows_), 1, slices_for(subset.work)));
  subset.cuts.assign(1, 0);
  std::int64_t done = 0;
  for (std::size_t k = 0; k < subset.members.size(); ++k) {
    done += columns[static_cast<std::size_t>(subset.members[k])].count;
    while (subset.cuts.size() < n_parts &&
           done >= subset.work / static_cast<std::int64_t>(n_parts) * static_cast<std::int64_t>(subset.cuts.size())) {
      subset.cuts.push_back(k + 1);
    }
  }
  subset.cuts.resize(n_parts, subset.members.size());
  subset.cuts.push_back(subset.members.size());
}

void Subproblem::cut_slabs() {
  slab_starts_.clear();
  if (n_rows_ < tall_rows) return;
  const std::int64_t n_slabs = slices_.count();
  slab_starts_.resize(columns.size() * static_cast<std::size_t>(n_slabs + 1));
  const auto m = static_cast<std::int64_t>(columns.size());
  team_.for_work(64, n_nonzeros_, [&](std::int64_t part) {
    for (std::int64_t k = m * part / 64; k < m * (part + 1) / 64; ++k) {
      const ModelColumn& column = columns[static_cast<std::size_t>(k)];
      std::int64_t* starts = slab_starts_.data() + k * (n_slabs + 1);
      const std::int32_t *end = column.at + column.count, *at = column.at;
      for (std::int64_t slab = 0; slab <= n_slabs; ++slab) {
        const std::int64_t row = slab == n_slabs ? n_rows_ : slices_.begin(slab);
        if (!column.dense) at = std::lower_bound(at, end, static_cast<std::int32_t>(row));
        starts[slab] = column.dense ? row : at - column.at;
      }
    }
  });
}

// Σ p_k z_k in the rows of one slab.
void Subproblem::add_slab(const Subset& subset, const std::vector<double>& p, std::int64_t slab, float* q) const {
  const std::int64_t n_slabs = slices_.count();
  std::fill(q + slices_.begin(slab), q + slices_.end(slab), 0.0F);
  for (std::size_t k = 0; k < subset.members.size(); ++k) {
    const std::int32_t member = subset.members[k];
    const std::int64_t* starts = slab_starts_.data() + member * (n_slabs + 1) + slab;
    const std::int64_t count = starts[1] - starts[0];
    if (count == 0 || p[k] == 0) continue;
    const auto step = static_cast<float>(p[k]);
    const ModelColumn& column = columns[static_cast<std::size_t>(member)];
    const float* z = values_.get() + column.start + starts[0];
    if (column.dense) kernels().float_dense_axpy(z, step, q + slices_.begin(slab), count);
    else kernels().float_axpy(column.at + starts[0], z, count, step, q);
  }
}

// q = Σ p_k z_k
void Subproblem::forward(const Subset& subset, const std::vector<double>& p, std::vector<float>& q) {
  nonzeros_touched += subset.work;
  q.resize(static_cast<std::size_t>(n_rows_));
  if (!slab_starts_.empty()) {
    team_.for_work(slices_.count(), subset.work, [&](std::int64_t slab) { add_slab(subset, p, slab, q.data()); });
    return;
  }
  const auto n_parts = static_cast<std::int64_t>(subset.cuts.size()) - 1;
  if (static_cast<std::int64_t>(private_.size()) < n_parts) private_.resize(static_cast<std::size_t>(n_parts));
  team_.for_work(n_parts, subset.work, [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    std::vector<float>& sum = part == 0 ? q : private_[at];
    sum.assign(static_cast<std::size_t>(n_rows_), 0.0F);
    for (std::size_t k = subset.cuts[at]; k < subset.cuts[at + 1]; ++k) {
      if (p[k] != 0) add(columns[static_cast<std::size_t>(subset.members[k])], p[k], sum.data());
    }
  });
  if (n_parts == 1) return;
  team_.for_work(slices_.count(), n_rows_ * n_parts, [&](std::int64_t slice) {
    const std::int64_t first = slices_.begin(slice), count = slices_.end(slice) - first;
    for (std::int64_t part = 1; part < n_parts; ++part) {
      kernels().float_dense_axpy(private_[static_cast<std::size_t>(part)].data() + first, 1.0F, q.data() + first,
                                 count);
    }
  });
}

// out_k = z_k·(Σ p_l z_l); q is scratch.
void Subproblem::curve(const Subset& subset, const std::vector<double>& p, std::vector<float>& q,
                       std::vector<double>& out) {
  const std::size_t m = subset.members.size();
  if (slab_starts_.empty()) {
    forward(subset, p, q);
    nonzeros_touched += subset.work;
    team_.for_work(static_cast<std::int64_t>(subset.cuts.size()) - 1, subset.work, [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      for (std::size_t k = subset.cuts[at]; k < subset.cuts[at + 1]; ++k) {
        out[k] = product(columns[static_cast<std::size_t>(subset.members[k])], q.data());
      }
    });
    return;
  }
  nonzeros_touched += 2 * subset.work;
  const std::int64_t n_slabs = slices_.count();
  q.resize(static_cast<std::size_t>(n_rows_));
  slab_products_.resize(m * static_cast<std::size_t>(n_slabs));
  team_.for_work(n_slabs, subset.work, [&](std::int64_t slab) {
    add_slab(subset, p, slab, q.data());
    double* products = slab_products_.data() + m * static_cast<std::size_t>(slab);
    for (std::size_t k = 0; k < m; ++k) {
      const std::int32_t member = subset.members[k];
      const std::int64_t* starts = slab_starts_.data() + member * (n_slabs + 1) + slab;
      const std::int64_t count = starts[1] - starts[0];
      const ModelColumn& column = columns[static_cast<std::size_t>(member)];
      const float* z = values_.get() + column.start + starts[0];
      if (count == 0) products[k] = 0;
      else if (column.dense) products[k] = kernels().float_dense_dot(z, q.data() + slices_.begin(slab), count);
      else products[k] = kernels().float_dot(column.at + starts[0], z, count, q.data());
    }
  });
  std::fill(out.begin(), out.end(), 0.0);
  for (std::int64_t slab = 0; slab < n_slabs; ++slab) {
    for (std::size_t k = 0; k < m; ++k) out[k] += slab_products_[m * static_cast<std::size_t>(slab) + k];
  }
}

double Subproblem::solve_on_support(int max_iterations, double stop, double accuracy) {
  Direction first = conjugate_gradients(max_iterations, stop, accuracy);
  if (first.support.members.empty()) return 0;
  // Where coordinates changed sign they are set to zero, and the others have to make up for it: columns that are much
  // alike move far against each other.
  double change = 0;
  Direction direction = first;
  for (int round = 0; round < max_clips; ++round) {
    const bool clipped = clip(direction);
    const double own = change_of(direction);
    change += own;
    if (change <= (clipped || round > 0 ? -0.25 * first.decrease : 0.0)) {
      take(direction);
      old_Zd_.clear();
      return -change;
    }
    // Where the system is nearly singular, nothing but the kinks stops the direction.
    if (!clipped || round + 1 == max_clips || own > 100 * first.decrease) break;
    if (round == 0) remember();
    take(direction);
    direction = conjugate_gradients(max_iterations, stop, accuracy);
    if (direction.support.members.empty()) break;
  }
  recall();
  return search_kinks(first);
}

Subproblem::Direction Subproblem::conjugate_gradients(int max_iterations, double stop, double accuracy) {
  Direction direction;
  Subset& support = direction.support;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (is_smooth_at(columns[k], columns[k].point)) support.members.push_back(static_cast<std::int32_t>(k));
  }
  if (support.members.empty()) return direction;
  cut(support);
  const std::vector<std::int32_t>& subset = support.members;
  const std::size_t m = subset.size();
  std::vector<double>& x = direction.x;
  x.assign(m, 0.0);
  direction.Zx.assign(static_cast<std::size_t>(n_rows_), 0.0F);
  std::vector<double> r(m), scaled(m), p(m), Ap(m), inverse(m);
  nonzeros_touched += support.work;
  team_.for_work(static_cast<std::int64_t>(support.cuts.size()) - 1, support.work, [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    for (std::size_t k = support.cuts[at]; k < support.cuts[at + 1]; ++k) {
      const ModelColumn& column = columns[static_cast<std::size_t>(subset[k])];
      r[k] = -(column.grad + product(column, Zd_.data()) + column.extra * column.step() + smooth_gradient(column));
      inverse[k] = 1.0 / (column.curvature + column.penalty.l2);
    }
  });
  // Pairs are worth their cost only beside long columns.
  const std::size_t pairs = static_cast<std::size_t>(support.work) / (8 * m);
  memory_.restrict(subset, pairs < 8 ? 0 : pairs);
  memory_.apply(r, inverse, scaled);
  double rz = std::inner_product(r.begin(), r.end(), scaled.begin(), 0.0);
  p = scaled;
  int n_small = 0;
  static const int need = std::getenv("BG_NS") ? std::atoi(std::getenv("BG_NS")) : 1;
  for (int iteration = 0; iteration < max_iterations && rz > 0 && !team_.poll(); ++iteration) {
    ++cg_iterations;
    curve(support, p, q_, Ap);
    for (std::size_t k = 0; k < m; ++k) {
      const ModelColumn& column = columns[static_cast<std::size_t>(subset[k])];
      Ap[k] += (column.extra + column.penalty.l2) * p[k];
    }
    const double pAp = std::inner_product(p.begin(), p.end(), Ap.begin(), 0.0);
    if (!(pAp > 0)) break;
    double diagonal = 0;
    for (std::size_t k = 0; k < m; ++k) diagonal += p[k] * p[k] / inverse[k];
    const bool singular = pAp <= 1e-6 * diagonal;  // float32 knows no better
    if (!singular) memory_.add(subset, p, Ap);
    const double length = rz / pAp;
    for (std::size_t k = 0; k < m; ++k) {
      x[k] += length * p[k];
      r[k] -= length * Ap[k];
    }
    add_rows(q_, length, direction.Zx);
    const double decrease = 0.5 * length * rz;
    direction.decrease += decrease;
    n_small = decrease <= stop * direction.decrease ? n_small + 1 : 0;
    if (singular || (n_small >= need && largest_excess(support, r) <= accuracy)) break;
    memory_.apply(r, inverse, scaled);
    const double new_rz = std::inner_product(r.begin(), r.end(), scaled.begin(), 0.0);
    const double ratio = new_rz / rz;
    for (std::size_t k = 0; k < m; ++k) p[k] = scaled[k] + ratio * p[k];
    rz = new_rz;
  }
  return direction;
}

// v += factor·u
void Subproblem::add_rows(const std::vector<float>& u, double factor, std::vector<float>& v) {
  team_.for_work(slices_.count(), n_rows_, [&](std::int64_t slice) {
    const std::int64_t first = slices_.begin(slice);
    kernels().float_dense_axpy(u.data() + first, static_cast<float>(factor), v.data() + first,
                               slices_.end(slice) - first);
  });
}

// The direction, but to zero where it changes a sign, and to the bound where it leaves the bounds. True if that made a
// difference.
bool Subproblem::clip(Direction& direction) {
  Subset clipped;
  std::vector<double> correction;
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    const std::int32_t member = direction.support.members[k];
    const ModelColumn& column = columns[static_cast<std::size_t>(member)];
    double to = column.point + direction.x[k];
    if (column.penalty.l1 > 0 && to * column.point <= 0) to = 0;
    to = std::clamp(to, column.penalty.lower, column.penalty.upper);
    if (to == column.point + direction.x[k]) continue;
    const double step = to - column.point;
    clipped.members.push_back(member);
    correction.push_back(step - direction.x[k]);
    direction.x[k] = step;
  }
  if (clipped.members.empty()) return false;
  cut(clipped);
  forward(clipped, correction, q_);
  add_rows(q_, 1.0, direction.Zx);
  return true;
}

// What the whole direction changes in the model.
double Subproblem::change_of(const Direction& direction) {
  double change = sum_rows([&](std::int64_t begin, std::int64_t end) {
    const float* Zx = direction.Zx.data() + begin;
    return kernels().float_dense_dot(Zx, Zd_.data() + begin, end - begin) +
           0.5 * kernels().float_dense_dot(Zx, Zx, end - begin);
  });
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    const ModelColumn& column = columns[static_cast<std::size_t>(direction.support.members[k])];
    const double x = direction.x[k];
    change += (column.grad + column.extra * (column.step() + 0.5 * x)) * x +
              penalty_change(column, column.point, column.point + x);
  }
  return change;
}

void Subproblem::take(const Direction& direction) {
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    double& point = columns[static_cast<std::size_t>(direction.support.members[k])].point;
    point = direction.x[k] == -point ? 0.0 : point + direction.x[k];
  }
  add_rows(direction.Zx, 1.0, Zd_);
}

void Subproblem::remember() {
  old_points_.resize(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) old_points_[k] = columns[k].point;
  old_Zd_ = Zd_;
}

void Subproblem::recall() {
  if (old_Zd_.empty()) return;
  for (std::size_t k = 0; k < columns.size(); ++k) columns[k].point = old_points_[k];
  Zd_.swap(old_Zd_);
  old_Zd_.clear();
}

// The exact minimum along the direction: between the points where a coordinate reaches zero or a bound the model is
// quadratic.
double Subproblem::search_kinks(Direction& direction) {
  std::vector<double>& x = direction.x;
  const std::vector<std::int32_t>& subset = direction.support.members;
  double slope = sum_rows([&](std::int64_t begin, std::int64_t end) {
    return kernels().float_dense_dot(direction.Zx.data() + begin, Zd_.data() + begin, end - begin);
  });
  double curvature = sum_rows([&](std::int64_t begin, std::int64_t end) {
    return kernels().float_dense_dot(direction.Zx.data() + begin, direction.Zx.data() + begin, end - begin);
  });
  struct Kink {
    double at;
    std::size_t k;
  };
  std::vector<Kink> kinks;
  double limit = infinity;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const ModelColumn& column = columns[static_cast<std::size_t>(subset[k])];
    const CoordinatePenalty& penalty = column.penalty;
    slope += x[k] * (column.grad + column.extra * column.step() + smooth_gradient(column));
    curvature += (penalty.l2 + column.extra) * x[k] * x[k];
    if (x[k] == 0) continue;
    limit = std::min(limit, (x[k] > 0 ? penalty.upper - column.point : penalty.lower - column.point) / x[k]);
    if (penalty.l1 > 0 && x[k] * column.point < 0) kinks.push_back({-column.point / x[k], k});
  }
  std::sort(kinks.begin(), kinks.end(), [](const Kink& a, const Kink& b) { return a.at < b.at; });
  double length = 0, at = 0;
  for (std::size_t i = 0; i <= kinks.size(); ++i) {
    const double next = std::min(i < kinks.size() ? kinks[i].at : infinity, limit);
    length = curvature > 0 ? at - slope / curvature : next;
    if (slope >= 0) length = at;
    if (length <= next || next == limit) {
      length = std::min(length, next);
      break;
    }
    slope += (next - at) * curvature;
    const std::size_t k = kinks[i].k;
    slope += 2 * columns[static_cast<std::size_t>(subset[k])].penalty.l1 * std::fabs(x[k]);
    at = next;
  }
  if (!(length > 0) || !std::isfinite(length)) return 0;
  for (double& v : x) v *= length;
  for (const Kink& kink : kinks) {
    if (kink.at == length) x[kink.k] = -columns[static_cast<std::size_t>(subset[kink.k])].point;
  }
  add_rows(direction.Zx, length - 1, direction.Zx);
  const double change = change_of(direction);
  if (!(change < 0)) return 0;
  take(direction);
  return -change;
}

double Subproblem::largest_excess(const Subset& subset, const std::vector<double>& r) const {
  double largest = 0;
  for (std::size_t k = 0; k < r.size(); ++k) {
    const double l1 = columns[static_cast<std::size_t>(subset.members[k])].penalty.l1;
    if (l1 > 0) largest = std::max(largest, std::fabs(r[k]) / l1);
  }
  return largest;
}

double Subproblem::worst_outside() {
  Subset rest;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (columns[k].point == 0 && columns[k].penalty.l1 > 0) rest.members.push_back(static_cast<std::int32_t>(k));
  }
  cut(rest);
  nonzeros_touched += rest.work;
  std::vector<double> excess(rest.members.size());
  team_.for_work(static_cast<std::int64_t>(rest.cuts.size()) - 1, rest.work, [&](std::int64_t part) {
    for (std::size_t k = rest.cuts[static_cast<std::size_t>(part)]; k < rest.cuts[static_cast<std::size_t>(part) + 1]; ++k) {
      const ModelColumn& column = columns[static_cast<std::size_t>(rest.members[k])];
      const double grad = column.grad + product(column, Zd_.data()) + column.extra * column.step();
      const double slack = std::min(column.penalty.upper > 0 ? column.penalty.l1 + grad : infinity,
                                    column.penalty.lower < 0 ? column.penalty.l1 - grad : infinity);
      excess[k] = -slack / column.penalty.l1;
    }
  });
  return excess.empty() ? 0.0 : *std::max_element(excess.begin(), excess.end());
}

double Subproblem::linear_change() const {
  double sum = 0;
  for (const ModelColumn& column : columns) {
    if (column.point != column.weight) {
      sum += column.grad * (column.point - column.weight) + penalty_change(column, column.weight, column.point);
    }
  }
  return sum;
}

}  // namespace blockgreedy
