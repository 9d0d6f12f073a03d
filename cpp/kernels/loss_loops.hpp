// The scalar maths of losses.hpp, over rows. Part of the per-instruction-set text: see kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"

namespace blockgreedy {
namespace {

template <class L>
struct LossLoops {
  static void derivs(const double* y, const double* t, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::deriv(y[i], t[i], delta);
  }
  static void values(const double* y, const double* t, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::value(y[i], t[i], delta);
  }
  static void curvatures(const double* y, const double* t, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::curvature(y[i], t[i], delta);
  }
  static void conjugates(const double* y, const double* u, std::int64_t n, double delta, double* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = L::conjugate(y[i], u[i], delta);
  }
  static void into_domain(const double* y, double* u, std::int64_t n, double delta) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) u[i] = L::into_domain(y[i], u[i], delta);
  }
  template <bool weighted, bool moving>
  static double advance_run(const RowRun& rows, std::int64_t begin, std::int64_t end) {
    const double *y = rows.y, *weights = rows.weights, *t = rows.t, *direction = rows.direction;
    double* derivs = rows.derivs;
    float* root = rows.root;
    const double step = rows.step, weight = rows.weight, delta = rows.delta, margin = rows.curvature_margin,
                 flat = rows.flat;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) {
      const double at = moving ? t[i] + step * direction[i] : t[i];
      const RowTerms terms = L::terms(y[i], at, delta, margin, flat);
      const double own = weighted ? weights[i] : weight;
      sum += own * terms.value;
      derivs[i] = own * terms.deriv;
      const double curvature = terms.curvature > 1e-10 ? terms.curvature : 1e-10;  // float32 must hold its root
      root[i] = static_cast<float>(__builtin_sqrt(own * curvature));
    }
    return sum;
  }
  static double advance(const RowRun& rows, std::int64_t begin, std::int64_t end) {
    if (rows.weights) {
      return rows.direction ? advance_run<true, true>(rows, begin, end) : advance_run<true, false>(rows, begin, end);
    }
    return rows.direction ? advance_run<false, true>(rows, begin, end) : advance_run<false, false>(rows, begin, end);
  }
  static constexpr LossKernels table{.derivs = derivs,
                                     .values = values,
                                     .curvatures = curvatures,
                                     .conjugates = conjugates,
                                     .into_domain = into_domain,
                                     .advance = advance};
};

}  // namespace
}  // namespace blockgreedy
