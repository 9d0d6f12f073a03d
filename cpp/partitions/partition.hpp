// Clustering kernels: which block each feature belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"

namespace blockgreedy {

// First feature of a block when 0..n_features-1 is cut into n_blocks runs; the first n_features mod n_blocks of them
// have one feature more than the rest.
inline std::int64_t block_start(std::int64_t n_features, std::int64_t n_blocks, std::int64_t block) {
  const std::int64_t size = n_features / n_blocks, extra = n_features % n_blocks;
  return block * size + (block < extra ? block : extra);
}

// The block of each feature when a random permutation is cut into blocks of block_start's sizes.
std::vector<std::int32_t> random_blocks(std::int64_t n_features, std::int64_t n_blocks, std::uint64_t seed);

// Features per block, of those whose block lies in 0 … n_blocks-1.
std::vector<std::int64_t> block_sizes(const std::int32_t* block_of, std::int64_t n_features, std::int64_t n_blocks);

// A random permutation of 0..n-1 (Fisher-Yates with the generator of random.hpp).
std::vector<std::int32_t> random_permutation(std::int64_t n, std::uint64_t seed);

// The paper's Algorithm 2 for 1 <= n_blocks <= n_cols, with block sizes by block_start. Block after block: the
// seed is the unassigned feature with most nonzeros (stored zeros do not count), and the block takes the unassigned
// features with the largest |x_seed·x_j|, the seed being a candidate like any other; all ties go to the lowest index.
// The last block takes the rest. Returns the block of each feature, the same for any number of threads, or nothing
// when the team was asked to stop. Needs at most 20 bytes per feature (28 where zeros are stored) and 9 per row
// beside the matrix.
//
// With a finite max_load, at least 1, a block takes no more than max_load times the mean load of the blocks (load:
// nonzeros; of dense columns rows). A column that does not fit is passed over, and waits for the seeds that follow;
// once the first blocks are full of dense columns, the others share the features that are left. The limit is kept
// where no column has more than (max_load - 1) times the mean load; otherwise no block has more than the larger of
// the limit and the mean plus the heaviest column.
std::vector<std::int32_t> cluster_features(const Matrix& matrix, std::int64_t n_blocks, double max_load,
                                           ThreadTeam& team);

}  // namespace blockgreedy
