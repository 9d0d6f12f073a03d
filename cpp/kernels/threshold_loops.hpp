// Which of up to 64 numbers pass a threshold, as bits of one word. Part of the per-instruction-set text: see
// kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/registers.hpp"

namespace blockgreedy {
namespace {

std::uint64_t above_loop(const double* x, std::int64_t n, double limit) {
  std::uint64_t bits = 0;
  std::int64_t k = 0;
#if defined(__AVX512F__)
  for (; k + 8 <= n; k += 8) {
    const __m512d magnitude = _mm512_abs_pd(_mm512_loadu_pd(x + k));
    bits |= std::uint64_t{_mm512_cmp_pd_mask(magnitude, _mm512_set1_pd(limit), _CMP_NLE_UQ)} << k;
  }
#endif
  for (; k < n; ++k) bits |= static_cast<std::uint64_t>(!(__builtin_fabs(x[k]) <= limit)) << k;
  return bits;
}

std::uint64_t shorten_loop(const SlackMove& move, const float* slack, float* estimate, const float* unit,
                           const std::uint8_t* classes, std::int64_t n, float* left) {
  std::uint64_t bits = 0;
  std::int64_t k = 0;
#if defined(__AVX512F__)
  const __m512 low = _mm512_loadu_ps(move.distance.data()), high = _mm512_loadu_ps(move.distance.data() + 16);
  const __m512 scale = _mm512_set1_ps(move.scale), shift = _mm512_set1_ps(move.shift);
  const __m512 rounding = _mm512_set1_ps(-move.rounding), report_below = _mm512_set1_ps(move.report_below);
  for (; k + 16 <= n; k += 16) {
    const __m512 s = _mm512_loadu_ps(slack + k), u = _mm512_loadu_ps(unit + k), shifted = _mm512_mul_ps(shift, u);
    const __m512i at =
        _mm512_maskz_cvtepu8_epi32(0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(classes + k)));
    const __m512 distance = _mm512_permutex2var_ps(low, at, high);
    const __m512 v =
        _mm512_fmadd_ps(rounding, _mm512_abs_ps(s), _mm512_sub_ps(_mm512_fmadd_ps(scale, s, shifted), distance));
    const __m512 g = _mm512_fmadd_ps(scale, _mm512_loadu_ps(estimate + k), shifted);
    _mm512_storeu_ps(left + k, v);
    _mm512_storeu_ps(estimate + k, g);
    const __mmask16 due = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LE_OQ);
    const __mmask16 is_reported = _mm512_cmp_ps_mask(g, _mm512_mul_ps(report_below, u), _CMP_LE_OQ);
    bits |= std::uint64_t{static_cast<std::uint16_t>(due | is_reported)} << k;
  }
#endif
  for (; k < n; ++k) {
    const float shifted = move.shift * unit[k];
    left[k] = move.scale * slack[k] + shifted - move.distance[classes[k]] - move.rounding * __builtin_fabsf(slack[k]);
    estimate[k] = move.scale * estimate[k] + shifted;
    bits |= static_cast<std::uint64_t>(left[k] <= 0 || estimate[k] <= move.report_below * unit[k]) << k;
  }
  return bits;
}

std::uint64_t near_end_loop(const SlackCheck& check, const float* slack, const float* unit, std::int64_t n,
                            double* left) {
  for (std::int64_t k = 0; k < n; ++k) {
    const double s = static_cast<double>(slack[k]);
    left[k] = check.scale * s - check.rounding * __builtin_fabs(s) + check.shift * static_cast<double>(unit[k]);
  }
  std::uint64_t bits = 0;
  for (std::int64_t k = 0; k < n; ++k) bits |= static_cast<std::uint64_t>(!(left[k] > check.farthest)) << k;
  return bits;
}

}  // namespace
}  // namespace blockgreedy
