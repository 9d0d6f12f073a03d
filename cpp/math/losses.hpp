// Scalar maths of each loss: value, deriv, curvature (second derivative), conjugate; the same as in losses.py.
// A loss never sees X. y is the target (±1 for the two classification losses), t the prediction, u a dual
// value. Vector loops over these functions are compiled per instruction set in kernels/loss_loops.hpp, hence no
// calls into the standard library, and no branches.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "base/views.hpp"

namespace blockgreedy {

enum class LossKind : int { squared, logistic, squared_hinge, huber };
inline constexpr int n_losses = 4;

// Properties of a loss. Solvers use these instead of the name of a loss; the same traits as in losses.py.
struct LossTraits {
  double curvature_bound;                 // sup of the second derivative: beta in the paper
  double derivative_bound;                // sup of |derivative|
  bool is_quadratic;                      // equal to its second-order expansion
  bool has_flat_parts;                    // the second derivative is 0 on whole intervals
  bool sign_of_derivative_is_the_labels;  // derivatives lie between 0 and −y·derivative_bound
  bool curvature_vanishes_on_slopes;      // the second derivative tends to 0 where the derivative does not
};

struct Loss {
  LossKind kind = LossKind::squared;
  double delta = 1.0;  // Huber only

  LossTraits traits() const {
    constexpr double none = std::numeric_limits<double>::infinity();
    switch (kind) {
      case LossKind::squared:
        return {1.0, none, true, false, false, false};
      case LossKind::logistic:
        return {0.25, 1.0, false, false, true, true};
      case LossKind::squared_hinge:
        return {2.0, none, false, true, false, false};
      case LossKind::huber:
        return {1.0, delta, false, true, false, false};
    }
    return {none, none, false, false, false, false};
  }
};

namespace scalar {

// exp(x) for x <= 0 within 1 ulp, vectorisable: 2^k exp(r), |r| <= ln2/2, Taylor to r^13 (error 4e-18).
BLOCKGREEDY_INLINE double exp_negative(double x) {
  x = x < -708.0 ? -708.0 : x;
  constexpr double shift = 0x1.8p52;  // adding it leaves round(x / ln 2) in the low bits
  const double shifted = x * 1.4426950408889634 + shift;
  const double k = shifted - shift;
  const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;  // k·high is exact without FMA too
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::int64_t bits = (__builtin_bit_cast(std::int64_t, shifted) << 52) + (std::int64_t{1023} << 52);
  return p * __builtin_bit_cast(double, bits);
}

// 2 atanh(s) = log((1 + s) / (1 − s)) for |s| <= 0.172
BLOCKGREEDY_INLINE double twice_atanh(double s) {
  const double z = s * s;
  double p = 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return 2.0 * (s + s * z * p);
}

// log(1 + e) for 0 <= e <= 1, accurate for tiny e
BLOCKGREEDY_INLINE double log1p_unit(double e) {
  const bool large = e > 0.41421356237309503;  // then log(1 + e) = log 2 + log(1 + (e - 1) / 2)
  const double f = large ? (e - 1.0) * 0.5 : e;
  return (large ? 0.6931471805599453 : 0.0) + twice_atanh(f / (2.0 + f));
}

// x log x for 0 <= x <= 1: x = 2^k m with m between √½ and √2.
BLOCKGREEDY_INLINE double x_log_x(double x) {
  const double positive = x > 1e-300 ? x : 1e-300;
  const std::int64_t bits = __builtin_bit_cast(std::int64_t, positive);
  const std::int64_t half_root = 0x3fe6a09e667f3bcd;
  const std::int64_t k = (bits - half_root) >> 52;
  const double m = __builtin_bit_cast(double, bits - k * (std::int64_t{1} << 52));
  constexpr double shift = 0x1.8p52;  // its bits plus k are those of shift + k
  const double exponent = __builtin_bit_cast(double, k + __builtin_bit_cast(std::int64_t, shift)) - shift;
  return x * (exponent * 0.6931471805599453 + twice_atanh((m - 1.0) / (m + 1.0)));
}

}  // namespace scalar

// Value, derivative and curvature together: what a Newton step needs of a row. The curvature is that of the
// quadratic model, which is not the second derivative where that would give steps far too long.
struct RowTerms {
  double value, deriv, curvature;
};

struct SquaredLoss {
  static BLOCKGREEDY_INLINE RowTerms terms(double y, double t, double, double, double) {
    return {0.5 * (t - y) * (t - y), t - y, 1.0};
  }
  static BLOCKGREEDY_INLINE double value(double y, double t, double) { return 0.5 * (t - y) * (t - y); }
  static BLOCKGREEDY_INLINE double deriv(double y, double t, double) { return t - y; }
  static BLOCKGREEDY_INLINE double curvature(double, double, double) { return 1.0; }
  static BLOCKGREEDY_INLINE double conjugate(double y, double u, double) { return u * (0.5 * u + y); }
  // The nearest point of the conjugate's domain.
  static BLOCKGREEDY_INLINE double into_domain(double, double u, double) { return u; }
};

struct LogisticLoss {
  // At negative margins the second derivative vanishes while the slope stays near 1, and a Newton step on a column
  // with few entries could be a hundred times too long. For margins below `curvature_margin` the curvature is that of
  // the parabola which majorises the loss and touches it at t and at the mirrored margin.
  static BLOCKGREEDY_INLINE RowTerms terms(double y, double t, double, double curvature_margin, double) {
    const double margin = y * t;
    const double e = scalar::exp_negative(-__builtin_fabs(margin));
    const double inverse = 1.0 / (1.0 + e);
    const double below = margin < 0 ? -margin : 0.0;
    const double above = (1.0 - e) * inverse / (2.0 * (below > 1.0 ? below : 1.0));
    return {scalar::log1p_unit(e) + below, -y * ((margin < 0 ? 1.0 : e) * inverse),
            margin < curvature_margin ? above : e * inverse * inverse};
  }
  static BLOCKGREEDY_INLINE double value(double y, double t, double) {
    const double margin = y * t;
    const double below = margin < 0 ? -margin : 0.0;
    return scalar::log1p_unit(scalar::exp_negative(-__builtin_fabs(margin))) + below;
  }
  static BLOCKGREEDY_INLINE double deriv(double y, double t, double) {
    const double margin = y * t;
    const double e = scalar::exp_negative(-__builtin_fabs(margin));
    return -y * ((margin < 0 ? 1.0 : e) / (1.0 + e));
  }
  static BLOCKGREEDY_INLINE double curvature(double y, double t, double) {
    const double e = scalar::exp_negative(-__builtin_fabs(y * t));
    return e / ((1.0 + e) * (1.0 + e));
  }
  static BLOCKGREEDY_INLINE double conjugate(double y, double u, double) {
    const double a = -y * u;  // the probability of the other class
    if (!(a >= 0.0 && a <= 1.0)) return std::numeric_limits<double>::infinity();
    // log(1 − a) from a itself where a is small: 1 − a has lost its last digits
    const double small = a < 0.25 ? a : 0.0;
    const double rest = a < 0.25 ? -(1.0 - a) * scalar::twice_atanh(small / (2.0 - small)) : scalar::x_log_x(1.0 - a);
    return scalar::x_log_x(a) + rest;
  }
  static BLOCKGREEDY_INLINE double into_domain(double y, double u, double) {
    const double a = -y * u;
    return -y * (a < 0 ? 0.0 : a > 1 ? 1.0 : a);
  }
};

struct SquaredHingeLoss {
  // Rows up to `curvature_margin` beyond the kink at margin 1 get the full curvature, since a step may carry them
  // across. Where the loss is flat the share `flat` of the curvature is kept, or the quadratic model might have no
  // minimum.
  static BLOCKGREEDY_INLINE RowTerms terms(double y, double t, double, double curvature_margin, double flat) {
    const double m = shortfall(y, t);
    return {m * m, -2.0 * y * m, 2.0 * (y * t < 1.0 + curvature_margin ? 1.0 : flat)};
  }
  static BLOCKGREEDY_INLINE double shortfall(double y, double t) {
    const double m = 1.0 - y * t;
    return m < 0 ? 0.0 : m;  // NaN stays NaN
  }
  static BLOCKGREEDY_INLINE double value(double y, double t, double) {
    const double m = shortfall(y, t);
    return m * m;
  }
  static BLOCKGREEDY_INLINE double deriv(double y, double t, double) { return -2.0 * y * shortfall(y, t); }
  static BLOCKGREEDY_INLINE double curvature(double y, double t, double) { return y * t < 1.0 ? 2.0 : 0.0; }
  static BLOCKGREEDY_INLINE double conjugate(double y, double u, double) {
    const double a = -y * u;
    if (!(a >= 0.0)) return std::numeric_limits<double>::infinity();
    return a * (0.25 * a - 1.0);
  }
  static BLOCKGREEDY_INLINE double into_domain(double y, double u, double) { return -y * u < 0 ? 0.0 : u; }
};

struct HuberLoss {
  // Residuals up to delta + `curvature_margin` get curvature 1; larger ones the share `flat` of the curvature of the
  // parabola that majorises the loss and touches it at ±residual.
  static BLOCKGREEDY_INLINE RowTerms terms(double y, double t, double delta, double curvature_margin, double flat) {
    const double r = __builtin_fabs(t - y);
    const double outside = flat * delta / (r > delta ? r : delta);
    return {value(y, t, delta), deriv(y, t, delta), r <= delta + curvature_margin ? 1.0 : outside};
  }
  static BLOCKGREEDY_INLINE double value(double y, double t, double delta) {
    const double r = __builtin_fabs(t - y);
    return r > delta ? delta * (r - 0.5 * delta) : 0.5 * r * r;
  }
  static BLOCKGREEDY_INLINE double deriv(double y, double t, double delta) {
    const double r = t - y;
    const double capped = r > delta ? delta : r;
    return capped < -delta ? -delta : capped;
  }
  static BLOCKGREEDY_INLINE double curvature(double y, double t, double delta) {
    return __builtin_fabs(t - y) <= delta ? 1.0 : 0.0;
  }
  static BLOCKGREEDY_INLINE double conjugate(double y, double u, double delta) {
    if (!(__builtin_fabs(u) <= delta)) return std::numeric_limits<double>::infinity();
    return u * (0.5 * u + y);
  }
  static BLOCKGREEDY_INLINE double into_domain(double, double u, double delta) {
    return u > delta ? delta : u < -delta ? -delta : u;
  }
};

}  // namespace blockgreedy
