#include "math/scales.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "math/penalties.hpp"

namespace blockgreedy {

namespace {

template <class View>
double scale_of(const View& view, std::int64_t j, const double* row_weights, std::int64_t n_counted, bool centred) {
  const double uniform = 1.0 / static_cast<double>(view.n_rows);
  const auto weight = [&](std::int32_t row) { return row_weights ? row_weights[row] : uniform; };
  double low = infinity, high = -infinity;
  std::int64_t n_stored = 0;
  view.for_each_nonzero(j, [&](std::int32_t row, double x) {
    if (!(weight(row) > 0)) return;
    low = std::min(low, x);
    high = std::max(high, x);
    ++n_stored;
  });
  const bool has_zeros = n_stored < n_counted;  // that are not stored
  if (has_zeros) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double largest = std::max(std::fabs(low), std::fabs(high));
  if (largest == 0) return 0;
  // A power of two: squares neither overflow nor vanish, and no digit is lost; the inverse of the least number that
  // there is would be infinite.
  const double unit = std::ldexp(1.0, -std::clamp(std::ilogb(largest), -1000, 1000));
  // Of float64 for float32 as well: values that differ there are different numbers, and float32 has 5 of them in
  // 1e7 ± 2.
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  if (centred && unit * high - unit * low <= rounding) return 0;
  double mean = 0, stored = 0;
  if (centred) {
    view.for_each_nonzero(j, [&](std::int32_t row, double x) {
      mean += weight(row) * (unit * x);
      stored += weight(row);
    });
  }
  // Two-pass variance: Σωx² − mean² would cancel for values far from 0. A zero that is not stored deviates by −mean.
  // The square of the mean deviation, which is 0 but for rounding, is subtracted at the end.
  double squares = 0, rest = 0;
  view.for_each_nonzero(j, [&](std::int32_t row, double x) {
    const double away = unit * x - mean;
    squares += weight(row) * away * away;
    rest += weight(row) * away;
  });
  if (centred && has_zeros) {
    const double missing = std::max(0.0, 1 - stored);
    squares += missing * mean * mean;
    rest -= missing * mean;
  }
  const double scale = std::sqrt(std::max(0.0, squares - (centred ? rest * rest : 0.0))) / unit;
  // One that has lost digits is none: weights that make up for it are beyond float64.
  return std::isnormal(scale) ? scale : 0.0;
}

}  // namespace

std::vector<double> column_scales(const Matrix& matrix, const double* row_weights, bool centred, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) {
        std::vector<double> out(view.n_cols);
        std::int64_t n_counted = view.n_rows;
        if (row_weights)
          n_counted = std::count_if(row_weights, row_weights + n_counted, [](double v) { return v > 0; });
        const auto cuts = equal_nonzero_cuts(view, view.n_nonzeros() < min_parallel_work ? 1 : 64);
        team.for_each(static_cast<std::int64_t>(cuts.size()) - 1, [&](std::int64_t part, int) {
          for (std::int64_t j = cuts[part]; j < cuts[part + 1]; ++j) {
            out[j] = scale_of(view, j, row_weights, n_counted, centred);
          }
        });
        return out;
      },
      matrix);
}

}  // namespace blockgreedy
