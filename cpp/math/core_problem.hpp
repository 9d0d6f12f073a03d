// What is being minimised, as the core sees it: Σ ω_i loss(y_i, (Xw)_i + b + offset_i) + Σ penalty_j(w_j), and the
// state that the family keeps current.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"
#include "kernels/kernels.hpp"
#include "math/losses.hpp"
#include "math/penalties.hpp"

namespace blockgreedy {

struct CoreProblem {
  const double* y;
  Loss loss;
  Penalty penalty;
  const double* row_weights = nullptr;  // ω_i, summing to 1; null for 1/n each
  const double* offset = nullptr;       // added to Xw
  bool fit_intercept = false;

  // What a sum of State::derivs over rows is multiplied by to be a derivative of the objective.
  double row_scale(std::int64_t n_rows) const { return row_weights ? 1.0 : 1.0 / static_cast<double>(n_rows); }
};

struct State {
  std::vector<double> w;
  double intercept = 0;
  std::vector<double> Xw;              // predictions: intercept and offset included
  std::vector<double> derivs;          // loss′ at them, times ω_i where rows have weights
  std::vector<std::uint64_t> support;  // bit j: w_j is not zero. A scan reads this instead of w

  void resize(std::int64_t n_rows, std::int64_t n_cols) {
    w.assign(n_cols, 0.0);
    intercept = 0;
    Xw.assign(n_rows, 0.0);
    derivs.assign(n_rows, 0.0);
    support.assign(n_cols / 64 + 1, 0);
  }
  double weight(std::int64_t j) const { return w[j]; }
  void set_weight(std::int64_t j, double value) {
    w[j] = value;
    const std::uint64_t bit = std::uint64_t{1} << (j % 64);
    std::uint64_t& word = support[j / 64];
    word = value != 0 ? word | bit : word & ~bit;
  }
};

// Rows are cut into a fixed number of runs that depends on n alone: sums over rows and the vector loops see
// the same cuts whatever the number of threads.
class RowSlices {
 public:
  explicit RowSlices(std::int64_t n_rows) : n_rows_(n_rows), count_(n_rows / 1024) {
    if (count_ < 1) count_ = 1;
    if (count_ > 64) count_ = 64;
  }
  std::int64_t count() const { return count_; }
  std::int64_t begin(std::int64_t slice) const { return n_rows_ * slice / count_; }
  std::int64_t end(std::int64_t slice) const { return begin(slice + 1); }

 private:
  std::int64_t n_rows_, count_;
};

// Whether a product over one column is worth sharing among threads, and a vector of rows per thread is expensive.
inline bool is_tall(std::int64_t n_rows) { return n_rows >= 1 << 18; }

// Cuts 0 … count into n_parts runs of about equal work(k), which adds up to `total`.
template <class Work>
std::vector<std::size_t> cut_by_work(std::size_t count, std::int64_t total, std::int64_t n_parts, Work work) {
  const auto parts = static_cast<std::size_t>(n_parts);
  std::vector<std::size_t> cuts(1, 0);
  std::int64_t done = 0;
  for (std::size_t k = 0; k < count; ++k) {
    done += work(k);
    while (cuts.size() < parts && done >= total / n_parts * static_cast<std::int64_t>(cuts.size())) {
      cuts.push_back(k + 1);
    }
  }
  cuts.resize(parts, count);
  cuts.push_back(count);
  return cuts;
}

// Number of column runs in passes that sum over columns; fixed for the same reason.
inline constexpr std::int64_t n_column_parts = 64;

// curvature_j = (beta / n) ‖x_j‖², or beta Σ_i ω_i x_ij². Kept where a column is long compared with one number;
// computed when asked for on very sparse data, where keeping it would cost a tenth of the matrix.
template <class View>
class Curvatures {
 public:
  // scale: beta / n, or beta where there are row weights (else they are null).
  Curvatures(const View& view, double scale, const double* row_weights, ThreadTeam& team)
      : view_(view), scale_(scale), row_weights_(row_weights) {
    if (view.n_nonzeros() < 32 * view.n_cols) return;
    kept_.resize(view.n_cols);
    const auto cuts = equal_nonzero_cuts(view, n_column_parts);
    team.for_each(n_column_parts, [&](std::int64_t part, int) {
      for (auto j = cuts[part]; j < cuts[part + 1]; ++j) {
        kept_[j] = computed(j);
      }
    });
  }
  double operator[](std::int64_t j) const { return kept_.empty() ? computed(j) : kept_[j]; }

 private:
  double computed(std::int64_t j) const {
    if (!row_weights_) return scale_ * column_squared_norm(view_, j);
    double sum = 0;
    view_.for_each_nonzero(j, [&](std::int32_t i, double x) { sum += row_weights_[i] * x * x; });
    return scale_ * sum;
  }

  View view_;
  double scale_;
  const double* row_weights_;
  std::vector<double> kept_;
};

}  // namespace blockgreedy
