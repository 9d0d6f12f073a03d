// Reads and writes of numbers that other threads change at the same time. Relaxed: which of several values is read is
// left open, but it is always one that was written, and no access is a data race.
#pragma once

#include <atomic>
#include <cstdint>

#include "math/core_problem.hpp"

namespace blockgreedy {

// Not std::atomic_ref, which takes no constants in C++20.
template <class T>
BLOCKGREEDY_INLINE T load_shared(const T& value) {
  T found;
  __atomic_load(&value, &found, __ATOMIC_RELAXED);
  return found;
}

template <class T>
BLOCKGREEDY_INLINE void store_shared(T& value, T to) {
  std::atomic_ref<T>(value).store(to, std::memory_order_relaxed);
}

BLOCKGREEDY_INLINE void add_shared(double& value, double term) {
  std::atomic_ref<double>(value).fetch_add(term, std::memory_order_relaxed);
}

// The weight itself belongs to the caller; the word of `support` holds bits of other features as well.
inline void set_shared_weight(State& state, std::int64_t j, double value) {
  state.w[j] = value;
  const std::uint64_t bit = std::uint64_t{1} << (j % 64);
  std::atomic_ref<std::uint64_t> word(state.support[j / 64]);
  if (value != 0) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

}  // namespace blockgreedy
