// Columns that lie in several matrices, one below the other, copied into one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"

namespace blockgreedy {

// Some rows of the columns that are wanted.
template <class T>
struct ColumnPart {
  CscView<T> matrix;
  std::int32_t first_row;       // of the matrix, in the rows of the result
  const std::int32_t* columns;  // for each wanted column its number here, −1 where it has no entries
};

template <class T>
struct GatheredColumns {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<T> data;
};

// `parts` ascend in their rows, as far as they share columns.
template <class T>
GatheredColumns<T> gather_columns(const std::vector<ColumnPart<T>>& parts, std::int64_t n_wanted, ThreadTeam& team) {
  GatheredColumns<T> out;
  out.indptr.resize(n_wanted + 1);
  for (std::int64_t k = 0; k < n_wanted; ++k) {
    std::int64_t count = 0;
    for (const ColumnPart<T>& part : parts) count += part.columns[k] < 0 ? 0 : part.matrix.count(part.columns[k]);
    out.indptr[k + 1] = out.indptr[k] + count;
  }
  const std::int64_t total = out.indptr[n_wanted],
                     n_runs = std::min<std::int64_t>(64, std::max<std::int64_t>(n_wanted, 1));
  out.indices.resize(total);
  out.data.resize(total);
  team.for_work(n_runs, total, [&](std::int64_t run) {
    for (std::int64_t k = n_wanted * run / n_runs; k < n_wanted * (run + 1) / n_runs; ++k) {
      std::int64_t to = out.indptr[k];
      for (const ColumnPart<T>& part : parts) {
        if (part.columns[k] < 0) continue;
        const std::int64_t from = part.matrix.start(part.columns[k]), n = part.matrix.count(part.columns[k]);
        std::copy_n(part.matrix.data + from, n, out.data.begin() + to);
        for (std::int64_t i = 0; i < n; ++i) out.indices[to + i] = part.matrix.indices[from + i] + part.first_row;
        to += n;
      }
    }
  });
  return out;
}

}  // namespace blockgreedy
