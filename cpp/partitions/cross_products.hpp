// What the theory asks of a matrix: inner products of features in different blocks, and the blocks a row touches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"

namespace blockgreedy {

// Unit columns for the products below. `columns` is CscView<double> or DenseView<double>, its columns of norm 1 or
// empty; `rows` is the same matrix by rows (a CscView<double> of the transpose; unused for dense columns). With
// implicit centring the product of features i and j is columns_i·columns_j - tilt_i·tilt_j; tilt is null without it.
struct UnitMatrix {
  const Matrix& columns;
  const Matrix& rows;
  const double* tilt = nullptr;
};

struct BlockOf {
  const std::int32_t* block_of;
  std::int64_t n_blocks;
};

// Largest |inner products| between features of different blocks. Maxima do not depend on the order in which they are
// taken and every sum belongs to one seed, so all of it is the same for any number of threads.
struct CrossProducts {
  std::vector<double> largest;  // of each seed, over all features outside its block
  std::vector<double> sums;     // of each seed: the largest in every other block, added up
  std::vector<double> between;  // n_blocks × n_blocks, row = the seed's block, diagonal 0; empty beyond max_between
};

inline constexpr std::int64_t max_between = 1024;  // blocks: every executor holds a matrix of its own

// For each of the seeds (features) its products with all features. Costs Σ over the seeds' rows of the row's
// nonzeros: Σ_i nnz_i² for all features as seeds.
CrossProducts cross_products(const UnitMatrix& unit, const BlockOf& blocks, std::span<const std::int32_t> seeds,
                             ThreadTeam& team);

// How many different blocks the nonzeros of each row lie in.
std::vector<std::int32_t> blocks_touched(const Matrix& matrix, const BlockOf& blocks, ThreadTeam& team);

// Σ_i weights_i x_ij² of each column; weights null: all 1.
std::vector<double> weighted_squares(const Matrix& matrix, const double* weights, ThreadTeam& team);

}  // namespace blockgreedy
