// Signatures of columns for clustering. Part of the per-instruction-set text: see kernel_table.hpp.
#pragma once

#include "kernels/array_loops.hpp"
#include "kernels/column_loops.hpp"

namespace blockgreedy {
namespace {

BLOCKGREEDY_INLINE float correlation(double product, double squares) {
  return squares > 0 ? static_cast<float>(__builtin_fabs(product) / __builtin_sqrt(squares)) : 0.0F;
}

template <class T>
void csc_signatures(const CscView<T>& view, std::int64_t first, std::int64_t count, const float* r, Salts salts,
                    ColumnSignatures out) {
  const std::int64_t end = view.start(first + count);
  const bool large = view.n_rows > 1 << 18;  // r does not fit into the L2 cache
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
      const bool fetch = large && start + 64 + n < end;
      for (std::int64_t e = 0; e < n; ++e) {
        const std::uint32_t a = rank(e, salts.first), b = rank(e, salts.second);
        const double v = static_cast<double>(x[e]);
        least = a < least ? a : least;
        second = b < second ? b : second;
        squares += v * v;
        if (r) {
          if (fetch) __builtin_prefetch(r + at[e + 64]);  // of a later column: short ones are neighbours in memory
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
    out.correlation[k] = r ? correlation(product, squares) : 1.0F;
    out.first_row[k] = n > 0 ? static_cast<std::int32_t>(row_at_rank(least, salts.first)) : -1;
    out.least_rank[k] = second;
  }
}

template <class T>
void dense_signatures(const DenseView<T>& view, std::int64_t first, std::int64_t count, const float* r, Salts,
                      ColumnSignatures out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const T* x = view.data + view.start(first + k);
    out.correlation[k] = r ? correlation(dense_dot(x, view.n_rows, r), squared_norm_loop(x, view.n_rows)) : 1.0F;
    out.first_row[k] = 0;
    out.least_rank[k] = 0;
  }
}

}  // namespace
}  // namespace blockgreedy
