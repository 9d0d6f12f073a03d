// Compressed rows → compressed columns, in parallel; the rows are checked on the way.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

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

// Where the columns are written. The number of nonzeros must fit in Out.
template <class Out, class T>
struct CscArrays {
  Out* indptr;
  std::int32_t* indices;
  T* data;
};

// Every thread takes a run of rows: it counts what goes to each column, then puts its entries behind those of the
// runs before it. Rows come out ascending, and the result does not depend on the number of threads.
template <class Out, class Pointer, class Index, class T>
class Transposition {
 public:
  Transposition(const CsrArrays<Pointer, Index, T>& rows, const CscArrays<Out, T>& columns, ThreadTeam& team)
      : rows_(rows), columns_(columns), team_(team), n_(rows.n_rows), p_(rows.n_cols) {}

  const char* run() {
    if (!pointers_ascend()) return "indptr";
    nnz_ = static_cast<std::int64_t>(rows_.indptr[n_]);
    cut_rows();
    count_entries();
    if (out_of_range_) return "range";
    counts_to_places();
    place_entries();
    if (has_repeated_entries()) return "unsorted";
    return not_finite_ ? "finite" : "";
  }

 private:
  bool pointers_ascend() const {
    if (rows_.indptr[0] != 0) return false;
    for (std::int64_t i = 0; i < n_; ++i) {
      if (rows_.indptr[i + 1] < rows_.indptr[i]) return false;
    }
    return true;
  }

  void cut_rows() {
    n_runs_ = nnz_ < 200000 ? 1 : team_.size();
    cuts_.assign(n_runs_ + 1, n_);
    cuts_[0] = 0;
    for (std::int64_t run = 1; run < n_runs_; ++run) {
      const auto entry = static_cast<Pointer>(nnz_ * run / n_runs_);
      cuts_[run] = std::lower_bound(rows_.indptr, rows_.indptr + n_, entry) - rows_.indptr;
    }
    places_.resize(n_runs_);
  }

  // Of every run and column, into places_.
  void count_entries() {
    team_.for_all(n_runs_, [&](std::int64_t run, int) {
      std::vector<Out>& counts = places_[run];
      counts.assign(p_, 0);
      const auto begin = static_cast<std::int64_t>(rows_.indptr[cuts_[run]]);
      const auto end = static_cast<std::int64_t>(rows_.indptr[cuts_[run + 1]]);
      const Index* indices = rows_.indices;
      const std::int64_t p = p_;
      Out* count = counts.data();
      for (std::int64_t k = begin; k < end; ++k) {
        const Index j = indices[k];
        if (j < 0 || j >= p) {
          out_of_range_ = true;
          return;
        }
        ++count[j];
      }
      if (!kernels().of(rows_.data).all_finite(rows_.data + begin, end - begin)) not_finite_ = true;
    });
  }

  // Counts become places, by blocks of columns: sums of each block first, then their own prefix sums.
  void counts_to_places() {
    const std::int64_t n_parts = p_ < 100000 ? 1 : 4 * team_.size();
    std::vector<std::int64_t> before(n_parts + 1);
    team_.for_all(n_parts, [&](std::int64_t part, int) {
      std::int64_t sum = 0;
      for (const auto& counts : places_) {
        for (std::int64_t j = p_ * part / n_parts; j < p_ * (part + 1) / n_parts; ++j) sum += counts[j];
      }
      before[part + 1] = sum;
    });
    for (std::int64_t part = 0; part < n_parts; ++part) before[part + 1] += before[part];
    team_.for_all(n_parts, [&](std::int64_t part, int) {
      auto at = static_cast<Out>(before[part]);
      for (std::int64_t j = p_ * part / n_parts; j < p_ * (part + 1) / n_parts; ++j) {
        columns_.indptr[j] = at;
        for (auto& counts : places_) {
          const Out count = counts[j];
          counts[j] = at;
          at += count;
        }
      }
    });
    columns_.indptr[p_] = static_cast<Out>(nnz_);
  }

  void place_entries() {
    team_.for_all(n_runs_, [&](std::int64_t run, int) {
      Out* place = places_[run].data();
      const CsrArrays<Pointer, Index, T> rows = rows_;
      const CscArrays<Out, T> columns = columns_;
      for (std::int64_t i = cuts_[run], last = cuts_[run + 1]; i < last; ++i) {
        const auto end = static_cast<std::int64_t>(rows.indptr[i + 1]);
        for (auto k = static_cast<std::int64_t>(rows.indptr[i]); k < end; ++k) {
          const Out at = place[rows.indices[k]]++;
          columns.indices[at] = static_cast<std::int32_t>(i);
          columns.data[at] = rows.data[k];
        }
      }
    });
  }

  // Rows ascend in every column, except where an entry occurs twice.
  bool has_repeated_entries() const {
    std::atomic<std::int64_t> falls{0};
    const std::int64_t n_checks = nnz_ < (1 << 22) ? 1 : 4 * team_.size();
    team_.for_all(n_checks, [&](std::int64_t part, int) {
      const std::int64_t begin = std::max<std::int64_t>(nnz_ * part / n_checks - 1, 0);
      const std::int64_t end = nnz_ * (part + 1) / n_checks;
      std::int64_t own = end > begin ? kernels().row_numbers(columns_.indices + begin, end - begin).falls : 0;
      for (std::int64_t j = p_ * part / n_checks; j < p_ * (part + 1) / n_checks; ++j) {
        const Out start = columns_.indptr[j];
        if (start > 0 && start < columns_.indptr[j + 1]) {
          own -= columns_.indices[start] <= columns_.indices[start - 1];
        }
      }
      falls += own;
    });
    return falls > 0;
  }

  const CsrArrays<Pointer, Index, T> rows_;
  const CscArrays<Out, T> columns_;
  ThreadTeam& team_;
  const std::int64_t n_, p_;
  std::int64_t nnz_ = 0, n_runs_ = 0;
  std::vector<std::int64_t> cuts_;        // the rows of each run
  std::vector<std::vector<Out>> places_;  // of each run and column: first the count, then where the next entry goes
  std::atomic<bool> out_of_range_{false}, not_finite_{false};
};

// "" or what is wrong with the rows, in the words of describe_fault; "unsorted" means that an entry occurs twice, and
// the columns are made all the same.
template <class Out, class Pointer, class Index, class T>
const char* transpose(const CsrArrays<Pointer, Index, T>& rows, const CscArrays<Out, T>& columns, ThreadTeam& team) {
  return Transposition<Out, Pointer, Index, T>(rows, columns, team).run();
}

}  // namespace blockgreedy
