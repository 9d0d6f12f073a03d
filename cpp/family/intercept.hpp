// The best intercept for given weights: the root of an increasing function of one number, the sum of the weighted
// loss derivatives. The readable twin is best_intercept in null_model.py.
#pragma once

#include <cstdint>
#include <utility>

#include "math/core_problem.hpp"

namespace blockgreedy {

// Where the best constant prediction lies, from which follows where to look for the intercept.
struct InterceptRange {
  bool is_of_targets = true;  // between the least and the greatest target: the loss is one of t − y
  double low = 0, high = 0;   // otherwise: between these
  int only_class = 0;         // 1 or −1 where all rows with weight have this label: then no intercept is the best
};

class InterceptFit {
 public:
  InterceptFit(const CoreProblem& problem, std::int64_t n_rows, const InterceptRange& range, ThreadTeam& team);

  // What to add to all predictions so that Σ ω_i loss(y_i, predictions_i) is least, to rounding: by Newton's method,
  // with bisection where that would leave the range or slows down. 0 if the predictions are not finite, or time is
  // up.
  double best_shift(const double* predictions) const;

 private:
  // Sums over rows: Σ ω loss′, Σ ω loss″, Σ ω |loss′|.
  struct Slopes {
    double first = 0, second = 0, size = 0;
  };
  Slopes slopes(const double* predictions, double shift) const;
  std::pair<double, double> bracket(const double* predictions) const;

  CoreProblem problem_;
  std::int64_t n_rows_;
  InterceptRange range_;
  RowSlices slices_;
  double row_scale_, rounding_;
  ThreadTeam* team_;
};

}  // namespace blockgreedy
