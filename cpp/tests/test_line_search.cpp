#include "working_set/line_search.hpp"

#include <algorithm>
#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::random_vector;
using testing::RandomMatrix;

// A squared-loss problem at weights 0, with one column of the subproblem per feature.
struct Case {
  explicit Case(double alpha, double upper = infinity) : y(random_vector(80, 5)) {
    problem.y = y.data();
    problem.penalty.alpha = alpha;
    problem.penalty.upper_all = upper;
    rows.evaluate();
    iterate.weights = w.data();
    iterate.objective = objective(w);
    for (std::int32_t j = 0; j < x.n_cols; ++j) {
      columns.push_back({.feature = j, .grad = x.column_dot(j, rows.theta), .penalty = problem.penalty.at(j)});
    }
  }

  double objective(const std::vector<double>& weights) const {
    const std::vector<double> t = x.times(weights);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += 0.5 * (t[i] - y[i]) * (t[i] - y[i]) / 80;
    for (double v : weights) sum += problem.penalty.alpha * std::fabs(v);
    return sum;
  }
  // The direction of steepest descent, times a factor.
  void aim(double factor) {
    for (SubproblemColumn& column : columns) {
      const double excess = std::fabs(column.grad) - column.penalty.l1;
      column.point = excess > 0 ? factor * std::copysign(excess, -column.grad) : 0.0;
    }
  }
  double objective_along(double size) const {
    std::vector<double> weights;
    for (const SubproblemColumn& column : columns) weights.push_back(size * column.point);
    return objective(weights);
  }

  RandomMatrix x{80, 6, 0.5, 7};
  std::vector<double> y, w = std::vector<double>(6);
  CoreProblem problem{};
  ThreadTeam team{1};
  RowState rows{80, problem, team};
  Iterate iterate;
  std::vector<SubproblemColumn> columns;
  LineSearch<CscView<double>> search{x.view(), rows, iterate, team};
};

TEST("line search: weights, predictions, support and objective agree after a step") {
  Case at(0.02);
  at.aim(0.5);
  const double linear = at.search.set_direction(at.columns);
  double expected = 0;
  for (const SubproblemColumn& c : at.columns) expected += c.grad * c.point + 0.02 * std::fabs(c.point);
  CHECK(is_near(linear, expected, 1e-12));
  const double before = at.iterate.objective;
  const LineSearchResult result = at.search.run(at.columns, linear);
  CHECK(result.accepted);
  CHECK(result.decrease > 0 && result.decrease <= before - at.iterate.objective);
  CHECK(is_near(at.iterate.objective, at.objective(at.w), 1e-12));
  const std::vector<double> t = at.x.times(at.w);
  for (std::size_t i = 0; i < t.size(); ++i) CHECK(is_near(at.rows.predictions[i], t[i], 1e-12));
  double penalty = 0;
  std::vector<std::int32_t> support;
  for (std::int32_t j = 0; j < 6; ++j) {
    penalty += 0.02 * std::fabs(at.w[j]);
    if (at.w[j] != 0) support.push_back(j);
  }
  CHECK(at.iterate.support == support);
  CHECK(is_near(at.iterate.penalty, penalty, 1e-12));
}

TEST("line search: a direction that is too long is halved until Armijo's condition holds") {
  Case at(0.02);
  at.aim(100);
  const double linear = at.search.set_direction(at.columns);
  const double before = at.iterate.objective;
  double size = 1;  // by hand
  while (!(at.objective_along(size) <= before + Tuning::Search::armijo * size * linear)) size *= 0.5;
  const double reached = at.objective_along(size);
  CHECK(size < 1);
  const LineSearchResult result = at.search.run(at.columns, linear);
  CHECK_EQUAL(result.size, size);
  CHECK_EQUAL(at.iterate.step_size, size);
  CHECK(is_near(result.decrease, before - reached, 1e-12));
  CHECK(is_near(at.iterate.objective, reached, 1e-12));
}

TEST("line search: a direction that is too short is extended to the minimum along it") {
  Case at(0.02);
  at.aim(0.01);
  double best = infinity;
  for (int k = 0; k < 40000; ++k) best = std::min(best, at.objective_along(0.01 * k));
  CHECK(best < at.objective_along(1));
  const double linear = at.search.set_direction(at.columns);
  CHECK(at.search.run(at.columns, linear).accepted);
  CHECK(at.iterate.step_size > 1);
  CHECK(at.iterate.objective <= best + 0.05 * (at.objective_along(0) - best));
  CHECK(is_near(at.iterate.objective, at.objective(at.w), 1e-12));
}

TEST("line search: an extension ends at the first bound") {
  Case at(0.0, 0.05);
  at.y = at.x.times({1, 1, 1, 1, 1, 1});
  at.problem.y = at.y.data();
  at.rows.evaluate();
  at.iterate.objective = at.objective(at.w);
  for (SubproblemColumn& column : at.columns) {
    column.grad = at.x.column_dot(column.feature, at.rows.theta);
    column.point = 0.001 * (1 + column.feature);
  }
  const double linear = at.search.set_direction(at.columns);
  CHECK(linear < 0);
  CHECK(at.search.run(at.columns, linear).accepted);
  CHECK_EQUAL(*std::max_element(at.w.begin(), at.w.end()), 0.05);
  CHECK(is_near(at.iterate.objective, at.objective(at.w), 1e-12));
}

TEST("line search: a direction that does not descend is refused") {
  Case at(0.02);
  at.aim(-1);
  CHECK(!(at.search.set_direction(at.columns) < 0));
}

TEST("line search: an extrapolated point is taken only if it is better") {
  for (const double factor : {0.5, 100.0}) {
    Case at(0.02);
    at.aim(factor);
    at.search.set_direction(at.columns);
    const double before = at.iterate.objective, there = at.objective_along(1);
    at.search.try_extrapolation(at.columns);
    CHECK_EQUAL(there < before, factor < 1);
    CHECK(is_near(at.iterate.objective, std::min(before, there), 1e-12));
    CHECK(is_near(at.iterate.objective, at.objective(at.w), 1e-12));
  }
}

TEST("line search: decreases below rounding are taken as full steps, a limited number of times") {
  Case at(0.02);
  const std::size_t steepest =
      static_cast<std::size_t>(std::max_element(at.columns.begin(), at.columns.end(),
                                                [](const SubproblemColumn& a, const SubproblemColumn& b) {
                                                  return std::fabs(a.grad) < std::fabs(b.grad);
                                                }) -
                               at.columns.begin());
  int n_accepted = 0;
  for (int k = 0; k < 2 * Tuning::Search::max_rounding_steps; ++k) {
    for (std::size_t j = 0; j < at.columns.size(); ++j) {
      SubproblemColumn& column = at.columns[j];
      column.weight = column.point = at.w[j];
      column.grad = at.x.column_dot(column.feature, at.rows.theta);
    }
    at.columns[steepest].point -= std::copysign(1e-14, at.columns[steepest].grad);
    const double linear = at.search.set_direction(at.columns);
    n_accepted += linear < 0 && at.search.run(at.columns, linear).accepted;
  }
  CHECK_EQUAL(n_accepted, Tuning::Search::max_rounding_steps);
  CHECK(at.search.at_rounding());
  at.search.begin_alpha();
  CHECK(!at.search.at_rounding());
}

}  // namespace
}  // namespace blockgreedy
