// The standard deviations of columns, for standardisation; the matrix itself is not changed.
#pragma once

#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"

namespace blockgreedy {

// Standard deviation of each column over rows weighted with `row_weights` (adding up to 1; null: 1/n each), or the
// root of the mean square where not `centred`. 0 for a column that is constant up to the rounding of its own type.
std::vector<double> column_scales(const Matrix& matrix, const double* row_weights, bool centred, ThreadTeam& team);

}  // namespace blockgreedy
