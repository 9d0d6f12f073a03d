// Coordinate descent on dense columns, a tile of neighbours at a time. The products of a tile's columns with each
// other are known, so that its coordinates are solved for jointly, several times over, before the residual hears of
// it; columns are read for a whole tile at once. On correlated columns that takes half of the passes of plain
// coordinate descent. Threads share the rows of a tile, in fixed slices.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rows.hpp"
#include "base/threads.hpp"

namespace blockgreedy {

struct SubproblemColumn;

class ColumnTiles {
 public:
  explicit ColumnTiles(ThreadTeam& team) : team_(team), rows_(1, team) {}

  // Cuts the columns, whose numbers are scale·(n_rows numbers at their `values`), into tiles and computes the
  // products within these, and the columns' curvatures.
  void arrange(std::vector<SubproblemColumn>& columns, std::int64_t n_rows, double scale);

  struct Outcome {
    double decrease = 0;  // of the subproblem's objective
    double excess = 0;    // how far a gradient was beyond its threshold at the most, relative to it
  };
  // One pass over every column, or over those with point ≠ 0. Zd is kept current.
  Outcome sweep(std::vector<SubproblemColumn>& columns, bool support_only, std::vector<float>& Zd);

 private:
  struct Tile {
    std::size_t first;  // of its columns in the subproblem
    std::vector<const float*> values;
    std::vector<double> gram;  // symmetric, scaled
  };
  void multiply(Tile& tile) const;
  void choose(const std::vector<SubproblemColumn>& columns, const Tile& tile, bool support_only);
  void read_gradients(const std::vector<SubproblemColumn>& columns, std::vector<float>& Zd);
  void descend(std::vector<SubproblemColumn>& columns, const Tile& tile, Outcome& outcome);
  void add_steps(std::vector<float>& Zd);

  ThreadTeam& team_;
  Rows rows_;
  std::int64_t n_rows_ = 0;
  double scale_ = 1;
  bool is_shifted_ = false;
  std::vector<Tile> tiles_;
  // Of the tile at hand: the columns that may move (where they stand in the tile and in the subproblem), their
  // gradients, products by slice.
  std::vector<std::size_t> members_, columns_;
  std::vector<const float*> values_;
  std::vector<double> grads_, partial_;
  // The steps of the tile before it, which Zd has not seen yet.
  std::vector<const float*> moved_;
  std::vector<float> steps_;
};

}  // namespace blockgreedy
