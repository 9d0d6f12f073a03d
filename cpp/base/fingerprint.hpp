// Fingerprints of sparse rows, which passes over them take on their way: what was checked once must not have changed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace blockgreedy {

// Of numbers, mixed in their order.
class Fingerprint {
 public:
  explicit Fingerprint(std::uint64_t seed = 0) : seed_(seed) {}

  template <class Number>
  void add(const Number* numbers, std::int64_t count) {
    kernels().fingerprint(reinterpret_cast<const std::uint32_t*>(numbers),
                          count * static_cast<std::int64_t>(sizeof(Number) / 4), lanes_.data());
  }

  std::uint64_t value() const {
    std::uint64_t hash = seed_;
    for (const std::uint32_t lane : lanes_) {
      hash = (hash ^ lane) * 0x9E3779B97F4A7C15U;  // 2^64/φ, odd
      hash ^= hash >> 32;
    }
    return hash;
  }

 private:
  std::uint64_t seed_;
  std::array<std::uint32_t, n_fingerprint_lanes> lanes_{};
};

template <class Number>
std::uint64_t fingerprint_of(const Number* numbers, std::int64_t count) {
  Fingerprint found;
  found.add(numbers, count);
  return found.value();
}

// The fingerprint of the entries that a pass over rows comes by: values and columns, while they lie in the cache.
// They are hashed in blocks wherever rows begin and end, and those of all blocks add up, so that passes may share the
// rows as they like.
template <class Index, class T>
class PassedEntries {
 public:
  // Of the blocks that begin at this entry or after it.
  PassedEntries(const Index* indices, const T* data, std::int64_t n_entries, std::int64_t first)
      : indices_(indices), data_(data), n_entries_(n_entries), next_((first + block_size - 1) / block_size) {}

  // To be called before entries up to `end` are used.
  void come_to(std::int64_t end) {
    for (; next_ * block_size < end; ++next_) {
      const std::int64_t begin = next_ * block_size, count = std::min(block_size, n_entries_ - begin);
      Fingerprint block(static_cast<std::uint64_t>(next_));
      block.add(data_ + begin, count);
      block.add(indices_ + begin, count);
      sum_ += block.value();
    }
  }

  std::uint64_t sum() const { return sum_; }

 private:
  static constexpr std::int64_t block_size = 4096;

  const Index* indices_;
  const T* data_;
  std::int64_t n_entries_, next_;
  std::uint64_t sum_ = 0;
};

}  // namespace blockgreedy
