// The text of the hot loops. Included once by each kernels_<isa>.cpp, which defines BLOCKGREEDY_TABLE and is
// compiled with that instruction set's flags. Everything here has internal linkage.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "blockgreedy/kernels.hpp"

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

template <class T>
BLOCKGREEDY_INLINE double sparse_dot(const std::int32_t* at, const T* x, std::int64_t n, const double* r) {
  __m256d a = _mm256_setzero_pd(), b = _mm256_setzero_pd();
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    a = _mm256_fmadd_pd(load4(x + k), gather4(at + k, r), a);
    b = _mm256_fmadd_pd(load4(x + k + 4), gather4(at + k + 4, r), b);
  }
  const __m256d ab = _mm256_add_pd(a, b);
  const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(ab), _mm256_extractf128_pd(ab, 1));
  double sum = _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  for (; k < n; ++k) sum += static_cast<double>(x[k]) * r[at[k]];
  return sum;
}

#else

template <class T>
BLOCKGREEDY_INLINE double sparse_dot(const std::int32_t* at, const T* x, std::int64_t n, const double* r) {
  double a = 0, b = 0, c = 0, d = 0;
  std::int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    a += static_cast<double>(x[k]) * r[at[k]];
    b += static_cast<double>(x[k + 1]) * r[at[k + 1]];
    c += static_cast<double>(x[k + 2]) * r[at[k + 2]];
    d += static_cast<double>(x[k + 3]) * r[at[k + 3]];
  }
  for (; k < n; ++k) a += static_cast<double>(x[k]) * r[at[k]];
  return (a + b) + (c + d);
}

#endif

template <class T>
BLOCKGREEDY_INLINE double dense_dot(const T* x, std::int64_t n, const double* r) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * r[i];
  return sum;
}

template <class T, class Pointer>
BLOCKGREEDY_INLINE void csc_dots_indexed(const CscView<T>& view, const Pointer* indptr, const std::int32_t* columns,
                                         std::int64_t first, std::int64_t count, const double* r, double* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t j = columns ? columns[first + k] : first + k;
    const std::int64_t start = indptr[j];
    out[k] = sparse_dot(view.indices + start, view.data + start, indptr[j + 1] - start, r);
  }
}

template <class T>
void csc_dots(const CscView<T>& view, const std::int32_t* columns, std::int64_t first, std::int64_t count,
              const double* r, double* out) {
  if (view.wide) {
    csc_dots_indexed(view, static_cast<const std::int64_t*>(view.indptr), columns, first, count, r, out);
  } else {
    csc_dots_indexed(view, static_cast<const std::int32_t*>(view.indptr), columns, first, count, r, out);
  }
}

template <class T>
void dense_dots(const DenseView<T>& view, const std::int32_t* columns, std::int64_t first, std::int64_t count,
                const double* r, double* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t j = columns ? columns[first + k] : first + k;
    out[k] = dense_dot(view.data + j * view.n_rows, view.n_rows, r);
  }
}

template <class T>
double squared_norm_loop(const T* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

double sum_loop(const double* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

double largest_magnitude_loop(const double* x, std::int64_t n) {
  double largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = __builtin_fabs(x[i]) > largest ? __builtin_fabs(x[i]) : largest;
  return largest;
}

std::uint64_t above_loop(const double* x, std::int64_t n, double limit) {
  std::uint64_t bits = 0;
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 8 <= n; k += 8) {
    const __m512d magnitude = _mm512_abs_pd(_mm512_loadu_pd(x + k));
    bits |= std::uint64_t{_mm512_cmp_pd_mask(magnitude, _mm512_set1_pd(limit), _CMP_NLE_UQ)} << k;
  }
#endif
  for (; k < n; ++k) bits |= static_cast<std::uint64_t>(!(__builtin_fabs(x[k]) <= limit)) << k;
  return bits;
}

template <class L>
struct LossLoops {
  static void derivs(const double* y, const double* t, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::deriv(y[i], t[i], delta);
  }
  static void values(const double* y, const double* t, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::value(y[i], t[i], delta);
  }
  static void curvatures(const double* y, const double* t, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::curvature(y[i], t[i], delta);
  }
  static void conjugates(const double* y, const double* u, std::int64_t n, double delta, double* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::conjugate(y[i], u[i], delta);
  }
  static constexpr LossKernels table{derivs, values, curvatures, conjugates};
};

}  // namespace

extern const Kernels BLOCKGREEDY_TABLE;
const Kernels BLOCKGREEDY_TABLE = {
    BLOCKGREEDY_ISA_NAME,
    csc_dots<float>,
    csc_dots<double>,
    dense_dots<float>,
    dense_dots<double>,
    squared_norm_loop<float>,
    squared_norm_loop<double>,
    sum_loop,
    largest_magnitude_loop,
    above_loop,
    {LossLoops<SquaredLoss>::table, LossLoops<LogisticLoss>::table, LossLoops<SquaredHingeLoss>::table,
     LossLoops<HuberLoss>::table},
};

}  // namespace blockgreedy
