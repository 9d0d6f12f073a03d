#include "working_set/row_state.hpp"

#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::random_vector;

constexpr std::size_t n = 300;

// Rows of unequal weight, which add up to 1.
struct Rows300 {
  explicit Rows300(LossKind kind) : y(random_vector(n, 1)), weights(n) {
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += weights[i] = 1 + static_cast<double>(i % 5);
    for (double& v : weights) v /= total;
    if (kind == LossKind::logistic || kind == LossKind::squared_hinge) {
      for (double& v : y) v = v > 0 ? 1 : -1;
    }
    problem.y = y.data();
    problem.loss.kind = kind;
    problem.row_weights = weights.data();
  }
  double loss(const std::vector<double>& t) const {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = problem.loss.kind == LossKind::logistic ? std::log1p(std::exp(-y[i] * t[i]))
                                                                   : 0.5 * (t[i] - y[i]) * (t[i] - y[i]);
      sum += weights[i] * value;
    }
    return sum;
  }
  std::vector<double> y, weights;
  CoreProblem problem{};
};

TEST("row state: loss, derivatives and curvatures are those of the logistic loss") {
  const Rows300 data(LossKind::logistic);
  ThreadTeam team(1);
  RowState rows(n, data.problem, team);
  rows.predictions = random_vector(n, 2, 0.2);  // no margin below -1, where the curvature would be majorised
  CHECK(is_near(rows.evaluate(), data.loss(rows.predictions), 1e-12));
  for (std::size_t i = 0; i < n; ++i) {
    const double p = 1 / (1 + std::exp(data.y[i] * rows.predictions[i]));
    CHECK(is_near(rows.theta[i], -data.weights[i] * data.y[i] * p, 1e-12));
    CHECK(is_near(std::pow(rows.root_curvature[i], 2), data.weights[i] * p * (1 - p), 1e-6));
  }
  CHECK(is_near(rows.loss_at(rows.predictions), data.loss(rows.predictions), 1e-12));
}

TEST("row state: a trial is the state of the moved predictions, and becomes it") {
  const Rows300 data(LossKind::logistic);
  ThreadTeam team(2);
  RowState rows(n, data.problem, team), moved(n, data.problem, team);
  rows.predictions = random_vector(n, 2, 0.2);
  rows.direction = random_vector(n, 3, 0.2);
  for (std::size_t i = 0; i < n; ++i) moved.predictions[i] = rows.predictions[i] + 0.5 * rows.direction[i];
  rows.evaluate();
  const std::vector<double> before = rows.theta;
  CHECK_EQUAL(rows.evaluate_trial(0.5), moved.evaluate());
  CHECK(rows.theta == before);
  CHECK(rows.trial_theta == moved.theta);
  rows.accept_trial({.size = 0.5, .large_decrease = true});
  CHECK(rows.predictions == moved.predictions);
  CHECK(rows.theta == moved.theta);
  CHECK(rows.root_curvature == moved.root_curvature);
}

TEST("row state: slope and curvature are the derivatives of the loss along the direction") {
  const Rows300 data(LossKind::logistic);
  ThreadTeam team(1);
  RowState rows(n, data.problem, team);
  rows.predictions = random_vector(n, 2, 0.2);
  rows.direction = random_vector(n, 3, 0.1);
  rows.evaluate();
  rows.evaluate_trial(0.5);
  const auto loss_at = [&](double size) {
    std::vector<double> t = rows.predictions;
    for (std::size_t i = 0; i < n; ++i) t[i] += size * rows.direction[i];
    return data.loss(t);
  };
  constexpr double h = 1e-3;
  for (const bool at_trial : {false, true}) {
    const double size = at_trial ? 0.5 : 0.0;
    const double up = loss_at(size + h), here = loss_at(size), down = loss_at(size - h);
    CHECK(is_near(1e3 * rows.slope(at_trial), 1e3 * (up - down) / (2 * h), 1e-5));
    CHECK(is_near(1e3 * rows.curvature(at_trial), 1e3 * (up - 2 * here + down) / (h * h), 1e-4));
  }
}

TEST("row state: the predicted derivatives are exact for the squared loss") {
  const Rows300 data(LossKind::squared);
  ThreadTeam team(1);
  RowState rows(n, data.problem, team);
  rows.predictions = random_vector(n, 2);
  rows.direction = random_vector(n, 3);
  rows.evaluate();
  rows.evaluate_trial(1);
  std::vector<double> predicted;
  rows.predict_theta(predicted);
  for (std::size_t i = 0; i < n; ++i) CHECK(is_near(1e3 * predicted[i], 1e3 * rows.trial_theta[i], 1e-6));
}

TEST("row state: a failed step leaves the secant curvature, and full steps let it fade") {
  const Rows300 data(LossKind::logistic);
  ThreadTeam team(1);
  RowState rows(n, data.problem, team), plain(n, data.problem, team);
  for (std::size_t i = 0; i < n; ++i) {  // margins of 20: no curvature; the step takes them to -20
    rows.predictions[i] = 20 * data.y[i];
    rows.direction[i] = -40 * data.y[i];
  }
  rows.evaluate();
  rows.evaluate_trial(1);
  std::vector<double> secants(n);
  for (std::size_t i = 0; i < n; ++i) secants[i] = (rows.trial_theta[i] - rows.theta[i]) / rows.direction[i];
  rows.remember_secants(1);
  rows.evaluate_trial(1e-3);
  rows.accept_trial({.size = 1e-3, .large_decrease = false});
  for (std::size_t i = 0; i < n; ++i)
    CHECK(is_near(1e4 * std::pow(rows.root_curvature[i], 2), 1e4 * secants[i], 1e-5));
  for (double& v : rows.direction) v = 0;
  double fade = 1;
  for (int k = 0; k < 3; ++k) {
    fade *= static_cast<double>(Tuning::Curvature::secant_fade);
    rows.evaluate_trial(1);
    rows.accept_trial({.size = 1, .large_decrease = false});
    CHECK(is_near(1e4 * std::pow(rows.root_curvature[0], 2), 1e4 * secants[0] * fade * fade, 1e-5));
  }
}

TEST("row state: squared hinge is damped where it is flat, more after a shortened step than after a full one") {
  const Rows300 data(LossKind::squared_hinge);
  ThreadTeam team(1);
  const auto flat_curvature_after = [&](double size) {
    RowState rows(n, data.problem, team);
    for (std::size_t i = 0; i < n; ++i) rows.predictions[i] = 50 * data.y[i];
    rows.evaluate();
    rows.evaluate_trial(size);
    rows.accept_trial({.size = size, .large_decrease = false});
    rows.evaluate();
    return std::pow(static_cast<double>(rows.root_curvature[0]), 2) / (2 * data.weights[0]);
  };
  using T = Tuning::Curvature;
  CHECK(is_near(flat_curvature_after(1), T::damping_down * T::first_damping, 1e-6));
  CHECK(is_near(flat_curvature_after(0.5), T::max_damping, 1e-6));
}

}  // namespace
}  // namespace blockgreedy
