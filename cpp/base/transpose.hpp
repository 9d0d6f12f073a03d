// Compressed rows → compressed columns, in parallel. One pass over the rows checks them and adds up what each column
// holds; a second one writes the columns that are kept, and the others stay empty.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

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

// Of a column in a run of rows.
struct ColumnTotal {
  float magnitude;  // Σ|x|, rounded: float and count share a cache line
  std::uint32_t count;
};

// Rows whose columns are wanted, whatever the types of their arrays.
class RowsToColumns {
 public:
  virtual ~RowsToColumns() = default;

  // "", or what is wrong with the rows in the words of describe_fault: indptr, range or finite.
  virtual const char* scan(ThreadTeam& team) = 0;

  // Which columns `write` is to write; both return their number of entries.
  std::int64_t keep_all() {
    kept_.assign(p_, 1);
    return nnz_;
  }
  // Those whose Σ|x| exceeds limit·weights[j] (null: limit), and these features.
  std::int64_t keep_above(double limit, const double* weights, const std::int32_t* features, std::size_t n_features) {
    kept_.resize(p_);
    for (std::int64_t j = 0; j < p_; ++j) kept_[j] = may_exceed(all_.data()[j], weights ? limit * weights[j] : limit);
    for (std::size_t k = 0; k < n_features; ++k) kept_[features[k]] = 1;
    return n_kept_entries();
  }

  // "", "unsorted" if an entry occurs twice (the columns are made all the same), or "changed" if the rows are no
  // longer what they were when they were scanned.
  virtual const char* write(const CscBuffers& columns, ThreadTeam& team) = 0;

  std::int64_t n_kept_entries() const {
    std::int64_t entries = 0;
    for (std::int64_t j = 0; j < p_; ++j) entries += kept_count(j);
    return entries;
  }

  std::int64_t count(std::int64_t j) const { return all_.data()[j].count; }
  const std::vector<std::uint8_t>& kept() const { return kept_; }

  // The same cuts as equal_nonzero_cuts makes of all columns.
  std::vector<std::int64_t> equal_nonzero_cuts(std::int64_t n_parts) const {
    const std::int64_t total = nnz_ + 2 * p_;
    std::vector<std::int64_t> cuts(1, 0);
    std::int64_t j = 0, before = 0;
    for (std::int64_t part = 1; part < n_parts; ++part) {
      for (; j < p_ && before < total / n_parts * part; ++j) before += count(j) + 2;
      cuts.push_back(j);
    }
    cuts.push_back(p_);
    return cuts;
  }

 protected:
  explicit RowsToColumns(std::int64_t n_columns) : p_(n_columns) {}
  std::int64_t kept_count(std::int64_t j) const { return kept_[j] ? count(j) : 0; }

  const std::int64_t p_;
  std::int64_t nnz_ = 0, n_runs_ = 0;
  LargeArray<ColumnTotal> all_;  // of all rows
  std::vector<std::uint8_t> kept_;

 private:
  // Whether the true Σ|x| may exceed the limit. An addition is off by half of FLT_EPSILON at most, so 2^22 of them by
  // a factor of less than 1 + FLT_EPSILON·2^22; longer columns are not judged.
  bool may_exceed(const ColumnTotal& total, double limit) const {
    const auto additions = static_cast<double>(total.count + n_runs_);
    const double most = static_cast<double>(total.magnitude) * (1 + double{FLT_EPSILON} * additions);
    return total.count > 1 << 22 || most + additions * double{FLT_MIN} > limit;
  }
};

// A hash of values in their order. Four lanes, since a multiplication has to wait for the one before it.
struct Fingerprint {
  std::array<std::uint64_t, 4> lanes{};

  template <class T>
  void add(const T* values, std::int64_t count) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15U;  // 2^64/φ
    for (std::int64_t k = 0; k < count; ++k) {
      std::uint64_t& lane = lanes[static_cast<std::size_t>(k) % lanes.size()];
      lane = (lane ^ __builtin_bit_cast(Bits, values[k])) * factor;
    }
  }
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
    cut_rows(team);
    add_up_runs(team);
    if (out_of_range_) return "range";
    if (not_finite_) return "finite";
    return add_up_columns(team) == nnz_ ? "" : "indptr";  // else a count has overflown: billions of one entry
  }

  const char* write(const CscBuffers& columns, ThreadTeam& team) override {
    if (is_written_) {  // what the runs hold was given up
      const LargeArray<ColumnTotal> before = std::move(all_);
      if (*scan(team) != 0) return "changed";
      for (std::int64_t j = 0; j < p_; ++j) {
        if (before.data()[j].count != count(j)) return "changed";
      }
    }
    if (!pointers_ascend() || static_cast<std::int64_t>(rows_.indptr[n_]) != nnz_) return "changed";
    is_written_ = true;
    return columns.wide ? write_as<std::int64_t>(columns, team) : write_as<std::int32_t>(columns, team);
  }

 private:
  static constexpr std::int64_t prefetched = 48;    // entries ahead: what memory takes to answer
  static constexpr std::int64_t check_size = 4096;  // entries that stay in the cache between check and sum

  bool pointers_ascend() const {
    if (rows_.indptr[0] != 0) return false;
    for (std::int64_t i = 0; i < n_; ++i) {
      if (rows_.indptr[i + 1] < rows_.indptr[i]) return false;
    }
    return true;
  }

  // Tables of all columns for every run must not outgrow the matrix.
  void cut_rows(const ThreadTeam& team) {
    n_runs_ = nnz_ < 200000 ? 1 : std::clamp<std::int64_t>(3 * nnz_ / (4 * p_), 1, team.size());
    cuts_.assign(n_runs_ + 1, n_);
    cuts_[0] = 0;
    for (std::int64_t run = 1; run < n_runs_; ++run) {
      const auto entry = static_cast<Pointer>(nnz_ * run / n_runs_);
      cuts_[run] = std::lower_bound(rows_.indptr, rows_.indptr + n_, entry) - rows_.indptr;
    }
    all_ = LargeArray<ColumnTotal>(p_);
    own_totals_.resize(n_runs_ > 1 ? n_runs_ : 0);
    fingerprints_.assign(n_runs_, {});
  }

  // Of a run; of a single one they are those of all rows.
  ColumnTotal* totals(std::int64_t run) { return n_runs_ > 1 ? own_totals_[run].data() : all_.data(); }

  std::int64_t first_entry(std::int64_t run) const { return static_cast<std::int64_t>(rows_.indptr[cuts_[run]]); }

  void add_up_runs(ThreadTeam& team) {
    team.for_all(n_runs_, [&](std::int64_t run, int) {
      if (n_runs_ > 1) own_totals_[run] = LargeArray<ColumnTotal>(p_);
      const std::int64_t end = first_entry(run + 1);
      for (std::int64_t begin = first_entry(run); begin < end && !out_of_range_; begin += check_size) {
        const std::int64_t count = std::min(check_size, end - begin);
        if (!kernels().of(rows_.data).all_finite(rows_.data + begin, count)) not_finite_ = true;
        if (!add_up_entries(totals(run), begin, begin + count)) out_of_range_ = true;
        fingerprints_[run].add(rows_.data + begin, count);
      }
    });
  }

  // False: a column number is none.
  bool add_up_entries(ColumnTotal* totals, std::int64_t begin, std::int64_t end) const {
    const Index* indices = rows_.indices;
    const T* data = rows_.data;
    const auto p = static_cast<std::uint64_t>(p_);
    for (std::int64_t k = begin; k < end; ++k) {
      const auto j = static_cast<std::uint64_t>(indices[k]);  // a negative one becomes very large
      if (j >= p) return false;
      prefetch(totals, indices[std::min(k + prefetched, nnz_ - 1)]);
      ColumnTotal& total = totals[j];
      total.magnitude += std::fabs(static_cast<float>(data[k]));
      ++total.count;
    }
    return true;
  }

  // The number may be that of no column: an address that is never read may be anything.
  template <class Entry>
  static void prefetch(const Entry* table, Index j) {
    const auto address = reinterpret_cast<std::uintptr_t>(table) + static_cast<std::uintptr_t>(j) * sizeof(Entry);
    __builtin_prefetch(reinterpret_cast<const void*>(address), 1);
  }

  std::int64_t add_up_columns(ThreadTeam& team) {
    std::atomic<std::int64_t> n_all{0};
    for_column_parts(team, [&](std::int64_t, std::int64_t first, std::int64_t last) {
      std::int64_t entries = 0;
      for (std::int64_t j = first; j < last; ++j) {
        ColumnTotal& sum = all_.data()[j];
        for (const auto& own : own_totals_) {
          sum.magnitude += own.data()[j].magnitude;
          sum.count += own.data()[j].count;
        }
        entries += sum.count;
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
  const char* write_as(const CscBuffers& columns, ThreadTeam& team) {
    auto* indptr = static_cast<Out*>(columns.indptr);
    std::vector<LargeArray<Out>> places = find_places(indptr, team);
    own_totals_.clear();
    std::atomic<bool> changed{false};
    team.for_all(n_runs_, [&](std::int64_t run, int) {
      Fingerprint now;
      const std::int64_t end = first_entry(run + 1);
      for (std::int64_t begin = first_entry(run); begin < end; begin += check_size)
        now.add(rows_.data + begin, std::min(check_size, end - begin));
      if (now.lanes != fingerprints_[run].lanes) changed = true;  // columns were dropped by other values
      place_entries(run, places[run].data(), indptr[p_], columns.indices, static_cast<T*>(columns.data));
    });
    for (std::int64_t j = 0; j < p_; ++j) {
      if (kept_[j] && places.back().data()[j] != indptr[j + 1]) changed = true;
    }
    if (changed) return "changed";
    return has_repeated_entries(indptr, columns.indices, team) ? "unsorted" : "";
  }

  // Where the entries of each run go, by column: behind those of the runs before it. -1 for a column that is not
  // kept.
  template <class Out>
  std::vector<LargeArray<Out>> find_places(Out* indptr, ThreadTeam& team) {
    std::vector<LargeArray<Out>> places(n_runs_);
    for (auto& own : places) own = LargeArray<Out>(p_);
    std::vector<std::int64_t> before(column_parts(team) + 1);
    for_column_parts(team, [&](std::int64_t part, std::int64_t first, std::int64_t last) {
      std::int64_t sum = 0;
      for (std::int64_t j = first; j < last; ++j) sum += kept_count(j);
      before[part + 1] = sum;
    });
    for (std::size_t part = 1; part < before.size(); ++part) before[part] += before[part - 1];
    for_column_parts(team, [&](std::int64_t part, std::int64_t first, std::int64_t last) {
      auto at = static_cast<Out>(before[part]);
      for (std::int64_t j = first; j < last; ++j) {
        indptr[j] = at;
        for (std::int64_t run = 0; run < n_runs_; ++run) {
          places[run].data()[j] = kept_[j] ? at : Out{-1};
          if (kept_[j]) at += static_cast<Out>(totals(run)[j].count);
        }
      }
    });
    indptr[p_] = static_cast<Out>(before.back());
    return places;
  }

  // An entry whose place is known, and being fetched.
  template <class Out>
  struct Pending {
    Out at;
    std::int32_t row;
    T value;
  };

  // Entries are collected and written when the next ones have been, so that their places are in the cache by then.
  template <class Out>
  void place_entries(std::int64_t run, Out* place, Out n_entries, std::int32_t* out_rows, T* out_values) {
    constexpr std::size_t enough = 64;
    const Index* indices = rows_.indices;
    const std::int64_t last = std::max<std::int64_t>(first_entry(run + 1) - 1, 0);
    std::vector<Pending<Out>> collected, waiting;
    std::size_t n_collected = 0, n_waiting = 0;
    const auto write_waiting = [&] {
      for (std::size_t k = 0; k < n_waiting; ++k) {
        const Pending<Out>& entry = waiting[k];
        out_rows[entry.at] = entry.row;
        out_values[entry.at] = entry.value;
      }
      collected.swap(waiting);
      n_waiting = n_collected;
      n_collected = 0;
    };
    for (std::int64_t i = cuts_[run]; i < cuts_[run + 1]; ++i) {
      const auto begin = static_cast<std::int64_t>(rows_.indptr[i]),
                 end = static_cast<std::int64_t>(rows_.indptr[i + 1]);
      const std::size_t room = n_collected + static_cast<std::size_t>(end - begin) + 1;
      if (collected.size() < room) collected.resize(2 * room);
      Pending<Out>* next = collected.data() + n_collected;
      for (std::int64_t k = begin; k < end; ++k) {
        prefetch(place, indices[std::min(k + prefetched, last)]);
        if (static_cast<std::uint64_t>(indices[k]) >= static_cast<std::uint64_t>(p_)) continue;  // changed since
        Out& own = place[indices[k]];
        const Out at = own;
        const bool kept = at >= 0 && at < n_entries;
        *next = {at, static_cast<std::int32_t>(i), rows_.data[k]};
        __builtin_prefetch(out_rows + (kept ? at : 0), 1);
        __builtin_prefetch(out_values + (kept ? at : 0), 1);
        own = at + static_cast<Out>(kept);
        next += kept;  // without a branch, which could not be predicted
      }
      n_collected = static_cast<std::size_t>(next - collected.data());
      if (n_collected >= enough) write_waiting();
    }
    write_waiting();
    write_waiting();
  }

  // Rows ascend in every column, except where an entry occurs twice.
  template <class Out>
  bool has_repeated_entries(const Out* indptr, const std::int32_t* indices, ThreadTeam& team) const {
    std::atomic<std::int64_t> falls{0};
    const auto entries = static_cast<std::int64_t>(indptr[p_]);
    const std::int64_t n_checks = entries < (1 << 22) ? 1 : 4 * team.size();
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
  bool is_written_ = false;
  std::vector<std::int64_t> cuts_;                   // the rows of each run
  std::vector<Fingerprint> fingerprints_;            // of the values of each run, when they were scanned
  std::vector<LargeArray<ColumnTotal>> own_totals_;  // of each of several runs; given up for the places
  std::atomic<bool> out_of_range_{false}, not_finite_{false};
};

}  // namespace blockgreedy
