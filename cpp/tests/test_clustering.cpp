#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/threads.hpp"
#include "partitions/partition.hpp"
#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

std::vector<std::int32_t> cluster(const Matrix& matrix, std::int64_t n_blocks, double max_load, int n_threads) {
  ThreadTeam team(n_threads);
  return cluster_features(matrix, n_blocks, max_load, team);
}

TEST("a limit on the load of clusters is kept within a column, and leaves no block empty") {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const testing::RandomMatrix data(60, 500, 0.2, seed);
    const CscView<double> view = data.view();
    for (const std::int64_t n_blocks : {1, 2, 7, 60, 500}) {
      for (const double max_load : {1.0, 1.2, 3.0}) {
        const auto block_of = cluster(view, n_blocks, max_load, 1);
        std::vector<std::int64_t> loads(n_blocks), sizes(n_blocks);
        std::int64_t heaviest = 0;
        for (std::int64_t j = 0; j < view.n_cols; ++j) {
          loads[block_of[j]] += view.count(j);
          ++sizes[block_of[j]];
          heaviest = std::max(heaviest, view.count(j));
        }
        CHECK(*std::min_element(sizes.begin(), sizes.end()) >= 1);
        const double mean = static_cast<double>(view.n_nonzeros()) / static_cast<double>(n_blocks);
        const double most = std::max(max_load * mean, mean + static_cast<double>(heaviest));
        CHECK(static_cast<double>(*std::max_element(loads.begin(), loads.end())) <= most * (1 + 1e-9));
      }
    }
  }
}

TEST("clusters are the same for any number of threads, with and without a limit") {
  const testing::RandomMatrix data(300, 2000, 0.2, 4);
  CHECK(data.view().n_nonzeros() > 3 * min_parallel_work);  // several parts
  for (const double max_load : {1.0, 1.5, no_limit}) {
    const auto alone = cluster(data.view(), 16, max_load, 1);
    for (const int n_threads : {2, 5}) CHECK(cluster(data.view(), 16, max_load, n_threads) == alone);
  }
}

TEST("a limit of all nonzeros changes no cluster") {
  const testing::RandomMatrix data(80, 400, 0.1, 5);
  for (const std::int64_t n_blocks : {2, 9, 32}) {
    CHECK(cluster(data.view(), n_blocks, static_cast<double>(n_blocks), 2) ==
          cluster(data.view(), n_blocks, no_limit, 2));
  }
}

}  // namespace
}  // namespace blockgreedy
