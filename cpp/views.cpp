#include <atomic>
#include <cmath>

#include "blockgreedy/threads.hpp"
#include "blockgreedy/views.hpp"

namespace blockgreedy {

namespace {

enum Fault : int { none, pointers, row_range, unsorted, not_finite };

// x·0 is 0 exactly if x is finite, and adding it up needs no branch.
template <class T>
bool all_finite(const T* x, std::int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < n; ++k) sum += x[k] * T(0);
  return sum == 0;
}

template <class T>
Fault column_fault(const CscView<T>& view, std::int64_t j) {
  const std::int64_t n = view.count(j);
  if (n == 0) return none;
  const std::int32_t* rows = view.indices + view.start(j);
  std::int32_t lowest = rows[0], highest = rows[0];
  int falls = 0;
#pragma omp simd reduction(min : lowest) reduction(max : highest) reduction(+ : falls)
  for (std::int64_t k = 1; k < n; ++k) {
    lowest = rows[k] < lowest ? rows[k] : lowest;
    highest = rows[k] > highest ? rows[k] : highest;
    falls += rows[k] <= rows[k - 1];
  }
  if (lowest < 0 || highest >= view.n_rows) return row_range;
  if (falls > 0) return unsorted;
  return all_finite(view.data + view.start(j), n) ? none : not_finite;
}

template <class T>
Fault column_fault(const DenseView<T>& view, std::int64_t j) {
  return all_finite(view.data + j * view.n_rows, view.n_rows) ? none : not_finite;
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
          // Checking is little more than reading: below some megabytes a second thread takes longer to start.
          const std::int64_t n_parts = view.n_nonzeros() < (1 << 22) ? 1 : 4 * team.size();
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
