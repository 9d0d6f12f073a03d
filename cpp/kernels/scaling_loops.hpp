// Columns scaled by row into float32, and their selection of rows. Part of the per-instruction-set text: see
// kernel_table.hpp.
#pragma once

#include "kernels/kernels.hpp"

namespace blockgreedy {
namespace {

template <class T>
double scale_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* root, float* z) {
  double sum = 0;
  if (at) {
    float even = 0, odd = 0;
    std::int64_t k = 0;
    for (; k + 2 <= n; k += 2) {
      z[k] = static_cast<float>(x[k]) * root[at[k]];
      z[k + 1] = static_cast<float>(x[k + 1]) * root[at[k + 1]];
      even += z[k] * z[k];
      odd += z[k + 1] * z[k + 1];
    }
    for (; k < n; ++k) {
      z[k] = static_cast<float>(x[k]) * root[at[k]];
      even += z[k] * z[k];
    }
    return static_cast<double>(even) + static_cast<double>(odd);
  }
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    z[i] = static_cast<float>(x[i]) * root[i];
    sum += static_cast<double>(z[i]) * static_cast<double>(z[i]);
  }
  return sum;
}

// Without branches, which would be unpredictable: every entry is written, and the position moves on only for rows
// that are kept. z and at_out have n elements.
template <class T>
KeptRows pick_loop(const std::int32_t* at, const T* x, std::int64_t n, const float* root, const std::int32_t* place,
                   const std::uint64_t* keep, std::int32_t* at_out, float* z) {
  std::int64_t count = 0, k = 0;
  float total = 0, total2 = 0;
  for (; k + 2 <= n; k += 2) {
    const auto i = static_cast<std::uint32_t>(at[k]), j = static_cast<std::uint32_t>(at[k + 1]);
    const float a = static_cast<float>(x[k]) * root[i], b = static_cast<float>(x[k + 1]) * root[j];
    at_out[count] = at[k];
    z[count] = a;
    count += static_cast<std::int64_t>((keep[i >> 6] >> (i & 63)) & 1);
    at_out[count] = at[k + 1];
    z[count] = b;
    count += static_cast<std::int64_t>((keep[j >> 6] >> (j & 63)) & 1);
    total += a * a;
    total2 += b * b;
  }
  if (k < n) {
    const auto i = static_cast<std::uint32_t>(at[k]);
    const float a = static_cast<float>(x[k]) * root[i];
    at_out[count] = at[k];
    z[count] = a;
    count += static_cast<std::int64_t>((keep[i >> 6] >> (i & 63)) & 1);
    total += a * a;
  }
  float kept = 0;
  for (k = 0; k < count; ++k) {
    at_out[k] = place[at_out[k]];
    kept += z[k] * z[k];
  }
  return {count, static_cast<double>(kept), static_cast<double>(total + total2)};
}

}  // namespace
}  // namespace blockgreedy
