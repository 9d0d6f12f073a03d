// Columns that lie in several matrices, one below the other, copied into one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"
#include "tiles/sound_columns.hpp"

namespace blockgreedy {

// Some rows of the columns that are wanted.
template <class T>
struct ColumnPart {
  CscView<T> matrix;
  std::int32_t first_row;       // where its rows begin in the result
  std::int32_t begin, end;      // rows of the matrix that are taken
  const std::int32_t* columns;  // for each wanted column its number here, −1 where it has no entries

  // The entries of wanted column k in these rows: where they begin, and how many they are; −1 where the column does
  // not lie within the matrix.
  std::pair<std::int64_t, std::int64_t> entries(std::int64_t k) const {
    if (columns[k] < 0) return {0, 0};
    const std::int64_t from = matrix.start(columns[k]), to = matrix.start(columns[k] + 1);
    if (from < 0 || from > to || to > matrix.n_stored) return {0, -1};
    const std::int32_t *first = matrix.indices + from, *last = matrix.indices + to;
    if (begin > 0) first = std::lower_bound(first, last, begin);
    if (end < matrix.n_rows) last = std::lower_bound(first, last, end);
    return {first - matrix.indices, last - first};
  }
};

template <class T>
struct GatheredColumns {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<T> data;
};

// `parts` ascend in their rows, as far as they share columns. Nothing where pointers or rows lead out of a matrix, or
// change meanwhile, as those of a mapped file may: what is returned is sound.
template <class T>
std::optional<GatheredColumns<T>> gather_columns(const std::vector<ColumnPart<T>>& parts, std::int64_t n_wanted,
                                                 ThreadTeam& team) {
  GatheredColumns<T> out;
  out.indptr.resize(n_wanted + 1);
  for (std::int64_t k = 0; k < n_wanted; ++k) {
    std::int64_t count = 0;
    for (const ColumnPart<T>& part : parts) {
      const std::int64_t own = part.entries(k).second;
      if (own < 0) return std::nullopt;
      count += own;
    }
    out.indptr[k + 1] = out.indptr[k] + count;
  }
  std::atomic<bool> is_sound{true};
  const std::int64_t total = out.indptr[n_wanted],
                     n_runs = std::min<std::int64_t>(64, std::max<std::int64_t>(n_wanted, 1));
  out.indices.resize(total);
  out.data.resize(total);
  team.for_work(n_runs, total, [&](std::int64_t run) {
    for (std::int64_t k = n_wanted * run / n_runs; k < n_wanted * (run + 1) / n_runs; ++k) {
      std::int64_t to = out.indptr[k];
      for (const ColumnPart<T>& part : parts) {
        const auto [from, n] = part.entries(k);
        if (n < 0 || to + n > out.indptr[k + 1]) {
          is_sound = false;
          return;
        }
        const auto shift = static_cast<std::uint32_t>(part.first_row - part.begin);
        const auto n_rows = static_cast<std::uint32_t>(part.end - part.begin);
        bool leaves = false;
        std::copy_n(part.matrix.data + from, n, out.data.begin() + to);
        for (std::int64_t i = 0; i < n; ++i) {
          const auto row = static_cast<std::uint32_t>(part.matrix.indices[from + i]);
          leaves |= row - static_cast<std::uint32_t>(part.begin) >= n_rows;
          out.indices[to + i] = static_cast<std::int32_t>(row + shift);
        }
        if (leaves) is_sound = false;
        to += n;
      }
      if (to != out.indptr[k + 1]) is_sound = false;
    }
  });
  if (!is_sound) return std::nullopt;
  return out;
}

// A sum over the entries of a column: equal columns have equal sums, and the sums of parts with different rows add up
// to that of the whole. `first_row` is the number of the matrix's first row. Each term is a hash of row and value
// together (the end of SplitMix64), whose bits are as good as random: two columns that differ share a sum with a
// probability of 2^-64, so that nobody has to compare them. Terms that were linear in the value's bits would not do:
// small whole numbers differ in very few of these, and x and -x in one.
template <class T>
std::uint64_t column_key(const CscView<T>& matrix, std::int64_t j, std::int64_t first_row) {
  std::uint64_t sum = 0;
  matrix.for_each_nonzero(j, [&](std::int32_t row, double value) {
    std::uint64_t mixed = static_cast<std::uint64_t>(first_row + row + 1) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9U;
    mixed ^= (mixed >> 32) ^ __builtin_bit_cast(std::uint64_t, value);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    sum += mixed ^ (mixed >> 31);
  });
  return sum;
}

}  // namespace blockgreedy
