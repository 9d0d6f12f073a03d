#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"
#include "math/losses.hpp"
#include "tests/check.hpp"

namespace blockgreedy {
namespace {

constexpr LossKind all_losses[] = {LossKind::squared, LossKind::logistic, LossKind::squared_hinge, LossKind::huber};
constexpr double delta = 1.5;

// A grid of predictions, with the values, derivatives and second derivatives of one loss for one label.
struct Grid {
  Grid(LossKind kind, double label) : loss{kind, delta} {
    for (int k = -4000; k <= 4000; ++k) t.push_back(k / 400.0);
    y.assign(t.size(), label);
    value = deriv = curvature = t;
    const auto n = static_cast<std::int64_t>(t.size());
    const LossKernels& loops = kernels().of(loss);
    loops.values(y.data(), t.data(), n, delta, value.data());
    loops.derivs(y.data(), t.data(), n, delta, deriv.data());
    loops.curvatures(y.data(), t.data(), n, delta, curvature.data());
  }
  static constexpr double step = 1 / 400.0;
  Loss loss;
  std::vector<double> t, y, value, deriv, curvature;
};

template <class F>
void for_each_grid(F&& f) {
  for (const LossKind kind : all_losses) {
    for (const double label : {1.0, -1.0}) f(Grid(kind, label));
  }
}

TEST("derivatives are those of the values") {
  for_each_grid([](const Grid& grid) {
    double worst = 0;
    for (std::size_t k = 1; k + 1 < grid.t.size(); ++k) {
      const double slope = (grid.value[k + 1] - grid.value[k - 1]) / (2 * Grid::step);
      worst = std::max(worst, std::fabs(slope - grid.deriv[k]));
    }
    CHECK(worst < 2 * Grid::step);  // at a kink of the derivative the quotient is off by one step
  });
}

TEST("the bounds of the traits hold and are reached") {
  for_each_grid([](const Grid& grid) {
    const LossTraits traits = grid.loss.traits();
    const auto magnitude = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
    const double steepest = std::fabs(*std::max_element(grid.deriv.begin(), grid.deriv.end(), magnitude));
    const double most_curved = *std::max_element(grid.curvature.begin(), grid.curvature.end());
    CHECK(std::fabs(most_curved - traits.curvature_bound) <= 1e-15);
    CHECK(steepest <= traits.derivative_bound);
    if (std::isfinite(traits.derivative_bound)) CHECK(steepest > 0.999 * traits.derivative_bound);
  });
}

TEST("the other traits say what the loss does") {
  for_each_grid([](const Grid& grid) {
    const LossTraits traits = grid.loss.traits();
    const auto& curvature = grid.curvature;
    const bool constant = std::all_of(curvature.begin(), curvature.end(), [](double c) { return c == 1; });
    CHECK_EQUAL(traits.is_quadratic, constant);
    CHECK_EQUAL(traits.has_flat_parts, std::count(curvature.begin(), curvature.end(), 0.0) > 1);
    if (!traits.sign_of_derivative_is_the_labels) return;
    for (std::size_t k = 0; k < grid.t.size(); ++k) CHECK(-grid.y[k] * grid.deriv[k] >= 0);
  });
}

TEST("Fenchel-Young: value + conjugate is t·u for u = derivative, and larger for another u") {
  for_each_grid([](const Grid& grid) {
    std::vector<double> conjugate(grid.t.size()), shifted = grid.deriv;
    const auto n = static_cast<std::int64_t>(grid.t.size());
    const LossKernels& loops = kernels().of(grid.loss);
    loops.conjugates(grid.y.data(), grid.deriv.data(), n, delta, conjugate.data());
    for (std::size_t k = 0; k < grid.t.size(); ++k) {
      const double sum = grid.value[k] + conjugate[k], product = grid.t[k] * grid.deriv[k];
      CHECK(std::fabs(sum - product) <= 1e-12 * (1 + std::fabs(grid.value[k]) + std::fabs(product)));
    }
    for (double& u : shifted) u = 0.9 * u;
    loops.conjugates(grid.y.data(), shifted.data(), n, delta, conjugate.data());
    for (std::size_t k = 0; k < grid.t.size(); ++k) {
      CHECK(grid.value[k] + conjugate[k] >= grid.t[k] * shifted[k] - 1e-12 * (1 + grid.value[k]));
    }
  });
}

TEST("into_domain gives a point with a finite conjugate, and leaves such points alone") {
  for_each_grid([](const Grid& grid) {
    std::vector<double> u = grid.t, conjugate(u.size());
    const auto n = static_cast<std::int64_t>(u.size());
    const LossKernels& loops = kernels().of(grid.loss);
    loops.into_domain(grid.y.data(), u.data(), n, delta);
    loops.conjugates(grid.y.data(), u.data(), n, delta, conjugate.data());
    for (const double value : conjugate) CHECK(std::isfinite(value));
    const std::vector<double> before = u;
    loops.into_domain(grid.y.data(), u.data(), n, delta);
    CHECK(u == before);
  });
}

TEST("the pass over rows agrees with the single functions") {
  for_each_grid([](const Grid& grid) {
    const auto n = static_cast<std::int64_t>(grid.t.size());
    std::vector<double> derivs(grid.t.size()), nowhere(grid.t.size());
    std::vector<float> root(grid.t.size());
    const double never = -std::numeric_limits<double>::infinity();  // no row gets another curvature
    const RowRun rows{.y = grid.y.data(),
                      .weights = nullptr,
                      .weight = 2,
                      .delta = delta,
                      .curvature_margin = grid.loss.traits().curvature_vanishes_on_slopes ? never : 0,
                      .flat = 0,
                      .t = grid.t.data(),
                      .direction = nowhere.data(),
                      .step = 0.5,
                      .derivs = derivs.data(),
                      .root = root.data()};
    const double sum = kernels().of(grid.loss).advance(rows, 0, n);
    double wanted = 0;
    for (std::size_t k = 0; k < grid.t.size(); ++k) {
      wanted += 2 * grid.value[k];
      CHECK(std::fabs(derivs[k] - 2 * grid.deriv[k]) <= 1e-14 * std::fabs(grid.deriv[k]));
      const double square = static_cast<double>(root[k]) * static_cast<double>(root[k]);
      CHECK(std::fabs(square - 2 * std::max(grid.curvature[k], 1e-10)) <= 1e-6 * square);
    }
    CHECK(std::fabs(sum - wanted) <= 1e-12 * wanted);
  });
}

}  // namespace
}  // namespace blockgreedy
