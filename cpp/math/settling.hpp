// The last digits of a small model: Newton's method in float64 on the weights that are not 0.
#pragma once

#include <optional>
#include <vector>

#include "math/core_problem.hpp"

namespace blockgreedy {

struct SettledPoint {
  std::vector<double> weights;
  double intercept;
  double objective;
};

// The minimum, from a point near it, if all its weights have the signs that they have here and lie inside of their
// bounds; found with a dense copy of their columns. Nothing where that turns out otherwise, where columns depend on
// each other, or where it would take long: solvers/polish.py knows what to do then.
std::optional<SettledPoint> settled(const Matrix& matrix, const CoreProblem& problem, const double* w,
                                    double intercept);

}  // namespace blockgreedy
