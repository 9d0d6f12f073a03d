#include "working_set/row_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernels/kernels.hpp"

namespace blockgreedy {

// `curvature_margin` of RowRun. Losses whose curvature vanishes on slopes take the margin below which they are
// majorised, the others the distance from a kink of the derivative within which a row counts as curved.
double RowState::safeguard() const {
  if (traits_.curvature_vanishes_on_slopes) return majorise_ ? Tuning::Curvature::majorised_margin : -infinity;
  return largest_change_;
}

double RowState::evaluate(const double* along, double size, std::vector<double>& derivatives,
                          std::vector<float>& roots) {
  const RowRun run{problem_.y,
                   problem_.row_weights,
                   1.0 / static_cast<double>(n_rows_),
                   problem_.loss.delta,
                   safeguard(),
                   damping_,
                   predictions.data(),
                   along,
                   size,
                   derivatives.data(),
                   roots.data()};
  const auto advance_rows = loss_kernels(problem_.loss).advance;
  return rows_.sum(4, [&](std::int64_t begin, std::int64_t end) { return advance_rows(run, begin, end); });
}

void RowState::accept_trial(const AcceptedStep& step) {
  adapt_safeguards(step);
  rows_.for_each([&](std::size_t i) { predictions[i] += step.size * direction[i]; });
  is_one_sum = are_zero && step.size == 1;
  are_zero = false;
  theta.swap(trial_theta);
  root_curvature.swap(trial_root_curvature);
  if (!step.is_extension) apply_secants(step.size >= 1);
}

void RowState::adapt_safeguards(const AcceptedStep& step) {
  using T = Tuning::Curvature;
  majorise_ = step.size < 1 || step.large_decrease;
  if (!traits_.has_flat_parts) return;
  if (!step.is_extension) {
    damping_ = step.size >= 1 ? std::max(T::damping_down * damping_, T::min_damping)
                              : std::min(T::damping_up * damping_, T::max_damping);
    largest_change_ = 0;
  }
  for (double v : direction) largest_change_ = std::max(largest_change_, step.size * std::fabs(v));
}

void RowState::remember_secants(double size) {
  secant_roots_.resize(theta.size());
  has_secants_ = true;
  rows_.for_each([&](std::size_t i) {
    const double secant = (trial_theta[i] - theta[i]) / (size * direction[i]);
    if (secant > 0) secant_roots_[i] = std::max(secant_roots_[i], static_cast<float>(std::sqrt(secant)));
  });
}

void RowState::apply_secants(bool full_step) {
  if (!has_secants_) return;
  const float fade = full_step ? Tuning::Curvature::secant_fade : 1.0F;
  const double left = rows_.sum(1, [&](std::int64_t begin, std::int64_t end) {
    double count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      secant_roots_[i] *= fade;
      if (secant_roots_[i] <= root_curvature[i]) secant_roots_[i] = 0;
      else root_curvature[i] = secant_roots_[i];
      count += secant_roots_[i] > 0;
    }
    return count;
  });
  has_secants_ = left > 0;
}

double RowState::curvature(bool at_trial) const {
  const float* root = at_trial ? trial_root_curvature.data() : root_curvature.data();
  return rows_.total([root, along = direction.data()](std::int64_t i) {
    const double v = static_cast<double>(root[i]) * along[i];
    return v * v;
  });
}

void RowState::predict_theta(std::vector<double>& out) const {
  out.resize(theta.size());
  rows_.for_each([&](std::size_t i) {
    const auto root = static_cast<double>(root_curvature[i]);
    out[i] = theta[i] + root * root * direction[i];
  });
}

double RowState::loss_at(const std::vector<double>& at) const {
  const auto losses = loss_kernels(problem_.loss).values;
  return rows_.sum(4, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t chunk = 256;
    std::array<double, chunk> value;
    double sum = 0;
    for (std::int64_t first = begin; first < end; first += chunk) {
      const std::int64_t n = std::min(chunk, end - first);
      losses(problem_.y + first, at.data() + first, n, problem_.loss.delta, value.data());
      if (problem_.row_weights)
        sum += std::inner_product(value.begin(), value.begin() + n, problem_.row_weights + first, 0.0);
      else sum += kernels().sum(value.data(), n) / static_cast<double>(n_rows_);
    }
    return sum;
  });
}

double RowState::norm(const std::vector<double>& v) const { return std::sqrt(rows_.product(v.data(), v.data())); }

double RowState::sum(const std::vector<double>& v) const {
  return rows_.sum(
      1, [&](std::int64_t begin, std::int64_t end) { return kernels().sum(v.data() + begin, end - begin); });
}

}  // namespace blockgreedy
