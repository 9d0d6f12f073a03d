// Loops over rows, shared by the threads in fixed slices, so that sums come out the same for any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/threads.hpp"
#include "math/core_problem.hpp"

namespace blockgreedy {

class Rows {
 public:
  Rows(std::int64_t n_rows, ThreadTeam& team) : n_rows_(n_rows), slices_(n_rows), team_(&team) {}

  const RowSlices& slices() const { return slices_; }

  // Σ over slices of f(begin, end); `cost` of a row is relative to one addition.
  template <class F>
  double sum(std::int64_t cost, F&& f) const {
    std::array<double, 64> partial{};
    team_->for_work(slices_.count(), n_rows_ * cost,
                    [&](std::int64_t slice) { partial[slice] = f(slices_.begin(slice), slices_.end(slice)); });
    double sum = 0;
    for (double v : partial) sum += v;
    return sum;
  }

  template <class F>
  void for_each(F&& f) const {
    team_->for_work(slices_.count(), n_rows_, [&](std::int64_t slice) {
      for (std::int64_t i = slices_.begin(slice); i < slices_.end(slice); ++i) f(static_cast<std::size_t>(i));
    });
  }

  void copy(const std::vector<double>& from, std::vector<double>& to) const {
    for_each([&](std::size_t i) { to[i] = from[i]; });
  }

  // Σ f(i)
  template <class F>
  double total(F&& f) const {
    return sum(1, [&](std::int64_t begin, std::int64_t end) {
      // Eight sums, because each addition to a single one would wait for the one before.
      std::array<double, 8> sums{};
      std::int64_t i = begin;
      for (; i + 8 <= end; i += 8) {
        for (std::int64_t k = 0; k < 8; ++k) sums[k] += f(i + k);
      }
      double all = std::accumulate(sums.begin(), sums.end(), 0.0);
      for (; i < end; ++i) all += f(i);
      return all;
    });
  }

  double product(const double* a, const double* b) const {
    return total([=](std::int64_t i) { return a[i] * b[i]; });
  }

 private:
  std::int64_t n_rows_;
  RowSlices slices_;
  ThreadTeam* team_;
};

}  // namespace blockgreedy
