// Balanced clustering: similar columns share a block, and no block is heavier than the rest, neither in nonzeros
// (what a scan costs) nor in mass (|gradient| at w = 0, where nonzero weights are likely).
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"

namespace blockgreedy {

// The block of each feature, for 1 <= n_blocks <= n_cols; no block is empty. `target` holds one number per row (±1
// for classes) or is null, and then every feature has the same mass. The result does not depend on the number of
// threads; it is empty when the team was asked to stop. O(nnz + p log p); needs 16 bytes per feature and 16 per row
// beside the matrix, and 1 KiB per feature that is dense.
std::vector<std::int32_t> balance_features(const Matrix& matrix, const float* target, std::int64_t n_blocks,
                                           std::uint64_t seed, ThreadTeam& team);

}  // namespace blockgreedy
