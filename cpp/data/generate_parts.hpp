// What the generators share: named random streams, a permutation in constant memory, small solvers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "base/threads.hpp"

namespace blockgreedy::generating {

// What a family of random streams is for: the same seed must not give two families the same numbers.
enum Purpose : std::uint64_t { shuffle_columns = 1, contents, true_model, noise, lengths, placement };

inline std::uint64_t derive(std::uint64_t seed, Purpose purpose) { return stream(seed, purpose).next(); }

inline double exponential(Random& random) { return -std::log(random.uniform()); }

inline double normal(Random& random) {  // Box and Muller
  const double radius = std::sqrt(2 * exponential(random));
  return radius * std::cos(6.283185307179586 * random.uniform());
}

// A pseudo-random permutation of 0..size-1 in constant memory: odd multiplications and right-shift xors are
// invertible on b-bit words; values beyond the end walk on along their cycle until they are back inside.
class Shuffle {
 public:
  Shuffle(std::int64_t size, std::uint64_t seed)
      : size_(static_cast<std::uint64_t>(size)), bits_(std::max(2, static_cast<int>(std::bit_width(size_ - 1)))) {
    Random random(seed);
    for (auto& round : rounds_) round = {random.next() | 1, random.next()};
  }

  std::int64_t operator()(std::int64_t value) const {
    const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
    auto x = static_cast<std::uint64_t>(value);
    do {
      for (const auto& round : rounds_) {
        x = (x * round.factor + round.shift) & mask;
        x ^= x >> ((bits_ + 1) / 2);
      }
    } while (x >= size_);
    return static_cast<std::int64_t>(x);
  }

 private:
  struct Round {
    std::uint64_t factor, shift;
  };
  std::uint64_t size_;
  int bits_;
  std::array<Round, 4> rounds_;
};

// Calls f(first, last) for ranges that cover 0..n. Their number depends on n alone, and one range is serial.
template <class F>
inline void for_ranges(ThreadTeam& team, std::int64_t n, std::int64_t shortest, F&& f) {
  const std::int64_t n_parts = std::clamp<std::int64_t>(n / shortest, 1, 256);
  team.for_each(n_parts, [&](std::int64_t part, int) { f(n * part / n_parts, n * (part + 1) / n_parts); });
}

// Rounds down or up by the fractions of k * golden ratio: sums of rounded values stay within a few units of
// the sum of the values, which independent rounding would miss by 1 % on small data.
inline std::int64_t spread_round(double value, std::int64_t k) {
  const double turn = static_cast<double>(k) * 0.6180339887498949;
  return static_cast<std::int64_t>(value + (turn - std::floor(turn)));
}

// The argument at which an increasing function reaches the target.
template <class F>
inline double solve_increasing(F&& f, double target, double low, double high) {
  for (int step = 0; step < 100 && high - low > 1e-9 * high; ++step) {
    const double mid = 0.5 * (low + high);
    (f(mid) < target ? low : high) = mid;
  }
  return high;
}

inline void accumulate_counts(std::int64_t* indptr, std::int64_t n) {
  indptr[0] = 0;
  for (std::int64_t k = 0; k < n; ++k) indptr[k + 1] += indptr[k];
}

struct TrueWeight {
  std::int64_t index;
  double weight;
};

// Ranks from `first` on, with density about scale / (scale + rank): every scale of frequency has its share.
template <class Sign>
inline std::vector<TrueWeight> draw_true_model(Random& random, std::int64_t first, std::int64_t last, double scale,
                                               Sign&& sign_of) {
  std::vector<TrueWeight> model;
  for (double rank = 0; rank < static_cast<double>(last - first);) {
    const auto index = first + static_cast<std::int64_t>(rank);
    const double sign = sign_of(index);  // drawn on its own: both factors take from the same stream
    model.push_back({index, sign * (0.5 + random.uniform())});
    rank += 1 + std::floor(exponential(random) * (1 + rank / scale));
  }
  return model;
}

using Counters = std::vector<std::atomic<std::uint32_t>>;

}  // namespace blockgreedy::generating
