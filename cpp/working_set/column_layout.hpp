// The columns of the working set as the quadratic subproblem gets them, in the cheapest of four forms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "math/core_problem.hpp"
#include "working_set/kept_products.hpp"
#include "working_set/row_state.hpp"
#include "working_set/scaled_columns.hpp"
#include "working_set/scan_result.hpp"
#include "working_set/subproblem.hpp"
#include "working_set/tuning.hpp"
#include "working_set/working_set.hpp"

namespace blockgreedy {

enum class Form : std::uint8_t {
  columns,   // a copy scaled by √curvature, in blocks
  tiles,     // dense columns, few beside the rows: swept in tiles, as a copy or straight from the matrix
  factor,    // the Cholesky factor of their products
  products,  // products kept along the path
};

struct SubproblemLayout {
  Form form;
  std::int64_t n_blocks;
};

// What the choice depends on beside the columns.
struct LayoutPlan {
  bool truncated;        // the working set had to be cut: it will change
  bool on_path;          // of several alphas
  double passes;         // over the columns that solving is expected to take
  double sweeps;         // the same by tiles
  double dropped_share;  // of all curvature, in rows that may be left out
};

template <class View>
bool is_large_and_dense(const View& view) {
  constexpr bool is_sparse = requires { view.indices; };
  return !is_sparse && view.n_nonzeros() >= Tuning::Tiles::min_entries;
}

template <class View>
class ColumnLayout {
 public:
  ColumnLayout(const View& view, const CoreProblem& problem, const WorkingSetOptions& options, RowState& rows,
               Subproblem& subproblem, ThreadTeam& team)
      : view_(view),
        problem_(problem),
        options_(options),
        is_quadratic_(problem.loss.traits().is_quadratic),
        rows_(rows),
        subproblem_(subproblem),
        team_(team),
        scaled_columns_(view, team),
        products_(Tuning::Products::bytes_per_nonzero * view.n_nonzeros(), view.n_rows, team) {}

  // Gradients, weights and penalties of the columns; the intercept's comes first.
  void list_columns(const std::vector<ScannedColumn>& working_set, const double* weights, double intercept) {
    const std::int64_t n = view_.n_rows;
    auto& columns = subproblem_.columns;
    columns.clear();
    if (problem_.fit_intercept) {
      columns.push_back({.feature = -1,
                         .dense = true,
                         .count = n,
                         .grad = rows_.sum(rows_.theta),
                         .weight = intercept,
                         .point = intercept});
    }
    for (const ScannedColumn& entry : working_set) {
      const std::int32_t j = entry.feature;
      const bool dense = Tuning::Layout::dense_share * view_.count(j) >= n;
      columns.push_back({.feature = j,
                         .dense = dense,
                         .count = dense ? n : view_.count(j),
                         .grad = entry.grad,
                         .weight = weights[j],
                         .point = weights[j],
                         .penalty = problem_.penalty.at(j)});
      if (dense && problem_.fit_intercept) {
        columns.back().centre = scaled_columns_.centre(j);
        columns.back().grad -= columns.back().centre * columns.front().grad;
      }
    }
  }

  // Fills the subproblem with the columns that were listed.
  SubproblemLayout lay_out(const LayoutPlan& plan) {
    subproblem_.set_rows(view_.n_rows);
    const bool tiled = may_tile();
    if (!plan.truncated && !has_given_blocks()) {
      if (use_cholesky_factor(passes_of(plan, tiled))) return {Form::factor, 1};
      if (use_products(plan.on_path)) return {Form::products, 1};
    }
    if (tiled && may_tile_original()) {
      tile_original();
      return {Form::tiles, 1};
    }
    scaled_columns_.choose_rows(rows_.root_curvature, plan.dropped_share);
    subproblem_.set_rows(scaled_columns_.n_rows());
    const std::int64_t n_blocks = subproblem_.arrange(options_.block_of, tiled ? 1 : options_.n_blocks);
    scaled_columns_.fill(subproblem_, rows_.root_curvature);
    if (!tiled) return {Form::columns, n_blocks};
    for (SubproblemColumn& column : subproblem_.columns) column.values = subproblem_.values() + column.start;
    subproblem_.use_tiles(1.0);
    return {Form::tiles, 1};
  }

 private:
  bool has_given_blocks() const { return options_.n_blocks != 0 || options_.block_of != nullptr; }

  bool may_tile() const {
    const auto m = static_cast<std::int64_t>(subproblem_.columns.size());
    return is_large_and_dense(view_) && !has_given_blocks() && Tuning::Tiles::rows_per_column * m <= view_.n_rows;
  }

  // Squared loss, rows of equal weight: the matrix is the scaled copy but for a factor.
  bool may_tile_original() const {
    const auto& columns = subproblem_.columns;
    return std::is_same_v<View, DenseView<float>> && is_quadratic_ && problem_.row_weights == nullptr &&
           std::all_of(columns.begin(), columns.end(), [](const auto& column) { return column.centre == 0; });
  }

  void tile_original() {
    if constexpr (std::is_same_v<View, DenseView<float>>) {
      if (problem_.fit_intercept) ones_.resize(static_cast<std::size_t>(view_.n_rows), 1.0F);
      for (SubproblemColumn& column : subproblem_.columns)
        column.values = column.feature < 0 ? ones_.data() : view_.data + view_.start(column.feature);
      subproblem_.use_tiles(1 / std::sqrt(static_cast<double>(view_.n_rows)));
    }
  }

  // What a Gram matrix would save. That of a squared loss serves all alphas of a path.
  double passes_of(const LayoutPlan& plan, bool tiled) const {
    using T = Tuning::Tiles;
    if (!tiled || (plan.on_path && is_quadratic_)) return plan.passes;
    return T::passes_per_sweep * (plan.sweeps + (may_tile_original() ? T::set_up : T::set_up_copy));
  }

  bool use_cholesky_factor(double passes) {
    return subproblem_.use_cholesky_factor(
        passes, is_quadratic_, [&](std::int32_t feature, std::int64_t first, std::int64_t count, float* out) {
          scaled_columns_.read(feature, rows_.root_curvature, first, count, out);
        });
  }

  // On the path of a squared loss: products of the columns instead of the columns, where that makes less to touch.
  bool use_products(bool on_path) {
    using T = Tuning::Products;
    const auto m = static_cast<std::int64_t>(subproblem_.columns.size());
    std::int64_t work = 0;
    bool centred = false;
    std::vector<std::int32_t> features;
    for (const SubproblemColumn& column : subproblem_.columns) {
      features.push_back(column.feature);
      work += column.count;
      centred = centred || column.centre != 0;
    }
    if (!on_path || !is_quadratic_ || centred) return false;
    if (m > products_.max_columns()) products_.clear();  // along a path columns only become more
    const bool sparse = T::sparse_share * work < m * view_.n_rows && work < INT32_MAX &&
                        T::min_nonzeros_per_row * view_.n_rows < view_.n_nonzeros();
    if (!sparse || m > products_.max_columns() || m * m > T::max_products_per_nonzero * work) return false;
    const std::int64_t n_new = std::max<std::int64_t>(m - products_.size(), 0);
    if (m > 0 && !team_.has_time_for(1e-9 * static_cast<double>(work) * static_cast<double>(work / m * n_new) /
                                     static_cast<double>(view_.n_rows)))
      return false;
    products_.keep(features, work, ColumnReader{view_, rows_.root_curvature.data()});
    subproblem_.use_products(products_);
    return true;
  }

  View view_;
  const CoreProblem& problem_;
  const WorkingSetOptions options_;
  const bool is_quadratic_;
  RowState& rows_;
  Subproblem& subproblem_;
  ThreadTeam& team_;
  ScaledColumns<View> scaled_columns_;
  KeptProducts products_;
  std::vector<float> ones_;  // the intercept's column
};

}  // namespace blockgreedy
