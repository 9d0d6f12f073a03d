#include "folds/lane_subproblem.hpp"

#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::random_vector;
using testing::RandomMatrix;

TEST("lanes: products of eight vectors are those of each") {
  const RandomMatrix x(57, 9, 0.4, 1);
  const std::vector<double> v = random_vector(8 * 57, 2), h = random_vector(8 * 57, 3);
  const std::vector<float> floats(v.begin(), v.end()), weights(h.begin(), h.end());
  const auto view = x.view();
  for (std::int64_t j = 0; j < x.n_cols; ++j) {
    LaneFloats dot, weighted, squares;
    const LaneFloats steps{1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<float> sum = floats;
    const auto& kernel = kernels().of(view.data);
    const std::int32_t* at = view.indices + view.start(j);
    const double* data = view.data + view.start(j);
    kernel.lane_dot(at, data, view.count(j), floats.data(), dot.data());
    kernel.lane_weighted_dot(at, data, view.count(j), weights.data(), floats.data(), weighted.data());
    kernel.lane_squares(at, data, view.count(j), weights.data(), squares.data());
    kernel.lane_axpy(at, data, view.count(j), steps.data(), sum.data());
    for (std::size_t f = 0; f < 8; ++f) {
      double a = 0, b = 0, c = 0;
      bool added = true;
      for (std::int64_t i = 0; i < x.n_rows; ++i) {
        const double entry = x.at(i, j), own = v[8 * i + f], weight = h[8 * i + f];
        a += entry * own;
        b += entry * weight * own;
        c += entry * entry * weight;
        added = added && is_near(double{sum[8 * i + f]}, own + double{steps[f]} * entry, 1e-5);
      }
      CHECK(is_near(double{dot[f]}, a, 1e-5));
      CHECK(is_near(double{weighted[f]}, b, 1e-5));
      CHECK(is_near(double{squares[f]}, c, 1e-5));
      CHECK(added);
    }
  }
}

// Squared loss on rows of weight 1/n; the second lane does without every third row.
TEST("lanes: the subproblem of each is solved, with an intercept") {
  constexpr std::int64_t n = 80, p = 30;
  const RandomMatrix x(n, p, 0.3, 4);
  const std::vector<double> y = random_vector(n, 5);
  CoreProblem problem{};
  problem.penalty.alpha = 0.03;
  problem.fit_intercept = true;
  for (const int n_threads : {1, 2}) {
    ThreadTeam team(n_threads);
    LaneSubproblem<CscView<double>> subproblem(x.view(), {&problem, &problem}, team);
    const auto weight = [](std::int64_t i, int f) { return f == 1 && i % 3 == 0 ? 0.0 : 1.0 / n; };
    for (std::int64_t i = 0; i < n; ++i) {
      for (int f = 0; f < 2; ++f) {
        subproblem.curvatures[n_lanes * i + f] = static_cast<float>(weight(i, f));
        subproblem.theta[n_lanes * i + f] = static_cast<float>(-weight(i, f) * y[i]);  // at weights of 0
      }
    }
    subproblem.columns.push_back({.feature = -1});
    for (std::int32_t j = 0; j < p; ++j) subproblem.columns.push_back({.feature = j});
    subproblem.begin();
    for (int k = 0; k < 20; ++k) subproblem.solve({}, 0);
    for (int f = 0; f < 2; ++f) {
      std::vector<double> direction(n), residual(n);
      subproblem.read_direction(f, direction);
      for (std::int64_t i = 0; i < n; ++i) residual[i] = weight(i, f) * (direction[i] - y[i]);
      double sum = 0;
      for (double v : residual) sum += v;
      CHECK(std::fabs(sum) < 1e-5);
      for (const auto& column : subproblem.columns) {
        if (column.feature < 0) continue;
        const double grad = x.column_dot(column.feature, residual), point = column.point[f];
        if (point != 0) CHECK(std::fabs(grad + std::copysign(0.03, point)) < 1e-5);
        else CHECK(std::fabs(grad) < 0.03 + 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace blockgreedy
