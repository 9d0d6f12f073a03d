// Columns of files that are mapped into memory, which somebody may write to while they are read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/views.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

// Whether column j lies within what the matrix stores. Dense columns always do.
template <class T>
bool is_within(const CscView<T>& view, std::int64_t j) {
  const std::int64_t begin = view.start(j), end = view.start(j + 1);
  return 0 <= begin && begin <= end && end <= view.n_stored;
}

template <class T>
bool is_within(const DenseView<T>&, std::int64_t) {
  return true;
}

template <class T>
bool has_sound_rows(const CscView<T>& view, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t few = 32;  // entries: a call would take as long
  if (end - begin < few) {
    bool leaves = false;
    for (std::int64_t k = begin; k < end; ++k) {
      leaves |= static_cast<std::uint32_t>(view.indices[k]) >= static_cast<std::uint64_t>(view.n_rows);
    }
    return !leaves;
  }
  const RowNumbers rows = kernels().row_numbers(view.indices + begin, end - begin);
  return rows.lowest >= 0 && rows.highest < view.n_rows;
}

// Calls f(first, n) for runs of these columns, each right after its pointers and rows were found to lie within the
// matrix: they are in the cache then, and next to no time is left to change them. False, at once, where they do not.
template <class T, class F>
bool for_sound_runs(const CscView<T>& view, const std::int32_t* columns, std::int64_t count, F&& f) {
  constexpr std::int64_t together = 2048;  // entries, columns without any count as one
  for (std::int64_t k = 0; k < count;) {
    const std::int64_t first = k;
    std::int64_t begin = 0, end = 0;  // of columns that stand side by side
    for (std::int64_t n = 0; k < count && n < together; ++k) {
      const std::int64_t own = view.start(columns[k]), next = view.start(columns[k] + 1);
      if (own < 0 || own > next || next > view.n_stored) return false;
      if (own != end) {
        if (!has_sound_rows(view, begin, end)) return false;
        begin = own;
      }
      end = next;
      n += next - own + 1;
    }
    if (!has_sound_rows(view, begin, end)) return false;
    f(first, k - first);
  }
  return true;
}

template <class T, class F>
bool for_sound_runs(const DenseView<T>&, const std::int32_t*, std::int64_t count, F&& f) {
  f(std::int64_t{0}, count);
  return true;
}

}  // namespace blockgreedy
