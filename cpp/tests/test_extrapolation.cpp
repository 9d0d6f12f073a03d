#include "working_set/extrapolation.hpp"

#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::RandomMatrix;

struct Path {
  explicit Path(bool fit_intercept) : y(50, 0.0) {
    problem.y = y.data();
    problem.penalty.alpha = 1;
    problem.penalty.upper_all = 1.2;
    problem.fit_intercept = fit_intercept;
  }
  // The solution at some alpha is these weights.
  void stand_at(const std::vector<double>& weights, double intercept) {
    w = weights;
    iterate.weights = w.data();
    iterate.intercept = intercept;
    iterate.support.clear();
    for (std::int32_t j = 0; j < 5; ++j) {
      if (w[j] != 0) iterate.support.push_back(j);
    }
    rows.predictions = x.times(w);
    for (double& v : rows.predictions) v += intercept;
  }

  RandomMatrix x{50, 5, 0.4, 11};
  std::vector<double> y, w;
  CoreProblem problem{};
  ThreadTeam team{1};
  RowState rows{50, problem, team};
  Iterate iterate;
  std::vector<SubproblemColumn> columns;
  Extrapolation<CscView<double>> extrapolation{x.view(), problem, team};
};

TEST("extrapolation: there is nothing to continue before two solutions are known") {
  Path path(false);
  path.stand_at({1, 0, 0, 0, 0}, 0);
  CHECK(!path.extrapolation.on_path());
  CHECK(!path.extrapolation.propose(path.iterate, 0.1, path.rows, path.columns));
  CHECK(path.extrapolation.on_path());
  path.stand_at({0, 0, 0, 0, 0}, 0);
  CHECK(!path.extrapolation.propose(path.iterate, 0.1, path.rows, path.columns));  // nothing has a weight
}

TEST("extrapolation: weights continue within sign and bounds, and the predictions with them") {
  for (const bool fit_intercept : {false, true}) {
    Path path(fit_intercept);
    const double b = fit_intercept ? 0.5 : 0.0;
    path.stand_at({0.4, 0.8, 0.7, -0.1, 0}, 0);
    path.extrapolation.propose(path.iterate, 0.2, path.rows, path.columns);
    // To: 0 stays 0, 0.3 would become negative, 1.1 would leave the bounds, -0.3 and 0.2 continue.
    path.stand_at({0, 0.3, 1.1, -0.3, 0.2}, b);
    CHECK(path.extrapolation.propose(path.iterate, 0.2, path.rows, path.columns));
    const std::vector<double> expected{0, 0, 1.2, -0.5, 0.4};
    std::vector<double> step(5);
    double intercept_step = 0;
    for (const SubproblemColumn& column : path.columns) {
      if (column.feature < 0) {
        CHECK(is_near(column.point, 1.0, 1e-12));
        intercept_step = column.step();
        continue;
      }
      const auto j = static_cast<std::size_t>(column.feature);
      CHECK_EQUAL(column.weight, path.w[j]);
      CHECK(is_near(column.point, expected[j], 1e-12));
      step[j] = column.step();
    }
    CHECK_EQUAL(path.columns.size(), fit_intercept ? 5U : 4U);
    const std::vector<double> moved = path.x.times(step);
    for (std::size_t i = 0; i < moved.size(); ++i)
      CHECK(is_near(path.rows.direction[i], moved[i] + intercept_step, 1e-12));
  }
}

TEST("extrapolation: a step of alpha that is half as long continues half as far") {
  Path path(false);
  path.stand_at({0.2, 0, 0, 0, 0}, 0);
  path.extrapolation.propose(path.iterate, 0.2, path.rows, path.columns);
  path.stand_at({0.6, 0, 0, 0, 0}, 0);
  CHECK(path.extrapolation.propose(path.iterate, 0.1, path.rows, path.columns));
  CHECK(is_near(path.columns[0].point, 0.8, 1e-12));
}

}  // namespace
}  // namespace blockgreedy
