#include "working_set/repeated_columns.hpp"

#include <array>
#include <set>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

// Columns given by their rows and values.
struct Columns {
  void add(const std::vector<std::int32_t>& rows, const std::vector<double>& values) {
    indices.insert(indices.end(), rows.begin(), rows.end());
    data.insert(data.end(), values.begin(), values.end());
    starts.push_back(static_cast<std::int64_t>(data.size()));
  }
  CscView<double> view() const {
    return {100, static_cast<std::int64_t>(starts.size()) - 1, starts.data(), true, indices.data(), data.data()};
  }
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> indices;
  std::vector<double> data;
};

TEST("repeated columns: multiples are recognised exactly") {
  Columns x;
  x.add({1, 5, 9}, {0.1, 0.7, -0.3});
  x.add({1, 5, 9}, {-0.2, -1.4, 0.6});
  x.add({1, 5, 9}, {0.1, 0.7, std::nextafter(-0.3, 0.0)});
  x.add({1, 5, 8}, {0.1, 0.7, -0.3});
  x.add({1, 5}, {0.1, 0.7});
  x.add({3}, {0.25});
  x.add({3}, {-0.7});
  Penalty penalty;
  penalty.alpha = 1;
  const RepeatedColumns repeated(x.view(), penalty);
  CHECK(repeated.multiple_of(1, 0) == -2.0);
  CHECK(repeated.multiple_of(0, 1) == -0.5);
  for (const std::int64_t j : {2, 3, 4, 5}) CHECK(repeated.multiple_of(j, 0) == 0.0);
  CHECK(repeated.multiple_of(6, 5) == -0.7 / 0.25);
}

TEST("repeated columns: products that a float64 cannot hold say nothing of multiples") {
  for (const double tiny : {5e-324, 1e-320, 1e-310, 1e-300, 1e-160, 1e-130}) {
    Columns x;
    x.add({1, 5, 9}, {tiny, 0.7, -0.3});
    x.add({1, 5, 9}, {tiny, 1.3, 0.9});  // unrelated
    x.add({1, 5, 9}, {2 * tiny, 1.4, -0.6});
    Penalty penalty;
    penalty.alpha = 1;
    RepeatedColumns repeated(x.view(), penalty);
    CHECK(repeated.multiple_of(1, 0) == 0.0);
    CHECK(!repeated.add(0, false) && !repeated.add(1, false));
    CHECK(repeated.multiple_of(2, 0) == (tiny == 1e-130 ? 2.0 : 0.0));
  }
  Columns single;
  for (const double value : {1e-310, 0.7, 1e200, 1e-200}) single.add({3}, {value});
  Penalty penalty;
  penalty.alpha = 1;
  const RepeatedColumns repeated(single.view(), penalty);
  CHECK(repeated.multiple_of(0, 1) == 0.0);  // a ratio without all of its digits
  CHECK(repeated.multiple_of(2, 3) == 0.0);  // and one that is no number
}

TEST("repeated columns: only a column with the lowest penalty per unit and no bounds of its own replaces another") {
  Columns x;
  for (const double value : {2.0, 1.0, -3.0, 2.0}) x.add({4, 7}, {value, 3 * value});
  std::vector<double> weights(4, 1.0), lower(4, -infinity), upper(4, infinity);
  Penalty penalty;
  penalty.alpha = 0.5;
  penalty.weights = weights.data();
  penalty.lower = lower.data();
  penalty.upper = upper.data();
  RepeatedColumns repeated(x.view(), penalty);
  CHECK(!repeated.add(0, false));
  CHECK(repeated.add(1, false));   // half as large, for the same penalty
  CHECK(!repeated.add(2, false));  // cheaper per unit than the first
  CHECK(repeated.add(3, false));
  CHECK(repeated.is_alias(1) && repeated.is_alias(3) && !repeated.is_alias(0) && !repeated.is_alias(2));
  CHECK(repeated.n_aliases() == 2);

  repeated.clear();
  CHECK(!repeated.is_registered(0));
  weights[1] = 0.4;  // now cheaper than the first
  CHECK(!repeated.add(0, false) && !repeated.add(1, false));

  repeated.clear();
  weights[1] = 1.0;
  lower[0] = 0;  // cannot take a negative weight of the others
  CHECK(!repeated.add(0, false) && !repeated.add(1, false));
  lower[1] = 0;
  repeated.clear();
  CHECK(!repeated.add(0, false) && repeated.add(1, false));
  CHECK(!repeated.add(2, false));  // of the other sign

  repeated.clear();
  lower = {-infinity, -1, -infinity, -infinity};  // what is bounded itself can be replaced
  CHECK(!repeated.add(0, false) && repeated.add(1, false));
  CHECK(!repeated.add(3, true));  // a weight stays where it is

  penalty.l2 = 0.1;  // spreads weights over copies
  repeated.clear();
  CHECK(!repeated.add(0, false) && !repeated.add(1, false) && !repeated.add(3, false));
}

TEST("repeated columns: many at once are registered as one by one, whatever the number of threads") {
  const testing::RandomMatrix random(100, 60, 0.05, 3);
  Columns x;
  for (std::int64_t k = 0; k < 3000; ++k) {
    const std::int64_t j = (k * k + k / 7) % 60;
    const auto first = random.starts[j], last = random.starts[j + 1];
    std::vector<double> values(random.data.begin() + first, random.data.begin() + last);
    for (double& value : values) value *= k % 3 == 0 ? 1.0 : k % 3 == 1 ? -1.0 : 0.5;
    x.add({random.indices.begin() + first, random.indices.begin() + last}, values);
  }
  Penalty penalty;
  penalty.alpha = 1;
  RepeatedColumns one_by_one(x.view(), penalty);
  std::set<std::int64_t> expected;
  for (std::int32_t j = 0; j < 3000; ++j) {
    if (one_by_one.add(j, false)) expected.insert(j);
  }
  CHECK(expected.size() > 2800);
  CHECK(one_by_one.are_many());
  for (const int n_threads : {1, 2, 5}) {
    ThreadTeam team(n_threads);
    RepeatedColumns<CscView<double>> at_once(x.view(), penalty);
    std::array<RepeatedColumns<CscView<double>>::ByShard, 4> parts;
    for (std::int32_t j = 0; j < 3000; ++j) at_once.collect(j, 3000 - j, parts[static_cast<std::size_t>(j) / 750]);
    std::vector<char> found(3001);
    at_once.add_all(
        4, [&](std::int64_t part) -> auto& { return parts[static_cast<std::size_t>(part)]; },
        [&](std::int64_t position) { found[static_cast<std::size_t>(position)] = 1; }, team);
    for (std::int64_t j = 0; j < 3000; ++j) {
      CHECK(at_once.is_alias(static_cast<std::int32_t>(j)) == expected.contains(j));
      CHECK((found[static_cast<std::size_t>(3000 - j)] == 1) == expected.contains(j));
    }
  }
}

TEST("repeated columns: weights of a start move to one column") {
  Columns x;
  for (const double value : {2.0, 1.0, -2.0, 5.0}) x.add({4, 7}, {value, 3 * value});
  x.add({4, 8}, {1.0, 3.0});
  Penalty penalty;
  penalty.alpha = 1;
  RepeatedColumns repeated(x.view(), penalty);
  std::vector<double> w{1.0, 2.0, 0.5, 0.0, 7.0};
  repeated.merge_weights({0, 1, 2, 4}, w.data());
  CHECK((w == std::vector<double>{1.5, 0.0, 0.0, 0.0, 7.0}));
  CHECK(repeated.n_aliases() == 0);
}

}  // namespace
}  // namespace blockgreedy
