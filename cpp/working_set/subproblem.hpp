// The quadratic model of one outer iteration, restricted to the working set:
//
//   min over d   Σ_j grad_j d_j + ½ ‖Z d‖² + Σ_j penalty_j(w_j + d_j),   Z = diag(√h) X_W in float32,
//
// h the loss's curvatures. Rows that hold next to nothing of the curvature may be left out of Z; what they would add
// to the diagonal is kept (`extra`). Columns live in blocks; a sweep improves every block against a private residual
// Zd and joins the blocks' moves by the best step size for each. Conjugate gradients then solve the system that is
// left once signs are fixed. Everything depends on the blocks and slices, never on who executes them.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rows.hpp"
#include "base/threads.hpp"
#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "math/gram.hpp"
#include "math/penalties.hpp"
#include "working_set/curvature_memory.hpp"
#include "working_set/kept_products.hpp"

namespace blockgreedy {

// One coordinate of the model. Its scaled column stands at values() + start; `at` says in which rows (null if dense).
struct ModelColumn {
  std::int32_t feature;  // -1: the intercept
  bool dense;            // stored with its zeros
  std::int64_t start, count;
  double grad, curvature;  // of the loss, at d = 0
  double weight, point;    // w_j, and w_j + d_j
  CoordinatePenalty penalty;
  double extra = 0;  // the part of the curvature that Z does not have
  const std::int32_t* at = nullptr;
  double shift = 0;  // taken off the column's values; the intercept makes up for it

  double step() const { return point - weight; }
  double penalty_change(double from, double to) const {
    return penalty.l1 * (std::fabs(to) - std::fabs(from)) + 0.5 * penalty.l2 * (to - from) * (to + from);
  }
  // Free to move both ways without meeting a kink or a bound.
  bool is_smooth() const {
    return (point != 0 || penalty.l1 == 0) && point > penalty.lower && point < penalty.upper &&
           curvature + penalty.l2 > 0;
  }
  // Of the penalty, where it is smooth.
  double smooth_gradient() const {
    return penalty.l2 * point + (point > 0 ? penalty.l1 : point < 0 ? -penalty.l1 : 0.0);
  }
};

class Subproblem {
 public:
  explicit Subproblem(ThreadTeam& team) : rows_(1, team), team_(team), gram_(team) {}

  void set_rows(std::int64_t n_rows) {
    n_rows_ = n_rows;
    rows_ = Rows(n_rows, team_);
  }

  std::vector<ModelColumn> columns;  // in order of blocks

  // Lays the columns out (start is set here) and cuts them into blocks; returns how many. block_of (by feature)
  // may be null.
  std::int64_t arrange(const std::int32_t* block_of, std::int64_t n_blocks);
  std::int32_t* indices() { return indices_.get(); }  // room for row numbers that differ from the matrix's
  float* values() { return values_.get(); }
  std::int64_t n_nonzeros() const { return n_nonzeros_; }
  std::int64_t n_slices() const { return static_cast<std::int64_t>(slice_starts_.size()) - 1; }
  std::int64_t slice_begin(std::int64_t slice) const {
    return static_cast<std::int64_t>(slice_starts_[static_cast<std::size_t>(slice)]);
  }

  // Where all columns are dense, and touching them all `passes` times is expected to take longer: instead of Z takes
  // the Cholesky factor of ZᵀZ, which has as many rows as columns. True if so. Then there is nothing to arrange, and
  // only one block. keep: see Gram.
  bool compress(double passes, bool keep, const Gram::Reader& read);

  // Takes ZᵀZ instead of Z: these are the products of the columns, in their order. Nothing to arrange either.
  void take_products(const KeptProducts& products);

  // d = 0. Columns may have lost rows since they were arranged.
  void reset();

  // One pass of coordinate descent over every column, or over those with point ≠ 0. Returns the model's decrease.
  double sweep(bool support_only);

  // Conjugate gradients on the support, until an iteration adds no more than `stop` of the decrease, or than
  // `enough`, and no gradient is off by more than `accuracy` of its threshold; then clips at zero and at the bounds.
  // Returns the decrease.
  double solve_on_support(int max_iterations, double stop, double accuracy = infinity, double enough = 0);

  // How far the gradients of columns with point 0 are beyond their thresholds, at most and relative to these.
  double worst_outside();

  // Σ grad_j d_j + Σ penalty_j(w_j + d_j) − penalty_j(w_j): the model without its curvature, for the line search.
  double linear_change() const;

  std::int64_t nonzeros_touched = 0;
  std::int64_t cg_iterations = 0;

 private:
  // z·v; where ZᵀZ is taken, v is Zᵀ times something, and has it.
  double product(const ModelColumn& column, const float* v) const {
    if (stride_ > 0) return static_cast<double>(v[column.start / stride_]);
    const float* z = z_ + column.start;
    return column.dense ? kernels().float_dense_dot(z, v, column.count)
                        : kernels().float_dot(column.at, z, column.count, v);
  }
  void add(const ModelColumn& column, double step, float* v) const {
    const float* z = z_ + column.start;
    if (column.dense) kernels().float_dense_axpy(z, static_cast<float>(step), v, column.count);
    else kernels().float_axpy(column.at, z, column.count, static_cast<float>(step), v);
  }
  // Some of the columns, cut into slices of about equal nonzeros.
  struct Subset {
    std::vector<std::int32_t> members;
    std::vector<std::size_t> cuts;
    std::int64_t work = 0;
  };
  void cut(Subset& subset) const;
  void forward(const Subset& subset, const std::vector<double>& p, std::vector<float>& q);
  void curve(const Subset& subset, const std::vector<double>& p, std::vector<float>& q, std::vector<double>& out);
  // What conjugate gradients found on the coordinates `support`, and the decrease along it if no sign changed. Z x of
  // the direction at hand stands in Zx_.
  struct Direction {
    Subset support;
    std::vector<double> x;
    double decrease = 0;
    bool trusted = true;
  };
  Direction conjugate_gradients(int max_iterations, double stop, double accuracy, double enough);
  // Z x·v, for v as above.
  double along(const Direction& direction, const std::vector<float>& v) const;
  bool clip(Direction& direction);
  double change_of(const Direction& direction);
  void take(const Direction& direction);
  void recall();
  double search_kinks(Direction& direction);
  void fill_rows(std::vector<float>& v);
  void add_rows(const std::vector<float>& u, double factor, std::vector<float>& v);
  double largest_excess(const Subset& subset, const std::vector<double>& r) const;
  void cut_slabs();
  void add_slab(const Subset& subset, const std::vector<double>& p, std::int64_t slab, float* q) const;
  double sweep_run(std::int64_t first, std::int64_t last, float* residual, bool support_only);
  void cut_rounds();
  double sweep_wide(bool support_only);
  double join_blocks(const std::vector<double>& linear, const std::vector<double>& quadratic, std::int64_t round);

  CurvatureMemory memory_{48};
  std::int64_t n_rows_ = 0;
  Rows rows_;
  ThreadTeam& team_;
  std::int64_t n_nonzeros_ = 0;
  // Not initialised: what dense columns and dropped rows leave unused is never touched, so it costs no memory.
  std::unique_ptr<std::int32_t[]> indices_;
  std::unique_ptr<float[]> values_;
  std::int64_t capacity_ = 0;
  const float* z_ = nullptr;  // where columns start: in values_, in factor_, or among kept products
  std::int64_t stride_ = 0;   // of those; else 0. Vectors of rows are then Zᵀ times what they are otherwise
  Gram gram_;
  std::vector<float> factor_;
  std::int64_t n_rounds_ = 1;
  std::int64_t first_wide_ = 0;  // columns from here on are too long for a block: all threads share each of them
  std::vector<std::int64_t> block_starts_;
  std::vector<std::size_t> slice_starts_;
  std::vector<std::int64_t> run_starts_;  // block b in round r: run_starts_[b·n_rounds + r] …
  // With very many rows, products run over slabs of rows that stay in the cache: entry k·(slabs + 1) + s says where
  // slab s of column k starts, counted from the column's start. Empty otherwise.
  std::vector<std::int64_t> slab_starts_;
  std::vector<double> slab_products_;
  std::vector<float> Zd_, Zx_;
  std::vector<float> q_;                     // Z times something
  std::vector<std::vector<float>> private_;  // residual of each block, or of each slice
  std::vector<double> old_points_;
};

}  // namespace blockgreedy
