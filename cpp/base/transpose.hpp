// Compressed rows → compressed columns with all threads, checked on the way.
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

// Where the columns go; Out holds the number of nonzeros.
template <class Out, class T>
struct CscArrays {
  Out* indptr;
  std::int32_t* indices;
  T* data;
};

// "" or what is wrong with the rows, in the words of describe_fault; "unsorted" means that an entry occurs twice, and
// the columns are made all the same. Every thread takes a run of rows: it counts what goes to each column, then puts
// its entries behind those of the runs before it. Rows come out ascending, and the result does not depend on threads.
template <class Out, class Pointer, class Index, class T>
const char* transpose(const CsrArrays<Pointer, Index, T>& rows, const CscArrays<Out, T>& columns, ThreadTeam& team) {
  const std::int64_t n = rows.n_rows, p = rows.n_cols;
  if (rows.indptr[0] != 0) return "indptr";
  for (std::int64_t i = 0; i < n; ++i) {
    if (rows.indptr[i + 1] < rows.indptr[i]) return "indptr";
  }
  const auto nnz = static_cast<std::int64_t>(rows.indptr[n]);
  const std::int64_t n_runs = nnz < 200000 ? 1 : team.size();
  std::vector<std::int64_t> cuts(static_cast<std::size_t>(n_runs) + 1, n);
  cuts[0] = 0;
  for (std::int64_t run = 1; run < n_runs; ++run) {
    cuts[static_cast<std::size_t>(run)] =
        std::lower_bound(rows.indptr, rows.indptr + n, static_cast<Pointer>(nnz * run / n_runs)) - rows.indptr;
  }
  std::vector<std::vector<Out>> places(static_cast<std::size_t>(n_runs));
  std::atomic<bool> out_of_range{false}, not_finite{false};

  team.for_all(n_runs, [&](std::int64_t run, int) {
    std::vector<Out>& counts = places[static_cast<std::size_t>(run)];
    counts.assign(static_cast<std::size_t>(p), 0);
    const auto begin = static_cast<std::int64_t>(rows.indptr[cuts[static_cast<std::size_t>(run)]]);
    const auto end = static_cast<std::int64_t>(rows.indptr[cuts[static_cast<std::size_t>(run) + 1]]);
    for (std::int64_t k = begin; k < end; ++k) {
      const Index j = rows.indices[k];
      if (j < 0 || j >= p) {
        out_of_range = true;
        return;
      }
      ++counts[static_cast<std::size_t>(j)];
    }
    if (!kernels().of(rows.data).all_finite(rows.data + begin, end - begin)) not_finite = true;
  });
  if (out_of_range) return "range";

  // Counts become places, by blocks of columns: sums of each block first, then their own prefix sums.
  const std::int64_t n_parts = p < 100000 ? 1 : 4 * team.size();
  std::vector<std::int64_t> before(static_cast<std::size_t>(n_parts) + 1);
  team.for_all(n_parts, [&](std::int64_t part, int) {
    std::int64_t sum = 0;
    for (const auto& counts : places) {
      for (std::int64_t j = p * part / n_parts; j < p * (part + 1) / n_parts; ++j)
        sum += counts[static_cast<std::size_t>(j)];
    }
    before[static_cast<std::size_t>(part) + 1] = sum;
  });
  for (std::size_t part = 0; part < static_cast<std::size_t>(n_parts); ++part) before[part + 1] += before[part];
  team.for_all(n_parts, [&](std::int64_t part, int) {
    auto at = static_cast<Out>(before[static_cast<std::size_t>(part)]);
    for (std::int64_t j = p * part / n_parts; j < p * (part + 1) / n_parts; ++j) {
      columns.indptr[j] = at;
      for (auto& counts : places) {
        const Out count = counts[static_cast<std::size_t>(j)];
        counts[static_cast<std::size_t>(j)] = at;
        at += count;
      }
    }
  });
  columns.indptr[p] = static_cast<Out>(nnz);

  team.for_all(n_runs, [&](std::int64_t run, int) {
    Out* place = places[static_cast<std::size_t>(run)].data();
    for (std::int64_t i = cuts[static_cast<std::size_t>(run)]; i < cuts[static_cast<std::size_t>(run) + 1]; ++i) {
      for (auto k = static_cast<std::int64_t>(rows.indptr[i]); k < static_cast<std::int64_t>(rows.indptr[i + 1]);
           ++k) {
        const Out at = place[rows.indices[k]]++;
        columns.indices[at] = static_cast<std::int32_t>(i);
        columns.data[at] = rows.data[k];
      }
    }
  });
  // Rows ascend in every column, except where an entry occurs twice.
  std::atomic<std::int64_t> falls{0};
  const std::int64_t n_checks = nnz < (1 << 22) ? 1 : 4 * team.size();
  team.for_all(n_checks, [&](std::int64_t part, int) {
    const std::int64_t begin = std::max<std::int64_t>(nnz * part / n_checks - 1, 0),
                       end = nnz * (part + 1) / n_checks;
    std::int64_t own = end > begin ? kernels().row_numbers(columns.indices + begin, end - begin).falls : 0;
    for (std::int64_t j = p * part / n_checks; j < p * (part + 1) / n_checks; ++j) {
      const Out start = columns.indptr[j];
      if (start > 0 && start < columns.indptr[j + 1]) own -= columns.indices[start] <= columns.indices[start - 1];
    }
    falls += own;
  });
  if (falls > 0) return "unsorted";
  return not_finite ? "finite" : "";
}

}  // namespace blockgreedy
