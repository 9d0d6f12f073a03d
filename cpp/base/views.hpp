// Non-owning views of a design matrix. Columns are the unit: everything above is written on for_each_nonzero
// and on the few column products of kernels.hpp, never on a storage format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

// Functions that the per-instruction-set files also compile must always be inlined: the linker keeps one copy of an
// out-of-line function, which could be the AVX-512 one, on processors without it.
#define BLOCKGREEDY_INLINE inline __attribute__((always_inline))

namespace blockgreedy {

// Compressed sparse columns, row indices strictly ascending within a column.
template <class T>
struct CscView {
  using Value = T;
  std::int64_t n_rows, n_cols;
  const void* indptr;  // int32 or int64: scipy picks by size, and copying it would cost as much as the weights
  bool wide;
  const std::int32_t* indices;
  const T* data;
  std::int64_t n_stored = 0;  // entries that the arrays hold, where pointers may lead beyond them

  BLOCKGREEDY_INLINE std::int64_t start(std::int64_t j) const {
    return wide ? static_cast<const std::int64_t*>(indptr)[j] : static_cast<const std::int32_t*>(indptr)[j];
  }
  BLOCKGREEDY_INLINE std::int64_t count(std::int64_t j) const { return start(j + 1) - start(j); }
  BLOCKGREEDY_INLINE std::int64_t n_nonzeros() const { return start(n_cols); }

  template <class F>
  BLOCKGREEDY_INLINE void for_each_nonzero(std::int64_t j, F&& f) const {
    for (std::int64_t k = start(j), end = start(j + 1); k < end; ++k) f(indices[k], static_cast<double>(data[k]));
  }

  // Rows in order, some at a time: seek finds the first entry at or after a row, walk visits entries up to
  // (not including) row `last` and returns where it stopped. How several threads share one column.
  BLOCKGREEDY_INLINE std::int64_t seek(std::int64_t j, std::int64_t row) const {
    const std::int32_t *begin = indices + start(j), *end = indices + start(j + 1);
    return (row > 0 ? std::lower_bound(begin, end, static_cast<std::int32_t>(row)) : begin) - indices;
  }
  template <class F>
  BLOCKGREEDY_INLINE std::int64_t walk(std::int64_t j, std::int64_t at, std::int64_t last, F&& f) const {
    for (const std::int64_t end = start(j + 1); at < end && indices[at] < last; ++at) {
      f(indices[at], static_cast<double>(data[at]));
    }
    return at;
  }
  template <class F>
  BLOCKGREEDY_INLINE void for_each_nonzero(std::int64_t j, std::int64_t first, std::int64_t last, F&& f) const {
    walk(j, seek(j, first), last, f);
  }

  BLOCKGREEDY_INLINE void prefetch_pointers(std::int64_t j) const {
    __builtin_prefetch(static_cast<const char*>(indptr) + j * (wide ? 8 : 4));
  }
  BLOCKGREEDY_INLINE void prefetch_entries(std::int64_t j) const {
    // The first two cache lines of each; the processor's own prefetcher follows from there.
    const std::int64_t at = start(j);
    __builtin_prefetch(indices + at);
    __builtin_prefetch(data + at);
    __builtin_prefetch(indices + at + 16);
    __builtin_prefetch(data + at + 16);
  }
};

// Dense, columns contiguous (Fortran order).
template <class T>
struct DenseView {
  using Value = T;
  std::int64_t n_rows, n_cols;
  const T* data;

  BLOCKGREEDY_INLINE std::int64_t start(std::int64_t j) const { return j * n_rows; }
  BLOCKGREEDY_INLINE std::int64_t count(std::int64_t) const { return n_rows; }
  BLOCKGREEDY_INLINE std::int64_t n_nonzeros() const { return n_rows * n_cols; }

  template <class F>
  BLOCKGREEDY_INLINE void for_each_nonzero(std::int64_t j, F&& f) const {
    walk(j, 0, n_rows, f);
  }
  BLOCKGREEDY_INLINE std::int64_t seek(std::int64_t, std::int64_t row) const { return row; }
  template <class F>
  BLOCKGREEDY_INLINE std::int64_t walk(std::int64_t j, std::int64_t at, std::int64_t last, F&& f) const {
    const T* column = data + j * n_rows;
    for (; at < last; ++at) f(static_cast<std::int32_t>(at), static_cast<double>(column[at]));
    return at;
  }
  template <class F>
  BLOCKGREEDY_INLINE void for_each_nonzero(std::int64_t j, std::int64_t first, std::int64_t last, F&& f) const {
    walk(j, seek(j, first), last, f);
  }
  BLOCKGREEDY_INLINE void prefetch_pointers(std::int64_t) const {}
  BLOCKGREEDY_INLINE void prefetch_entries(std::int64_t j) const { __builtin_prefetch(data + j * n_rows); }
};

using Matrix = std::variant<CscView<float>, CscView<double>, DenseView<float>, DenseView<double>>;

class ThreadTeam;

// What is wrong with a matrix, found in one parallel pass: "" when the core may trust it.
const char* describe_fault(const Matrix& matrix, ThreadTeam& team);

// Cuts 0..n_cols into runs of about equal cost, where a column costs its nonzeros plus two.
template <class View>
std::vector<std::int64_t> equal_nonzero_cuts(const View& view, std::int64_t n_parts) {
  std::vector<std::int64_t> cuts(n_parts + 1);
  const auto cost_before = [&](std::int64_t j) { return view.start(j) + 2 * j; };
  const std::int64_t total = cost_before(view.n_cols);
  cuts.front() = 0;
  cuts.back() = view.n_cols;
  for (std::int64_t part = 1; part < n_parts; ++part) {
    const std::int64_t target = total / n_parts * part;
    std::int64_t low = cuts[part - 1], high = view.n_cols;
    while (low < high) {
      const std::int64_t mid = low + (high - low) / 2;
      if (cost_before(mid) < target) low = mid + 1;
      else high = mid;
    }
    cuts[part] = low;
  }
  return cuts;
}

}  // namespace blockgreedy
