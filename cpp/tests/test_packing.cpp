#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "partitions/packing.hpp"
#include "tests/check.hpp"

namespace blockgreedy {
namespace {

std::vector<Load> random_clusters(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Load> clusters(count);
  Load total;
  for (Load& load : clusters) {
    load = {static_cast<float>(random.uniform()), static_cast<float>(random.uniform())};
    total.add(load);
  }
  for (Load& load : clusters) load = {load.work / total.work, load.mass / total.mass};
  return clusters;
}

// The largest work or mass of any block, as a multiple of the mean.
float unevenness(const std::vector<Load>& clusters, const std::vector<std::int32_t>& block_of,
                 std::int64_t n_blocks) {
  std::vector<Load> blocks(n_blocks);
  for (std::size_t k = 0; k < clusters.size(); ++k) blocks[block_of[k]].add(clusters[k]);
  float largest = 0;
  for (const Load& block : blocks) largest = std::max({largest, block.work, block.mass});
  return largest * static_cast<float>(n_blocks);
}

TEST("packing gives every cluster a block, and even blocks") {
  for (const std::int64_t n_blocks : {1, 2, 3, 16, 37}) {
    const auto clusters = random_clusters(2000, static_cast<std::uint64_t>(n_blocks));
    const auto block_of = Packing(n_blocks).place(clusters);
    CHECK_EQUAL(block_of.size(), clusters.size());
    for (const std::int32_t b : block_of) CHECK(b >= 0 && b < n_blocks);
    CHECK(unevenness(clusters, block_of, n_blocks) < 1.1F);
  }
}

TEST("packing by heap, for more than 4096 blocks, is even in the larger load") {
  const std::int64_t n_blocks = 5000;
  const auto clusters = random_clusters(100'000, 3);
  const auto block_of = Packing(n_blocks).place(clusters);
  CHECK(unevenness(clusters, block_of, n_blocks) < 1.5F);
}

TEST("equal clusters go one to each block") {
  const std::vector<Load> clusters(8, Load{0.125F, 0.125F});
  auto block_of = Packing(8).place(clusters);
  std::sort(block_of.begin(), block_of.end());
  for (std::size_t b = 0; b < block_of.size(); ++b) CHECK_EQUAL(block_of[b], static_cast<std::int32_t>(b));
}

TEST("clusters without load are packed too") {
  const auto block_of = Packing(4).place(std::vector<Load>(10));
  for (const std::int32_t b : block_of) CHECK(b >= 0 && b < 4);
}

}  // namespace
}  // namespace blockgreedy
