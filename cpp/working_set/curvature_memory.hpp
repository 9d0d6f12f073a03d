// What conjugate gradients found out about the curvature of earlier models: pairs (s, A·s). They precondition the
// next run as in L-BFGS, so that a run that was cut short by a change of signs does not have to find the same
// directions again. The preconditioner is symmetric and positive whatever became of A since.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <vector>

#include "kernels/kernels.hpp"

namespace blockgreedy {

class CurvatureMemory {
 public:
  explicit CurvatureMemory(std::size_t most) : most_(most) {}

  // The coordinates are now those of these features (in any order): carries the pairs over, with 0 for new features.
  void follow(std::vector<std::int32_t> features) {
    std::vector<std::int32_t> order(features.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return features[static_cast<std::size_t>(a)] < features[static_cast<std::size_t>(b)];
    });
    if (!pairs_.empty()) {
      std::vector<std::int32_t> from(features.size(), -1);
      std::size_t old = 0;
      for (std::int32_t k : order) {
        const std::int32_t feature = features[static_cast<std::size_t>(k)];
        while (old < order_.size() && features_[static_cast<std::size_t>(order_[old])] < feature) ++old;
        if (old < order_.size() && features_[static_cast<std::size_t>(order_[old])] == feature)
          from[static_cast<std::size_t>(k)] = order_[old];
      }
      for (Pair& pair : pairs_) {
        pair.s = carried(pair.s, from);
        pair.y = carried(pair.y, from);
      }
    }
    features_.swap(features);
    order_.swap(order);
  }

  // A·s = y on the coordinates `subset`; the others are 0 in s, and unknown in y.
  void add(const std::vector<std::int32_t>& subset, const std::vector<double>& s, const std::vector<double>& y) {
    if (limit_ == 0) return;
    if (pairs_.size() == most_) pairs_.pop_front();
    pairs_.push_back({std::vector<float>(features_.size()), std::vector<float>(features_.size())});
    Pair& pair = pairs_.back();
    double size = 0;
    for (std::size_t k = 0; k < subset.size(); ++k) size = std::max(size, std::fabs(s[k]));
    const double scale = size > 0 ? 1 / size : 0;  // float32 must hold them
    for (std::size_t k = 0; k < subset.size(); ++k) {
      pair.s[static_cast<std::size_t>(subset[k])] = static_cast<float>(scale * s[k]);
      pair.y[static_cast<std::size_t>(subset[k])] = static_cast<float>(scale * y[k]);
    }
  }

  // Keeps to these coordinates, and to the newest `limit` pairs, until the next call.
  void restrict(const std::vector<std::int32_t>& subset, std::size_t limit) {
    own_.clear();
    limit_ = limit;
    while (pairs_.size() > limit) pairs_.pop_front();
    for (const Pair& pair : pairs_) {
      Own own{std::vector<float>(subset.size()), std::vector<float>(subset.size()), 0};
      for (std::size_t k = 0; k < subset.size(); ++k) {
        own.s[k] = pair.s[static_cast<std::size_t>(subset[k])];
        own.y[k] = pair.y[static_cast<std::size_t>(subset[k])];
      }
      const auto m = static_cast<std::int64_t>(subset.size());
      const double product = kernels().float_dense_dot(own.s.data(), own.y.data(), m);
      const double squares = kernels().float_dense_dot(own.s.data(), own.s.data(), m) *
                             kernels().float_dense_dot(own.y.data(), own.y.data(), m);
      if (!(product > 0) || product * product <= 1e-8 * squares) continue;
      own.inverse = 1 / product;
      own_.push_back(std::move(own));
    }
    a_.resize(own_.size());
    work_.resize(subset.size());
  }

  // out = H r, where without memory H would be diag(inverse).
  void apply(const std::vector<double>& r, const std::vector<double>& inverse, std::vector<double>& out) {
    const std::size_t m = r.size();
    if (own_.empty()) {
      for (std::size_t k = 0; k < m; ++k) out[k] = inverse[k] * r[k];
      return;
    }
    double size = 0;
    for (double v : r) size = std::max(size, std::fabs(v));
    const double scale = size > 0 ? 1 / size : 0;
    float* v = work_.data();
    for (std::size_t k = 0; k < m; ++k) v[k] = static_cast<float>(scale * r[k]);
    const auto n = static_cast<std::int64_t>(m);
    for (std::size_t i = own_.size(); i-- > 0;) {
      a_[i] = own_[i].inverse * kernels().float_dense_dot(own_[i].s.data(), v, n);
      kernels().float_dense_axpy(own_[i].y.data(), static_cast<float>(-a_[i]), v, n);
    }
    for (std::size_t k = 0; k < m; ++k) v[k] *= static_cast<float>(inverse[k]);
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const double b = own_[i].inverse * kernels().float_dense_dot(own_[i].y.data(), v, n);
      kernels().float_dense_axpy(own_[i].s.data(), static_cast<float>(a_[i] - b), v, n);
    }
    for (std::size_t k = 0; k < m; ++k) out[k] = size * static_cast<double>(v[k]);
  }

 private:
  struct Pair {
    std::vector<float> s, y;  // by coordinate of the model
  };
  struct Own {
    std::vector<float> s, y;
    double inverse;  // 1 / s·y
  };

  static std::vector<float> carried(const std::vector<float>& v, const std::vector<std::int32_t>& from) {
    std::vector<float> out(from.size());
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (from[k] >= 0) out[k] = v[static_cast<std::size_t>(from[k])];
    }
    return out;
  }

  std::size_t most_, limit_ = 0;  // of pairs: ever, and worth their cost beside the present columns
  std::vector<std::int32_t> features_, order_;
  std::deque<Pair> pairs_;
  std::vector<Own> own_;
  std::vector<double> a_;
  std::vector<float> work_;
};

}  // namespace blockgreedy
