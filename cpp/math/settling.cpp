#include "math/settling.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace blockgreedy {

namespace {

constexpr std::int64_t most_columns = 300, most_entries = 1'000'000;  // as in solvers/polish.py
// A pivot of the correlations below this leaves too few digits for a step: columns depend on each other.
constexpr double least_pivot = 1e-8;
// Sizes that add up to so many times the predictions' cost two digits by cancellation.
constexpr double cancellation = 100;
// A step of this part of the weights is the last: what it leaves is its square. On a quadratic it leaves the rounding
// of its system, so that half of the least pivot will do.
constexpr double short_step = 1e-11, longest_last_step = 1e-5;
constexpr int most_steps = 12;
constexpr double allowed_violation = 1e-9;  // relative to the threshold, as in solvers/polish.py

template <class View>
class Settling {
 public:
  Settling(const View& view, const CoreProblem& problem) : view_(view), problem_(problem), n_(view.n_rows) {}

  std::optional<SettledPoint> run(const double* w, double intercept) {
    if (!choose(w) || !read(w, intercept)) return {};
    for (int k = 0;; ++k) {
      if (k == most_steps || !evaluate()) return {};
      if ((k == 0 || !problem_.loss.traits().is_quadratic) && !factorise()) return {};
      const double moved = step();
      if (!(moved >= 0)) return {};
      if (moved <= last_step()) break;
    }
    if (!evaluate() || breaks_threshold(w)) return {};
    SettledPoint point{std::vector<double>(w, w + view_.n_cols), intercept, objective()};
    for (std::size_t k = 0; k < features_.size(); ++k) point.weights[features_[k]] = values_[k];
    if (problem_.fit_intercept) point.intercept = values_.back();
    return point;
  }

 private:
  // The weights that move. False if one of them stands at a bound, or could leave 0 at no cost.
  bool choose(const double* w) {
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      const CoordinatePenalty own = problem_.penalty.at(j);
      if (w[j] == 0) {
        if (own.l1 == 0 && own.lower < 0 && own.upper > 0) return false;
        continue;
      }
      if (!(w[j] > own.lower && w[j] < own.upper)) return false;
      features_.push_back(static_cast<std::int32_t>(j));
      penalties_.push_back(own);
    }
    m_ = static_cast<std::int64_t>(features_.size()) + problem_.fit_intercept;
    return m_ > 0 && m_ <= most_columns && n_ * m_ <= most_entries;
  }

  // Copies the columns, the intercept's last. False if their sum nearly cancels.
  bool read(const double* w, double intercept) {
    columns_.assign(n_ * m_, 0.0);
    double size = 0;
    for (std::size_t k = 0; k < features_.size(); ++k) {
      double* out = columns_.data() + static_cast<std::int64_t>(k) * n_;
      double squares = 0;
      view_.for_each_nonzero(features_[k], [&](std::int32_t i, double x) {
        out[i] = x;
        squares += x * x;
      });
      values_.push_back(w[features_[k]]);
      size += std::fabs(values_.back()) * std::sqrt(squares);
    }
    if (problem_.fit_intercept) {
      std::fill(columns_.end() - n_, columns_.end(), 1.0);
      values_.push_back(intercept);
    }
    for (std::int64_t k = 0; k < m_; ++k) starts_.push_back(columns_.data() + k * n_);
    for (auto* v : {&predictions_, &theta_, &scaled_}) v->resize(n_);
    for (auto* v : {&grad_, &scales_, &step_}) v->resize(m_);
    system_.resize(m_ * m_);
    predict();
    double squares = 0;
    for (double v : predictions_) squares += v * v;
    return size <= cancellation * std::sqrt(squares);
  }

  double weight(std::int64_t i) const {
    return problem_.row_weights ? problem_.row_weights[i] : 1.0 / static_cast<double>(n_);
  }
  DenseView<double> columns() const { return {n_, m_, columns_.data()}; }

  void predict() {
    for (std::int64_t i = 0; i < n_; ++i) predictions_[i] = problem_.offset ? problem_.offset[i] : 0.0;
    kernels().f64.combine(starts_.data(), values_.data(), m_, n_, predictions_.data());
  }

  // θ and the gradient at the predictions. False if something overflowed.
  bool evaluate() {
    loss_kernels(problem_.loss).derivs(problem_.y, predictions_.data(), n_, problem_.loss.delta, theta_.data());
    for (std::int64_t i = 0; i < n_; ++i) theta_[i] *= weight(i);
    column_dots(columns(), nullptr, 0, m_, theta_.data(), grad_.data());
    for (std::size_t k = 0; k < features_.size(); ++k)
      grad_[k] += std::copysign(penalties_[k].l1, values_[k]) + penalties_[k].l2 * values_[k];
    return std::all_of(grad_.begin(), grad_.end(), [](double v) { return std::isfinite(v); });
  }

  // Cholesky's factor of the second derivatives, of columns scaled to length 1. False if one depends on the others.
  bool factorise() {
    std::vector<double> curvature(n_);
    loss_kernels(problem_.loss)
        .curvatures(problem_.y, predictions_.data(), n_, problem_.loss.delta, curvature.data());
    for (std::int64_t i = 0; i < n_; ++i) curvature[i] *= weight(i);
    for (std::int64_t k = 0; k < m_; ++k) {
      for (std::int64_t i = 0; i < n_; ++i) scaled_[i] = curvature[i] * columns_[k * n_ + i];
      column_dots(columns(), nullptr, 0, k + 1, scaled_.data(), system_.data() + k * m_);
      if (k < static_cast<std::int64_t>(features_.size())) system_[k * m_ + k] += penalties_[k].l2;
      if (!(system_[k * m_ + k] > 0)) return false;
      scales_[k] = 1 / std::sqrt(system_[k * m_ + k]);
    }
    for (std::int64_t k = 0; k < m_; ++k) {
      double* own = system_.data() + k * m_;
      for (std::int64_t l = 0; l <= k; ++l) {
        const double* other = system_.data() + l * m_;
        double sum = own[l] * scales_[k] * scales_[l];
        for (std::int64_t c = 0; c < l; ++c) sum -= own[c] * other[c];
        if (l < k) own[l] = sum / other[l];
        else if (sum > least_pivot) own[l] = std::sqrt(sum);
        else return false;
        if (l == k) lowest_pivot_ = std::min(lowest_pivot_, sum);
      }
    }
    return true;
  }

  double last_step() const {
    return problem_.loss.traits().is_quadratic ? std::clamp(0.5 * lowest_pivot_, short_step, longest_last_step)
                                               : short_step;
  }

  // A full step; returns its size beside the largest weight, −1 if a weight would change its sign or pass a bound.
  double step() {
    for (std::int64_t k = 0; k < m_; ++k) {
      double sum = -grad_[k] * scales_[k];
      for (std::int64_t c = 0; c < k; ++c) sum -= system_[k * m_ + c] * step_[c];
      step_[k] = sum / system_[k * m_ + k];
    }
    for (std::int64_t k = m_; k-- > 0;) {
      step_[k] /= system_[k * m_ + k];
      for (std::int64_t c = 0; c < k; ++c) step_[c] -= system_[k * m_ + c] * step_[k];
    }
    double moved = 0, largest = 0;
    for (std::int64_t k = 0; k < m_; ++k) {
      const double by = step_[k] * scales_[k], to = values_[k] + by;
      if (k < static_cast<std::int64_t>(features_.size())) {
        const CoordinatePenalty& own = penalties_[k];
        if ((own.l1 > 0 && !(to * values_[k] > 0)) || !(to > own.lower && to < own.upper)) return -1;
      }
      values_[k] = to;
      moved = std::max(moved, std::fabs(by));
      largest = std::max(largest, std::fabs(to));
    }
    predict();
    return largest > 0 ? moved / largest : -1;
  }

  double objective() {
    loss_kernels(problem_.loss).values(problem_.y, predictions_.data(), n_, problem_.loss.delta, scaled_.data());
    double sum = 0;
    for (std::int64_t i = 0; i < n_; ++i) sum += weight(i) * scaled_[i];
    for (std::size_t k = 0; k < features_.size(); ++k) sum += penalties_[k].value(values_[k]);
    return sum;
  }

  // Whether a weight of 0 would leave it.
  bool breaks_threshold(const double* w) const {
    std::vector<double> products(view_.n_cols);
    column_dots(view_, nullptr, 0, view_.n_cols, theta_.data(), products.data());
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      const CoordinatePenalty own = problem_.penalty.at(j);
      if (w[j] == 0 && own.bound_towards(-products[j]) > 0 &&
          !(std::fabs(products[j]) <= own.l1 * (1 + allowed_violation)))
        return true;
    }
    return false;
  }

  View view_;
  const CoreProblem& problem_;
  const std::int64_t n_;
  std::int64_t m_ = 0;
  std::vector<std::int32_t> features_;
  std::vector<CoordinatePenalty> penalties_;  // of the features
  std::vector<double> values_;                // their weights, and the intercept
  std::vector<double> columns_;               // one after the other
  std::vector<const double*> starts_;
  std::vector<double> predictions_, theta_, scaled_;
  std::vector<double> grad_, scales_, step_;
  std::vector<double> system_;  // rows up to the diagonal
  double lowest_pivot_ = 1;
};

}  // namespace

std::optional<SettledPoint> settled(const Matrix& matrix, const CoreProblem& problem, const double* w,
                                    double intercept) {
  return std::visit([&](const auto& view) { return Settling(view, problem).run(w, intercept); }, matrix);
}

}  // namespace blockgreedy
