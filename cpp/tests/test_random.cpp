#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "tests/check.hpp"

namespace blockgreedy {
namespace {

TEST("the generator is SplitMix64") {
  Random random(1234567);  // the published reference values, as in tests/test_random.py
  CHECK_EQUAL(random.next(), 6457827717110365317U);
  CHECK_EQUAL(random.next(), 3203168211198807973U);
  CHECK_EQUAL(random.next(), 9817491932198370423U);
}

TEST("uniform numbers lie in (0, 1]") {
  Random random(0);
  double sum = 0;
  for (int k = 0; k < 10000; ++k) {
    const double u = random.uniform();
    CHECK(u > 0 && u <= 1);
    sum += u;
  }
  CHECK(sum > 4850 && sum < 5150);
}

TEST("below stays below") {
  Random random(5);
  for (const std::uint64_t m : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    for (int k = 0; k < 1000; ++k) CHECK(random.below(m) < m);
  }
}

TEST("streams of different items differ") {
  CHECK(stream(1, 2).next() != stream(1, 3).next());
  CHECK(stream(1, 2).next() != stream(2, 2).next());
  CHECK_EQUAL(stream(1, 2).next(), stream(1, 2).next());
}

TEST("subsets are ascending, distinct and in range") {
  SubsetSampler sampler;
  Random random(7);
  std::vector<std::int32_t> subset;
  for (const std::int64_t m : {1, 2, 7, 1000, 3'000'000}) {
    for (const std::int64_t k : {std::int64_t{1}, m / 2, m}) {
      if (k < 1 || k > 2000) continue;  // 2000 takes the radix sort
      sampler.draw(random, m, k, subset);
      CHECK_EQUAL(static_cast<std::int64_t>(subset.size()), k);
      CHECK(std::adjacent_find(subset.begin(), subset.end(), std::greater_equal<>()) == subset.end());
      CHECK(subset.front() >= 0 && subset.back() < m);
    }
  }
}

}  // namespace
}  // namespace blockgreedy
