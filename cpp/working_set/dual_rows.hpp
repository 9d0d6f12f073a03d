// The rows of dual points: the domain of the loss's conjugate, and sums of conjugates.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/rows.hpp"
#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

class DualRows {
 public:
  DualRows(std::int64_t n_rows, const CoreProblem& problem, ThreadTeam& team)
      : n_rows_(n_rows), problem_(problem), rows_(n_rows, team) {}

  double weight(std::int64_t i) const {
    return problem_.row_weights ? problem_.row_weights[i] : 1.0 / static_cast<double>(n_rows_);
  }

  // Moves each row into the domain of the loss's conjugate. Calls moved(i) for those that were outside by more than
  // rounding, and returns how many these were.
  template <class Moved>
  double into_domain(std::vector<double>& point, Moved&& moved) const {
    if (problem_.loss.traits().is_quadratic) return 0;  // no bounds
    return sum_inside(point, 1.0, [&](std::int64_t first, std::int64_t count, const double* u) {
      double n_moved = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const double own = weight(first + i), inside = own * u[i];
        if (std::fabs(inside - point[first + i]) > T::row_rounding * std::max(own, std::fabs(inside))) {
          moved(first + i);
          ++n_moved;
        }
        point[first + i] = inside;
      }
      return n_moved;
    });
  }
  void into_domain(std::vector<double>& point) const {
    into_domain(point, [](std::int64_t) {});
  }

  // Σ ω loss*(y, scale·θ/ω), with θ brought into the domain.
  double conjugate(const std::vector<double>& point, double scale) const {
    return sum_inside(point, scale, [&](std::int64_t first, std::int64_t count, const double* u) {
      return conjugate_of(first, count, u);
    });
  }

  // −Σ ω loss*(y, θ/ω), −∞ from a row outside of the domain; NaN is outside as well.
  double value(const std::vector<double>& point) const {
    if (problem_.loss.traits().is_quadratic) {  // no bounds: only NaN is outside
      const double all = -conjugate(point, 1.0);
      return std::isnan(all) ? -infinity : all;
    }
    return sum_inside(point, 1.0, [&](std::int64_t first, std::int64_t count, const double* u) {
      return is_inside(point.data() + first, first, count, u) ? -conjugate_of(first, count, u) : -infinity;
    });
  }

 private:
  using T = Tuning::Proof;
  static constexpr std::int64_t chunk = 256;

  // Calls f(first, count, u) with u = θ/ω brought into the conjugate's domain, rows a few at a time; sums what f
  // returns.
  template <class F>
  double sum_inside(const std::vector<double>& point, double scale, F&& f) const {
    return rows_.sum(8, [&](std::int64_t begin, std::int64_t end) {
      std::array<double, chunk> u;
      double sum = 0;
      for (std::int64_t first = begin; first < end; first += chunk) {
        const std::int64_t count = std::min(chunk, end - first);
        if (problem_.row_weights) {
          for (std::int64_t i = 0; i < count; ++i) {
            const double own = problem_.row_weights[first + i];
            u[i] = own > 0 ? scale * point[first + i] / own : 0.0;
          }
        } else {
          const double all = scale * static_cast<double>(n_rows_);
          for (std::int64_t i = 0; i < count; ++i) u[i] = all * point[first + i];
        }
        loss_kernels(problem_.loss).into_domain(problem_.y + first, u.data(), count, problem_.loss.delta);
        sum += f(first, count, u.data());
      }
      return sum;
    });
  }

  double conjugate_of(std::int64_t first, std::int64_t count, const double* u) const {
    std::array<double, chunk> value;
    loss_kernels(problem_.loss).conjugates(problem_.y + first, u, count, problem_.loss.delta, value.data());
    if (!problem_.row_weights) return kernels().sum(value.data(), count) / static_cast<double>(n_rows_);
    return std::inner_product(value.begin(), value.begin() + count, problem_.row_weights + first, 0.0);
  }

  // Whether θ is ω·u in these rows but for rounding, u being inside of the domain.
  bool is_inside(const double* theta, std::int64_t first, std::int64_t count, const double* u) const {
    const auto all_inside = [&](auto weight_of) {
      std::int64_t n_inside = 0;  // counted without a branch
      for (std::int64_t i = 0; i < count; ++i) {
        const double own = weight_of(i), size = std::fabs(u[i]), outside = theta[i] - own * u[i];
        n_inside += std::fabs(outside) <= T::domain_rounding * own * (size > 1 ? size : 1.0) ? 1 : 0;
      }
      return n_inside == count;
    };
    if (problem_.row_weights) return all_inside([&](std::int64_t i) { return problem_.row_weights[first + i]; });
    return all_inside([own = 1.0 / static_cast<double>(n_rows_)](std::int64_t) { return own; });
  }

  const std::int64_t n_rows_;
  const CoreProblem& problem_;
  Rows rows_;
};

}  // namespace blockgreedy
