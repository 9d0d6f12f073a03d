// Products and sums of columns. Part of the per-instruction-set text: see kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/registers.hpp"

namespace blockgreedy {
namespace {

#if defined(__AVX2__)

template <class T>
BLOCKGREEDY_INLINE double sparse_dot(const std::int32_t* at, const T* x, std::int64_t n, const double* r) {
  __m256d a = _mm256_setzero_pd(), b = _mm256_setzero_pd();
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    a = _mm256_fmadd_pd(load4(x + k), gather4(at + k, r), a);
    b = _mm256_fmadd_pd(load4(x + k + 4), gather4(at + k + 4, r), b);
  }
  double sum = add_up(_mm256_add_pd(a, b));
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

template <class T, class R>
BLOCKGREEDY_INLINE double dense_dot(const T* x, std::int64_t n, const R* r) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(r[i]);
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

template <class T, bool weighted>
BLOCKGREEDY_INLINE ColumnSums sparse_sums(const std::int32_t* at, const T* x, std::int64_t n, const double* r,
                                          const double* weights) {
  double product = 0, magnitude = 0, squares = 0;
  std::int64_t k = 0;
#if defined(__AVX2__)
  if (n >= 8) {
    const __m256d sign = _mm256_set1_pd(-0.0);
    __m256d p = _mm256_setzero_pd(), m = p, s = p;
    for (; k + 4 <= n; k += 4) {
      const __m256d v = load4(x + k), size = _mm256_andnot_pd(sign, v);
      p = _mm256_fmadd_pd(v, gather4(at + k, r), p);
      if constexpr (weighted) {
        const __m256d weight = gather4(at + k, weights);
        const __m256d used = _mm256_cmp_pd(weight, _mm256_setzero_pd(), _CMP_NEQ_UQ);
        s = _mm256_fmadd_pd(_mm256_and_pd(v, used), v, s);
        m = _mm256_fmadd_pd(size, weight, m);
      } else {
        s = _mm256_fmadd_pd(v, v, s);
        m = _mm256_add_pd(m, size);
      }
    }
    product = add_up(p);
    magnitude = add_up(m);
    squares = add_up(s);
  }
#endif
  for (; k < n; ++k) {
    const double a = static_cast<double>(x[k]);
    product += a * r[at[k]];
    magnitude += __builtin_fabs(a) * (weighted ? weights[at[k]] : 1.0);
    squares += !weighted || weights[at[k]] != 0 ? a * a : 0.0;
  }
  return {product, magnitude, squares};
}

template <class T>
void csc_sums(const CscView<T>& view, const std::int32_t* columns, std::int64_t count, const double* r,
              const double* weights, ColumnSums* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t start = view.start(columns[k]), n = view.start(columns[k] + std::int64_t{1}) - start;
    out[k] = weights ? sparse_sums<T, true>(view.indices + start, view.data + start, n, r, weights)
                     : sparse_sums<T, false>(view.indices + start, view.data + start, n, r, weights);
  }
}

template <class T, bool weighted>
BLOCKGREEDY_INLINE ColumnSums dense_column_sums(const T* x, std::int64_t n, const double* r, const double* weights) {
  double product = 0, magnitude = 0, squares = 0;
#pragma omp simd reduction(+ : product, magnitude, squares)
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    product += v * r[i];
    squares += !weighted || weights[i] != 0 ? v * v : 0.0;
    magnitude += __builtin_fabs(v) * (weighted ? weights[i] : 1.0);
  }
  return {product, magnitude, squares};
}

template <class T>
void dense_sums(const DenseView<T>& view, const std::int32_t* columns, std::int64_t count, const double* r,
                const double* weights, ColumnSums* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const T* x = view.data + view.start(columns[k]);
    out[k] = weights ? dense_column_sums<T, true>(x, view.n_rows, r, weights)
                     : dense_column_sums<T, false>(x, view.n_rows, r, weights);
  }
}

}  // namespace
}  // namespace blockgreedy
