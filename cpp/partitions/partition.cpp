#include "partitions/partition.hpp"

#include <utility>

#include "base/random.hpp"

namespace blockgreedy {

std::vector<std::int32_t> random_blocks(std::int64_t n_features, std::int64_t n_blocks, std::uint64_t seed) {
  const std::vector<std::int32_t> order = random_permutation(n_features, seed);
  std::vector<std::int32_t> block_of(order.size());
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    for (std::int64_t at = block_start(n_features, n_blocks, b); at < block_start(n_features, n_blocks, b + 1);
         ++at) {
      block_of[order[at]] = static_cast<std::int32_t>(b);
    }
  }
  return block_of;
}

std::vector<std::int64_t> block_sizes(const std::int32_t* block_of, std::int64_t n_features, std::int64_t n_blocks) {
  std::vector<std::int64_t> sizes(n_blocks);
  const auto n = static_cast<std::uint32_t>(n_blocks);
  for (std::int64_t j = 0; j < n_features; ++j) {
    const auto b = static_cast<std::uint32_t>(block_of[j]);  // negative ones become large
    if (b < n) ++sizes[b];
  }
  return sizes;
}

std::vector<std::int32_t> random_permutation(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int32_t> order(n);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  Random random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace blockgreedy
