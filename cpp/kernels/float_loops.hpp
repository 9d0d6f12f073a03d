// Loops over float32 vectors and columns of the subproblem. Part of the per-instruction-set text: see
// kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/registers.hpp"

namespace blockgreedy {
namespace {

#if defined(__AVX2__)

double float_dot_loop(const std::int32_t* at, const float* z, std::int64_t n, const float* v) {
  __m256 a = _mm256_setzero_ps();
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const __m128 low = _mm_set_ps(v[at[k + 3]], v[at[k + 2]], v[at[k + 1]], v[at[k]]);
    const __m128 high = _mm_set_ps(v[at[k + 7]], v[at[k + 6]], v[at[k + 5]], v[at[k + 4]]);
    a = _mm256_fmadd_ps(_mm256_loadu_ps(z + k), _mm256_set_m128(high, low), a);
  }
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
  double sum = static_cast<double>(_mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter))));
  for (; k < n; ++k) sum += static_cast<double>(z[k] * v[at[k]]);
  return sum;
}

#else

double float_dot_loop(const std::int32_t* at, const float* z, std::int64_t n, const float* v) {
  float a = 0, b = 0, c = 0, d = 0;
  std::int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    a += z[k] * v[at[k]];
    b += z[k + 1] * v[at[k + 1]];
    c += z[k + 2] * v[at[k + 2]];
    d += z[k + 3] * v[at[k + 3]];
  }
  for (; k < n; ++k) a += z[k] * v[at[k]];
  return static_cast<double>((a + b) + (c + d));
}

#endif

// The rows of a column are distinct, so the entries may be handled in any order. Two row numbers are read at a time.
void float_axpy_loop(const std::int32_t* at, const float* z, std::int64_t n, float step, float* v) {
  std::int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    std::uint64_t low, high;
    __builtin_memcpy(&low, at + k, 8);
    __builtin_memcpy(&high, at + k + 2, 8);
    const std::uint64_t i0 = static_cast<std::uint32_t>(low), i1 = low >> 32;
    const std::uint64_t i2 = static_cast<std::uint32_t>(high), i3 = high >> 32;
    const float a = v[i0] + step * z[k], b = v[i1] + step * z[k + 1];
    const float c = v[i2] + step * z[k + 2], d = v[i3] + step * z[k + 3];
    v[i0] = a;
    v[i1] = b;
    v[i2] = c;
    v[i3] = d;
  }
  for (; k < n; ++k) v[at[k]] += step * z[k];
}

double float_dense_dot_loop(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += 4096) {  // float32 sums of 4096, added up in float64
    const std::int64_t end = first + 4096 < n ? first + 4096 : n;
    // Four sums side by side, or each addition would wait for the one before.
    float part = 0, part2 = 0, part3 = 0, part4 = 0;
    const std::int64_t quarter = (end - first) / 64 * 16;
    const float *a2 = a + quarter, *a3 = a2 + quarter, *a4 = a3 + quarter;
    const float *b2 = b + quarter, *b3 = b2 + quarter, *b4 = b3 + quarter;
#pragma omp simd reduction(+ : part, part2, part3, part4)
    for (std::int64_t i = first; i < first + quarter; ++i) {
      part += a[i] * b[i];
      part2 += a2[i] * b2[i];
      part3 += a3[i] * b3[i];
      part4 += a4[i] * b4[i];
    }
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = first + 4 * quarter; i < end; ++i) part += a[i] * b[i];
    sum += static_cast<double>((part + part2) + (part3 + part4));
  }
  return sum;
}

void float_dense_axpy_loop(const float* z, float step, float* v, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) v[i] += step * z[i];
}

void float_subtract_loop(float* a, const float* b, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) a[i] -= b[i];
}

}  // namespace
}  // namespace blockgreedy
