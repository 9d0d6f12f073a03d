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

template <class I, class T>
void lane_dot_loop(const I* at, const T* x, std::int64_t n, const float* v, float* out) {
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

template <class I, class T>
void lane_axpy_loop(const I* at, const T* x, std::int64_t n, const float* steps, float* v) {
  BLOCKGREEDY_LOAD(step, steps);
  for (std::int64_t k = 0; k < n; ++k) {
    float* to = v + 8 * std::int64_t{at[k]};
    BLOCKGREEDY_LOAD(a, to);
    a += static_cast<float>(x[k]) * step;
    __builtin_memcpy(to, &a, sizeof(a));
  }
}

inline void lane_combine_loop(const std::uint16_t* at, const float* x, const std::int64_t* starts, std::int64_t m,
                              const float* p, float* v) {
  for (std::int64_t column = 0; column < m; ++column) {
    const float* own = p + 8 * column;
    bool any = false;
    for (int f = 0; f < 8; ++f) any = any || own[f] != 0;
    if (any) lane_axpy_loop(at + starts[column], x + starts[column], starts[column + 1] - starts[column], own, v);
  }
}

inline void lane_products_loop(const std::uint16_t* at, const float* x, const std::int64_t* starts, std::int64_t m,
                               const float* v, float* out) {
  for (std::int64_t column = 0; column < m; ++column)
    lane_dot_loop(at + starts[column], x + starts[column], starts[column + 1] - starts[column], v, out + 8 * column);
}

#undef BLOCKGREEDY_LOAD

}  // namespace
}  // namespace blockgreedy
