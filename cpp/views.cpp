#include <atomic>
#include <cmath>

#include "blockgreedy/threads.hpp"
#include "blockgreedy/views.hpp"

namespace blockgreedy {

namespace {

enum Fault : int { none, pointers, row_range, unsorted, not_finite };

template <class T>
Fault column_fault(const CscView<T>& view, std::int64_t j) {
  const std::int64_t begin = view.start(j), end = view.start(j + 1);
  std::int64_t previous = -1;
  bool finite = true;
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int32_t row = view.indices[k];
    if (row < 0 || row >= view.n_rows) return row_range;
    if (row <= previous) return unsorted;
    previous = row;
    finite &= std::isfinite(view.data[k]);
  }
  return finite ? none : not_finite;
}

template <class T>
Fault column_fault(const DenseView<T>& view, std::int64_t j) {
  bool finite = true;
  const T* column = view.data + j * view.n_rows;
  for (std::int64_t i = 0; i < view.n_rows; ++i) finite &= std::isfinite(column[i]);
  return finite ? none : not_finite;
}

template <class T>
bool pointers_ascend(const CscView<T>& view) {
  if (view.start(0) != 0) return false;
  for (std::int64_t j = 0; j < view.n_cols; ++j) {
    if (view.start(j + 1) < view.start(j)) return false;
  }
  return true;
}

template <class T>
bool pointers_ascend(const DenseView<T>&) {
  return true;
}

}  // namespace

const char* describe_fault(const Matrix& matrix, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) -> const char* {
        std::atomic<int> worst{none};
        if (!pointers_ascend(view)) {
          worst = pointers;
        } else {
          const std::int64_t n_parts = view.n_nonzeros() < min_parallel_work ? 1 : 4 * team.size();
          const auto cuts = equal_nonzero_cuts(view, n_parts);
          team.for_each(n_parts, [&](std::int64_t part, int) {
            int found = none;
            const auto at = static_cast<std::size_t>(part);
            for (std::int64_t j = cuts[at]; j < cuts[at + 1]; ++j) {
              const int fault = column_fault(view, j);
              // The lowest fault wins, so that the message does not depend on the cuts.
              if (fault != none && (found == none || fault < found)) found = fault;
            }
            int current = worst.load();
            while (found != none && (current == none || found < current) &&
                   !worst.compare_exchange_weak(current, found)) {
            }
          });
        }
        switch (worst.load()) {
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
