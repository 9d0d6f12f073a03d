#include "math/certificate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

namespace blockgreedy {

namespace {

constexpr std::int64_t batch_size = 128;

// Calls visit(part, j, x_j·r) for every column, parts in parallel. With rounding > 0 the products are moved away from
// 0 by rounding·‖x_j‖, a bound of the error of summation, so that the certificate holds for any order of summation.
template <class Visit>
void for_each_product(const Matrix& matrix, const double* r, ThreadTeam& team, Visit visit, double rounding = 0) {
  std::visit(
      [&](const auto& view) {
        const auto cuts = equal_nonzero_cuts(view, n_column_parts);
        const auto run_part = [&](std::int64_t part, int) {
          std::array<double, batch_size> products;
          std::array<ColumnSums, batch_size> sums;
          std::array<std::int32_t, batch_size> columns;
          const std::int64_t end = cuts[part + 1];
          for (std::int64_t first = cuts[part]; first < end; first += batch_size) {
            const std::int64_t count = std::min(batch_size, end - first);
            if (rounding > 0) {
              std::iota(columns.begin(), columns.end(), static_cast<std::int32_t>(first));
              // With r as weights: rows where r is 0 do not add to the rounding error.
              kernels().of(view).sums(view, columns.data(), count, r, r, sums.data());
              for (std::int64_t k = 0; k < count; ++k)
                products[k] = sums[k].product + std::copysign(rounding * std::sqrt(sums[k].squares), sums[k].product);
            } else {
              kernels().of(view).dots(view, nullptr, first, count, r, products.data());
            }
            for (std::int64_t k = 0; k < count; ++k) visit(part, first + k, products[k]);
          }
        };
        if (view.n_nonzeros() < min_parallel_work) {
          for (std::int64_t part = 0; part < n_column_parts; ++part) run_part(part, 0);
        } else {
          team.for_each(n_column_parts, run_part);
        }
      },
      matrix);
}

using Partials = std::array<double, n_column_parts>;

double sum(const Partials& partials) {
  double total = 0;
  for (double v : partials) total += v;
  return total;
}

// Keeps a NaN, which std::max would drop: every comparison with it is false.
void raise_to(double& maximum, double v) {
  if (!(v <= maximum)) maximum = v;
}

double largest(const Partials& partials) {
  double maximum = 0;
  for (double v : partials) raise_to(maximum, v);
  return maximum;
}

}  // namespace

void column_products(const Matrix& matrix, const double* r, double* out, ThreadTeam& team) {
  for_each_product(matrix, r, team, [&](std::int64_t, std::int64_t j, double product) { out[j] = product; });
}

void predict(const Matrix& matrix, const double* w, double* Xw) {
  std::visit(
      [&](const auto& view) {
        std::fill(Xw, Xw + view.n_rows, 0.0);
        for (std::int64_t j = 0; j < view.n_cols; ++j) {
          const double weight = w[j];
          if (weight != 0) view.for_each_nonzero(j, [&](std::int32_t i, double x) { Xw[i] += weight * x; });
        }
      },
      matrix);
}

double objective(const CoreProblem& problem, std::int64_t n_rows, std::int64_t n_cols, const double* w,
                 const double* Xw, ThreadTeam& team) {
  constexpr std::int64_t chunk = 512;
  const RowSlices slices(n_rows);
  std::array<double, 64> loss_sums{};
  const auto values = kernels().of(problem.loss).values;
  const auto run_slice = [&](std::int64_t slice, int) {
    std::array<double, chunk> buffer, predictions;
    double total = 0;
    for (std::int64_t first = slices.begin(slice); first < slices.end(slice); first += chunk) {
      const std::int64_t count = std::min(chunk, slices.end(slice) - first);
      const double* at = Xw + first;
      if (problem.offset) {
        std::transform(at, at + count, problem.offset + first, predictions.begin(), std::plus<>());
        at = predictions.data();
      }
      values(problem.y + first, at, count, problem.loss.delta, buffer.data());
      total += problem.row_weights
                   ? std::inner_product(buffer.begin(), buffer.begin() + count, problem.row_weights + first, 0.0)
                   : kernels().sum(buffer.data(), count);
    }
    loss_sums[slice] = total;
  };
  if (n_rows < min_parallel_work) {
    for (std::int64_t slice = 0; slice < slices.count(); ++slice) run_slice(slice, 0);
  } else {
    team.for_each(slices.count(), run_slice);
  }
  double loss = 0;
  for (double v : loss_sums) loss += v;
  double penalty = 0;
  for (std::int64_t j = 0; j < n_cols; ++j) {
    if (w[j] != 0) penalty += problem.penalty.at(j).value(w[j]);
  }
  return (problem.row_weights ? loss : loss / static_cast<double>(n_rows)) + penalty;
}

double alpha_needed(const Matrix& matrix, const Penalty& penalty, const double* theta, bool at_null, double rounding,
                    ThreadTeam& team) {
  Partials needed{};
  const auto visit = [&](std::int64_t part, std::int64_t j, double product) {
    const double u = penalty.weight(j);
    if (u == 0 || u == infinity) return;
    const double bound = penalty.at(j).bound_towards(-product);
    if (at_null ? bound > 0 : bound == infinity) {
      raise_to(needed[part], std::fabs(product) / u);
    }
  };
  for_each_product(matrix, theta, team, visit, rounding);
  return largest(needed);
}

double penalty_conjugate(const Matrix& matrix, const Penalty& penalty, const double* theta, double scale,
                         double rounding, double most, ThreadTeam& team) {
  Partials sums{};
  const auto visit = [&](std::int64_t part, std::int64_t j, double product) {
    const CoordinatePenalty coordinate = penalty.at(j);
    if (!is_free(coordinate)) sums[part] += coordinate.conjugate(-scale * product, most);
  };
  for_each_product(matrix, theta, team, visit, rounding);
  return sum(sums);
}

double kkt_residual(const Matrix& matrix, const Penalty& penalty, const double* w, const double* theta,
                    ThreadTeam& team) {
  Partials worst{};
  for_each_product(matrix, theta, team, [&](std::int64_t part, std::int64_t j, double product) {
    raise_to(worst[part], penalty.at(j).subgradient_distance(w[j], product));
  });
  return largest(worst);
}

}  // namespace blockgreedy
