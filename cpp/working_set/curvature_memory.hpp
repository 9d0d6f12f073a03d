// Pairs (s, A·s) that conjugate gradients computed in earlier subproblems. They precondition the next run with the
// two-loop recursion of L-BFGS (Nocedal 1980), so that a run that was cut short by a change of signs does not have to
// find the same directions again. The preconditioner is symmetric and positive whatever became of A since.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <vector>

#include "kernels/kernels.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

class CurvatureMemory {
 public:
  explicit CurvatureMemory(std::size_t max_pairs) : max_pairs_(max_pairs) {}

  // The coordinates are now those of these features (in any order): carries the pairs over, with 0 for new features.
  void follow(std::vector<std::int32_t> features) {
    std::vector<std::int32_t> order(features.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return features[a] < features[b]; });
    if (!pairs_.empty()) {
      std::vector<std::int32_t> from(features.size(), -1);
      std::size_t old = 0;
      for (std::int32_t k : order) {
        const std::int32_t feature = features[k];
        while (old < order_.size() && features_[order_[old]] < feature) ++old;
        if (old < order_.size() && features_[order_[old]] == feature) from[k] = order_[old];
      }
      for (Pair& pair : pairs_) {
        pair.s = mapped(pair.s, from);
        pair.y = mapped(pair.y, from);
      }
    }
    features_.swap(features);
    order_.swap(order);
  }

  // A·s = y on the coordinates `subset`; the others are 0 in s, and unknown in y.
  void add(const std::vector<std::int32_t>& subset, const std::vector<double>& s, const std::vector<double>& y) {
    if (limit_ == 0) return;
    if (pairs_.size() == max_pairs_) pairs_.pop_front();
    pairs_.push_back({std::vector<float>(features_.size()), std::vector<float>(features_.size())});
    Pair& pair = pairs_.back();
    double size = 0;
    for (std::size_t k = 0; k < subset.size(); ++k) size = std::max(size, std::fabs(s[k]));
    const double scale = size > 0 ? 1 / size : 0;  // float32 must hold them
    for (std::size_t k = 0; k < subset.size(); ++k) {
      pair.s[subset[k]] = static_cast<float>(scale * s[k]);
      pair.y[subset[k]] = static_cast<float>(scale * y[k]);
    }
  }

  // apply() works on these coordinates, with the newest `limit` pairs, until the next call; older pairs are dropped.
  void restrict(const std::vector<std::int32_t>& subset, std::size_t limit) {
    active_.clear();
    limit_ = limit;
    while (pairs_.size() > limit) pairs_.pop_front();
    for (const Pair& pair : pairs_) {
      Restricted own{std::vector<float>(subset.size()), std::vector<float>(subset.size()), 0};
      for (std::size_t k = 0; k < subset.size(); ++k) {
        own.s[k] = pair.s[subset[k]];
        own.y[k] = pair.y[subset[k]];
      }
      const auto m = static_cast<std::int64_t>(subset.size());
      const double product = kernels().float_dense_dot(own.s.data(), own.y.data(), m);
      const double squares = kernels().float_dense_dot(own.s.data(), own.s.data(), m) *
                             kernels().float_dense_dot(own.y.data(), own.y.data(), m);
      if (!(product > 0) || product * product <= Tuning::ConjugateGradients::min_squared_cosine * squares) continue;
      own.inverse = 1 / product;
      active_.push_back(std::move(own));
    }
    projections_.resize(active_.size());
    work_.resize(subset.size());
  }

  // out = H r, where without memory H would be diag(inverse).
  void apply(const std::vector<double>& r, const std::vector<double>& inverse, std::vector<double>& out) {
    const std::size_t m = r.size();
    if (active_.empty()) {
      for (std::size_t k = 0; k < m; ++k) out[k] = inverse[k] * r[k];
      return;
    }
    double size = 0;
    for (double v : r) size = std::max(size, std::fabs(v));
    const double scale = size > 0 ? 1 / size : 0;
    float* v = work_.data();
    for (std::size_t k = 0; k < m; ++k) v[k] = static_cast<float>(scale * r[k]);
    const auto n = static_cast<std::int64_t>(m);
    for (std::size_t i = active_.size(); i-- > 0;) {
      projections_[i] = active_[i].inverse * kernels().float_dense_dot(active_[i].s.data(), v, n);
      kernels().float_dense_axpy(active_[i].y.data(), static_cast<float>(-projections_[i]), v, n);
    }
    for (std::size_t k = 0; k < m; ++k) v[k] *= static_cast<float>(inverse[k]);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const double b = active_[i].inverse * kernels().float_dense_dot(active_[i].y.data(), v, n);
      kernels().float_dense_axpy(active_[i].s.data(), static_cast<float>(projections_[i] - b), v, n);
    }
    for (std::size_t k = 0; k < m; ++k) out[k] = size * static_cast<double>(v[k]);
  }

 private:
  struct Pair {
    std::vector<float> s, y;  // by coordinate of the subproblem
  };
  struct Restricted {  // to the coordinates of restrict()
    std::vector<float> s, y;
    double inverse;  // 1 / s·y
  };

  static std::vector<float> mapped(const std::vector<float>& v, const std::vector<std::int32_t>& from) {
    std::vector<float> out(from.size());
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (from[k] >= 0) out[k] = v[from[k]];
    }
    return out;
  }

  std::size_t max_pairs_, limit_ = 0;  // pairs kept: ever, and of use beside the present columns
  std::vector<std::int32_t> features_, order_;
  std::deque<Pair> pairs_;
  std::vector<Restricted> active_;  // those with enough curvature
  std::vector<double> projections_;
  std::vector<float> work_;
};

}  // namespace blockgreedy
