#include "family/intercept.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::random_vector;

struct Rows {
  explicit Rows(LossKind kind, std::int64_t n) : t(random_vector(n, 1)), y(random_vector(n, 2)), weights(n) {
    is_classifier = kind == LossKind::logistic || kind == LossKind::squared_hinge;
    for (std::int64_t i = 0; i < n; ++i) {
      if (is_classifier) y[i] = i % 3 == 0 ? 1 : -1;
      weights[i] = static_cast<double>(i % 4);
    }
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= total;
    problem.y = y.data();
    problem.loss = {kind, 0.7};
    problem.fit_intercept = true;
  }
  double slope(double shift) const {
    std::vector<double> moved(t), derivs(t.size());
    for (double& v : moved) v += shift;
    kernels().of(problem.loss).derivs(y.data(), moved.data(), std::ssize(t), problem.loss.delta, derivs.data());
    double sum = 0;
    for (std::size_t i = 0; i < t.size(); ++i)
      sum += (problem.row_weights ? weights[i] : 1.0 / static_cast<double>(t.size())) * derivs[i];
    return sum;
  }
  InterceptRange range() const { return is_classifier ? InterceptRange{false, -40, 40, 0} : InterceptRange{}; }

  bool is_classifier = false;
  std::vector<double> t, y, weights;
  CoreProblem problem{};
};

constexpr LossKind kinds[] = {LossKind::squared, LossKind::logistic, LossKind::squared_hinge, LossKind::huber};

TEST("intercept: the derivative of the loss is 0 there, but for rounding") {
  ThreadTeam team(1);
  for (const LossKind kind : kinds) {
    for (const bool weighted : {false, true}) {
      Rows rows(kind, 400);
      if (weighted) rows.problem.row_weights = rows.weights.data();
      const InterceptFit fit(rows.problem, 400, rows.range(), team);
      const double shift = fit.best_shift(rows.t.data());
      CHECK(std::fabs(rows.slope(shift)) < 1e-15);
      CHECK(std::fabs(rows.slope(0)) > 1e-3);
    }
  }
}

TEST("intercept: any number of threads finds the same bits") {
  ThreadTeam one(1), three(3);
  for (const LossKind kind : kinds) {
    Rows rows(kind, 20'000);
    const double alone = InterceptFit(rows.problem, 20'000, rows.range(), one).best_shift(rows.t.data());
    CHECK_EQUAL(alone, InterceptFit(rows.problem, 20'000, rows.range(), three).best_shift(rows.t.data()));
  }
}

TEST("intercept: rows of weight 0 may hold anything finite; predictions that are not finite move nothing") {
  ThreadTeam team(1);
  for (const LossKind kind : kinds) {
    Rows rows(kind, 400);
    rows.problem.row_weights = rows.weights.data();
    const InterceptFit fit(rows.problem, 400, rows.range(), team);
    const double shift = fit.best_shift(rows.t.data());
    rows.t[4] = 1e6;
    CHECK_EQUAL(rows.weights[4], 0.0);
    CHECK(is_near(fit.best_shift(rows.t.data()), shift, 1e-13));
    rows.t[5] = std::nan("");
    CHECK_EQUAL(fit.best_shift(rows.t.data()), 0.0);
    rows.t[5] = INFINITY;
    CHECK_EQUAL(fit.best_shift(rows.t.data()), 0.0);
  }
}

TEST("intercept: of one class, all rows come to the end of the range") {
  ThreadTeam team(1);
  Rows rows(LossKind::logistic, 50);
  std::fill(rows.y.begin(), rows.y.end(), 1.0);
  const InterceptFit fit(rows.problem, 50, {false, 40, 40, 1}, team);
  const double least = *std::min_element(rows.t.begin(), rows.t.end());
  CHECK(is_near(least + fit.best_shift(rows.t.data()), 40.0, 1e-13));
}

}  // namespace
}  // namespace blockgreedy
