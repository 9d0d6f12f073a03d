// The one random generator of the project: SplitMix64, written again in src/blockgreedy/base/random.py so that
// a seed gives the same selections in C++ and in NumPy.
//
//   state += 0x9e3779b97f4a7c15;  z = mix(state)          one 64-bit word
//   below(m): Lemire's multiply-shift with rejection       uniform on 0..m-1, exactly
//   draw_subset(m, k): Floyd's algorithm, then sorted      a uniform k-subset of 0..m-1 in O(k)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace blockgreedy {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Uniform on (0, 1]: never 0, so that log() of it is finite.
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1.0p-53; }

  std::uint64_t below(std::uint64_t m) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(next()) * m;
    if (static_cast<std::uint64_t>(product) < m) {
      const std::uint64_t reject_below = (0 - m) % m;
      while (static_cast<std::uint64_t>(product) < reject_below) product = static_cast<Wide>(next()) * m;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint64_t state_;
};

// A stream of its own for item `index` of a seeded family (columns, rows): order of execution does not matter.
inline Random stream(std::uint64_t seed, std::uint64_t index) {
  return Random(Random(seed ^ (index * 0xd1342543de82ef95ULL)).next());
}

// Draws k of m without replacement, ascending, in O(k) time and memory whatever m is.
class SubsetSampler {
 public:
  void draw(Random& random, std::int64_t m, std::int64_t k, std::vector<std::int32_t>& out) {
    out.resize(k);
    if (k == 1) {
      out[0] = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(m)));
      return;
    }
    reset_table(k);
    std::size_t filled = 0;
    for (std::int64_t last = m - k; last < m; ++last) {
      auto pick = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(last) + 1));
      if (!insert(pick)) {
        pick = static_cast<std::int32_t>(last);
        insert(pick);
      }
      out[filled++] = pick;
    }
    sort(out, m);
  }

 private:
  void reset_table(std::int64_t k) {
    std::size_t size = 4;
    while (size < 2 * static_cast<std::size_t>(k)) size *= 2;
    table_.assign(size, -1);
  }

  bool insert(std::int32_t value) {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = (static_cast<std::uint32_t>(value) * 0x9e3779b9U) & mask;
    while (table_[slot] >= 0) {
      if (table_[slot] == value) return false;
      slot = (slot + 1) & mask;
    }
    table_[slot] = value;
    return true;
  }

  // Radix sort keeps large draws linear; small ones are faster by comparison.
  void sort(std::vector<std::int32_t>& values, std::int64_t m) {
    if (values.size() < 512) {
      std::sort(values.begin(), values.end());
      return;
    }
    constexpr int digit_bits = 11;
    scratch_.resize(values.size());
    for (int shift = 0; (static_cast<std::int64_t>(1) << shift) < m; shift += digit_bits) {
      std::array<std::size_t, (1U << digit_bits) + 1> start{};
      const auto digit = [&](std::int32_t v) {
        return (static_cast<std::uint32_t>(v) >> shift) & ((1U << digit_bits) - 1);
      };
      for (std::int32_t v : values) ++start[digit(v) + 1];
      for (std::size_t d = 1; d < start.size(); ++d) start[d] += start[d - 1];
      for (std::int32_t v : values) scratch_[start[digit(v)]++] = v;
      values.swap(scratch_);
    }
  }

  std::vector<std::int32_t> table_, scratch_;
};

}  // namespace blockgreedy
