// The subproblem on its support: conjugate gradients, and what becomes of coordinates that change their sign.
#include "working_set/subproblem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace blockgreedy {

namespace {

using T = Tuning::ConjugateGradients;

}  // namespace

double Subproblem::solve_on_support(int max_iterations, double stop, double accuracy, double negligible) {
  Direction direction = conjugate_gradients(max_iterations, stop, accuracy, negligible);
  if (direction.support.members.empty()) return 0;
  const Direction first = direction;
  old_points_.resize(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) old_points_[k] = columns[k].point;
  // Coordinates that change sign are set to zero, and the others are solved for again: nearly parallel columns move
  // far in opposite directions, and clipping one of them alone would leave the other there.
  double change = 0;
  for (int round = 0; round < T::max_clips && direction.trusted; ++round) {
    const bool clipped = clip(direction);
    const double own = change_of(direction);
    change += own;
    if (change <= (clipped || round > 0 ? -T::min_kept_decrease * first.decrease : 0.0)) {
      apply(direction);
      return -change;
    }
    if (!clipped || round + 1 == T::max_clips || own > T::hopeless_increase * first.decrease) break;
    apply(direction);
    direction = conjugate_gradients(max_iterations, stop, accuracy, negligible);
    if (direction.support.members.empty()) break;
  }
  restore_points();
  direction = first;
  forward(direction.support, direction.x, Zx_);
  return minimise_along(direction);
}

// The linear system on the support at the present points: A x = r, A = ZᵀZ + diagonal.
void Subproblem::set_up_system(const Subset& support, std::vector<double>& r, std::vector<double>& inverse_diagonal) {
  nonzeros_touched += support.work;
  team_.for_work(static_cast<std::int64_t>(support.cuts.size()) - 1, support.work, [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    for (std::size_t k = support.cuts[at]; k < support.cuts[at + 1]; ++k) {
      const SubproblemColumn& column = columns[support.members[k]];
      r[k] = -(column.grad + product(column, Zd_.data()) + column.dropped_curvature * column.step() +
               column.smooth_gradient());
      inverse_diagonal[k] = 1.0 / (column.curvature + column.penalty.l2);
    }
  });
}

Subproblem::Direction Subproblem::conjugate_gradients(int max_iterations, double stop, double accuracy,
                                                      double negligible) {
  Direction direction;
  Subset& support = direction.support;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (columns[k].is_smooth()) support.members.push_back(static_cast<std::int32_t>(k));
  }
  if (support.members.empty()) return direction;
  cut(support);
  const std::vector<std::int32_t>& subset = support.members;
  const std::size_t m = subset.size();
  std::vector<double>& x = direction.x;
  x.assign(m, 0.0);
  fill_rows(Zx_);
  std::vector<double> r(m), scaled(m), p(m), Ap(m), inverse(m);
  set_up_system(support, r, inverse);
  if (accuracy < infinity && largest_excess(support, r) <= accuracy) {  // nothing to do
    support.members.clear();
    return direction;
  }
  const std::size_t pairs = static_cast<std::size_t>(support.work) / (T::cost_of_pair * m);
  memory_.restrict(subset, pairs < T::min_pairs ? 0 : pairs);
  memory_.apply(r, inverse, scaled);
  double rz = std::inner_product(r.begin(), r.end(), scaled.begin(), 0.0);
  p = scaled;
  const std::vector<double> start = r;
  for (int iteration = 0; iteration < max_iterations && rz > 0 && !team_.poll(); ++iteration) {
    ++cg_iterations;
    hessian_product(support, p, q_, Ap);
    for (std::size_t k = 0; k < m; ++k) Ap[k] += columns[subset[k]].ridge() * p[k];
    const double pAp = std::inner_product(p.begin(), p.end(), Ap.begin(), 0.0);
    if (!(pAp > 0)) break;
    double diagonal = 0;
    for (std::size_t k = 0; k < m; ++k) diagonal += p[k] * p[k] / inverse[k];
    const bool singular = pAp <= T::singular * diagonal;
    if (!singular) memory_.add(subset, p, Ap);
    const double length = rz / pAp;
    for (std::size_t k = 0; k < m; ++k) {
      x[k] += length * p[k];
      r[k] -= length * Ap[k];
    }
    add_rows(q_, length, Zx_);
    const double decrease = 0.5 * length * rz;
    direction.decrease += decrease;
    if (singular) break;
    if (decrease <= std::max(stop * direction.decrease, negligible) && largest_excess(support, r) <= accuracy) break;
    memory_.apply(r, inverse, scaled);
    const double new_rz = std::inner_product(r.begin(), r.end(), scaled.begin(), 0.0);
    const double ratio = new_rz / rz;
    for (std::size_t k = 0; k < m; ++k) p[k] = scaled[k] + ratio * p[k];
    rz = new_rz;
  }
  // On nearly singular systems rounding in float32 makes the recursion wrong.
  const double recomputed = decrease_along(direction, start);
  direction.trusted = std::fabs(recomputed - direction.decrease) <= T::agreement * direction.decrease;
  return direction;
}

// r·x − ½ x·A x, for the residual r at x = 0.
double Subproblem::decrease_along(const Direction& direction, const std::vector<double>& r) const {
  double decrease = -0.5 * product_along(direction, Zx_);
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    const SubproblemColumn& column = columns[direction.support.members[k]];
    decrease += direction.x[k] * (r[k] - 0.5 * column.ridge() * direction.x[k]);
  }
  return decrease;
}

// The direction, but to zero where it changes a sign, and to the bound where it leaves the bounds. True if that made
// a difference.
bool Subproblem::clip(Direction& direction) {
  Subset clipped;
  std::vector<double> correction;
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    const std::int32_t member = direction.support.members[k];
    const SubproblemColumn& column = columns[member];
    double to = column.point + direction.x[k];
    if (column.penalty.l1 > 0 && to * column.point <= 0) to = 0;
    to = std::clamp(to, column.penalty.lower, column.penalty.upper);
    if (to == column.point + direction.x[k]) continue;
    const double step = to - column.point;
    clipped.members.push_back(member);
    correction.push_back(step - direction.x[k]);
    direction.x[k] = step;
  }
  if (clipped.members.empty()) return false;
  cut(clipped);
  forward(clipped, correction, q_);
  add_rows(q_, 1.0, Zx_);
  return true;
}

double Subproblem::product_along(const Direction& direction, const std::vector<float>& v) const {
  if (stride_ == 0) {
    return rows_.sum(1, [&](std::int64_t begin, std::int64_t end) {
      return kernels().float_dense_dot(Zx_.data() + begin, v.data() + begin, end - begin);
    });
  }
  double sum = 0;
  for (std::size_t k = 0; k < direction.x.size(); ++k)
    sum += direction.x[k] * product(columns[direction.support.members[k]], v.data());
  return sum;
}

// The change of the subproblem's objective along the whole direction.
double Subproblem::change_of(const Direction& direction) {
  double change = product_along(direction, Zd_) + 0.5 * product_along(direction, Zx_);
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    const SubproblemColumn& column = columns[direction.support.members[k]];
    const double x = direction.x[k];
    change += (column.grad + column.dropped_curvature * (column.step() + 0.5 * x)) * x +
              column.penalty_change(column.point, column.point + x);
  }
  return change;
}

void Subproblem::apply(const Direction& direction) {
  for (std::size_t k = 0; k < direction.x.size(); ++k) {
    double& point = columns[direction.support.members[k]].point;
    point = direction.x[k] == -point ? 0.0 : point + direction.x[k];
  }
  add_rows(Zx_, 1.0, Zd_);
}

// Returns to the points in old_points_.
void Subproblem::restore_points() {
  Subset moved;
  std::vector<double> back;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (columns[k].point == old_points_[k]) continue;
    moved.members.push_back(static_cast<std::int32_t>(k));
    back.push_back(old_points_[k] - columns[k].point);
    columns[k].point = old_points_[k];
  }
  if (back.empty()) return;
  cut(moved);
  forward(moved, back, q_);
  add_rows(q_, 1.0, Zd_);
}

// The exact minimum along the direction: piecewise quadratic between the kinks, where a coordinate reaches zero.
double Subproblem::minimise_along(Direction& direction) {
  std::vector<double>& x = direction.x;
  const std::vector<std::int32_t>& subset = direction.support.members;
  double slope = product_along(direction, Zd_), curvature = product_along(direction, Zx_);
  struct Kink {
    double at;
    std::size_t k;
  };
  std::vector<Kink> kinks;
  double limit = infinity;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const SubproblemColumn& column = columns[subset[k]];
    const CoordinatePenalty& penalty = column.penalty;
    slope += x[k] * (column.grad + column.dropped_curvature * column.step() + column.smooth_gradient());
    curvature += (penalty.l2 + column.dropped_curvature) * x[k] * x[k];
    if (x[k] == 0) continue;
    limit = std::min(limit, (x[k] > 0 ? penalty.upper - column.point : penalty.lower - column.point) / x[k]);
    if (penalty.l1 > 0 && x[k] * column.point < 0) kinks.push_back({-column.point / x[k], k});
  }
  std::sort(kinks.begin(), kinks.end(), [](const Kink& a, const Kink& b) { return a.at < b.at; });
  double length = 0, at = 0;
  for (std::size_t i = 0; i <= kinks.size(); ++i) {
    const double next = std::min(i < kinks.size() ? kinks[i].at : infinity, limit);
    length = curvature > 0 ? at - slope / curvature : next;
    if (slope >= 0) length = at;
    if (length <= next || next == limit) {
      length = std::min(length, next);
      break;
    }
    slope += (next - at) * curvature;
    const std::size_t k = kinks[i].k;
    slope += 2 * columns[subset[k]].penalty.l1 * std::fabs(x[k]);
    at = next;
  }
  if (!(length > 0) || !std::isfinite(length)) return 0;
  for (double& v : x) v *= length;
  for (const Kink& kink : kinks) {
    if (kink.at == length) x[kink.k] = -columns[subset[kink.k]].point;
  }
  add_rows(Zx_, length - 1, Zx_);
  const double change = change_of(direction);
  if (!(change < 0)) return 0;
  apply(direction);
  return -change;
}

double Subproblem::largest_excess(const Subset& subset, const std::vector<double>& r) const {
  double largest = 0;
  for (std::size_t k = 0; k < r.size(); ++k) {
    const double l1 = columns[subset.members[k]].penalty.l1;
    if (l1 > 0) largest = std::max(largest, std::fabs(r[k]) / l1);
  }
  return largest;
}

}  // namespace blockgreedy
