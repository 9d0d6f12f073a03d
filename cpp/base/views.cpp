#include <algorithm>
#include <numeric>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

namespace {

enum Fault : int { none, pointers, row_range, unsorted, not_finite };

// Columns are often short, so entries are checked as one run, whatever columns they belong to.
template <class T>
Fault entries_fault(const CscView<T>& view, std::int64_t begin, std::int64_t end, std::int64_t& falls) {
  const std::int64_t before = begin > 0 ? begin - 1 : 0;
  const RowNumbers rows = kernels().row_numbers(view.indices + before, end - before);
  falls += rows.falls;
  if (rows.lowest < 0 || rows.highest >= view.n_rows) return row_range;
  return kernels().of(view.data).all_finite(view.data + begin, end - begin) ? none : not_finite;
}

template <class T>
Fault entries_fault(const DenseView<T>& view, std::int64_t begin, std::int64_t end, std::int64_t&) {
  return kernels().of(view.data).all_finite(view.data + begin, end - begin) ? none : not_finite;
}

// In how many places the row numbers fall because a new column begins, which is no fault.
template <class T>
std::int64_t falls_between_columns(const CscView<T>& view, std::int64_t first, std::int64_t last) {
  std::int64_t falls = 0;
  for (std::int64_t j = first; j < last; ++j) {
    const std::int64_t start = view.start(j);
    if (start > 0 && start < view.start(j + 1)) falls += view.indices[start] <= view.indices[start - 1];
  }
  return falls;
}

template <class T>
std::int64_t falls_between_columns(const DenseView<T>&, std::int64_t, std::int64_t) {
  return 0;
}

template <class T>
bool pointers_ascend(const CscView<T>& view) {
  if (view.start(0) != 0) return false;
  bool ascend = true;
  for (std::int64_t j = 0; j < view.n_cols; ++j) ascend &= view.start(j + 1) >= view.start(j);
  return ascend;
}

template <class T>
bool pointers_ascend(const DenseView<T>&) {
  return true;
}

}  // namespace

const char* describe_fault(const Matrix& matrix, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) -> const char* {
        const std::int64_t n = view.n_nonzeros();
        int worst = none;
        if (!pointers_ascend(view)) {
          worst = pointers;
        } else if (n > 0) {
          // Checking runs at the speed of memory: below some megabytes starting a thread takes longer.
          const std::int64_t n_parts = n < (1 << 22) ? 1 : 4 * team.size();
          std::vector<Fault> faults(n_parts, none);
          std::vector<std::int64_t> falls(faults.size());  // less those between columns
          team.for_each(n_parts, [&](std::int64_t part, int) {
            const std::int64_t begin = n * part / n_parts, end = n * (part + 1) / n_parts;
            faults[part] = entries_fault(view, begin, end, falls[part]);
            falls[part] -=
                falls_between_columns(view, view.n_cols * part / n_parts, view.n_cols * (part + 1) / n_parts);
          });
          if (std::accumulate(falls.begin(), falls.end(), std::int64_t{0}) > 0) worst = unsorted;
          // The lowest fault wins, so that the message does not depend on the parts.
          for (Fault fault : faults) {
            if (fault != none && (worst == none || fault < worst)) worst = fault;
          }
        }
        switch (worst) {
          case pointers:
            return "indptr";
          case row_range:
            return "range";
          case unsorted:
            return "unsorted";
          case not_finite:
            return "finite";
          default:
            return "";
        }
      },
      matrix);
}

}  // namespace blockgreedy
