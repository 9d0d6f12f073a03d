// The primal point of the default solver, and what is known of it.
#pragma once

#include <cstdint>
#include <vector>

namespace blockgreedy {

struct Iterate {
  double* weights = nullptr;  // by feature; the caller's memory
  double intercept = 0;
  double objective = 0, penalty = 0;  // the penalty is part of the objective
  double step_size = 0;               // of the last step
  std::vector<std::int32_t> support;  // features with a weight that is not 0, ascending
};

}  // namespace blockgreedy
