// Small random matrices and vectors for the tests, the same in every run.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/views.hpp"

namespace blockgreedy::testing {

inline std::vector<double> random_vector(std::size_t n, unsigned seed, double scale = 1.0) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.0, scale);
  std::vector<double> out(n);
  for (double& v : out) v = normal(generator);
  return out;
}

// Sparse columns, and the same with their zeros for plain loops.
struct RandomMatrix {
  RandomMatrix(std::int64_t n_rows, std::int64_t n_cols, double density, unsigned seed)
      : n_rows(n_rows), n_cols(n_cols), dense(static_cast<std::size_t>(n_rows * n_cols)) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    starts.push_back(0);
    for (std::int64_t j = 0; j < n_cols; ++j) {
      for (std::int64_t i = 0; i < n_rows; ++i) {
        if (uniform(generator) > density && i != j % n_rows) continue;  // no column is empty
        indices.push_back(static_cast<std::int32_t>(i));
        data.push_back(normal(generator));
        dense[j * n_rows + i] = data.back();
      }
      starts.push_back(static_cast<std::int64_t>(data.size()));
    }
  }

  CscView<double> view() const { return {n_rows, n_cols, starts.data(), true, indices.data(), data.data()}; }
  double at(std::int64_t i, std::int64_t j) const { return dense[j * n_rows + i]; }

  double column_dot(std::int64_t j, const std::vector<double>& r) const {
    double sum = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) sum += at(i, j) * r[i];
    return sum;
  }
  double norm(std::int64_t j) const {
    double sum = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) sum += at(i, j) * at(i, j);
    return std::sqrt(sum);
  }
  std::vector<double> times(const std::vector<double>& w) const {
    std::vector<double> out(static_cast<std::size_t>(n_rows));
    for (std::int64_t j = 0; j < n_cols; ++j) {
      for (std::int64_t i = 0; i < n_rows; ++i) out[i] += at(i, j) * w[j];
    }
    return out;
  }

  std::int64_t n_rows, n_cols;
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> indices;
  std::vector<double> data, dense;
};

inline bool is_near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * (1 + std::fabs(b));
}

}  // namespace blockgreedy::testing
