// Numbers of several folds, side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/large_array.hpp"

namespace blockgreedy {

inline constexpr int n_lanes = 8;  // as in kernels/lane_loops.hpp
using Lanes = std::array<double, n_lanes>;
using LaneFloats = std::array<float, n_lanes>;

// A number for each row and lane, that of row i and lane f at n_lanes·i + f.
class LaneRows {
 public:
  LaneRows() = default;
  explicit LaneRows(std::int64_t n_rows) : values_(n_lanes * n_rows) {}
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  float& operator[](std::int64_t at) { return values_.data()[at]; }
  float operator[](std::int64_t at) const { return values_.data()[at]; }

 private:
  LargeArray<float> values_;
};

inline Lanes widen(const LaneFloats& values) {
  Lanes wide;
  for (int f = 0; f < n_lanes; ++f) wide[f] = static_cast<double>(values[f]);
  return wide;
}

inline void add(const Lanes& more, Lanes& sum) {
  for (int f = 0; f < n_lanes; ++f) sum[f] += more[f];
}

}  // namespace blockgreedy
