// Compressed rows → compressed columns, in parallel. One pass over the rows checks them and counts what each column
// holds; another one writes the columns that are wanted, and the others stay empty. Products of all columns with a
// vector need no columns: they are added up row by row.
//
// Nothing is fetched ahead in passes that count or add up: tables of all columns are in the cache of today's
// processors, or nearly so, and prefetching cost 0.2 ns an entry on text of 20,000 to 1,350,000 columns (measured).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/fingerprint.hpp"
#include "base/large_array.hpp"
#include "base/threads.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

template <class Pointer, class Index, class T>
struct CsrArrays {
  std::int64_t n_rows, n_cols;
  const Pointer* indptr;
  const Index* indices;
  const T* data;
};

// Where the columns are written, values in the type of the rows.
struct CscBuffers {
  void* indptr;
  bool wide;  // pointers are int64, else int32
  std::int32_t* indices;
  void* data;
};

// Rows whose columns are wanted, whatever the types of their arrays. After `scan` nothing in here changes.
class RowsToColumns {
 public:
  virtual ~RowsToColumns() = default;

  // "", or what is wrong with the rows in the words of describe_fault: indptr, range or finite.
  virtual const char* scan(ThreadTeam& team) = 0;

  // Writes the columns j with kept[j] = 1, not 0 (null: all). "", "unsorted" if an entry occurs twice (the columns
  // are made all the same), or "changed" if the rows are no longer what they were when they were scanned.
  virtual const char* write(const std::uint8_t* kept, const CscBuffers& columns, ThreadTeam& team) const = 0;

  // out_j = x_j·theta of every column; false if the rows have changed. The sums do not depend on the threads.
  // every: an estimate from rows 0, every, 2·every, …
  virtual bool products(const double* theta, std::int64_t every, double* out, ThreadTeam& team) const = 0;

  // out_j = Σ_i |x_ij| most_i: how large x_j·θ may be where |θ_i| ≤ most_i. Else as `products`.
  virtual bool reaches(const double* most, double* out, ThreadTeam& team) const = 0;

  std::int64_t n_entries(const std::uint8_t* kept) const {
    if (kept == nullptr) return nnz_;
    std::int64_t entries = 0;
    for (std::int64_t j = 0; j < p_; ++j) entries += std::int64_t{kept[j]} * count(j);
    return entries;
  }

  std::int64_t n_columns() const { return p_; }
  std::int64_t count(std::int64_t j) const { return all_.data()[j]; }
  double largest() const { return largest_; }  // |x| of all entries

 protected:
  explicit RowsToColumns(std::int64_t n_columns) : p_(n_columns) {}

  const std::int64_t p_;
  std::int64_t nnz_ = 0, n_runs_ = 0;
  LargeArray<std::uint32_t> all_;  // entries of each column
  double largest_ = 0;
};

// Every thread takes a run of rows: it counts what goes to each column, then puts its entries behind those of the
// runs before it. Rows come out ascending, and the columns do not depend on the number of threads.
template <class Pointer, class Index, class T>
class TypedRowsToColumns final : public RowsToColumns {
 public:
  explicit TypedRowsToColumns(const CsrArrays<Pointer, Index, T>& rows)
      : RowsToColumns(rows.n_cols), rows_(rows), n_(rows.n_rows) {}

  const char* scan(ThreadTeam& team) override {
    if (!pointers_ascend()) return "indptr";
    nnz_ = static_cast<std::int64_t>(rows_.indptr[n_]);
    pointer_fingerprint_ = fingerprint_of(rows_.indptr, n_ + 1);
    cut_rows(team);
    check_runs(team);
    if (out_of_range_) return "range";
    if (not_finite_) return "finite";
    return add_up_columns(team) == nnz_ ? "" : "indptr";  // else a count has overflown: billions of one entry
  }

  const char* write(const std::uint8_t* kept, const CscBuffers& columns, ThreadTeam& team) const override {
    if (!has_same_pointers()) return "changed";
    return columns.wide ? write_as<std::int64_t>(kept, columns, team) : write_as<std::int32_t>(kept, columns, team);
  }

  bool products(const double* theta, std::int64_t every, double* out, ThreadTeam& team) const override {
    return add_up(theta, every, [](T x) { return static_cast<double>(x); }, out, team);
  }

  bool reaches(const double* most, double* out, ThreadTeam& team) const override {
    return add_up(most, 1, [](T x) { return std::abs(static_cast<double>(x)); }, out, team);
  }

 private:
  static constexpr std::int64_t check_size = 4096;  // entries that stay in the cache between check and use
  static constexpr std::int64_t entries_per_sum = 16, max_sums = 16;  // a table costs its size twice
  static constexpr std::int64_t cached_entries = 1 << 19;

  using Passed = PassedEntries<Index, T>;

  // out_j = Σ_i of(x_ij) factors_i
  template <class Of>
  bool add_up(const double* factors, std::int64_t every, Of of, double* out, ThreadTeam& team) const {
    if (!has_same_pointers()) return false;
    // As many sums as rows are long enough for, whatever the number of threads; added up in their order.
    const std::int64_t n_sums = std::clamp<std::int64_t>(nnz_ / (every * entries_per_sum * p_), 1, max_sums);
    const std::int64_t together = std::min<std::int64_t>(n_sums, team.size());
    std::vector<LargeArray<double>> sums(n_sums > 1 ? together : 0);
    for (auto& own : sums) own = LargeArray<double>::unset(p_);
    std::fill_n(out, p_, 0.0);
    std::atomic<std::uint64_t> passed{0};
    if (n_sums == 1) passed += add_rows(0, n_, factors, every, of, out);
    for (std::int64_t first = 0; first < n_sums && n_sums > 1; first += together) {
      const std::int64_t count = std::min(together, n_sums - first);
      team.for_all(count, [&](std::int64_t k, int) {
        std::fill_n(sums[k].data(), p_, 0.0);
        const std::int64_t begin = row_of_cut(first + k, n_sums), end = row_of_cut(first + k + 1, n_sums);
        passed += add_rows((begin + every - 1) / every * every, end, factors, every, of, sums[k].data());
      });
      for_column_parts(team, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = 0; k < count; ++k) {
          for (std::int64_t j = begin; j < end; ++j) out[j] += sums[k].data()[j];
        }
      });
    }
    return every > 1 || passed == fingerprint_;  // an estimate proves nothing
  }

  bool pointers_ascend() const {
    if (rows_.indptr[0] != 0) return false;
    for (std::int64_t i = 0; i < n_; ++i) {
      if (rows_.indptr[i + 1] < rows_.indptr[i]) return false;
    }
    return true;
  }
  bool has_same_pointers() const {
    return pointers_ascend() && static_cast<std::int64_t>(rows_.indptr[n_]) == nnz_ &&
           fingerprint_of(rows_.indptr, n_ + 1) == pointer_fingerprint_;
  }

  // Where run k of so many begins, runs having about equal numbers of entries.
  std::int64_t row_of_cut(std::int64_t k, std::int64_t n_cuts) const {
    if (k == n_cuts) return n_;
    const auto entry = static_cast<Pointer>(nnz_ * k / n_cuts);
    return k == 0 ? 0 : std::lower_bound(rows_.indptr, rows_.indptr + n_, entry) - rows_.indptr;
  }

  // Tables of all columns for every run must not outgrow the matrix.
  void cut_rows(const ThreadTeam& team) {
    n_runs_ = nnz_ < 200000 ? 1 : std::clamp<std::int64_t>(3 * nnz_ / (4 * p_), 1, team.size());
    for (std::int64_t run = 0; run <= n_runs_; ++run) cuts_.push_back(row_of_cut(run, n_runs_));
    all_ = LargeArray<std::uint32_t>(p_);
    own_counts_.resize(n_runs_ - 1);
  }

  std::int64_t first_entry(std::int64_t run) const { return static_cast<std::int64_t>(rows_.indptr[cuts_[run]]); }

  void check_runs(ThreadTeam& team) {
    std::vector<T> largest(n_runs_);
    std::atomic<std::uint64_t> fingerprint{0};
    team.for_all(n_runs_, [&](std::int64_t run, int) {
      const bool is_last = run == n_runs_ - 1;  // which counts where all are added up
      if (!is_last) own_counts_[run] = LargeArray<std::uint32_t>(p_);
      std::uint32_t* own = is_last ? all_.data() : own_counts_[run].data();
      const auto& loops = kernels().of(rows_.data);
      const std::int64_t end = first_entry(run + 1);
      Passed passed = passed_from(first_entry(run));
      for (std::int64_t begin = first_entry(run); begin < end && !out_of_range_; begin += check_size) {
        const std::int64_t count = std::min(check_size, end - begin);
        if (!loops.all_finite(rows_.data + begin, count)) not_finite_ = true;
        largest[run] = std::max(largest[run], loops.largest_magnitude(rows_.data + begin, count));
        passed.come_to(begin + count);
        if (!count_entries(own, begin, begin + count)) out_of_range_ = true;
      }
      fingerprint += passed.sum();
    });
    fingerprint_ = fingerprint;
    largest_ = static_cast<double>(*std::max_element(largest.begin(), largest.end()));
  }

  Passed passed_from(std::int64_t entry) const { return {rows_.indices, rows_.data, nnz_, entry}; }

  // False: a column number is none.
  bool count_entries(std::uint32_t* counts, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t k = begin; k < end; ++k) {
      const auto j = static_cast<std::uint64_t>(rows_.indices[k]);  // a negative one becomes very large
      if (j >= static_cast<std::uint64_t>(p_)) return false;
      ++counts[j];
    }
    return true;
  }

  // The fingerprint of these rows; none where only some of them are looked at.
  template <class Of>
  std::uint64_t add_rows(std::int64_t first, std::int64_t last, const double* factors, std::int64_t every, Of of,
                         double* out) const {
    Passed passed = passed_from(static_cast<std::int64_t>(rows_.indptr[std::min(first, n_)]));
    for (std::int64_t i = first; i < last; i += every) {
      const double factor = static_cast<double>(every) * factors[i];
      const auto end = static_cast<std::int64_t>(rows_.indptr[i + 1]);
      if (every == 1) passed.come_to(end);
      for (auto k = static_cast<std::int64_t>(rows_.indptr[i]); k < end; ++k) {
        const auto j = static_cast<std::uint64_t>(rows_.indices[k]);
        if (j < static_cast<std::uint64_t>(p_)) out[j] += of(rows_.data[k]) * factor;
      }
    }
    return passed.sum();
  }

  std::int64_t add_up_columns(ThreadTeam& team) {
    std::atomic<std::int64_t> n_all{0};
    for_column_parts(team, [&](std::int64_t, std::int64_t first, std::int64_t last) {
      std::int64_t entries = 0;
      for (std::int64_t j = first; j < last; ++j) {
        for (const auto& own : own_counts_) all_.data()[j] += own.data()[j];
        entries += count(j);
      }
      n_all += entries;
    });
    return n_all;
  }

  std::int64_t column_parts(const ThreadTeam& team) const { return p_ < 100000 ? 1 : 4 * team.size(); }
  template <class F>
  void for_column_parts(ThreadTeam& team, F&& f) const {
    const std::int64_t n_parts = column_parts(team);
    team.for_all(n_parts, [&](std::int64_t part, int) { f(part, p_ * part / n_parts, p_ * (part + 1) / n_parts); });
  }

  template <class Out>
  const char* write_as(const std::uint8_t* kept, const CscBuffers& columns, ThreadTeam& team) const {
    auto* indptr = static_cast<Out*>(columns.indptr);
    std::vector<LargeArray<Out>> memory(n_runs_ - 1);
    std::vector<Out*> places;
    for (auto& own : memory) places.push_back((own = LargeArray<Out>::unset(p_)).data());
    places.push_back(indptr +
                     1);  // entry j + 1 is where the next entry of column j goes, and in the end where it ends
    const std::vector<std::int64_t> before = find_places(kept, places, team);
    std::atomic<bool> changed{false};
    std::atomic<std::uint64_t> passed{0};
    indptr[0] = 0;
    team.for_all(n_runs_, [&](std::int64_t run, int) {
      Writer<Out> writer{places[run], static_cast<Out>(before.back()), columns.indices,
                         static_cast<T*>(columns.data)};
      passed += kept ? place_entries<false>(run, kept, writer) : place_entries<true>(run, kept, writer);
    });
    if (passed != fingerprint_) changed = true;  // columns were chosen by other entries
    for_column_parts(team, [&](std::int64_t part, std::int64_t first, std::int64_t last) {
      std::int64_t at = before[part], misplaced = 0;
      for (std::int64_t j = first; j < last; ++j) {
        at += entries_of(kept, j, all_.data()[j]);
        misplaced += indptr[j + 1] != static_cast<Out>(at);
      }
      if (misplaced > 0) changed = true;
    });
    if (changed) return "changed";
    return has_repeated_entries(indptr, columns.indices, team) ? "unsorted" : "";
  }

  // Without branches, which could not be predicted.
  static std::int64_t entries_of(const std::uint8_t* kept, std::int64_t j, std::uint32_t count) {
    return kept ? std::int64_t{kept[j]} * count : std::int64_t{count};
  }

  // Sets where the entries of each run go, by column: behind those of the runs before it. Returns how many entries
  // there are before each part of the columns.
  template <class Out>
  std::vector<std::int64_t> find_places(const std::uint8_t* kept, const std::vector<Out*>& places,
                                        ThreadTeam& team) const {
    std::vector<std::int64_t> before(column_parts(team) + 1);
    for_column_parts(team, [&](std::int64_t part, std::int64_t first, std::int64_t last) {
      std::int64_t sum = 0;
      for (std::int64_t j = first; j < last; ++j) sum += entries_of(kept, j, all_.data()[j]);
      before[part + 1] = sum;
    });
    for (std::size_t part = 1; part < before.size(); ++part) before[part] += before[part - 1];
    for_column_parts(team, [&](std::int64_t part, std::int64_t first, std::int64_t last) {
      auto at = static_cast<Out>(before[part]);
      for (std::int64_t j = first; j < last; ++j) {
        const Out next = at + static_cast<Out>(entries_of(kept, j, all_.data()[j]));
        for (std::int64_t run = 0; run < n_runs_ - 1; ++run) {
          places[run][j] = at;
          at += static_cast<Out>(entries_of(kept, j, own_counts_[run].data()[j]));
        }
        places.back()[j] = at;
        at = next;
      }
    });
    return before;
  }

  struct Entry {
    std::int32_t row, column;
    T value;
  };

  // Puts entries behind those that their column has got so far, some at a time.
  template <class Out>
  struct Writer {
    static constexpr std::int64_t together = 256;
    Out* const place;
    const Out n_entries;
    std::int32_t* const rows;
    T* const values;
    std::array<Entry, 2 * together> waiting{};
    Entry* next = waiting.data();

    bool is_full() const { return next - waiting.data() >= together; }

    void write() {
      if (n_entries > cached_entries) write_ahead();
      for (const Entry* entry = waiting.data(); entry < next; ++entry) put(*entry, place[entry->column]++);
      next = waiting.data();
    }

   private:
    // Where columns are too large for the cache: once all places are known and being fetched.
    void write_ahead() {
      std::array<Out, 2 * together> places;
      Out* at = places.data();
      for (const Entry* entry = waiting.data(); entry < next; ++entry, ++at) {
        *at = place[entry->column]++;
        __builtin_prefetch(rows + *at, 1);
        __builtin_prefetch(values + *at, 1);
      }
      at = places.data();
      for (const Entry* entry = waiting.data(); entry < next; ++entry, ++at) put(*entry, *at);
      next = waiting.data();
    }

    BLOCKGREEDY_INLINE void put(const Entry& entry, Out at) {
      if (at >= n_entries) return;  // the rows have changed
      rows[at] = entry.row;
      values[at] = entry.value;
    }
  };

  // Calls f(i, begin, end) for the rows of a run; their fingerprint, hashed just before they are used.
  template <class F>
  std::uint64_t for_each_row(std::int64_t run, F&& f) const {
    Passed passed = passed_from(first_entry(run));
    for (std::int64_t i = cuts_[run]; i < cuts_[run + 1]; ++i) {
      const auto begin = static_cast<std::int64_t>(rows_.indptr[i]);
      const auto end = static_cast<std::int64_t>(rows_.indptr[i + 1]);
      passed.come_to(end);
      f(static_cast<std::int32_t>(i), begin, end);
    }
    return passed.sum();
  }

  // The fingerprint of the run. Entries of kept columns (null: of all) are collected without a branch, which could
  // not be predicted.
  template <bool all, class Out>
  std::uint64_t place_entries(std::int64_t run, const std::uint8_t* kept, Writer<Out>& writer) const {
    const std::uint64_t passed = for_each_row(run, [&](std::int32_t i, std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += Writer<Out>::together) {
        Entry* next = writer.next;
        for (std::int64_t k = first; k < std::min(first + Writer<Out>::together, end); ++k) {
          const auto j = static_cast<std::uint64_t>(rows_.indices[k]);
          if (j >= static_cast<std::uint64_t>(p_)) continue;  // changed since
          *next = {i, static_cast<std::int32_t>(j), rows_.data[k]};
          if constexpr (all) ++next;
          else next += kept[j];
        }
        writer.next = next;
        if (writer.is_full()) writer.write();
      }
    });
    writer.write();
    return passed;
  }

  // Rows ascend in every column, except where an entry occurs twice.
  template <class Out>
  bool has_repeated_entries(const Out* indptr, const std::int32_t* indices, ThreadTeam& team) const {
    std::atomic<std::int64_t> falls{0};
    const auto entries = static_cast<std::int64_t>(indptr[p_]);
    const std::int64_t n_checks = entries < 200000 ? 1 : 4 * team.size();
    team.for_all(n_checks, [&](std::int64_t part, int) {
      const std::int64_t begin = std::max<std::int64_t>(entries * part / n_checks - 1, 0);
      const std::int64_t end = entries * (part + 1) / n_checks;
      std::int64_t own = end > begin ? kernels().row_numbers(indices + begin, end - begin).falls : 0;
      for (std::int64_t j = p_ * part / n_checks; j < p_ * (part + 1) / n_checks; ++j) {
        const Out start = indptr[j];
        if (start > 0 && start < indptr[j + 1]) own -= indices[start] <= indices[start - 1];
      }
      falls += own;
    });
    return falls > 0;
  }

  const CsrArrays<Pointer, Index, T> rows_;
  const std::int64_t n_;
  std::vector<std::int64_t> cuts_;                           // the rows of each run
  std::uint64_t fingerprint_ = 0, pointer_fingerprint_ = 0;  // when they were scanned
  std::vector<LargeArray<std::uint32_t>> own_counts_;        // of each run but the last
  std::atomic<bool> out_of_range_{false}, not_finite_{false};
};

}  // namespace blockgreedy
