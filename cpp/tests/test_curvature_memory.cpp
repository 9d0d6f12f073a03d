#include "working_set/curvature_memory.hpp"

#include <algorithm>
#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::random_vector;

constexpr std::size_t m = 6;
const std::vector<std::int32_t> features{3, 8, 1, 12, 30, 7}, all{0, 1, 2, 3, 4, 5};

// The L-BFGS matrix by its definition: H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ.
struct Reference {
  explicit Reference(const std::vector<double>& diagonal) : h(m * m) {
    for (std::size_t k = 0; k < m; ++k) h[k * m + k] = diagonal[k];
  }
  void add(const std::vector<double>& s, const std::vector<double>& y) {
    double rho = 0;
    for (std::size_t k = 0; k < m; ++k) rho += s[k] * y[k];
    rho = 1 / rho;
    const auto left = [&](std::size_t a, std::size_t b) { return (a == b ? 1.0 : 0.0) - rho * s[a] * y[b]; };
    std::vector<double> out(m * m);
    for (std::size_t a = 0; a < m; ++a) {
      for (std::size_t b = 0; b < m; ++b) {
        double sum = rho * s[a] * s[b];
        for (std::size_t c = 0; c < m; ++c) {
          for (std::size_t d = 0; d < m; ++d) sum += left(a, c) * h[c * m + d] * left(b, d);
        }
        out[a * m + b] = sum;
      }
    }
    h = out;
  }
  std::vector<double> times(const std::vector<double>& r) const {
    std::vector<double> out(m);
    for (std::size_t a = 0; a < m; ++a) {
      for (std::size_t b = 0; b < m; ++b) out[a] += h[a * m + b] * r[b];
    }
    return out;
  }
  std::vector<double> h;
};

// A·s for a positive definite matrix: diagonal dominance.
std::vector<double> multiply(const std::vector<double>& s) {
  std::vector<double> y(m);
  for (std::size_t a = 0; a < m; ++a) {
    for (std::size_t b = 0; b < m; ++b) y[a] += (a == b ? 3.0 : 0.3 / static_cast<double>(1 + a + b)) * s[b];
  }
  return y;
}

TEST("curvature memory: the preconditioner is the L-BFGS matrix of its pairs") {
  const std::vector<double> inverse{1, 0.5, 2, 0.3, 1, 0.7};
  CurvatureMemory memory(10);
  memory.follow(features);
  memory.restrict(all, 10);
  Reference reference(inverse);
  std::vector<double> out(m), s, y;
  const std::vector<double> r = random_vector(m, 1);
  memory.apply(r, inverse, out);
  for (std::size_t k = 0; k < m; ++k) CHECK_EQUAL(out[k], inverse[k] * r[k]);
  for (unsigned pair = 0; pair < 4; ++pair) {
    s = random_vector(m, 20 + pair);
    y = multiply(s);
    memory.add(all, s, y);
    reference.add(s, y);
    memory.restrict(all, 10);
    memory.apply(r, inverse, out);
    const std::vector<double> expected = reference.times(r);
    for (std::size_t k = 0; k < m; ++k) CHECK(is_near(out[k], expected[k], 1e-5));
  }
  memory.apply(y, inverse, out);  // the secant equation of the newest pair: H y = s
  for (std::size_t k = 0; k < m; ++k) CHECK(is_near(out[k], s[k], 1e-5));
}

TEST("curvature memory: older pairs than the limit are dropped") {
  const std::vector<double> inverse(m, 1.0), r = random_vector(m, 1);
  CurvatureMemory memory(3);
  memory.follow(features);
  memory.restrict(all, 3);
  Reference reference(inverse);
  for (unsigned pair = 0; pair < 5; ++pair) {
    const std::vector<double> s = random_vector(m, 20 + pair);
    memory.add(all, s, multiply(s));
    if (pair >= 3) reference.add(s, multiply(s));
  }
  memory.restrict(all, 2);
  std::vector<double> out(m);
  memory.apply(r, inverse, out);
  const std::vector<double> expected = reference.times(r);
  for (std::size_t k = 0; k < m; ++k) CHECK(is_near(out[k], expected[k], 1e-5));
}

TEST("curvature memory: pairs follow their features to other coordinates") {
  const std::vector<double> inverse(m, 1.0), s = random_vector(m, 2), r = random_vector(m, 3);
  CurvatureMemory memory(4), moved(4);
  memory.follow(features);
  memory.restrict(all, 4);
  memory.add(all, s, multiply(s));
  memory.restrict(all, 4);
  std::vector<double> out(m);
  memory.apply(r, inverse, out);
  // The same features in reverse order, with a new one in front, which no pair knows.
  std::vector<std::int32_t> reversed(features.rbegin(), features.rend());
  reversed.insert(reversed.begin(), 99);
  memory.follow(reversed);
  memory.restrict({0, 1, 2, 3, 4, 5, 6}, 4);
  std::vector<double> r_reversed(r.rbegin(), r.rend()), out_reversed(m + 1);
  r_reversed.insert(r_reversed.begin(), 0.25);
  memory.apply(r_reversed, std::vector<double>(m + 1, 1.0), out_reversed);
  CHECK(is_near(out_reversed[0], 0.25, 1e-6));
  for (std::size_t k = 0; k < m; ++k) CHECK(is_near(out_reversed[m - k], out[k], 1e-5));
}

TEST("curvature memory: pairs without curvature are not used") {
  const std::vector<double> inverse(m, 2.0), r = random_vector(m, 3), s = random_vector(m, 2);
  std::vector<double> negative = multiply(s), out(m);
  for (double& v : negative) v = -v;
  CurvatureMemory memory(4);
  memory.follow(features);
  memory.restrict(all, 4);
  memory.add(all, s, negative);
  memory.restrict(all, 4);
  memory.apply(r, inverse, out);
  for (std::size_t k = 0; k < m; ++k) CHECK_EQUAL(out[k], 2.0 * r[k]);
}

}  // namespace
}  // namespace blockgreedy
