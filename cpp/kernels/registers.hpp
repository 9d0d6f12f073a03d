// Vector registers that loops use explicitly. Part of the per-instruction-set text: see kernel_table.hpp.
#pragma once

#include <cstdint>

#include "base/views.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace blockgreedy {
namespace {

#if defined(__AVX2__)

BLOCKGREEDY_INLINE __m256d load4(const double* x) { return _mm256_loadu_pd(x); }
BLOCKGREEDY_INLINE __m256d load4(const float* x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }
// Four plain loads: the gather instructions of AVX2 and AVX-512 were measured 0-15 % faster at best, and on
// processors whose microcode guards them (Ice Lake) 1.6-2 times slower.
BLOCKGREEDY_INLINE __m256d gather4(const std::int32_t* at, const double* r) {
  return _mm256_set_pd(r[at[3]], r[at[2]], r[at[1]], r[at[0]]);
}

BLOCKGREEDY_INLINE double add_up(__m256d v) {
  const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

#endif

// A register full of floats.
#if defined(__AVX512F__)
constexpr std::int64_t n_lanes = 16, tile_height = 8;
#elif defined(__AVX2__)
constexpr std::int64_t n_lanes = 8, tile_height = 4;
#else
constexpr std::int64_t n_lanes = 4, tile_height = 4;
#endif
typedef float Lanes __attribute__((vector_size(n_lanes * sizeof(float))));
BLOCKGREEDY_INLINE Lanes load_lanes(const float* x) {
  Lanes v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
BLOCKGREEDY_INLINE void add_lanes(float* x, Lanes v) {
  v += load_lanes(x);
  __builtin_memcpy(x, &v, sizeof v);
}

// A register full of doubles, read from either type.
constexpr std::int64_t n_doubles = n_lanes / 2;
typedef double Doubles __attribute__((vector_size(n_doubles * sizeof(double))));
typedef long long Words __attribute__((vector_size(n_doubles * sizeof(double))));
BLOCKGREEDY_INLINE Doubles load_doubles(const double* x) {
  Doubles v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
BLOCKGREEDY_INLINE Doubles load_doubles(const float* x) {
  // not __builtin_convertvector, of which GCC 12 makes two conversions and a merge
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(x));
#elif defined(__AVX2__)
  return load4(x);
#else
  return Doubles{static_cast<double>(x[0]), static_cast<double>(x[1])};
#endif
}
BLOCKGREEDY_INLINE Doubles magnitude_of(Doubles v) {
  return reinterpret_cast<Doubles>(reinterpret_cast<Words>(v) & 0x7FFFFFFFFFFFFFFF);
}
BLOCKGREEDY_INLINE double add_up_doubles(Doubles v) {
  double sum = 0;
  for (std::int64_t k = 0; k < n_doubles; ++k) sum += v[k];
  return sum;
}

}  // namespace
}  // namespace blockgreedy
