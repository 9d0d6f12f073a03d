// The folds of a cross-validation, down the alphas side by side: one pass over the matrix serves all of them. Points
// are not proven; gaps are estimates.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "folds/lanes.hpp"
#include "math/core_problem.hpp"
#include "working_set/iterate.hpp"

namespace blockgreedy {

class FoldPaths {
 public:
  virtual ~FoldPaths() = default;
  // Takes w, 0 but for these features, as a fold's weights, in place.
  virtual void start(int fold, double* w, const std::vector<std::int32_t>& features, double intercept) = 0;
  // Goes to the next alpha, with this l2; `coming` is the alpha after it.
  virtual void move_to(double alpha, double l2, double coming) = 0;
  // Goes to any alpha, from weights that start() was just given.
  virtual void return_to(double alpha, double l2) = 0;
  // One outer iteration of all folds, for which decreases of this share of the objective are negligible. Returns the
  // largest decrease, as a part of the fold's f_null.
  virtual double step(double share) = 0;
  virtual const Iterate& fold(int fold) const = 0;
  virtual double gap(int fold) const = 0;
  virtual const std::vector<double>& predictions(int fold) const = 0;
  // By how much the objective of a fold differs from that of its weights, as a part of its f_null.
  virtual double drift(int fold) = 0;

  bool out_of_range = false;  // a column is too large or too small for float32
  std::int64_t n_steps = 0, nonzeros_touched = 0, cg_iterations = 0;
  std::vector<double> seconds = std::vector<double>(5);  // rows, scans, set-up, subproblem, steps
};

// At most n_lanes problems on one sparse matrix, which differ in row weights, targets and penalties, and the
// objectives of their null models. Null if the matrix is dense.
std::unique_ptr<FoldPaths> make_fold_paths(const Matrix& matrix, const std::vector<CoreProblem*>& problems,
                                           const std::vector<double>& f_null, ThreadTeam& team);

}  // namespace blockgreedy
