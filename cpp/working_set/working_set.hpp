// The default solver: proximal Newton steps on a greedily chosen working set.
//
//   gradients of the columns that may violate their optimality condition  →  working set: the support and the best
//   proposals  →  quadratic subproblem on it  →  line search on the true objective  →  duality gap
//
// The objective never rises. Results depend on the number of blocks and slices, not on threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "math/core_problem.hpp"
#include "working_set/iterate.hpp"
#include "working_set/phase_clock.hpp"

namespace blockgreedy {

struct WorkingSetOptions {
  std::int64_t n_blocks = 0;               // 0: by the size of the working set
  const std::int32_t* block_of = nullptr;  // by feature
  double tol = 0;                          // relative to f_null
  double f_null = -1;                      // the null model's objective; negative: that of the starting point
  double floor = 0;                        // a gap of this is enough whatever tol says: rounding hides the rest
  double least_alpha = infinity;           // what alpha may fall to: columns are dropped for good with this in mind
};

// A point and the dual point, evaluated again from nothing but themselves.
struct Verdict {
  double objective;   // infinite outside of the bounds
  double penalty;     // what it adds to the objective
  double dual_value;  // −∞ if a constraint is broken
};

class WorkingSet : public Iterate {
 public:
  virtual ~WorkingSet() = default;

  // Takes `w` (n_cols, zero or a starting point) as its weights, in place.
  virtual void start(double* w, double intercept) = 0;
  // The problem's alpha has fallen since it had this penalty, and l2 may have. Weights and predictions are carried
  // over.
  virtual void alpha_fell(const Penalty& before) = 0;
  // One outer iteration; false if no step lowers the objective any more.
  virtual bool step() = 0;
  // A dual point for where the solve stands now, however loose.
  virtual void certify_anyway(bool repairs) = 0;
  // Evaluates these weights (all others are 0) and the dual point with nothing that iterations have added up on their
  // way.
  virtual Verdict verify(const std::int32_t* features, const double* values, std::size_t count, double intercept) = 0;
  virtual const std::vector<double>& predictions() const = 0;
  // Columns that were left out because they are multiples of others.
  virtual std::size_t n_aliases() const = 0;

  double dual_value = 0, f_null = 0;
  double enough = 0;          // the duality gap at which the solve may end
  bool out_of_range = false;  // start: a column is too large or too small for float32, and nothing was done
  std::int64_t n_blocks = 0;
  std::int64_t n_iter = 0, working_set_size = 0, nonzeros_touched = 0, n_violators = 0;
  std::int64_t n_cg = 0, n_candidates = 0;
  std::int64_t n_subproblems_by_products = 0;  // subproblems made of products that were kept from earlier alphas
  std::vector<double> dual;
  PhaseSeconds seconds{};
};

std::unique_ptr<WorkingSet> make_working_set(const Matrix& matrix, const CoreProblem& problem,
                                             const WorkingSetOptions& options, ThreadTeam& team);

}  // namespace blockgreedy
