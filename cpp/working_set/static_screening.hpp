// Static screening: columns whose gradient cannot reach its threshold whatever the weights, for losses with bounded
// derivatives. They are dropped for good.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

// Whether a column has no nonzero in a row that counts.
template <class View>
bool is_empty(const View& view, std::int64_t j, const double* row_weights) {
  bool empty = true;
  view.for_each_nonzero(
      j, [&](std::int32_t i, double x) { empty = empty && (x == 0 || (row_weights && row_weights[i] == 0)); });
  return empty;
}

// Bounds on |x_j·θ| over all weights.
template <class View>
class StaticScreening {
 public:
  // at_zero: all predictions are 0.
  StaticScreening(const View& view, const CoreProblem& problem, double least_alpha, bool at_zero)
      : at_zero(at_zero), least(problem.penalty), view_(view), problem_(problem), traits_(problem.loss.traits()) {
    least.alpha = std::min(least.alpha, least_alpha);
    if (!traits_.sign_of_derivative_is_the_labels || at_zero) return;
    const double* weights = problem.row_weights;
    labels_.resize(view.n_rows);
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = (weights ? weights[i] : uniform()) * problem.y[i];
  }

  bool is_bounded() const { return std::isfinite(traits_.derivative_bound); }

  // Whether the gradient stays below the threshold of the least alpha.
  bool drops(std::int64_t j, const ColumnSums& sum, double l1) const {
    const double magnitude = problem_.row_weights ? sum.magnitude : sum.magnitude * uniform();
    double bound = magnitude * traits_.derivative_bound;
    if (traits_.sign_of_derivative_is_the_labels && magnitude > l1 && 0.5 * magnitude <= l1) {
      // θ_i lies between 0 and −ω_i y_i: the sum is largest when only one sign of y_i x_ij contributes
      const double label = at_zero ? 2 * sum.product : column_dot(view_, j, labels_.data());
      bound = 0.5 * (magnitude + std::fabs(label));
    }
    return bound * (1 + Tuning::Screening::static_margin) <= l1;
  }

  const bool at_zero;
  Penalty least;  // the penalty at the least alpha

 private:
  double uniform() const { return 1.0 / static_cast<double>(view_.n_rows); }

  const View& view_;
  const CoreProblem& problem_;
  const LossTraits traits_;
  std::vector<double> labels_;  // ω_i y_i: the part of the bound that the labels decide
};

}  // namespace blockgreedy
