// Scalar maths of the separable penalty; the same as in penalties.py. One form covers them all:
//
//   r(z) = l1 |z| + l2/2 z²  on  lower <= z <= upper,   lower <= 0 <= upper,
//
// l1 (upper and lower infinite), elastic net (l2 > 0), per-feature weights (l1 = alpha u_j; u_j = 0 is
// unpenalised, u_j = inf pins the weight at 0), non-negative (lower = 0), box.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "base/views.hpp"

namespace blockgreedy {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

struct CoordinatePenalty {
  double l1, l2, lower, upper;

  BLOCKGREEDY_INLINE double value(double z) const { return l1 * std::fabs(z) + 0.5 * l2 * z * z; }

  // argmin_z  curvature/2 (z - w)² + grad (z - w) + r(z), the minimiser of the 1-D quadratic model.
  BLOCKGREEDY_INLINE double prox(double w, double grad, double curvature) const {
    const double total = curvature + l2;
    if (!(total > 0)) {  // an empty column: the loss does not depend on it
      return l1 > 0 ? 0.0 : w;
    }
    const double v = curvature * w - grad;
    const double shrunk = v > l1 ? v - l1 : (v < -l1 ? v + l1 : (v == v ? 0.0 : v));  // NaN stays NaN
    const double z = shrunk / total;
    return z < lower ? lower : (z > upper ? upper : z);
  }

  // By how much the 1-D model falls from w to z. |z| - |w| is written without cancellation.
  BLOCKGREEDY_INLINE double gain(double w, double z, double grad, double curvature) const {
    const double step = z - w;
    const double l1_change = z * w > 0 ? (w > 0 ? step : -step) : std::fabs(z) - std::fabs(w);
    return -(step * (grad + l2 * w + 0.5 * (curvature + l2) * step) + l1 * l1_change);
  }

  // Whether the step from w to z is more than the rounding of prox: a feature that already stands at its
  // minimum must not be accepted because of the last bit of a sum.
  BLOCKGREEDY_INLINE bool moves(double w, double z, double grad, double curvature) const {
    return std::fabs(z - w) * (curvature + l2) > 1e-12 * (curvature * std::fabs(w) + std::fabs(grad)) ||
           (curvature + l2 == 0 && z != w);
  }

  // sup_z  v z - r(z); infinite outside of the domain. `most`: what the penalty may be at most, which keeps z from
  // going on to a bound that stands for none, such as 1e20; where there is no bound at all it changes nothing.
  BLOCKGREEDY_INLINE double conjugate(double v, double most = infinity) const {
    const double excess = std::fabs(v) - l1;
    const double far = bound_towards(v), reach = most / l1;
    const double bound = far < infinity && reach < far ? reach : far;
    if (!(excess > 0) || bound == 0) return 0.0;
    if (l2 > 0) {
      const double z = excess / l2 < bound ? excess / l2 : bound;
      return z * (excess - 0.5 * l2 * z);
    }
    return excess * bound;
  }

  // The bound in the direction of v, as a distance from 0. Infinite without a bound: the conjugate is then infinite
  // for |v| > l1 when l2 = 0.
  BLOCKGREEDY_INLINE double bound_towards(double v) const { return v > 0 ? upper : -lower; }

  // Whether the dual constrains v in this direction because no bound and no l2 stop the weight. Where there is no
  // penalty at all, a bound far beyond all weights is as good as none: what is proven without it holds with it as
  // well, and as a price for what rounding leaves of v = 0 it would be all there is.
  BLOCKGREEDY_INLINE bool is_unbounded(double v) const {
    constexpr double far_bound = 1e8;
    return l2 == 0 && bound_towards(v) >= (l1 == 0 ? far_bound : infinity);
  }

  // Distance from -grad to the subdifferential of r at w: 0 exactly at a minimum.
  BLOCKGREEDY_INLINE double subgradient_distance(double w, double grad) const {
    const double slope = grad + l2 * w;
    const double low = w > 0 ? l1 : -l1, high = w < 0 ? -l1 : l1;  // subdifferential of l1 |w|
    const double to_low = -slope - low, to_high = -slope - high;
    if (to_low < 0) return w <= lower ? 0.0 : -to_low;  // at the lower bound it reaches down to -inf
    if (to_high > 0) return w >= upper ? 0.0 : to_high;
    return 0.0;
  }
};

// The penalty of every coordinate: scalars, or arrays where features differ.
struct Penalty {
  double alpha = 0, l2 = 0;
  double lower_all = -infinity, upper_all = infinity;
  const double* weights = nullptr;     // u_j, null for all 1
  const double* l2_weights = nullptr;  // factors of l2, null for all 1
  const double* lower = nullptr;       // null for lower_all
  const double* upper = nullptr;

  BLOCKGREEDY_INLINE double weight(std::int64_t j) const { return weights ? weights[j] : 1.0; }
  BLOCKGREEDY_INLINE CoordinatePenalty at(std::int64_t j) const {
    const double u = weight(j), ridge = l2_weights ? l2 * l2_weights[j] : l2;
    if (u == infinity) return {0.0, ridge, 0.0, 0.0};
    return {alpha * u, ridge, lower ? lower[j] : lower_all, upper ? upper[j] : upper_all};
  }
};

}  // namespace blockgreedy
