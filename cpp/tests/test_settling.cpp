#include "math/settling.hpp"

#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::random_vector;
using testing::RandomMatrix;

constexpr std::int64_t n = 80, p = 6;

// Targets that the first three columns explain, a penalty that leaves the others at 0, and a start near the minimum.
struct Small {
  explicit Small(LossKind kind = LossKind::squared) : y(n) {
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = 2 * x.at(i, 0) - 1.5 * x.at(i, 1) + x.at(i, 2) + 0.3 * noise[i];
      if (kind == LossKind::logistic) y[i] = y[i] > 0.5 * noise[n - 1 - i] ? 1 : -1;
    }
    problem.y = y.data();
    problem.loss.kind = kind;
    problem.penalty.alpha = kind == LossKind::logistic ? 0.05 : 0.3;
    problem.fit_intercept = true;
    start = {1.7, -1.2, 0.7, 0, 0, 0};
  }
  std::optional<SettledPoint> settle() const { return settled(Matrix{x.view()}, problem, start.data(), 0.1); }

  // Largest distance of the gradient from where it has to be.
  double residual(const SettledPoint& point) const {
    std::vector<double> theta = x.times(point.weights);
    double largest = 0, sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double t = theta[i] + point.intercept;
      const bool logistic = problem.loss.kind == LossKind::logistic;
      theta[i] = (logistic ? -y[i] / (1 + std::exp(y[i] * t)) : t - y[i]) / static_cast<double>(n);
      sum += theta[i];
    }
    for (std::int64_t j = 0; j < p; ++j)
      largest =
          std::max(largest, problem.penalty.at(j).subgradient_distance(point.weights[j], x.column_dot(j, theta)));
    return std::max(largest, std::fabs(sum));
  }

  RandomMatrix x{n, p, 1.0, 3};
  std::vector<double> noise = random_vector(n, 4), y, start;
  CoreProblem problem{};
};

TEST("settling: the minimum is found to its last digits, with its objective") {
  for (const LossKind kind : {LossKind::squared, LossKind::logistic}) {
    Small small(kind);
    small.problem.penalty.l2 = 0.01;
    const auto point = small.settle();
    CHECK(point.has_value());
    CHECK(small.residual(*point) < 1e-15);
    CHECK_EQUAL(point->weights[4], 0.0);
    double objective = 0;
    const std::vector<double> t = small.x.times(point->weights);
    for (std::int64_t i = 0; i < n; ++i) {
      const double r = t[i] + point->intercept;
      objective += (kind == LossKind::logistic ? std::log1p(std::exp(-small.y[i] * r))
                                               : 0.5 * (r - small.y[i]) * (r - small.y[i])) /
                   static_cast<double>(n);
    }
    for (std::int64_t j = 0; j < p; ++j) objective += small.problem.penalty.at(j).value(point->weights[j]);
    CHECK(std::fabs(point->objective - objective) < 1e-14);
  }
}

TEST("settling: nothing where a sign, a bound or another column is in the way") {
  Small small;
  small.start[0] = -1.7;  // the minimum has the other sign
  CHECK(!small.settle());
  small.start[0] = 1.7;
  small.start[2] = 0;  // belongs to the model
  CHECK(!small.settle());
  small.start[2] = 0.7;
  small.problem.penalty.upper_all = 1.0;  // the first weight stands beyond it
  CHECK(!small.settle());
  small.start[0] = 0.9;  // and cannot go where it would
  CHECK(!small.settle());
  small.problem.penalty.upper_all = infinity;
  CHECK(small.settle().has_value());
  small.problem.penalty.alpha = 0;  // weights of 0 are free to move
  CHECK(!small.settle());
}

TEST("settling: nothing where columns depend on each other") {
  Small small;
  std::vector<double> columns = small.x.dense;
  for (std::int64_t i = 0; i < n; ++i) columns[2 * n + i] = 0.5 * columns[i];
  const DenseView<double> view{n, p, columns.data()};
  CHECK(!settled(Matrix{view}, small.problem, small.start.data(), 0.0));
}

}  // namespace
}  // namespace blockgreedy
