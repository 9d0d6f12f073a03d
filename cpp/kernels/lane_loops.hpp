// Products of sparse columns with eight vectors at once, which stand side by side by row ("lanes"): an entry of a
// column reads one cache line for all of them, and takes about as long as for one. Part of the per-instruction-set
// text: see kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"

namespace blockgreedy {
namespace {

using EightFloats = float __attribute__((vector_size(32)));

// Loads and stores without alignment, and without passing vectors between functions.
#define BLOCKGREEDY_LOAD(name, from) \
  EightFloats name;                  \
  __builtin_memcpy(&name, (from), sizeof(name))

template <class T>
void lane_dot_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* v, float* out) {
  EightFloats even{}, odd{};
  std::int64_t k = 0;
  for (; k + 2 <= n; k += 2) {
    BLOCKGREEDY_LOAD(a, v + 8 * std::int64_t{at[k]});
    BLOCKGREEDY_LOAD(b, v + 8 * std::int64_t{at[k + 1]});
    even += static_cast<float>(x[k]) * a;
    odd += static_cast<float>(x[k + 1]) * b;
  }
  if (k < n) {
    BLOCKGREEDY_LOAD(a, v + 8 * std::int64_t{at[k]});
    even += static_cast<float>(x[k]) * a;
  }
  even += odd;
  __builtin_memcpy(out, &even, sizeof(even));
}

template <class T>
void lane_weighted_dot_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* h, const float* v,
                            float* out) {
  EightFloats even{}, odd{};
  std::int64_t k = 0;
  for (; k + 2 <= n; k += 2) {
    BLOCKGREEDY_LOAD(a, v + 8 * std::int64_t{at[k]});
    BLOCKGREEDY_LOAD(b, v + 8 * std::int64_t{at[k + 1]});
    BLOCKGREEDY_LOAD(g, h + 8 * std::int64_t{at[k]});
    BLOCKGREEDY_LOAD(i, h + 8 * std::int64_t{at[k + 1]});
    even += (static_cast<float>(x[k]) * g) * a;
    odd += (static_cast<float>(x[k + 1]) * i) * b;
  }
  if (k < n) {
    BLOCKGREEDY_LOAD(a, v + 8 * std::int64_t{at[k]});
    BLOCKGREEDY_LOAD(g, h + 8 * std::int64_t{at[k]});
    even += (static_cast<float>(x[k]) * g) * a;
  }
  even += odd;
  __builtin_memcpy(out, &even, sizeof(even));
}

template <class T>
void lane_squares_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* h, float* out) {
  EightFloats sum{};
  for (std::int64_t k = 0; k < n; ++k) {
    BLOCKGREEDY_LOAD(a, h + 8 * std::int64_t{at[k]});
    const auto value = static_cast<float>(x[k]);
    sum += (value * value) * a;
  }
  __builtin_memcpy(out, &sum, sizeof(sum));
}

template <class T>
void lane_axpy_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* steps, float* v) {
  BLOCKGREEDY_LOAD(step, steps);
  for (std::int64_t k = 0; k < n; ++k) {
    float* to = v + 8 * std::int64_t{at[k]};
    BLOCKGREEDY_LOAD(a, to);
    a += static_cast<float>(x[k]) * step;
    __builtin_memcpy(to, &a, sizeof(a));
  }
}

#undef BLOCKGREEDY_LOAD

}  // namespace
}  // namespace blockgreedy
