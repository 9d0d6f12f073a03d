// The seed of a cluster as a column that others are multiplied with, and how many nonzeros columns have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

// The seed of the current block: its column scattered over all rows, and one bit per row that says where it
// is nonzero. The bits of 8 million rows fit a core's own cache, the values do not.
template <class Value>
class SeedColumn {
 public:
  explicit SeedColumn(std::int64_t n_rows) : values_(n_rows), bits_(static_cast<std::size_t>(n_rows + 63) / 64) {}

  template <class View>
  void set(const View& view, std::int64_t j, ThreadTeam& team) {
    for_each_slice(view, j, team, [this](std::int32_t row, double x) {
      values_[row] = static_cast<Value>(x);
      bits_[static_cast<std::size_t>(row) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(row) % 64);
    });
    // For denser seeds the branch on a row's bit is mispredicted too often to save time.
    mostly_zero_ = view.count(j) < view.n_rows / 3;
  }

  template <class View>
  void clear(const View& view, std::int64_t j, ThreadTeam& team) {
    for_each_slice(view, j, team, [this](std::int32_t row, double) {
      values_[row] = 0;
      bits_[static_cast<std::size_t>(row) / 64] = 0;
    });
  }

  const Value* values() const { return values_.data(); }
  bool mostly_zero() const { return mostly_zero_; }
  bool contains(std::int32_t row) const {
    const auto at = static_cast<std::uint32_t>(row);  // unsigned, so that / and % are a shift and a mask
    return (bits_[at / 64] >> (at % 64) & 1) != 0;
  }

 private:
  // Slices of rows begin at multiples of 64, so that no two of them share a word of bits.
  template <class View, class F>
  static void for_each_slice(const View& view, std::int64_t j, ThreadTeam& team, F&& f) {
    const std::int64_t n_slices = view.count(j) < min_parallel_work ? 1 : 4 * team.size();
    const std::int64_t height = (view.n_rows / n_slices / 64 + 1) * 64;
    team.for_each(n_slices, [&](std::int64_t slice, int) {
      view.for_each_nonzero(j, slice * height, std::min(view.n_rows, (slice + 1) * height), f);
    });
  }

  std::vector<Value> values_;
  std::vector<std::uint64_t> bits_;
  bool mostly_zero_ = true;
};

// The products below call emit(j, x_j·seed) for those of `columns` (ascending) that may meet the seed. A sparse
// sum runs in row order; rows outside the seed add an exact zero, so skipping them changes no bit of it.

// Neighbouring columns are one run of entries, of which nearly all miss the seed: the column of an entry is looked up
// only after a hit. A loop per column took 16 ns a column at the KDDA shape (2.8 entries each, so the end of the
// loop is unpredictable), this one 9.
template <class T, class F>
void multiply_mostly_zero(const CscView<T>& view, const std::int32_t* columns, std::int64_t n_columns,
                          const SeedColumn<T>& seed, F&& emit) {
  const T* values = seed.values();
  for (std::int64_t k = 0; k < n_columns;) {
    std::int64_t j = columns[k], run_end = j;
    while (k < n_columns && columns[k] == run_end) ++k, ++run_end;
    const std::int64_t last_entry = view.start(run_end);
    for (std::int64_t entry = view.start(j); entry < last_entry;) {
      if (!seed.contains(view.indices[entry])) {
        ++entry;
        continue;
      }
      while (view.start(j + 1) <= entry) ++j;
      double sum = 0;
      for (const std::int64_t end = view.start(j + 1); entry < end; ++entry) {
        const std::int32_t row = view.indices[entry];
        if (seed.contains(row)) sum += static_cast<double>(view.data[entry]) * static_cast<double>(values[row]);
      }
      emit(static_cast<std::int32_t>(j), sum);
    }
  }
}

template <class T, class F>
void multiply(const CscView<T>& view, const std::int32_t* columns, std::int64_t n_columns, const SeedColumn<T>& seed,
              F&& emit) {
  if (seed.mostly_zero()) return multiply_mostly_zero(view, columns, n_columns, seed, emit);
  const T* values = seed.values();
  for (std::int64_t k = 0; k < n_columns; ++k) {
    double sum = 0;
    view.for_each_nonzero(columns[k],
                          [&](std::int32_t row, double x) { sum += x * static_cast<double>(values[row]); });
    emit(columns[k], sum);
  }
}

template <class T, class F>
void multiply(const DenseView<T>& view, const std::int32_t* columns, std::int64_t n_columns,
              const SeedColumn<double>& seed, F&& emit) {
  for (std::int64_t k = 0; k < n_columns; ++k) emit(columns[k], column_dot(view, columns[k], seed.values()));
}

// Sparse seeds keep the matrix's type, which halves the memory that float32 sums jump about in.
template <class View>
struct SeedOf {
  using Type = SeedColumn<typename View::Value>;
};
template <class T>
struct SeedOf<DenseView<T>> {
  using Type = SeedColumn<double>;
};

// How many nonzeros each column has. Zeros may be stored, as they are in every dense matrix: only then are the
// nonzeros counted and the counts kept.
template <class View>
class NonzeroCounts {
 public:
  NonzeroCounts(const View& view, ThreadTeam& team) : view_(view) {
    const std::int64_t n = view.n_nonzeros();
    const std::int64_t n_parts = std::clamp<std::int64_t>(n / min_parallel_work, 1, 1024);
    std::vector<char> holds_zero(n_parts);
    team.for_each(n_parts, [&](std::int64_t part, int) {
      const auto *begin = view.data + n * part / n_parts, *end = view.data + n * (part + 1) / n_parts;
      holds_zero[part] = std::find(begin, end, typename View::Value{0}) != end;
    });
    if (std::find(holds_zero.begin(), holds_zero.end(), 1) == holds_zero.end()) return;
    counts_.resize(view.n_cols);
    const auto cuts = equal_nonzero_cuts(view, n_parts);
    team.for_each(n_parts, [&](std::int64_t part, int) {
      for (std::int64_t j = cuts[part]; j < cuts[part + 1]; ++j) {
        std::int64_t count = 0;
        view.for_each_nonzero(j, [&](std::int32_t, double x) { count += x != 0; });
        counts_[j] = count;
      }
    });
  }

  std::int64_t operator()(std::int64_t j) const { return counts_.empty() ? view_.count(j) : counts_[j]; }

 private:
  const View& view_;
  std::vector<std::int64_t> counts_;
};

}  // namespace blockgreedy
