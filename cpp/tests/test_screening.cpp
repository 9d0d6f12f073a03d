#include "working_set/screening.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/check.hpp"
#include "tests/random_data.hpp"
#include "working_set/candidates.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::random_vector;
using testing::RandomMatrix;

TEST("screening: distance bounds hold for the largest entries, and are not far above them") {
  ThreadTeam team(2);
  for (const std::size_t n : {1U, 5U, 1000U, 300000U}) {
    const std::vector<double> a = random_vector(n, 1), b = random_vector(n, 2);
    const DistanceBounds bounds = distance_between(a.data(), b.data(), 0.7, static_cast<std::int64_t>(n), team);
    std::vector<double> squares(n);
    for (std::size_t i = 0; i < n; ++i) squares[i] = (a[i] - 0.7 * b[i]) * (a[i] - 0.7 * b[i]);
    std::sort(squares.rbegin(), squares.rend());
    double sum = 0;
    std::size_t taken = 0;
    for (std::size_t k = 0; k < bounds.size(); ++k) {
      for (; taken < std::min(n, std::size_t{1} << k); ++taken) sum += squares[taken];
      CHECK(bounds[k] >= std::sqrt(sum));
      CHECK(bounds[k] <= 1.07 * std::sqrt(sum));  // bins are 1/16 wide
    }
  }
}

TEST("screening: a column's class covers its nonzeros") {
  for (std::int64_t count = 0; count < 3000; ++count) {
    const std::size_t k = length_class(count);
    CHECK((std::int64_t{1} << k) >= count);
    CHECK(k == 0 || (std::int64_t{1} << (k - 1)) < count);
  }
}

// Columns with thresholds alpha·u_j and bounds that were stored at a reference.
struct Screened {
  explicit Screened(bool has_weights, bool are_full = false)
      : x(120, 300, are_full ? 1.0 : 0.1, 5), weights(300, 1.0), bounds(120, 300, has_weights, are_full, team) {
    for (std::size_t j = 0; j < 300 && has_weights; ++j) weights[j] = 0.5 + static_cast<double>(j % 4);
    bounds.set_reference(theta, alpha);
    for (std::int64_t j = 0; j < 300; ++j) {
      bounds.add(j, x.norm(j) * x.norm(j), weights[j], x.view().count(j));
      const double left = slack(j, theta, alpha);
      bounds.store(j, left < 0 ? -infinity : left);
    }
  }
  double slack(std::int64_t j, const std::vector<double>& point, double at_alpha) const {
    return at_alpha * weights[j] - std::fabs(x.column_dot(j, point));
  }
  std::set<std::int64_t> reached(const std::vector<double>& point, double at_alpha) {
    std::set<std::int64_t> visited;
    bounds.for_each_reached(0, 300, bounds.move_to(point, at_alpha, 0), false, [&](std::int64_t k, float left) {
      if (left <= 0) visited.insert(k);
    });
    return visited;
  }

  RandomMatrix x;
  std::vector<double> theta = random_vector(120, 6), weights;
  double alpha = 8;
  ThreadTeam team{1};
  ScreeningBounds bounds;
};

TEST("screening: every column that violates its threshold is visited, after moves of any length") {
  for (const int kind : {0, 1, 2, 3}) {
    Screened all(kind % 2 == 1, kind >= 2);
    for (const double length : {0.0, 1e-3, 0.03, 0.3, 1.0}) {
      for (const double factor : {0.8, 1.0, 1.3}) {
        std::vector<double> point = random_vector(120, 9, length);
        for (std::size_t i = 0; i < point.size(); ++i) point[i] += factor * all.theta[i];
        const double alpha = 0.9 * all.alpha;
        const std::set<std::int64_t> visited = all.reached(point, alpha);
        std::set<std::int64_t> exactly;
        all.bounds.for_each_reached(0, 300, all.bounds.final_move_to(point, alpha),
                                    [&](std::int64_t k) { exactly.insert(k); });
        for (std::int64_t j = 0; j < 300; ++j) {
          if (all.slack(j, point, alpha) >= 0) continue;
          CHECK(visited.count(j) == 1);
          CHECK(exactly.count(j) == 1);
        }
      }
    }
  }
}

TEST("screening: short moves spare most columns, and multiples of the reference all that are within") {
  Screened all(false);
  std::vector<double> scaled = all.theta;
  for (double& v : scaled) v *= 0.9;
  std::int64_t n_within = 0;
  const std::set<std::int64_t> visited = all.reached(scaled, all.alpha);
  for (std::int64_t j = 0; j < 300; ++j) {
    const bool violated_before = all.slack(j, all.theta, all.alpha) < 0;
    n_within += !violated_before;
    CHECK_EQUAL(visited.count(j) == 1, violated_before);
  }
  CHECK(n_within > 150 && n_within < 300);
  std::vector<double> close = random_vector(120, 9, 1e-3);
  for (std::size_t i = 0; i < close.size(); ++i) close[i] += all.theta[i];
  CHECK(static_cast<std::int64_t>(all.reached(close, all.alpha).size()) < 300 - n_within + 20);
}

TEST("screening: updated bounds stay below the true slack over many moves") {
  Screened all(true);
  std::vector<double> point = all.theta;
  std::vector<bool> scanned(300);
  for (unsigned step = 0; step < 20; ++step) {
    const std::vector<double> move = random_vector(120, 30 + step, 0.02);
    for (std::size_t i = 0; i < point.size(); ++i) point[i] += move[i];
    const SlackMove slack_move = all.bounds.move_to(point, all.alpha, 0);
    all.bounds.set_reference(point, all.alpha);
    std::set<std::int64_t> visited;
    all.bounds.for_each_reached(0, 300, slack_move, true, [&](std::int64_t k, float left) {
      if (left <= 0) visited.insert(k);
    });
    for (std::int64_t j = 0; j < 300; ++j) {
      const double left = all.slack(j, point, all.alpha);
      if (visited.count(j) == 1) all.bounds.store(j, left < 0 ? -infinity : left);
      else CHECK(left >= 0);
    }
  }
}

TEST("candidates: scans find the violators of a plain pass over all columns") {
  const RandomMatrix x(150, 400, 0.05, 12);
  const std::vector<double> y = random_vector(150, 13), zero(400);
  CoreProblem problem{};
  problem.y = y.data();
  problem.penalty.alpha = 3;
  ThreadTeam team(2);
  Candidates<CscView<double>> candidates(x.view(), problem, infinity, team);
  std::vector<double> theta = y;
  ScanResult result;
  for (unsigned scan = 0; scan < 10; ++scan) {
    if (scan == 0) {
      candidates.begin(theta, zero.data(), false, 1000, result);
    } else {
      const std::vector<double> move = random_vector(150, 40 + scan, 0.1);
      for (std::size_t i = 0; i < theta.size(); ++i) theta[i] += move[i];
      candidates.scan(theta, zero.data(), 1000, result, [](std::int64_t, std::int32_t, double, double) {});
    }
    std::set<std::int32_t> found, expected;
    double largest = 0;
    for (const ScannedColumn& entry : result.proposals) {
      found.insert(entry.feature);
      CHECK(is_near(entry.grad, x.column_dot(entry.feature, theta), 1e-12));
    }
    for (std::int32_t j = 0; j < 400; ++j) {
      const double excess = std::fabs(x.column_dot(j, theta)) - 3;
      largest = std::max(largest, excess / 3);
      if (excess > 0) expected.insert(j);
    }
    CHECK(!expected.empty());
    CHECK(found == expected);
    CHECK_EQUAL(result.n_violators, static_cast<std::int64_t>(expected.size()));
    CHECK(is_near(result.largest_violation, largest, 1e-12));
  }
  CHECK(candidates.nonzeros_touched < 9 * x.view().n_nonzeros());  // screening spared some
}

TEST("scan result: only the best proposals are kept, all violators are counted") {
  ScanResult result;
  std::vector<double> scores;
  for (std::int32_t j = 0; j < 1000; ++j) {
    const double excess = 1 + (j * 37) % 1000;
    result.propose({j, j, 0, 1, excess}, 20);
    scores.push_back(excess * excess);
  }
  result.keep_best(20);
  std::sort(scores.rbegin(), scores.rend());
  CHECK_EQUAL(result.n_violators, 1000);
  CHECK_EQUAL(result.proposals.size(), 20U);
  for (const ScannedColumn& entry : result.proposals) CHECK(entry.score() >= scores[19]);
}

}  // namespace
}  // namespace blockgreedy
