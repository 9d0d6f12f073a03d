// Products and sums of a few dense float32 columns at once, as column_tiles.hpp needs them. Part of the
// per-instruction-set text: see kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/registers.hpp"

namespace blockgreedy {
namespace {

constexpr std::int64_t tile_run = 4096;  // rows that are added up in float32, before float64 takes over

// By halves: one addition after the other would take as long as a run of products.
BLOCKGREEDY_INLINE double add_up_lanes(Lanes v) {
#if defined(__AVX2__)
  float lanes[n_lanes];
  __builtin_memcpy(lanes, &v, sizeof v);
  __m256 eight = _mm256_loadu_ps(lanes);
  if constexpr (n_lanes == 16) eight = _mm256_add_ps(eight, _mm256_loadu_ps(lanes + n_lanes - 8));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return static_cast<double>(_mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))));
#else
  return static_cast<double>((v[0] + v[1]) + (v[2] + v[3]));
#endif
}

template <std::int64_t width>
BLOCKGREEDY_INLINE void tile_dots_together(const float* const* z, std::int64_t n, const float* v, double* out) {
  constexpr std::int64_t n_sums = width == 1 ? 4 : 1;  // enough additions that do not wait for each other
  for (std::int64_t k = 0; k < width; ++k) out[k] = 0;
  for (std::int64_t first = 0; first < n; first += tile_run) {
    const std::int64_t end = first + tile_run < n ? first + tile_run : n;
    Lanes sums[width][n_sums] = {};
    std::int64_t i = first;
    for (; i + n_sums * n_lanes <= end; i += n_sums * n_lanes) {
#pragma GCC unroll 4
      for (std::int64_t s = 0; s < n_sums; ++s) {
        const Lanes own = load_lanes(v + i + s * n_lanes);
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < width; ++k) sums[k][s] += own * load_lanes(z[k] + i + s * n_lanes);
      }
    }
    for (std::int64_t k = 0; k < width; ++k) {
      for (std::int64_t s = 1; s < n_sums; ++s) sums[k][0] += sums[k][s];
      out[k] += add_up_lanes(sums[k][0]);
      for (std::int64_t rest = i; rest < end; ++rest) out[k] += static_cast<double>(z[k][rest] * v[rest]);
    }
  }
}

void tile_dots_loop(const float* const* z, std::int64_t count, std::int64_t n, const float* v, double* out) {
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8) tile_dots_together<8>(z + k, n, v, out + k);
  for (; k + 4 <= count; k += 4) tile_dots_together<4>(z + k, n, v, out + k);
  for (; k < count; ++k) tile_dots_together<1>(z + k, n, v, out + k);
}

template <std::int64_t width>
BLOCKGREEDY_INLINE void tile_axpy_together(const float* const* z, const float* steps, std::int64_t n, float* v) {
  std::int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    Lanes even = load_lanes(v + i), odd = {};
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < width; ++k) (k % 2 == 0 ? even : odd) += steps[k] * load_lanes(z[k] + i);
    even += odd;
    __builtin_memcpy(v + i, &even, sizeof even);
  }
  for (; i < n; ++i) {
    for (std::int64_t k = 0; k < width; ++k) v[i] += steps[k] * z[k][i];
  }
}

void tile_axpy_loop(const float* const* z, const float* steps, std::int64_t count, std::int64_t n, float* v) {
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8) tile_axpy_together<8>(z + k, steps + k, n, v);
  for (; k + 4 <= count; k += 4) tile_axpy_together<4>(z + k, steps + k, n, v);
  for (; k < count; ++k) tile_axpy_together<1>(z + k, steps + k, n, v);
}

// Four by four columns at a time in registers (two by four where there are only 16 of these).
void tile_gram_loop(const float* const* z, std::int64_t count, std::int64_t n, double* gram) {
  constexpr std::int64_t height = n_lanes == 16 ? 4 : 2, width = 4;
  for (std::int64_t first = 0; first < n; first += tile_run) {
    const std::int64_t end = first + tile_run < n ? first + tile_run : n;
    for (std::int64_t a = 0; a < count; a += height) {
      for (std::int64_t b = 0; b < a + height && b < count; b += width) {
        const float *left[height], *right[width];  // the last column stands in where there are no more
        for (std::int64_t k = 0; k < height; ++k) left[k] = z[a + k < count ? a + k : count - 1];
        for (std::int64_t l = 0; l < width; ++l) right[l] = z[b + l < count ? b + l : count - 1];
        Lanes sums[height][width] = {};
        std::int64_t i = first;
        for (; i + n_lanes <= end; i += n_lanes) {
          Lanes own[width];
#pragma GCC unroll 4
          for (std::int64_t l = 0; l < width; ++l) own[l] = load_lanes(right[l] + i);
#pragma GCC unroll 4
          for (std::int64_t k = 0; k < height; ++k) {
            const Lanes x = load_lanes(left[k] + i);
#pragma GCC unroll 4
            for (std::int64_t l = 0; l < width; ++l) sums[k][l] += x * own[l];
          }
        }
        for (std::int64_t k = 0; k < height && a + k < count; ++k) {
          for (std::int64_t l = 0; l < width && b + l <= a + k; ++l) {
            double sum = add_up_lanes(sums[k][l]);
            for (std::int64_t rest = i; rest < end; ++rest)
              sum += static_cast<double>(left[k][rest] * right[l][rest]);
            gram[(a + k) * count + b + l] += sum;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace blockgreedy
