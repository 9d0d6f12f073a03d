// The quadratic subproblem of one outer iteration, restricted to the working set:
//
//   min over d   Σ_j grad_j d_j + ½ ‖Z d‖² + Σ_j penalty_j(w_j + d_j),   Z = diag(√h) X_W in float32,
//
// h the loss's curvatures. Rows that hold next to nothing of the curvature may be dropped from Z; what they would add
// to the diagonal is kept (`dropped_curvature`). Columns are arranged in blocks; a sweep improves every block against
// a private residual Zd and joins the blocks' steps by the best step size for each. Conjugate gradients then solve
// the linear system that remains once signs are fixed. Results depend on blocks and slices, never on the threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/large_array.hpp"
#include "base/rows.hpp"
#include "base/threads.hpp"
#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "math/gram.hpp"
#include "math/penalties.hpp"
#include "working_set/column_tiles.hpp"
#include "working_set/curvature_memory.hpp"
#include "working_set/kept_products.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

// One coordinate of the subproblem. Its scaled column stands at values() + start.
struct SubproblemColumn {
  std::int32_t feature = -1;  // -1: the intercept
  bool dense = false;         // stored with its zeros
  std::int64_t start = 0, count = 0;
  double grad = 0, curvature = 0;  // of the loss, at d = 0
  double weight = 0, point = 0;    // w_j, and w_j + d_j
  CoordinatePenalty penalty{0, 0, -infinity, infinity};
  double dropped_curvature = 0;        // the part of the curvature in rows that Z does not have
  const std::int32_t* rows = nullptr;  // of its nonzeros; null if dense
  const float* values = nullptr;       // its numbers, where the columns are in tiles
  double centre = 0;                   // subtracted from the column's values; the intercept makes up for it

  double step() const { return point - weight; }
  double penalty_change(double from, double to) const {
    return penalty.l1 * (std::fabs(to) - std::fabs(from)) + 0.5 * penalty.l2 * (to - from) * (to + from);
  }
  // Free to move both ways without meeting a kink or a bound.
  bool is_smooth() const {
    return (point != 0 || penalty.l1 == 0) && point > penalty.lower && point < penalty.upper &&
           curvature + penalty.l2 > 0;
  }
  // Curvature that is not in ZᵀZ.
  double ridge() const { return dropped_curvature + penalty.l2; }
  // Of the penalty, where it is smooth.
  double smooth_gradient() const {
    return penalty.l2 * point + (point > 0 ? penalty.l1 : point < 0 ? -penalty.l1 : 0.0);
  }
};

// Σ grad_j d_j + Σ penalty_j(w_j + d_j) − penalty_j(w_j): the change without the curvature term, for Armijo's
// condition.
double linear_change(const std::vector<SubproblemColumn>& columns);

class Subproblem {
 public:
  explicit Subproblem(ThreadTeam& team) : rows_(1, team), team_(team), tiles_(team), gram_(team) {}

  void set_rows(std::int64_t n_rows) {
    n_rows_ = n_rows;
    rows_ = Rows(n_rows, team_);
  }

  std::vector<SubproblemColumn> columns;  // in order of blocks

  // Lays the columns out (start is set here) and cuts them into blocks; returns how many. block_of (by feature)
  // may be null.
  std::int64_t arrange(const std::int32_t* block_of, std::int64_t n_blocks);
  std::int32_t* indices() { return indices_.get(); }  // space for row numbers that differ from the matrix's
  float* values() { return values_.data(); }
  std::int64_t n_nonzeros() const { return n_nonzeros_; }
  std::int64_t n_slices() const { return static_cast<std::int64_t>(slice_starts_.size()) - 1; }
  std::int64_t slice_begin(std::int64_t slice) const { return static_cast<std::int64_t>(slice_starts_[slice]); }

  // Replaces Z by the Cholesky factor of ZᵀZ, which has as many rows as columns, where all columns are dense and
  // touching them `passes` times is expected to take longer. True if so: then there is nothing to arrange, and one
  // block. keep: see Gram.
  bool use_cholesky_factor(double passes, bool keep, const Gram::Reader& read);

  // Replaces Z by ZᵀZ: these are the products of the columns, in their order. Nothing to arrange either.
  void use_products(const KeptProducts& products);

  // Sweeps go by tiles (column_tiles.hpp) over Z = scale·(the columns' `values`), with one block. There are
  // no conjugate gradients then.
  void use_tiles(double scale);
  // How far a gradient was beyond its threshold in the last sweep by tiles, if that was over all columns.
  double largest_excess() const { return excess_; }

  // d = 0. Columns may have lost rows since they were arranged.
  void reset();

  // One pass of coordinate descent over every column, or over those with point ≠ 0. Returns the decrease.
  double sweep(bool support_only);

  // Conjugate gradients on the support, until an iteration adds no more than `stop` of the decrease, or than
  // `negligible`, and no gradient is off by more than `accuracy` of its threshold; then clips at zero and at the
  // bounds. Returns the decrease.
  double solve_on_support(int max_iterations, double stop, double accuracy = infinity, double negligible = 0);

  // How far the gradients of columns with point 0 are beyond their thresholds: the largest, relative to these.
  double largest_violation_at_zero();

  std::int64_t nonzeros_touched = 0;
  std::int64_t cg_iterations = 0;

 private:
  // z·v; where ZᵀZ replaces Z, v is Zᵀ times a vector, and holds the product.
  double product(const SubproblemColumn& column, const float* v) const {
    if (stride_ > 0) return static_cast<double>(v[column.start / stride_]);
    if (column.values != nullptr) return tile_scale_ * kernels().float_dense_dot(column.values, v, n_rows_);
    const float* z = z_ + column.start;
    return column.dense ? kernels().float_dense_dot(z, v, column.count)
                        : kernels().float_dot(column.rows, z, column.count, v);
  }
  void add(const SubproblemColumn& column, double step, float* v) const {
    const float* z = z_ + column.start;
    if (column.dense) kernels().float_dense_axpy(z, static_cast<float>(step), v, column.count);
    else kernels().float_axpy(column.rows, z, column.count, static_cast<float>(step), v);
  }
  // Some of the columns, cut into slices of about equal nonzeros.
  struct Subset {
    std::vector<std::int32_t> members;
    std::vector<std::size_t> cuts;
    std::int64_t work = 0;  // nonzeros
  };
  void cut(Subset& subset) const;
  void forward(const Subset& subset, const std::vector<double>& p, std::vector<float>& q);
  void hessian_product(const Subset& subset, const std::vector<double>& p, std::vector<float>& q,
                       std::vector<double>& out);
  // What conjugate gradients found on the coordinates `support`, and the decrease along it if no sign changes. Z x of
  // the present direction is in Zx_.
  struct Direction {
    Subset support;
    std::vector<double> x;
    double decrease = 0;
    bool trusted = true;  // float32 kept its accuracy
  };
  Direction conjugate_gradients(int max_iterations, double stop, double accuracy, double negligible);
  void set_up_system(const Subset& support, std::vector<double>& r, std::vector<double>& inverse_diagonal);
  double decrease_along(const Direction& direction, const std::vector<double>& r) const;
  // Z x·v, for v as in product().
  double product_along(const Direction& direction, const std::vector<float>& v) const;
  bool clip(Direction& direction);
  double change_of(const Direction& direction);
  void apply(const Direction& direction);
  void restore_points();
  double minimise_along(Direction& direction);
  void fill_rows(std::vector<float>& v);
  void add_rows(const std::vector<float>& u, double factor, std::vector<float>& v);
  double largest_excess(const Subset& subset, const std::vector<double>& r) const;
  void cut_slabs();
  void add_slab(const Subset& subset, const std::vector<double>& p, std::int64_t slab, float* q) const;
  double sweep_run(std::int64_t first, std::int64_t last, float* residual, bool support_only);
  void move_shared_to_end();
  std::vector<std::int32_t> choose_blocks(const std::int32_t* block_of, std::int64_t n_blocks) const;
  void sort_into_blocks(const std::vector<std::int32_t>& block, std::int64_t n_blocks);
  void cut_rounds();
  double sweep_shared(bool support_only);
  struct BlockProducts {
    std::vector<double> gram, slope;
  };
  BlockProducts multiply_blocks(std::size_t n_blocks);
  static double choose_step_sizes(const BlockProducts& products, std::vector<double>& tau);
  double join_blocks(const std::vector<double>& linear, const std::vector<double>& quadratic, std::int64_t round);

  CurvatureMemory memory_{Tuning::ConjugateGradients::max_pairs};
  std::int64_t n_rows_ = 0;
  Rows rows_;
  ThreadTeam& team_;
  std::int64_t n_nonzeros_ = 0;
  // Not initialised: what dense columns and dropped rows leave unused is never touched, so it costs no memory.
  std::unique_ptr<std::int32_t[]> indices_;
  LargeArray<float> values_;
  std::int64_t capacity_ = 0;
  const float* z_ = nullptr;  // where columns start: values_, factor_, or kept products
  std::int64_t stride_ = 0;   // of kept products, else 0. Vectors over rows are then Zᵀ times what they are otherwise
  ColumnTiles tiles_;
  bool is_tiled_ = false;
  double tile_scale_ = 1, excess_ = 0;
  Gram gram_;
  std::vector<float> factor_;
  std::int64_t n_rounds_ = 1;
  std::int64_t first_shared_ = 0;  // columns from here on are too long for a block: all threads share each of them
  std::vector<std::int64_t> block_starts_;
  std::vector<std::size_t> slice_starts_;
  std::vector<std::int64_t> run_starts_;  // block b in round r: run_starts_[b·n_rounds + r] …
  // With very many rows, products of long columns run over slabs of rows that stay in the cache, and so do sweeps of
  // shared columns. Of the columns from first_slabbed_ on, slab_starts_of(k)[s] says where slab s starts, counted
  // from the column's start.
  bool by_slabs_ = false;
  std::int64_t first_slabbed_ = 0;
  std::vector<std::int64_t> slab_starts_;
  const std::int64_t* slab_starts_of(std::int64_t k) const {
    return slab_starts_.data() + (k - first_slabbed_) * (rows_.slices().count() + 1);
  }
  std::vector<double> slab_products_;
  std::vector<float> Zd_, Zx_;
  std::vector<float> q_;                          // Z times a vector: scratch
  std::vector<std::vector<float>> private_sums_;  // residual of each block, or of each slice
  std::vector<double> old_points_;
};

}  // namespace blockgreedy
