#include "family/intercept.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace blockgreedy {

namespace {

constexpr int max_steps = 200;
constexpr std::int64_t chunk = 256;
constexpr std::int64_t n_lanes = 8;  // sums side by side, because each addition to a single one waits for the last

}  // namespace

InterceptFit::InterceptFit(const CoreProblem& problem, std::int64_t n_rows, const InterceptRange& range,
                           ThreadTeam& team)
    : problem_(problem),
      n_rows_(n_rows),
      range_(range),
      slices_(n_rows),
      row_scale_(problem.row_scale(n_rows)),
      // What a sum may be off by, relative to that of the magnitudes: it grows with the root of the terms of a lane.
      rounding_(2 * std::numeric_limits<double>::epsilon() *
                (1 + std::sqrt(static_cast<double>(n_rows / (slices_.count() * n_lanes))))),
      team_(&team) {}

InterceptFit::Slopes InterceptFit::slopes(const double* predictions, double shift) const {
  std::array<Slopes, 64> partial{};
  team_->for_work(slices_.count(), 4 * n_rows_, [&](std::int64_t slice) {
    std::array<double, chunk> t, first, second;
    std::array<Slopes, n_lanes> lanes{};
    const LossKernels& loss = kernels().of(problem_.loss);
    for (std::int64_t at = slices_.begin(slice); at < slices_.end(slice); at += chunk) {
      const std::int64_t count = std::min(chunk, slices_.end(slice) - at);
      for (std::int64_t k = 0; k < count; ++k) t[k] = predictions[at + k] + shift;
      loss.derivs(problem_.y + at, t.data(), count, problem_.loss.delta, first.data());
      loss.curvatures(problem_.y + at, t.data(), count, problem_.loss.delta, second.data());
      for (std::int64_t k = 0; k < count; ++k) {
        const double weight = problem_.row_weights ? problem_.row_weights[at + k] : 1.0;
        Slopes& lane = lanes[k % n_lanes];
        lane.first += weight * first[k];
        lane.second += weight * second[k];
        lane.size += weight * std::fabs(first[k]);
      }
    }
    for (const Slopes& lane : lanes) {
      partial[slice].first += lane.first;
      partial[slice].second += lane.second;
      partial[slice].size += lane.size;
    }
  });
  Slopes total;
  for (const Slopes& part : partial) {
    total.first += part.first;
    total.second += part.second;
    total.size += part.size;
  }
  return {row_scale_ * total.first, row_scale_ * total.second, row_scale_ * total.size};
}

// Derivatives increase with the prediction, so the root lies between those that the least and the greatest prediction
// (or residual) alone would have.
std::pair<double, double> InterceptFit::bracket(const double* predictions) const {
  double least = infinity, greatest = -infinity;
  for (std::int64_t i = 0; i < n_rows_; ++i) {
    if (problem_.row_weights && !(problem_.row_weights[i] > 0)) continue;
    const double v = range_.is_of_targets ? problem_.y[i] - predictions[i] : predictions[i];
    least = std::min(least, v);
    greatest = std::max(greatest, v);
  }
  if (range_.is_of_targets) return {least, greatest};
  return {range_.low - greatest, range_.high - least};
}

double InterceptFit::best_shift(const double* predictions) const {
  if (problem_.loss.traits().is_quadratic) {
    double b = -slopes(predictions, 0).first;
    b -= slopes(predictions, b).first;  // what rounding left
    return std::isfinite(b) ? b : 0.0;
  }
  auto [low, high] = bracket(predictions);
  if (!std::isfinite(low) || !std::isfinite(high)) return 0;
  if (range_.only_class != 0) return range_.only_class > 0 ? high : low;
  double b = std::min(std::max(0.0, low), high), previous = high - low;
  for (int step = 0; step < max_steps; ++step) {
    if (step > 0 && team_->poll()) return 0;  // an unfinished search may lead to a worse place
    const Slopes now = slopes(predictions, b);
    if (!std::isfinite(now.first)) return 0;
    if (!(std::fabs(now.first) > rounding_ * now.size)) break;
    (now.first > 0 ? high : low) = b;
    double trial = now.second > 0 ? b - now.first / now.second : infinity;
    if (!(low < trial && trial < high) || std::fabs(trial - b) > 0.5 * previous) trial = low + 0.5 * (high - low);
    if (!(low < trial && trial < high)) break;
    previous = std::fabs(trial - b);
    b = trial;
  }
  return b;
}

}  // namespace blockgreedy
