// The text of the hot loops. Included once by each kernels_<isa>.cpp, which defines BLOCKGREEDY_TABLE and is
// compiled with that instruction set's flags. Everything here has internal linkage.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/kernels.hpp"

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

std::uint64_t shorten_loop(const SlackMove& move, const float* slack, float* guess, const float* unit,
                           const std::uint8_t* classes, std::int64_t n, float* left) {
  std::uint64_t bits = 0;
  std::int64_t k = 0;
#if defined(__AVX512F__)
  const __m512 low = _mm512_loadu_ps(move.distance.data()), high = _mm512_loadu_ps(move.distance.data() + 16);
  const __m512 scale = _mm512_set1_ps(move.scale), shift = _mm512_set1_ps(move.shift);
  const __m512 rounding = _mm512_set1_ps(-move.rounding), near = _mm512_set1_ps(move.near);
  for (; k + 16 <= n; k += 16) {
    const __m512 s = _mm512_loadu_ps(slack + k), u = _mm512_loadu_ps(unit + k), shifted = _mm512_mul_ps(shift, u);
    const __m512i at =
        _mm512_maskz_cvtepu8_epi32(0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(classes + k)));
    const __m512 distance = _mm512_permutex2var_ps(low, at, high);
    const __m512 v =
        _mm512_fmadd_ps(rounding, _mm512_abs_ps(s), _mm512_sub_ps(_mm512_fmadd_ps(scale, s, shifted), distance));
    const __m512 g = _mm512_fmadd_ps(scale, _mm512_loadu_ps(guess + k), shifted);
    _mm512_storeu_ps(left + k, v);
    _mm512_storeu_ps(guess + k, g);
    const __mmask16 due = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LE_OQ);
    const __mmask16 soon = _mm512_cmp_ps_mask(g, _mm512_mul_ps(near, u), _CMP_LE_OQ);
    bits |= std::uint64_t{static_cast<std::uint16_t>(due | soon)} << k;
  }
#endif
  for (; k < n; ++k) {
    const float shifted = move.shift * unit[k];
    left[k] = move.scale * slack[k] + shifted - move.distance[classes[k]] - move.rounding * __builtin_fabsf(slack[k]);
    guess[k] = move.scale * guess[k] + shifted;
    bits |= static_cast<std::uint64_t>(left[k] <= 0 || guess[k] <= move.near * unit[k]) << k;
  }
  return bits;
}

std::uint64_t near_end_loop(const SlackCheck& check, const float* slack, const float* unit, std::int64_t n,
                            double* left) {
  for (std::int64_t k = 0; k < n; ++k) {
    const double s = static_cast<double>(slack[k]);
    left[k] = check.scale * s - check.rounding * __builtin_fabs(s) + check.shift * static_cast<double>(unit[k]);
  }
  std::uint64_t bits = 0;
  for (std::int64_t k = 0; k < n; ++k) bits |= static_cast<std::uint64_t>(!(left[k] > check.farthest)) << k;
  return bits;
}

// x·0 is 0 exactly if x is finite, and adding it up needs no branch.
template <class T>
bool all_finite_loop(const T* x, std::int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < n; ++k) sum += x[k] * T(0);
  return sum == 0;
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
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::conjugate(y[i], u[i], delta);
  }
  static void into_domain(const double* y, double* u, std::int64_t n, double delta) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) u[i] = L::into_domain(y[i], u[i], delta);
  }
  template <bool weighted, bool moving>
  static double advance_run(const RowRun& rows, std::int64_t begin, std::int64_t end) {
    const double *y = rows.y, *weights = rows.weights, *t = rows.t, *direction = rows.direction;
    double* derivs = rows.derivs;
    float* root = rows.root;
    const double step = rows.step, weight = rows.weight, delta = rows.delta, careful = rows.careful, flat = rows.flat;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) {
      const double at = moving ? t[i] + step * direction[i] : t[i];
      const RowTerms terms = L::terms(y[i], at, delta, careful, flat);
      const double own = weighted ? weights[i] : weight;
      sum += own * terms.value;
      derivs[i] = own * terms.deriv;
      const double curvature = terms.curvature > 1e-10 ? terms.curvature : 1e-10;  // float32 must hold its root
      root[i] = static_cast<float>(__builtin_sqrt(own * curvature));
    }
    return sum;
  }
  static double advance(const RowRun& rows, std::int64_t begin, std::int64_t end) {
    if (rows.weights) {
      return rows.direction ? advance_run<true, true>(rows, begin, end) : advance_run<true, false>(rows, begin, end);
    }
    return rows.direction ? advance_run<false, true>(rows, begin, end) : advance_run<false, false>(rows, begin, end);
  }
  static constexpr LossKernels table{derivs, values, curvatures, conjugates, into_domain, advance};
};

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
  for (std::int64_t b = 0; b < width; b += 2 * n_lanes) {  // these stay in the cache while all others pass
    for (std::int64_t a = b > first ? b : first; a < width; a += tile_height) {
      Lanes left[tile_height] = {}, right[tile_height] = {};
      const float *u = rows + b / 32 * panel_stride + b % 32, *v = rows + a / 32 * panel_stride + a % 32;
      for (std::int64_t i = 0; i < n_rows; ++i, u += stride, v += stride) {
        const Lanes near = load_lanes(u), far = load_lanes(u + n_lanes);
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < tile_height; ++k) {
          left[k] += v[k] * near;
          right[k] += v[k] * far;
        }
      }
      for (std::int64_t k = 0; k < tile_height; ++k) {
        add_lanes(gram + (a + k) * gram_stride + b, left[k]);
        add_lanes(gram + (a + k) * gram_stride + b + n_lanes, right[k]);
      }
    }
  }
}

template <class T>
double scale_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* root, float* z) {
  double sum = 0;
  if (at) {
    float even = 0, odd = 0;
    std::int64_t k = 0;
    for (; k + 2 <= n; k += 2) {
      z[k] = static_cast<float>(x[k]) * root[at[k]];
      z[k + 1] = static_cast<float>(x[k + 1]) * root[at[k + 1]];
      even += z[k] * z[k];
      odd += z[k + 1] * z[k + 1];
    }
    for (; k < n; ++k) {
      z[k] = static_cast<float>(x[k]) * root[at[k]];
      even += z[k] * z[k];
    }
    return static_cast<double>(even) + static_cast<double>(odd);
  }
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    z[i] = static_cast<float>(x[i]) * root[i];
    sum += static_cast<double>(z[i]) * static_cast<double>(z[i]);
  }
  return sum;
}

// No branches: whether a row is kept is as good as random. z and at_out have room for all n.
template <class T>
KeptRows pick_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* root, const std::int32_t* place,
                   const std::uint64_t* keep, std::int32_t* at_out, float* z) {
  std::int64_t count = 0, k = 0;
  float total = 0, total2 = 0;
  for (; k + 2 <= n; k += 2) {
    const auto i = static_cast<std::uint32_t>(at[k]), j = static_cast<std::uint32_t>(at[k + 1]);
    const float a = static_cast<float>(x[k]) * root[i], b = static_cast<float>(x[k + 1]) * root[j];
    at_out[count] = at[k];
    z[count] = a;
    count += static_cast<std::int64_t>((keep[i >> 6] >> (i & 63)) & 1);
    at_out[count] = at[k + 1];
    z[count] = b;
    count += static_cast<std::int64_t>((keep[j >> 6] >> (j & 63)) & 1);
    total += a * a;
    total2 += b * b;
  }
  if (k < n) {
    const auto i = static_cast<std::uint32_t>(at[k]);
    const float a = static_cast<float>(x[k]) * root[i];
    at_out[count] = at[k];
    z[count] = a;
    count += static_cast<std::int64_t>((keep[i >> 6] >> (i & 63)) & 1);
    total += a * a;
  }
  float kept = 0;
  for (k = 0; k < count; ++k) {
    at_out[k] = place[at_out[k]];
    kept += z[k] * z[k];
  }
  return {count, static_cast<double>(kept), static_cast<double>(total + total2)};
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

BLOCKGREEDY_INLINE float pull(double product, double squares) {
  return squares > 0 ? static_cast<float>(__builtin_fabs(product) / __builtin_sqrt(squares)) : 0.0F;
}

template <class T>
void csc_looks(const CscView<T>& view, std::int64_t first, std::int64_t count, const float* r, Salts salts,
               ColumnLooks out) {
  const std::int64_t end = view.start(first + count);
  const bool far = view.n_rows > 1 << 18;  // r leaves the second cache
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t start = view.start(first + k), n = view.count(first + k);
    const std::int32_t* at = view.indices + start;
    const T* x = view.data + start;
    std::uint32_t least = 0xffffffffU, second = 0xffffffffU;
    double product = 0, squares = 0;
    const auto rank = [&](std::int64_t e, std::uint32_t salt) {
      return row_rank(static_cast<std::uint32_t>(at[e]), salt);
    };
    if (n <= 16) {  // a plain loop: setting up vectors costs more than such a column
      const bool fetch = far && start + 64 + n < end;
      for (std::int64_t e = 0; e < n; ++e) {
        const std::uint32_t a = rank(e, salts.first), b = rank(e, salts.second);
        const double v = static_cast<double>(x[e]);
        least = a < least ? a : least;
        second = b < second ? b : second;
        squares += v * v;
        if (r) {
          if (fetch) __builtin_prefetch(r + at[e + 64]);  // short columns follow each other
          product += v * static_cast<double>(r[at[e]]);
        }
      }
    } else {
#pragma omp simd reduction(min : least, second) reduction(+ : product, squares)
      for (std::int64_t e = 0; e < n; ++e) {
        const std::uint32_t a = rank(e, salts.first), b = rank(e, salts.second);
        const double v = static_cast<double>(x[e]);
        least = a < least ? a : least;
        second = b < second ? b : second;
        squares += v * v;
        if (r) product += v * static_cast<double>(r[at[e]]);
      }
    }
    out.mass[k] = r ? pull(product, squares) : 1.0F;
    out.row[k] = n > 0 ? static_cast<std::int32_t>(row_at_rank(least, salts.first)) : -1;
    out.second[k] = second;
  }
}

template <class T>
void dense_looks(const DenseView<T>& view, std::int64_t first, std::int64_t count, const float* r, Salts,
                 ColumnLooks out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const T* x = view.data + view.start(first + k);
    out.mass[k] = r ? pull(dense_dot(x, view.n_rows, r), squared_norm_loop(x, view.n_rows)) : 1.0F;
    out.row[k] = 0;
    out.second[k] = 0;
  }
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
    shorten_loop,
    near_end_loop,
    all_finite_loop<float>,
    all_finite_loop<double>,
    row_numbers_loop,
    {LossLoops<SquaredLoss>::table, LossLoops<LogisticLoss>::table, LossLoops<SquaredHingeLoss>::table,
     LossLoops<HuberLoss>::table},
    float_dot_loop,
    float_axpy_loop,
    float_dense_dot_loop,
    float_dense_axpy_loop,
    float_subtract_loop,
    block_dot_loop<float>,
    block_dot_loop<double>,
    float_gram_loop,
    scale_loop<float>,
    scale_loop<double>,
    pick_loop<float>,
    pick_loop<double>,
    csc_sums<float>,
    csc_sums<double>,
    dense_sums<float>,
    dense_sums<double>,
    csc_looks<float>,
    csc_looks<double>,
    dense_looks<float>,
    dense_looks<double>,
    fold_loop<float>,
    fold_loop<double>,
};

}  // namespace blockgreedy
