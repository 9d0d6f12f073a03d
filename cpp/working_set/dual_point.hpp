// The best dual point so far, and the search for a better one. A point bounds the objective from below only if it
// keeps the constraints |x_j·θ| ≤ threshold_j of all columns; see "The proof" in docs/default-solver.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rows.hpp"
#include "math/core_problem.hpp"
#include "working_set/candidates.hpp"
#include "working_set/dual_rows.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

template <class View>
class DualPoint {
 public:
  // `dual` and `value` are where the result belongs.
  DualPoint(const View& view, const CoreProblem& problem, ThreadTeam& team, Candidates<View>& candidates,
            std::vector<double>& dual, double& value)
      : view_(view),
        problem_(problem),
        team_(team),
        rows_(view.n_rows, team),
        dual_rows_(view.n_rows, problem, team),
        candidates_(candidates),
        dual_(dual),
        value_(value) {
    dual_.assign(static_cast<std::size_t>(view_.n_rows), 0.0);
    lowest_ = dual_rows_.value(dual_) + 0.0;  // never −0
  }

  // θ = 0 keeps every constraint, and proves that the objective is at least the sum of the least losses.
  void reset() {
    dual_.assign(static_cast<std::size_t>(view_.n_rows), 0.0);
    value_ = lowest_;
    products_are_known_ = false;
  }

  // Where the solve stands.
  struct Where {
    const std::vector<float>& root;  // √curvature of each row
    const double* w;
    double objective;  // there: the penalty of no better point is larger than what this exceeds the least losses by
    std::int64_t n_support;
    std::size_t max_proposals;
    double sufficient;  // a dual value of this ends the solve
    double hopeful;     // a point with a lower one is not worth repairs
    double harmless;    // violations, relative to the threshold, that scaling makes up for
    ScanResult& scan;   // the last one; then that of the point
  };

  // Searches for a dual point: the given one, then moved towards the constraints that it breaks. The first is scanned
  // as a θ would be, into where.scan; false if that was not the given one, since the equalities moved it.
  bool try_point(std::vector<double>& point, int n_repairs, const Where& where) {
    const std::vector<std::int32_t> unpenalised = unpenalised_of(where);
    const bool has_equalities = problem_.fit_intercept || !unpenalised.empty();
    for (int round = 0;; ++round) {
      if (has_equalities && !move_to_equalities(point, where.root, unpenalised)) return false;
      find_broken(point, where, round == 0);
      keep_if_better(point, where, round == 0 && has_all_products());
      if (round == n_repairs || team_.poll() || broken_.empty() || value_ >= where.sufficient ||
          value_ < where.hopeful)
        return !has_equalities;
      std::erase_if(broken_, [&](const Broken& entry) {
        return std::fabs(entry.product) <= problem_.penalty.at(entry.feature).l1 * (1 + where.harmless);
      });
      if (static_cast<std::int64_t>(broken_.size()) > T::max_broken + where.n_support / T::support_per_broken)
        return !has_equalities;
      for (int sweep = 0; sweep < T::sweeps_per_repair && !team_.poll(); ++sweep) {
        for (Broken& entry : broken_) project(point, entry, where.root);
      }
      dual_rows_.into_domain(point);
    }
  }

  // The value of the dual point as it stands, from nothing but itself and the columns: −∞ if it breaks a constraint
  // by more than rounding.
  double recompute(const Where& where) {
    if (!candidates_.aliases_are_confirmed()) return -infinity;
    if (!keeps_equalities(dual_, unpenalised_of(where), T::equality_final)) return -infinity;
    double value = dual_rows_.value(dual_);
    if (problem_.offset) value += rows_.product(dual_.data(), problem_.offset);
    products_.resize(n_column_parts);
    for (auto& part : products_) part.clear();
    const double rounding =
        Tuning::Screening::product_rounding * std::sqrt(rows_.product(dual_.data(), dual_.data()));
    const auto visit = [&](std::int64_t part, std::int32_t j, double norm, double product) {
      const CoordinatePenalty penalty = problem_.penalty.at(j);
      if (!limits_dual(penalty, product)) product += std::copysign(rounding * norm, product);
      if (!(std::fabs(product) <= penalty.l1)) products_[part].push_back({j, product});
    };
    if (products_are_known_)
      for (const Scanned& entry : scanned_) visit(0, entry.feature, entry.norm, scale_ * entry.product);
    else candidates_.visit_violators_exactly(dual_, visit);
    for (const auto& part : products_) {
      for (const Broken& entry : part) {
        const CoordinatePenalty penalty = problem_.penalty.at(entry.feature);
        if (!limits_dual(penalty, entry.product)) value -= penalty.conjugate(-entry.product, most_penalty(where));
        else if (penalty.l1 == 0) value -= std::fabs(where.w[entry.feature] * entry.product);  // as leak() does
        else if (!(std::fabs(entry.product) <= penalty.l1 * (1 + T::constraint_rounding))) return -infinity;
      }
    }
    return value;
  }

  // What rounding left of Σθ = 0 takes from the bound: the Lagrangian at the best intercept, of which `b` is an
  // estimate.
  double leak(double b) { return problem_.fit_intercept ? std::fabs(b * sum_of(dual_)) : 0.0; }

  const DualRows& rows() const { return dual_rows_; }
  // What the penalty of a better point can be at most.
  double most_penalty(const Where& where) const {
    const double rounding = T::rounding_share * std::max(std::fabs(where.objective), std::fabs(lowest_));
    return std::max(where.objective - lowest_, 0.0) + rounding;
  }

 private:
  using T = Tuning::Proof;

  // A column whose constraint the point breaks.
  struct Broken {
    std::int32_t feature;
    double product;
    double curvature = -1;  // Σ curvature·x², if it is known
  };

  // A column and its product with the last point that was scanned.
  struct Scanned {
    std::int32_t feature;
    double norm, product;
  };

  // Scales the point until it keeps the constraints that it breaks; it becomes the dual point if its value is larger.
  // Columns with bounds or l2 have no constraint but a conjugate that is subtracted. At a solution it is more than
  // rounding where l2 acts on a weight or a bound holds it; elsewhere scaling costs less.
  void keep_if_better(const std::vector<double>& point, const Where& where, bool has_products) {
    double worst = 0, worst_inside = 0, worst_of_all = 0;
    for (const Broken& entry : broken_) {
      const CoordinatePenalty penalty = problem_.penalty.at(entry.feature);
      if (!(penalty.l1 > 0)) continue;
      const double size = std::fabs(entry.product) / penalty.l1, w = where.w[entry.feature];
      worst_of_all = std::max(worst_of_all, size);
      if (w == 0 || (penalty.l2 == 0 && w > penalty.lower && w < penalty.upper))
        worst_inside = std::max(worst_inside, size);
      if (limits_dual(penalty, entry.product)) worst = std::max(worst, size);
    }
    try_scale(point, where, worst, has_products);
    if (worst_inside > std::max(worst, 1.0)) try_scale(point, where, worst_inside, has_products);
    if (worst_of_all > std::max({worst, worst_inside, 1.0})) try_scale(point, where, worst_of_all, has_products);
  }

  void try_scale(const std::vector<double>& point, const Where& where, double worst, bool has_products) {
    const double scale = worst > 1 ? (1 - T::scale_margin) / worst : 1.0;
    double value = -dual_rows_.conjugate(point, scale);
    if (problem_.offset) {
      value += scale * rows_.product(point.data(), problem_.offset);
    }
    for (const Broken& entry : broken_) {
      const CoordinatePenalty penalty = problem_.penalty.at(entry.feature);
      if (!limits_dual(penalty, entry.product))
        value -= penalty.conjugate(-scale * entry.product, most_penalty(where));
    }
    if (!(value > value_)) return;
    value_ = value;
    scale_ = scale;
    products_are_known_ = has_products;
    rows_.for_each([&](std::size_t i) { dual_[i] = scale * point[i]; });
  }

  // The columns whose product with the point is beyond their threshold, with these products. scan: as at a new θ.
  void find_broken(const std::vector<double>& point, const Where& where, bool scan) {
    products_.resize(n_column_parts);
    for (auto& part : products_) part.clear();
    // Products are counted as large as rounding may make them elsewhere.
    const double rounding =
        Tuning::Screening::product_rounding * std::sqrt(rows_.product(point.data(), point.data()));
    const auto visit = [&](std::int64_t part, std::int32_t j, double norm, double product) {
      const CoordinatePenalty penalty = problem_.penalty.at(j);
      product += std::copysign(rounding * norm, product);
      if (std::fabs(product) > penalty.l1) products_[part].push_back({j, product});
    };
    if (scan) scan_all(point, where, visit);
    else candidates_.visit_violators(point, visit);
    broken_.clear();
    for (const auto& part : products_) broken_.insert(broken_.end(), part.begin(), part.end());
  }

  // As at a new θ. Dense columns are few, and their products long: these are kept.
  template <class Visit>
  void scan_all(const std::vector<double>& point, const Where& where, Visit visit) {
    products_are_known_ = false;
    if constexpr (!Candidates<View>::is_full) {
      candidates_.scan(point, where.w, where.max_proposals, where.scan, visit);
    } else {
      std::vector<std::vector<Scanned>> parts(n_column_parts);
      candidates_.scan(point, where.w, where.max_proposals, where.scan,
                       [&](std::int64_t part, std::int32_t j, double norm, double product) {
                         parts[part].push_back({j, norm, product});
                         visit(part, j, norm, product);
                       });
      scanned_.clear();
      for (const auto& part : parts) scanned_.insert(scanned_.end(), part.begin(), part.end());
    }
  }
  // Whether that computed the product of every column that there is.
  bool has_all_products() const {
    return Candidates<View>::is_full && static_cast<std::int64_t>(scanned_.size()) == candidates_.size();
  }

  std::vector<std::int32_t> unpenalised_of(const Where& where) const {
    std::vector<std::int32_t> features;
    for (const ScannedColumn& entry : where.scan.support) {
      const CoordinatePenalty penalty = problem_.penalty.at(entry.feature);
      if (penalty.l1 == 0 && penalty.l2 == 0) features.push_back(entry.feature);
    }
    return features;
  }

  // Sums f(i, x) over the nonzeros of a column; long columns are shared by slices of rows.
  template <class F>
  double sum_over(std::int32_t feature, F&& f) {
    const auto add = [&](std::int64_t begin, std::int64_t end) {
      double sum = 0;
      view_.for_each_nonzero(feature, begin, end, [&](std::int32_t i, double x) { sum += f(i, x); });
      return sum;
    };
    if (is_tall(view_.n_rows) && view_.count(feature) >= min_parallel_work) return rows_.sum(1, add);
    double sum = 0;
    view_.for_each_nonzero(feature, [&](std::int32_t i, double x) { sum += f(i, x); });
    return sum;
  }

  double product_of(std::int32_t feature, const std::vector<double>& point) {
    const double* theta = point.data();
    if (!is_tall(view_.n_rows)) return column_dot(view_, feature, theta);
    return sum_over(feature, [=](std::int32_t i, double x) { return x * theta[i]; });
  }

  double curvature_of(std::int32_t feature, const std::vector<float>& roots) {
    const float* root = roots.data();
    return sum_over(feature, [=](std::int32_t i, double x) {
      const double z = x * static_cast<double>(root[i]);
      return z * z;
    });
  }

  // Moves the point along one column until their product has changed by so much, weighted with the curvatures: rows
  // that can hardly move stay, and the move is what a coordinate step of the weights would do to θ.
  void move_along(std::vector<double>& point, std::int32_t feature, double change, double curvature,
                  const std::vector<float>& roots) {
    if (!(curvature > 0)) return;
    double* theta = point.data();
    const float* root = roots.data();
    const double step = change / curvature;
    sum_over(feature, [=](std::int32_t i, double x) {
      theta[i] += step * x * static_cast<double>(root[i]) * static_cast<double>(root[i]);
      return 0.0;
    });
  }

  // Projection onto the constraint of one column, if the point breaks it.
  void project(std::vector<double>& point, Broken& entry, const std::vector<float>& roots) {
    const CoordinatePenalty penalty = problem_.penalty.at(entry.feature);
    const double product = product_of(entry.feature, point), excess = std::fabs(product) - penalty.l1;
    if (!(excess > 0) || !limits_dual(penalty, product)) return;
    if (entry.curvature < 0) entry.curvature = curvature_of(entry.feature, roots);
    move_along(point, entry.feature, product > 0 ? -excess : excess, entry.curvature, roots);
  }

  // Projection onto the equality of one unpenalised column.
  void project_to_zero(std::vector<double>& point, std::int32_t feature, const std::vector<float>& roots) {
    const double product = product_of(feature, point);
    if (limits_dual(problem_.penalty.at(feature), product))
      move_along(point, feature, -product, curvature_of(feature, roots), roots);
  }

  // Moves the point to where it keeps the constraints of the intercept and the unpenalised columns and is in the
  // domain. A row that leaves the domain is moved to its end and stays there: the others make up for it. False if
  // that does not lead there.
  bool move_to_equalities(std::vector<double>& point, const std::vector<float>& root,
                          const std::vector<std::int32_t>& unpenalised) {
    std::vector<float> free = root;  // but 0 in rows at an end of their domain
    for (int round = 0; round < T::domain_rounds && !team_.poll(); ++round) {
      project_equalities(point, free, unpenalised);
      const double n_moved = dual_rows_.into_domain(point, [&](std::int64_t i) { free[i] = 0; });
      // what is left of a sum is missing from the proof, however little it is
      if (n_moved == 0 || keeps_equalities(point, unpenalised, T::equality_goal)) break;
    }
    return keeps_equalities(point, unpenalised);
  }

  // Projects onto these constraints, weighted as in project(): onto all of them jointly, and again for what rounding
  // left, which would be missing from the proof; where there are very many, onto one after the other.
  void project_equalities(std::vector<double>& point, const std::vector<float>& root,
                          const std::vector<std::int32_t>& unpenalised) {
    if (unpenalised.size() > T::max_joint_equalities) {
      for (int round = 0; round < T::single_rounds && !team_.poll() && !keeps_equalities(point, unpenalised);
           ++round) {
        for (std::int32_t feature : unpenalised) project_to_zero(point, feature, root);
        if (problem_.fit_intercept) project_jointly(point, root, {-1});
      }
      return;
    }
    std::vector<std::int32_t> together;
    for (int round = 0; round < T::joint_rounds && !team_.poll(); ++round) {
      if (round > 0 && keeps_equalities(point, unpenalised, T::equality_goal)) break;
      together.clear();
      if (problem_.fit_intercept) together.push_back(-1);
      for (std::int32_t feature : unpenalised) {
        if (limits_dual(problem_.penalty.at(feature), column_dot(view_, feature, point.data())))
          together.push_back(feature);
      }
      project_jointly(point, root, together);
    }
  }

  // θ −= D Aᵀ (A D Aᵀ)⁻¹ A θ, with D the curvatures and A these columns (-1: ones). Not at all if time is up.
  void project_jointly(std::vector<double>& point, const std::vector<float>& root,
                       const std::vector<std::int32_t>& features) {
    const std::size_t k = features.size();
    const auto visit = [&](std::int32_t feature, auto&& f) {
      if (feature >= 0) view_.for_each_nonzero(feature, f);
      else
        for (std::int32_t i = 0; i < view_.n_rows; ++i) f(i, 1.0);
    };
    const auto curvature = [&](std::int32_t i) {
      const auto v = static_cast<double>(root[i]);
      return v * v;
    };
    std::vector<double> matrix(k * k), sums(k), spread(k > 1 ? point.size() : 0);
    for (std::size_t a = 0; a < k; ++a) {
      if (a > 0 && team_.poll()) return;  // each takes as long as a pass over those before it
      double own = 0;
      visit(features[a], [&](std::int32_t i, double x) {
        sums[a] += x * point[i];
        own += curvature(i) * x * x;
        if (k > 1) spread[i] = curvature(i) * x;
      });
      matrix[a * k + a] = own;
      for (std::size_t b = 0; b < a; ++b) {
        visit(features[b], [&](std::int32_t i, double x) { matrix[a * k + b] += spread[i] * x; });
      }
      if (k > 1) visit(features[a], [&](std::int32_t i, double) { spread[i] = 0; });
    }
    // LDLᵀ in place; a column that depends on those before it gets 0.
    for (std::size_t a = 0; a < k; ++a) {
      const double whole = matrix[a * k + a];
      for (std::size_t b = 0; b < a; ++b) {
        for (std::size_t c = 0; c < b; ++c)
          matrix[a * k + b] -= matrix[a * k + c] * matrix[b * k + c] * matrix[c * k + c];
        matrix[a * k + b] = matrix[b * k + b] > 0 ? matrix[a * k + b] / matrix[b * k + b] : 0.0;
        matrix[a * k + a] -= matrix[a * k + b] * matrix[a * k + b] * matrix[b * k + b];
      }
      if (!(matrix[a * k + a] > T::dependent_pivot * whole)) matrix[a * k + a] = 0;
    }
    for (std::size_t a = 0; a < k; ++a) {
      for (std::size_t b = 0; b < a; ++b) sums[a] -= matrix[a * k + b] * sums[b];
    }
    for (std::size_t a = k; a-- > 0;) {
      sums[a] = matrix[a * k + a] > 0 ? sums[a] / matrix[a * k + a] : 0.0;
      for (std::size_t b = a + 1; b < k; ++b) sums[a] -= matrix[b * k + a] * sums[b];
    }
    for (std::size_t a = 0; a < k; ++a) {
      visit(features[a], [&](std::int32_t i, double x) { point[i] -= sums[a] * curvature(i) * x; });
    }
  }

  double sum_of(const std::vector<double>& point) {
    return rows_.sum(
        1, [&](std::int64_t begin, std::int64_t end) { return kernels().sum(point.data() + begin, end - begin); });
  }

  // By default to a tenth of what the check in certificate.py allows.
  bool keeps_equalities(const std::vector<double>& point, const std::vector<std::int32_t>& unpenalised,
                        double rounding = T::equality_rounding) {
    if (!problem_.fit_intercept && unpenalised.empty()) return true;
    const double length = std::sqrt(rows_.product(point.data(), point.data()));
    if (problem_.fit_intercept) {
      if (!(std::fabs(sum_of(point)) <= rounding * length * std::sqrt(static_cast<double>(view_.n_rows))))
        return false;
    }
    for (std::int32_t feature : unpenalised) {
      const double product = column_dot(view_, feature, point.data());
      double squares = 0;
      view_.for_each_nonzero(feature,
                             [&](std::int32_t i, double x) { squares += dual_rows_.weight(i) > 0 ? x * x : 0.0; });
      const double norm = std::sqrt(squares);
      if (limits_dual(problem_.penalty.at(feature), product) && !(std::fabs(product) <= rounding * length * norm))
        return false;
    }
    return true;
  }

  View view_;
  const CoreProblem& problem_;
  ThreadTeam& team_;
  Rows rows_;
  DualRows dual_rows_;
  Candidates<View>& candidates_;
  std::vector<double>& dual_;
  double& value_;
  double lowest_ = 0;                          // what θ = 0 proves
  std::vector<std::vector<Broken>> products_;  // by part
  std::vector<Broken> broken_;                 // all of them
  std::vector<Scanned> scanned_;               // of dense columns
  // The dual point is this times the point that was scanned, whose products with all columns are in scanned_.
  double scale_ = 1;
  bool products_are_known_ = false;
};

}  // namespace blockgreedy
