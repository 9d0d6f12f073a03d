// Features grouped by block. Costs as little memory as the partition allows: nothing for contiguous blocks,
// one int32 per feature otherwise, and that only if blocks are ever walked (keep_order).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "partitions/partition.hpp"

namespace blockgreedy {

class Blocks {
 public:
  Blocks(const std::int32_t* block_of, std::int64_t n_features, std::int64_t n_blocks, bool keep_order)
      : n_features_(n_features), n_blocks_(n_blocks) {
    if (is_contiguous_and_even(block_of)) return;
    std::vector<std::int64_t> starts(n_blocks + 1);
    bool ascending = true;
    for (std::int64_t j = 0; j < n_features; ++j) {
      ++starts[block_of[j] + 1];
      ascending &= j == 0 || block_of[j] >= block_of[j - 1];
    }
    bool even = true;
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      starts[b + 1] += starts[b];
      even &= starts[b] == block_start(n_features, n_blocks, b);
    }
    if (!even) starts_ = starts;
    if (ascending || !keep_order) return;
    order_.resize(n_features);
    for (std::int64_t j = 0; j < n_features; ++j) {
      order_[starts[block_of[j]]++] = static_cast<std::int32_t>(j);
    }
  }

  std::int64_t size() const { return n_blocks_; }
  // Features of block b stand at positions start(b) .. start(b + 1), ascending.
  std::int64_t start(std::int64_t b) const {
    return starts_.empty() ? block_start(n_features_, n_blocks_, b) : starts_[b];
  }
  std::int64_t feature(std::int64_t position) const { return order_.empty() ? position : order_[position]; }
  // For the kernel dots: null when positions are features.
  const std::int32_t* order() const { return order_.empty() ? nullptr : order_.data(); }

 private:
  bool is_contiguous_and_even(const std::int32_t* block_of) const {
    for (std::int64_t b = 0; b < n_blocks_; ++b) {
      for (std::int64_t j = block_start(n_features_, n_blocks_, b); j < block_start(n_features_, n_blocks_, b + 1);
           ++j) {
        if (block_of[j] != b) return false;
      }
    }
    return true;
  }

  std::int64_t n_features_, n_blocks_;
  std::vector<std::int32_t> order_;
  std::vector<std::int64_t> starts_;
};

}  // namespace blockgreedy
