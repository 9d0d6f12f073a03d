#include "partitions/cross_products.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "family/blocks.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

namespace {

// The features of each block, those of the largest |tilt| first: for products of features without a common row.
struct ByTilt {
  std::vector<std::int32_t> features;
  std::vector<std::int64_t> start;

  ByTilt(const BlockOf& blocks, std::int64_t n_features, const double* tilt) {
    const Blocks grouped(blocks.block_of, n_features, blocks.n_blocks, true);
    for (std::int64_t k = 0; k < n_features; ++k) features.push_back(static_cast<std::int32_t>(grouped.feature(k)));
    for (std::int64_t b = 0; b <= blocks.n_blocks; ++b) start.push_back(grouped.start(b));
    for (std::size_t b = 0; b + 1 < start.size(); ++b) {
      std::stable_sort(features.begin() + start[b], features.begin() + start[b + 1],
                       [&](std::int32_t i, std::int32_t j) { return std::abs(tilt[i]) > std::abs(tilt[j]); });
    }
  }
};

// What one executor needs for a seed: products with the features met so far, and the largest of each block.
struct Workspace {
  std::vector<double> products;  // 0: not met; all 0 between seeds
  std::vector<std::int32_t> met, met_blocks;
  std::vector<double> best;     // per block; 0 between seeds
  std::vector<double> between;  // as in CrossProducts
  std::int64_t n_met = 0, n_met_blocks = 0;
};

template <class View>
class Pass {
 public:
  Pass(const View& columns, const View* rows, const UnitMatrix& unit, const BlockOf& blocks, CrossProducts& out)
      : columns_(columns), rows_(rows), tilt_(unit.tilt), blocks_(blocks), out_(out) {
    if (tilt_ != nullptr) by_tilt_.emplace(blocks, columns.n_cols, tilt_);
  }

  Workspace workspace() const {
    Workspace work;
    if (rows_ != nullptr) {
      work.products.assign(columns_.n_cols, 0);
      work.met.resize(columns_.n_cols + 1);
    }
    work.met_blocks.resize(blocks_.n_blocks);
    work.best.assign(blocks_.n_blocks, 0);
    work.between.assign(out_.between.size(), 0);
    return work;
  }

  void run(std::int64_t at, std::int32_t seed, Workspace& work) const {
    work.n_met = work.n_met_blocks = 0;
    const std::int32_t own = blocks_.block_of[seed];
    if constexpr (std::is_same_v<View, CscView<double>>) {
      multiply_sparse(seed, work);
      for (std::int64_t k = 0; k < work.n_met; ++k) {
        const std::int32_t j = work.met[k];
        double product = work.products[j];
        if (tilt_ != nullptr) product -= tilt_[seed] * tilt_[j];
        else work.products[j] = 0;
        offer(blocks_.block_of[j], std::abs(product), work);
      }
      if (tilt_ != nullptr) offer_unmet(seed, work);
    } else {
      const double* values = columns_.data + columns_.start(seed);
      for (std::int64_t j = 0; j < columns_.n_cols; ++j) {
        if (blocks_.block_of[j] != own) {
          offer(blocks_.block_of[j], std::abs(column_dot(columns_, j, values)), work);
        }
      }
    }
    double sum = 0, largest = 0;
    for (std::int64_t k = 0; k < work.n_met_blocks; ++k) {
      const std::int32_t b = work.met_blocks[k];
      double& best = work.best[b];
      if (b != own) {
        sum += best;
        largest = std::max(largest, best);
        if (!work.between.empty()) {
          double& entry = work.between[own * blocks_.n_blocks + b];
          entry = std::max(entry, best);
        }
      }
      best = 0;
    }
    out_.sums[at] = sum;
    out_.largest[at] = largest;
  }

 private:
  void multiply_sparse(std::int32_t seed, Workspace& work) const {
    constexpr double tiny = 1e-300;  // stands for a product that cancels to exactly 0, which would mean "not met"
    double* products = work.products.data();
    std::int32_t* met = work.met.data();
    std::int64_t n_met = 0;
    columns_.for_each_nonzero(seed, [&](std::int32_t row, double x) {
      rows_->for_each_nonzero(row, [&](std::int32_t j, double other) {
        const double before = products[j], sum = before + x * other;
        met[n_met] = j;  // always written, counted only if new: a branch would be unpredictable
        n_met += before == 0;
        products[j] = sum == 0 ? tiny : sum;
      });
    });
    work.n_met = n_met;
  }

  // Features without a common row still have -tilt·tilt: of each block the unmet one of the largest |tilt| counts.
  void offer_unmet(std::int32_t seed, Workspace& work) const {
    for (std::int64_t b = 0; b < blocks_.n_blocks; ++b) {
      const std::int64_t end = by_tilt_->start[b + 1];
      for (std::int64_t k = by_tilt_->start[b]; k < end; ++k) {
        const std::int32_t j = by_tilt_->features[k];
        if (work.products[j] != 0) continue;
        offer(static_cast<std::int32_t>(b), std::abs(tilt_[seed] * tilt_[j]), work);
        break;
      }
    }
    for (std::int64_t k = 0; k < work.n_met; ++k) {
      work.products[work.met[k]] = 0;
    }
  }

  static void offer(std::int32_t block, double magnitude, Workspace& work) {
    double& best = work.best[block];
    if (magnitude <= best) return;
    if (best == 0) work.met_blocks[work.n_met_blocks++] = block;
    best = magnitude;
  }

  const View& columns_;
  const View* rows_;
  const double* tilt_;
  const BlockOf& blocks_;
  CrossProducts& out_;
  std::optional<ByTilt> by_tilt_;  // with implicit centring
};

template <class View>
void run_pass(const Pass<View>& pass, std::span<const std::int32_t> seeds, CrossProducts& out, ThreadTeam& team) {
  constexpr std::int64_t run_length = 16;  // seeds per part: few, since a dense seed costs a hundred rare ones
  const auto n_seeds = static_cast<std::int64_t>(seeds.size());
  std::vector<Workspace> works;
  for (int executor = 0; executor < team.size(); ++executor) works.push_back(pass.workspace());
  team.for_each((n_seeds + run_length - 1) / run_length, [&](std::int64_t part, int executor) {
    for (std::int64_t at = part * run_length; at < std::min(n_seeds, (part + 1) * run_length); ++at) {
      pass.run(at, seeds[at], works[executor]);
    }
  });
  for (const Workspace& work : works) {
    std::transform(work.between.begin(), work.between.end(), out.between.begin(), out.between.begin(),
                   [](double a, double b) { return std::max(a, b); });
  }
}

template <class View>
std::vector<std::int32_t> touched_in(const View& view, const BlockOf& blocks, ThreadTeam& team) {
  const Blocks grouped(blocks.block_of, view.n_cols, blocks.n_blocks, true);
  std::vector<std::int32_t> count(view.n_rows), last(view.n_rows, -1);
  // Executors own slices of rows and walk all columns, block after block. Counts do not depend on the slices.
  const std::int64_t n_slices = view.n_nonzeros() < min_parallel_work ? 1 : team.size();
  team.for_each(n_slices, [&](std::int64_t slice, int) {
    const std::int64_t begin = view.n_rows * slice / n_slices, end = view.n_rows * (slice + 1) / n_slices;
    for (std::int64_t b = 0; b < blocks.n_blocks; ++b) {
      for (std::int64_t k = grouped.start(b); k < grouped.start(b + 1); ++k) {
        view.for_each_nonzero(grouped.feature(k), begin, end, [&](std::int32_t i, double x) {
          if (x == 0 || last[i] == static_cast<std::int32_t>(b)) return;
          last[i] = static_cast<std::int32_t>(b);
          ++count[i];
        });
      }
    }
  });
  return count;
}

}  // namespace

CrossProducts cross_products(const UnitMatrix& unit, const BlockOf& blocks, std::span<const std::int32_t> seeds,
                             ThreadTeam& team) {
  CrossProducts out;
  out.largest.resize(seeds.size());
  out.sums.resize(seeds.size());
  if (blocks.n_blocks <= max_between) out.between.resize(blocks.n_blocks * blocks.n_blocks);
  if (const auto* sparse = std::get_if<CscView<double>>(&unit.columns)) {
    const Pass<CscView<double>> pass(*sparse, &std::get<CscView<double>>(unit.rows), unit, blocks, out);
    run_pass(pass, seeds, out, team);
  } else {
    const Pass<DenseView<double>> pass(std::get<DenseView<double>>(unit.columns), nullptr, unit, blocks, out);
    run_pass(pass, seeds, out, team);
  }
  return out;
}

std::vector<std::int32_t> blocks_touched(const Matrix& matrix, const BlockOf& blocks, ThreadTeam& team) {
  return std::visit([&](const auto& view) { return touched_in(view, blocks, team); }, matrix);
}

std::vector<double> weighted_squares(const Matrix& matrix, const double* weights, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) {
        std::vector<double> out(view.n_cols);
        const auto cuts = equal_nonzero_cuts(view, view.n_nonzeros() < min_parallel_work ? 1 : 64);
        team.for_each(static_cast<std::int64_t>(cuts.size()) - 1, [&](std::int64_t part, int) {
          for (std::int64_t j = cuts[part]; j < cuts[part + 1]; ++j) {
            double sum = 0;
            view.for_each_nonzero(
                j, [&](std::int32_t row, double x) { sum += (weights == nullptr ? 1.0 : weights[row]) * x * x; });
            out[j] = sum;
          }
        });
        return out;
      },
      matrix);
}

}  // namespace blockgreedy
