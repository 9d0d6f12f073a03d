// Sums over the rows that a rank of the tile solver owns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/rows.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

struct OwnRows {
  const double *y, *weights;
  std::int64_t n_rows;
  Loss loss;

  // Fills θ and √curvature at the predictions, of the quadratic that the next step minimises; returns the loss.
  double evaluate(const double* predictions, double margin, double flat, double* theta, float* root,
                  ThreadTeam& team) const {
    const RowRun run{y, weights, 0.0, loss.delta, margin, flat, predictions, nullptr, 0.0, theta, root};
    const auto advance = loss_kernels(loss).advance;
    return Rows(n_rows, team).sum(4, [&](std::int64_t begin, std::int64_t end) { return advance(run, begin, end); });
  }

  // out_k = the loss at predictions + steps_k·direction.
  void losses_along(const double* predictions, const double* direction, const double* steps, std::int64_t n_steps,
                    double* out, ThreadTeam& team) const {
    const RowSlices slices(n_rows);
    std::vector<double> partial(slices.count() * n_steps);
    const auto values = loss_kernels(loss).values;
    team.for_work(slices.count(), 4 * n_rows * n_steps, [&](std::int64_t slice) {
      constexpr std::int64_t chunk = 256;
      std::array<double, chunk> at, value;
      for (std::int64_t first = slices.begin(slice); first < slices.end(slice); first += chunk) {
        const std::int64_t n = std::min(chunk, slices.end(slice) - first);
        for (std::int64_t k = 0; k < n_steps; ++k) {
          for (std::int64_t i = 0; i < n; ++i) at[i] = predictions[first + i] + steps[k] * direction[first + i];
          values(y + first, at.data(), n, loss.delta, value.data());
          double sum = 0;
          for (std::int64_t i = 0; i < n; ++i) sum += weights[first + i] * value[i];
          partial[slice * n_steps + k] += sum;
        }
      }
    });
    for (std::int64_t k = 0; k < n_steps; ++k) {
      out[k] = 0;
      for (std::int64_t slice = 0; slice < slices.count(); ++slice) out[k] += partial[slice * n_steps + k];
    }
  }
};

}  // namespace blockgreedy
