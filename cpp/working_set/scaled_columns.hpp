// The columns of the working set as the subproblem uses them: in float32, scaled by √curvature, without the rows that
// hold next to no curvature.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "working_set/row_selection.hpp"
#include "working_set/subproblem.hpp"

namespace blockgreedy {

template <class View>
class ScaledColumns {
 public:
  ScaledColumns(const View& view, ThreadTeam& team) : view_(view), team_(team), selection_(view.n_rows, team) {}

  std::int64_t n_rows() const { return selection_.n_kept(); }

  // See RowSelection.
  void choose_rows(const std::vector<float>& root, double share) { selection_.choose(root, share); }

  // The mean of a column whose mean is larger than its standard deviation, else 0. With an intercept such a column is
  // centred: in float32 the two would be nearly parallel.
  double centre(std::int32_t feature) {
    const auto known = centres_.find(feature);
    if (known != centres_.end()) return known->second;
    const auto n = static_cast<double>(view_.n_rows);
    const auto* x = view_.data + view_.start(feature);
    const double mean = kernels().of(x).sum(x, view_.count(feature)) / n;
    const double kept = 2 * mean * mean * n > column_squared_norm(view_, feature) ? mean : 0.0;
    centres_.emplace(feature, kept);
    return kept;
  }

  // Values, curvatures and row numbers of the subproblem's columns, which are arranged.
  void fill(Subproblem& subproblem, const std::vector<float>& root) {
    const bool tall = is_tall(view_.n_rows);
    team_.for_work(subproblem.n_slices(), subproblem.n_nonzeros(), [&](std::int64_t slice) {
      for (std::int64_t k = subproblem.slice_begin(slice); k < subproblem.slice_begin(slice + 1); ++k) {
        SubproblemColumn& column = subproblem.columns[k];
        if (!column.dense) copy_sparse(column, subproblem, root.data());
        else if (!tall) copy_dense(column, subproblem, root.data(), false);
      }
    });
    if (!tall) return;
    for (SubproblemColumn& column : subproblem.columns) {  // worth sharing
      if (column.dense) copy_dense(column, subproblem, root.data(), true);
    }
  }

  // Rows first … first + count of one column, with its zeros (feature -1: the intercept).
  void read(std::int32_t feature, const std::vector<float>& root, std::int64_t first, std::int64_t count,
            float* out) const {
    const auto known = centres_.find(feature);
    const double centre = known != centres_.end() ? known->second : 0.0;
    if (feature < 0) {
      std::copy_n(root.data() + first, count, out);
    } else if (centre != 0) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = centred(0.0, centre, root[first + i]);
      view_.for_each_nonzero(feature, first, first + count,
                             [&](std::int32_t i, double x) { out[i - first] = centred(x, centre, root[i]); });
    } else if (view_.count(feature) == view_.n_rows) {
      scale_column(nullptr, view_.data + view_.start(feature) + first, count, root.data() + first, out);
    } else {
      std::fill_n(out, count, 0.0F);
      view_.for_each_nonzero(feature, first, first + count,
                             [&](std::int32_t i, double x) { out[i - first] = static_cast<float>(x) * root[i]; });
    }
  }

 private:
  static float centred(double x, double centre, float root) { return static_cast<float>(x - centre) * root; }

  void copy_sparse(SubproblemColumn& column, Subproblem& subproblem, const float* root) {
    if constexpr (requires { view_.indices; }) {
      const std::int32_t* rows = view_.indices + view_.start(column.feature);
      const auto* x = view_.data + view_.start(column.feature);
      float* z = subproblem.values() + column.start;
      if (selection_.keeps_all()) {
        column.rows = rows;
        column.curvature = scale_column(rows, x, column.count, root, z);
        return;
      }
      std::int32_t* indices = subproblem.indices() + column.start;
      const KeptRows kept =
          pick_rows(rows, x, column.count, root, selection_.new_rows(), selection_.bits(), indices, z);
      column.rows = indices;
      column.count = kept.count;
      column.curvature = kept.total;
      column.dropped_curvature = std::max(0.0, kept.total - kept.kept);
    }
  }

  // shared: by all threads, in slices of rows.
  void copy_dense(SubproblemColumn& column, Subproblem& subproblem, const float* root, bool shared) {
    const RowSlices& slices = selection_.slices();
    float* z = subproblem.values() + column.start;
    column.count = selection_.n_kept();
    std::array<double, 64> total{}, kept{};
    const auto copy = [&](std::int64_t slice) {
      const auto at = static_cast<std::size_t>(slice);
      total[at] = copy_slice(column, slice, root, z);
      const std::int64_t from = selection_.kept_before(slice), to = selection_.kept_before(slice + 1);
      kept[at] = kernels().float_dense_dot(z + from, z + from, to - from);
    };
    if (shared) team_.for_work(slices.count(), view_.n_rows, copy);
    else
      for (std::int64_t slice = 0; slice < slices.count(); ++slice) copy(slice);
    double all = 0, own = 0;
    for (double v : total) all += v;
    for (double v : kept) own += v;
    column.curvature = selection_.keeps_all() ? own : all;
    column.dropped_curvature = selection_.keeps_all() ? 0.0 : std::max(0.0, all - own);
  }

  // Returns Σ z² over all rows of the slice; of use only where rows are dropped.
  double copy_slice(const SubproblemColumn& column, std::int64_t slice, const float* root, float* z) const {
    const std::int64_t begin = selection_.slices().begin(slice), end = selection_.slices().end(slice);
    const bool keeps_all = selection_.keeps_all();
    if (keeps_all && column.centre == 0 && column.feature >= 0 && view_.count(column.feature) == view_.n_rows) {
      scale_column(nullptr, view_.data + view_.start(column.feature) + begin, end - begin, root + begin, z + begin);
      return 0;
    }
    std::fill(z + selection_.kept_before(slice), z + selection_.kept_before(slice + 1), 0.0F);
    const std::int32_t* new_rows = keeps_all ? nullptr : selection_.new_rows();
    const std::int64_t n_kept = selection_.n_kept();
    double total = 0;
    const auto put = [&](std::int32_t i, float value) {
      const std::int32_t to_row = new_rows ? new_rows[i] : i;
      if (to_row < n_kept) z[to_row] = value;
      total += static_cast<double>(value) * static_cast<double>(value);
    };
    if (column.feature < 0) {
      for (std::int64_t i = begin; i < end; ++i) put(static_cast<std::int32_t>(i), root[i]);
    } else if (column.centre != 0) {
      std::int64_t next = begin;  // rows without an entry are centred too
      const auto fill_to = [&](std::int64_t row) {
        for (; next < row; ++next) put(static_cast<std::int32_t>(next), centred(0.0, column.centre, root[next]));
      };
      view_.for_each_nonzero(column.feature, begin, end, [&](std::int32_t i, double x) {
        fill_to(i);
        put(i, centred(x, column.centre, root[i]));
        next = i + 1;
      });
      fill_to(end);
    } else {
      view_.for_each_nonzero(column.feature, begin, end,
                             [&](std::int32_t i, double x) { put(i, static_cast<float>(x) * root[i]); });
    }
    return total;
  }

  View view_;
  ThreadTeam& team_;
  RowSelection selection_;
  std::unordered_map<std::int32_t, double> centres_;  // by feature
};

// The scaled columns one nonzero at a time, as KeptProducts reads them; feature -1 is the intercept.
template <class View>
struct ColumnReader {
  const View& view;
  const float* roots;

  float root(std::int32_t row) const { return roots[row]; }
  template <class F>
  void for_each(std::int32_t feature, F&& f) const {
    if (feature >= 0)
      view.for_each_nonzero(feature, [&](std::int32_t i, double x) { f(i, static_cast<float>(x) * roots[i]); });
    else
      for (std::int32_t i = 0; i < view.n_rows; ++i) f(i, roots[i]);
  }
  void block_dot(std::int32_t feature, const float* block, float* out) const {
    if constexpr (requires { view.indices; }) {
      if (feature >= 0) {
        const std::int64_t start = view.start(feature);
        blockgreedy::block_dot(view.indices + start, view.data + start, view.count(feature), block, out);
        return;
      }
    }
    std::fill_n(out, 16, 0.0F);
    const auto add = [&](std::int32_t i, double x) {
      for (std::int64_t c = 0; c < 16; ++c) out[c] += static_cast<float>(x) * block[16 * std::int64_t{i} + c];
    };
    if (feature >= 0) view.for_each_nonzero(feature, add);
    else
      for (std::int32_t i = 0; i < view.n_rows; ++i) add(i, 1.0);
  }
};

}  // namespace blockgreedy
