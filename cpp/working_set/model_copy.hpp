// The chosen columns as the quadratic model wants them: in float32, scaled by √curvature, without the rows that hold
// next to none of it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "working_set/subproblem.hpp"

namespace blockgreedy {

template <class View>
class ModelCopy {
 public:
  ModelCopy(const View& view, ThreadTeam& team) : view_(view), team_(team), slices_(view.n_rows) {}

  std::int64_t n_rows() const { return n_kept_; }

  // Leaves out the rows of least curvature, which together hold next to none of it: on nearly separable problems
  // most rows. The quadratic model is not exact anyway; the diagonal still counts them.
  void choose_rows(const std::vector<float>& root, double share) {
    const std::int64_t n = view_.n_rows;
    place_.clear();
    n_kept_ = n;
    if (share > 0) {
      // A histogram by exponent and leading bits finds the cut without sorting.
      constexpr std::size_t n_bins = 1 << 11;
      const auto bin_of = [](float root) { return __builtin_bit_cast(std::uint32_t, root) >> 20; };
      const auto n_slices = static_cast<std::size_t>(slices_.count());
      std::vector<double> masses(n_bins * n_slices);
      const auto for_slices = [&](auto&& f) {
        team_.for_work(slices_.count(), n, [&](std::int64_t slice) {
          f(static_cast<std::size_t>(slice), static_cast<std::size_t>(slices_.begin(slice)),
            static_cast<std::size_t>(slices_.end(slice)));
        });
      };
      for_slices([&](std::size_t slice, std::size_t begin, std::size_t end) {
        double* mass = masses.data() + n_bins * slice;
        for (std::size_t i = begin; i < end; ++i) {
          mass[bin_of(root[i])] += static_cast<double>(root[i]) * static_cast<double>(root[i]);
        }
      });
      double total = 0;
      for (std::size_t bin = 0; bin < n_bins; ++bin) {
        for (std::size_t slice = 1; slice < n_slices; ++slice) masses[bin] += masses[n_bins * slice + bin];
        total += masses[bin];
      }
      std::uint32_t cut = 0;
      for (double below = masses[0]; below <= share * total && cut + 1 < n_bins; below += masses[cut]) ++cut;
      std::vector<std::int64_t>& kept = kept_before_;
      kept.assign(n_slices + 1, 0);
      for_slices([&](std::size_t slice, std::size_t begin, std::size_t end) {
        std::int64_t count = 0;
        for (std::size_t i = begin; i < end; ++i) count += bin_of(root[i]) >= cut;
        kept[slice + 1] = count;
      });
      for (std::size_t slice = 0; slice < n_slices; ++slice) kept[slice + 1] += kept[slice];
      if (4 * kept.back() < 3 * n) {
        n_kept_ = kept.back();
        keep_.resize(static_cast<std::size_t>(n / 64 + 1));
        const RowSlices words(n / 64 + 1);
        team_.for_work(words.count(), n, [&](std::int64_t slice) {
          for (std::int64_t word = words.begin(slice); word < words.end(slice); ++word) {
            std::uint64_t bits = 0;
            for (std::int64_t i = 64 * word; i < std::min(n, 64 * word + 64); ++i)
              bits |= std::uint64_t{bin_of(root[static_cast<std::size_t>(i)]) >= cut} << (i & 63);
            keep_[static_cast<std::size_t>(word)] = bits;
          }
        });
        place_.resize(static_cast<std::size_t>(n));
        for_slices([&](std::size_t slice, std::size_t begin, std::size_t end) {
          auto next = static_cast<std::int32_t>(kept[slice]);
          for (std::size_t i = begin; i < end; ++i) {
            const bool keep = bin_of(root[i]) >= cut;
            place_[i] = keep ? next : static_cast<std::int32_t>(n_kept_);
            next += keep;
          }
        });
      }
    }
  }

  // The mean of a column that lies far from 0 beside its spread, else 0. Beside an intercept such a column is better
  // taken about its mean: in float32 the two could hardly be told apart.
  double shift(std::int32_t feature) {
    const auto known = shifts_.find(feature);
    if (known != shifts_.end()) return known->second;
    const auto n = static_cast<double>(view_.n_rows);
    double sum = 0, squares = 0;
    view_.for_each_nonzero(feature, [&](std::int32_t, double x) { sum += x; });
    const double mean = sum / n;
    view_.for_each_nonzero(feature, [&](std::int32_t, double x) { squares += (x - mean) * (x - mean); });
    squares += (n - static_cast<double>(view_.count(feature))) * mean * mean;
    const double kept = mean * mean * n > squares ? mean : 0.0;
    shifts_.emplace(feature, kept);
    return kept;
  }

  // Values, curvatures and row numbers of the model's columns, which have their places.
  void fill(Subproblem& model, const std::vector<float>& root) {
    const bool tall = is_tall(view_.n_rows);
    team_.for_work(model.n_slices(), model.n_nonzeros(), [&](std::int64_t slice) {
      for (std::int64_t k = model.slice_begin(slice); k < model.slice_begin(slice + 1); ++k) {
        ModelColumn& column = model.columns[static_cast<std::size_t>(k)];
        if (!column.dense) copy_sparse(column, model, root.data());
        else if (!tall) copy_dense(column, model, root.data(), false);
      }
    });
    if (!tall) return;
    for (ModelColumn& column : model.columns) {  // worth sharing
      if (column.dense) copy_dense(column, model, root.data(), true);
    }
  }

  // Rows first … first + count of one column, with its zeros (feature -1: the intercept).
  void read(std::int32_t feature, const std::vector<float>& root, std::int64_t first, std::int64_t count,
            float* out) const {
    const auto known = shifts_.find(feature);
    const double shift = known != shifts_.end() ? known->second : 0.0;
    if (feature < 0) {
      std::copy_n(root.data() + first, count, out);
    } else if (shift != 0) {
      for (std::int64_t i = 0; i < count; ++i)
        out[i] = shifted(0.0, shift, root[static_cast<std::size_t>(first + i)]);
      view_.for_each_nonzero(feature, first, first + count, [&](std::int32_t i, double x) {
        out[i - first] = shifted(x, shift, root[static_cast<std::size_t>(i)]);
      });
    } else if (view_.count(feature) == view_.n_rows) {
      scale_column(nullptr, view_.data + view_.start(feature) + first, count, root.data() + first, out);
    } else {
      std::fill_n(out, count, 0.0F);
      view_.for_each_nonzero(feature, first, first + count, [&](std::int32_t i, double x) {
        out[i - first] = static_cast<float>(x) * root[static_cast<std::size_t>(i)];
      });
    }
  }

 private:
  static float shifted(double x, double shift, float root) { return static_cast<float>(x - shift) * root; }

  void copy_sparse(ModelColumn& column, Subproblem& model, const float* root) {
    if constexpr (requires { view_.indices; }) {
      const std::int32_t* at = view_.indices + view_.start(column.feature);
      const auto* x = view_.data + view_.start(column.feature);
      float* z = model.values() + column.start;
      if (place_.empty()) {
        column.at = at;
        column.curvature = scale_column(at, x, column.count, root, z);
        return;
      }
      std::int32_t* indices = model.indices() + column.start;
      const KeptRows kept = pick_rows(at, x, column.count, root, place_.data(), keep_.data(), indices, z);
      column.at = indices;
      column.count = kept.count;
      column.curvature = kept.total;
      column.extra = std::max(0.0, kept.total - kept.kept);
    }
  }

  void copy_dense(ModelColumn& column, Subproblem& model, const float* root, bool shared) {
    float* z = model.values() + column.start;
    column.count = n_kept_;
    std::array<double, 64> total{}, kept{};
    const auto copy = [&](std::int64_t slice) {
      const auto at = static_cast<std::size_t>(slice);
      const std::int64_t begin = slices_.begin(slice), end = slices_.end(slice);
      const std::int64_t from = place_.empty() ? begin : kept_before_[at];
      const std::int64_t to = place_.empty() ? end : kept_before_[at + 1];
      if (place_.empty() && column.shift == 0 && column.feature >= 0 && view_.count(column.feature) == view_.n_rows) {
        scale_column(nullptr, view_.data + view_.start(column.feature) + begin, end - begin, root + begin, z + begin);
      } else {
        std::fill(z + from, z + to, 0.0F);
        const std::int32_t* place = place_.empty() ? nullptr : place_.data();
        const auto put = [&](std::int32_t i, float value) {
          const std::int32_t to_row = place ? place[i] : i;
          if (to_row < n_kept_) z[to_row] = value;
          total[at] += static_cast<double>(value) * static_cast<double>(value);
        };
        if (column.feature < 0) {
          for (std::int64_t i = begin; i < end; ++i) put(static_cast<std::int32_t>(i), root[i]);
        } else if (column.shift != 0) {
          std::int64_t next = begin;  // rows without an entry are shifted too
          const auto fill_to = [&](std::int64_t row) {
            for (; next < row; ++next) put(static_cast<std::int32_t>(next), shifted(0.0, column.shift, root[next]));
          };
          view_.for_each_nonzero(column.feature, begin, end, [&](std::int32_t i, double x) {
            fill_to(i);
            put(i, shifted(x, column.shift, root[i]));
            next = i + 1;
          });
          fill_to(end);
        } else {
          view_.for_each_nonzero(column.feature, begin, end,
                                 [&](std::int32_t i, double x) { put(i, static_cast<float>(x) * root[i]); });
        }
      }
      kept[at] = kernels().float_dense_dot(z + from, z + from, to - from);
    };
    if (shared) team_.for_work(slices_.count(), view_.n_rows, copy);
    else
      for (std::int64_t slice = 0; slice < slices_.count(); ++slice) copy(slice);
    double all = 0, own = 0;
    for (double v : total) all += v;
    for (double v : kept) own += v;
    column.curvature = place_.empty() ? own : all;
    column.extra = place_.empty() ? 0.0 : std::max(0.0, all - own);
  }

  View view_;
  ThreadTeam& team_;
  RowSlices slices_;
  std::vector<std::int32_t> place_;  // of each row in the model, n_kept_ if left out; empty if all are in
  std::vector<std::uint64_t> keep_;  // a bit for each row
  std::int64_t n_kept_ = 0;
  std::vector<std::int64_t> kept_before_;  // kept rows before each slice of rows
  std::unordered_map<std::int32_t, double> shifts_;
};

// What KeptProducts asks of columns; -1 is the intercept's.
template <class View>
struct ScaledColumns {
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
