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

// Products of `width` dense columns with r, which is read once for all of them. Two sums for each column, since an
// addition waits for the one before; they are the same for any width.
template <class T, std::int64_t width>
BLOCKGREEDY_INLINE void dense_dots_together(const T* const* x, std::int64_t n, const double* r, double* out) {
  Doubles even[width] = {}, odd[width] = {};
  std::int64_t i = 0;
  for (; i + 2 * n_doubles <= n; i += 2 * n_doubles) {
    const Doubles first = load_doubles(r + i), second = load_doubles(r + i + n_doubles);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < width; ++k) {
      even[k] += load_doubles(x[k] + i) * first;
      odd[k] += load_doubles(x[k] + i + n_doubles) * second;
    }
  }
  for (std::int64_t k = 0; k < width; ++k) {
    out[k] = add_up_doubles(even[k] + odd[k]);
    for (std::int64_t rest = i; rest < n; ++rest) out[k] += static_cast<double>(x[k][rest]) * r[rest];
  }
}

template <class T>
void dense_dots(const DenseView<T>& view, const std::int32_t* columns, std::int64_t first, std::int64_t count,
                const double* r, double* out) {
  constexpr std::int64_t width = 4;
  const T* x[width];
  std::int64_t k = 0;
  for (; k + width <= count; k += width) {
    for (std::int64_t c = 0; c < width; ++c)
      x[c] = view.data + view.start(columns ? columns[first + k + c] : first + k + c);
    dense_dots_together<T, width>(x, view.n_rows, r, out + k);
  }
  for (; k < count; ++k) {
    x[0] = view.data + view.start(columns ? columns[first + k] : first + k);
    dense_dots_together<T, 1>(x, view.n_rows, r, out + k);
  }
}

// out += Σ coefficient·x over dense columns, eight at a time, so that `out` is read and written once for these.
template <class T>
void combine_loop(const T* const* x, const double* coefficients, std::int64_t count, std::int64_t n, double* out) {
  constexpr std::int64_t width = 8;
  std::int64_t k = 0;
  for (; k + width <= count; k += width) {
    std::int64_t i = 0;
    for (; i + n_doubles <= n; i += n_doubles) {
      Doubles even = load_doubles(out + i), odd = {};
#pragma GCC unroll 4
      for (std::int64_t c = 0; c < width; c += 2) {
        even += coefficients[k + c] * load_doubles(x[k + c] + i);
        odd += coefficients[k + c + 1] * load_doubles(x[k + c + 1] + i);
      }
      even += odd;
      __builtin_memcpy(out + i, &even, sizeof even);
    }
    for (; i < n; ++i) {
      for (std::int64_t c = 0; c < width; ++c) out[i] += coefficients[k + c] * static_cast<double>(x[k + c][i]);
    }
  }
  for (; k < count; ++k) {
    const double coefficient = coefficients[k];
    const T* own = x[k];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] += coefficient * static_cast<double>(own[i]);
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

template <class T>
ColumnSums dense_column_sums(const T* x, std::int64_t n, const double* r) {
  Doubles product[2] = {}, magnitude[2] = {}, squares[2] = {};
  std::int64_t i = 0;
  for (; i + 2 * n_doubles <= n; i += 2 * n_doubles) {
#pragma GCC unroll 2
    for (std::int64_t k = 0; k < 2; ++k) {
      const Doubles v = load_doubles(x + i + k * n_doubles);
      product[k] += v * load_doubles(r + i + k * n_doubles);
      squares[k] += v * v;
      magnitude[k] += magnitude_of(v);
    }
  }
  ColumnSums sums{add_up_doubles(product[0] + product[1]), add_up_doubles(magnitude[0] + magnitude[1]),
                  add_up_doubles(squares[0] + squares[1])};
  for (; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    sums.product += v * r[i];
    sums.squares += v * v;
    sums.magnitude += __builtin_fabs(v);
  }
  return sums;
}

template <class T>
ColumnSums weighted_column_sums(const T* x, std::int64_t n, const double* r, const double* weights) {
  double product = 0, magnitude = 0, squares = 0;
#pragma omp simd reduction(+ : product, magnitude, squares)
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    product += v * r[i];
    squares += weights[i] != 0 ? v * v : 0.0;
    magnitude += __builtin_fabs(v) * weights[i];
  }
  return {product, magnitude, squares};
}

template <class T>
void dense_sums(const DenseView<T>& view, const std::int32_t* columns, std::int64_t count, const double* r,
                const double* weights, ColumnSums* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const T* x = view.data + view.start(columns[k]);
    out[k] = weights ? weighted_column_sums(x, view.n_rows, r, weights) : dense_column_sums(x, view.n_rows, r);
  }
}

}  // namespace
}  // namespace blockgreedy
