// Loops over plain arrays: norms, sums, extremes, checks. Part of the per-instruction-set text: see kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/registers.hpp"

namespace blockgreedy {
namespace {

template <class T>
double squared_norm_loop(const T* x, std::int64_t n) {
  Doubles sums[4] = {};  // an addition to a single one would wait for the one before
  std::int64_t i = 0;
  for (; i + 4 * n_doubles <= n; i += 4 * n_doubles) {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      const Doubles v = load_doubles(x + i + k * n_doubles);
      sums[k] += v * v;
    }
  }
  double sum = add_up_doubles((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

template <class T>
double value_sum_loop(const T* x, std::int64_t n) {
  Doubles sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * n_doubles <= n; i += 4 * n_doubles) {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) sums[k] += load_doubles(x + i + k * n_doubles);
  }
  double sum = add_up_doubles((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

double sum_loop(const double* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template <class T>
T largest_magnitude_loop(const T* x, std::int64_t n) {
  T largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) {
    const T size = x[i] < 0 ? -x[i] : x[i];
    largest = size > largest ? size : largest;
  }
  return largest;
}

// x·0 is 0 exactly if x is finite, and adding it up needs no branch.
template <class T>
bool all_finite_loop(const T* x, std::int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < n; ++k) sum += x[k] * T(0);
  return sum == 0;
}

BLOCKGREEDY_INLINE std::uint32_t mixed(std::uint32_t hash, std::uint32_t word) {
  constexpr std::uint32_t factor = 0x9E3779B1U;  // 2^32/φ, odd
  const std::uint32_t both = hash ^ word;
  // Turned first: a multiplication moves bits up only, so that the signs of two words would cancel.
  return (both << 13 | both >> 19) * factor;
}

// A hash of words in their order. Many lanes, since a multiplication has to wait for the one before it.
void fingerprint_loop(const std::uint32_t* words, std::int64_t n, std::uint32_t* lanes) {
  std::uint32_t own[n_fingerprint_lanes];
  __builtin_memcpy(own, lanes, sizeof(own));
  std::int64_t k = 0;
  for (; k + n_fingerprint_lanes <= n; k += n_fingerprint_lanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < n_fingerprint_lanes; ++lane) own[lane] = mixed(own[lane], words[k + lane]);
  }
  for (std::int64_t lane = 0; k < n; ++k, ++lane) own[lane] = mixed(own[lane], words[k]);
  __builtin_memcpy(lanes, own, sizeof(own));
}

RowNumbers row_numbers_loop(const std::int32_t* rows, std::int64_t n) {
  RowNumbers found{rows[0], rows[0], 0};
  for (std::int64_t first = 1; first < n; first += 1 << 14) {
    const std::int64_t last = first + (1 << 14) < n ? first + (1 << 14) : n;
    std::int32_t lowest = found.lowest, highest = found.highest;
    int falls = 0;
#pragma omp simd reduction(min : lowest) reduction(max : highest) reduction(+ : falls)
    for (std::int64_t k = first; k < last; ++k) {
      lowest = rows[k] < lowest ? rows[k] : lowest;
      highest = rows[k] > highest ? rows[k] : highest;
      falls += rows[k] <= rows[k - 1];
    }
    found = {lowest, highest, found.falls + falls};
  }
  return found;
}

template <class T>
double fold_loop(const T* x, std::int64_t n, const double* signs, double* sums) {
  double total = 0;
  for (std::int64_t from = 0; from < n; from += 256) {
    const std::int64_t count = n - from < 256 ? n - from : 256;
#pragma omp simd reduction(+ : total)
    for (std::int64_t k = 0; k < count; ++k) {
      const double v = static_cast<double>(x[from + k]);
      sums[k] += signs[from + k] * v;
      total += v;
    }
  }
  return total;
}

}  // namespace
}  // namespace blockgreedy
