// Products of many columns at once, in float32. Part of the per-instruction-set text: see kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/registers.hpp"

namespace blockgreedy {
namespace {

template <class T>
void block_dot_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* block, float* out) {
  constexpr std::int64_t n_registers = 16 / n_lanes;
  Lanes even[n_registers] = {}, odd[n_registers] = {};
  const auto add = [&](std::int64_t k, Lanes* sums) {
    const float z = static_cast<float>(x[k]);
    const float* row = block + 16 * static_cast<std::int64_t>(at[k]);
    for (std::int64_t r = 0; r < n_registers; ++r) sums[r] += z * load_lanes(row + r * n_lanes);
  };
  std::int64_t k = 0;
  for (; k + 2 <= n; k += 2) {
    add(k, even);
    add(k + 1, odd);
  }
  if (k < n) add(k, even);
  for (std::int64_t r = 0; r < n_registers; ++r) {
    even[r] += odd[r];
    __builtin_memcpy(out + r * n_lanes, &even[r], sizeof(Lanes));
  }
}

// A tile of tile_height × two registers at a time.
void float_gram_loop(const float* rows, std::int64_t n_rows, std::int64_t stride, std::int64_t panel_stride,
                     std::int64_t first, std::int64_t width, std::int64_t gram_stride, float* gram) {
  first = first / tile_height * tile_height;
  for (std::int64_t b = 0; b < width; b += 2 * n_lanes) {  // these columns stay in the cache
    for (std::int64_t a = b > first ? b : first; a < width; a += tile_height) {
      Lanes left[tile_height] = {}, right[tile_height] = {};
      const float *u = rows + b / 32 * panel_stride + b % 32, *v = rows + a / 32 * panel_stride + a % 32;
      for (std::int64_t i = 0; i < n_rows; ++i, u += stride, v += stride) {
        const Lanes first_lanes = load_lanes(u), second_lanes = load_lanes(u + n_lanes);
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < tile_height; ++k) {
          left[k] += v[k] * first_lanes;
          right[k] += v[k] * second_lanes;
        }
      }
      for (std::int64_t k = 0; k < tile_height; ++k) {
        add_lanes(gram + (a + k) * gram_stride + b, left[k]);
        add_lanes(gram + (a + k) * gram_stride + b + n_lanes, right[k]);
      }
    }
  }
}

}  // namespace
}  // namespace blockgreedy
