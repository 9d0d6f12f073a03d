// The step of one outer iteration: backtracking along the subproblem's direction on the true objective (Armijo's
// condition), and beyond the full step where that pays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "working_set/column_combination.hpp"
#include "working_set/iterate.hpp"
#include "working_set/row_state.hpp"
#include "working_set/subproblem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

struct LineSearchResult {
  bool accepted = false;
  double size = 0, decrease = 0;  // of the step before it was extended
};

// The direction goes from each column's weight to its point. Columns with a weight that is not 0 must be among them.
template <class View>
class LineSearch {
 public:
  LineSearch(const View& view, RowState& rows, Iterate& iterate, ThreadTeam& team)
      : view_(view), rows_(rows), iterate_(iterate), team_(team), combination_(view, team) {}

  // Computes the direction in rows, in float64 and from the original columns. Returns the linear part of the
  // predicted change; unless that is negative there is no direction.
  double set_direction(std::vector<SubproblemColumn>& columns) {
    const double linear = linear_change(columns);
    if (!(linear < 0)) return linear;
    terms_.clear();
    double centres = 0;  // the intercept makes up for columns that were centred
    for (const SubproblemColumn& column : columns) centres += column.centre * column.step();
    double intercept_step = 0;
    for (SubproblemColumn& column : columns) {
      if (column.feature < 0) {
        column.point -= centres;
        intercept_step = column.step();
      } else if (column.point != column.weight) {
        terms_.push_back({column.feature, column.point - column.weight});
      }
    }
    combination_.sum(terms_, [=](std::size_t) { return intercept_step; }, rows_.direction);
    return linear;
  }

  // Moves along the direction that was set, with its linear change, until the objective falls enough.
  LineSearchResult run(std::vector<SubproblemColumn>& columns, double linear) {
    using T = Tuning::Search;
    // Near the end the decrease is smaller than the rounding of the objective, while the step still improves the
    // gradient: full steps are taken as long as the objective stays where it is.
    const double before = iterate_.objective;
    const bool is_rounding = -linear <= T::rounding_decrease * before;
    if (is_rounding && ++n_rounding_steps_ > T::max_rounding_steps) return {};
    if (!is_rounding) n_rounding_steps_ = 0;
    double size = 1, trial = objective_at(columns, size);
    if (is_rounding && !(trial <= before + T::rounding_increase * before)) return {};
    for (int k = 0; !is_rounding && !(trial <= before + T::armijo * size * linear); ++k) {
      if (k == T::max_halvings || (k >= T::max_late_halvings && team_.poll())) return {};
      rows_.remember_secants(size);
      size *= 0.5;
      trial = objective_at(columns, size);
    }
    accept(columns, size, std::min(trial, before), false);
    const LineSearchResult result{true, size, before - iterate_.objective};
    if (size == 1 && !is_rounding && !team_.poll()) extend(columns, result.decrease);
    return result;
  }

  // Takes the whole direction in rows if that lowers the objective.
  void try_extrapolation(const std::vector<SubproblemColumn>& columns) {
    const double trial = objective_at(columns, 1);
    if (trial < iterate_.objective) accept(columns, 1, trial, true);
  }

  // Whether the last decrease was too small to be seen in the objective.
  bool at_rounding() const { return n_rounding_steps_ > 0; }
  void begin_alpha() { n_rounding_steps_ = 0; }

 private:
  static double weight_at(const SubproblemColumn& column, double size) {
    const double to = size == 1 ? column.point : column.weight + size * column.step();
    return std::clamp(to, column.penalty.lower, column.penalty.upper);  // rounding may have passed a bound
  }

  // Evaluates the point at `size` along the direction, into the trial arrays of rows.
  double objective_at(const std::vector<SubproblemColumn>& columns, double size) {
    trial_penalty_ = 0;
    for (const SubproblemColumn& column : columns) {
      const double to = weight_at(column, size);
      if (column.feature >= 0 && to != 0) trial_penalty_ += column.penalty.value(to);
    }
    return rows_.evaluate_trial(size) + trial_penalty_;
  }

  // What objective_at(size) evaluated last becomes the iterate.
  void accept(const std::vector<SubproblemColumn>& columns, double size, double reached, bool is_extension) {
    std::vector<std::int32_t>& support = iterate_.support;
    support.clear();
    for (const SubproblemColumn& column : columns) {
      const double to = weight_at(column, size);
      if (column.feature < 0) {
        iterate_.intercept = to;
        continue;
      }
      iterate_.weights[column.feature] = to;
      if (to != 0) support.push_back(column.feature);
    }
    std::sort(support.begin(), support.end());  // columns are in order of blocks
    iterate_.step_size = size;
    const double objective = iterate_.objective;
    rows_.accept_trial({size, objective - reached > Tuning::Curvature::large_decrease * objective, is_extension});
    iterate_.objective = reached;
    iterate_.penalty = trial_penalty_;
  }

  // A full step is often too short: the Newton quadratic of the logistic loss underestimates how far margins should
  // grow, squared hinge and Huber are flat where the quadratic is not, and few sweeps leave a subproblem half solved.
  // The weights that the step did not set to zero continue in the same direction, to the minimum along it by Newton's
  // method. gained: by the step so far.
  void extend(std::vector<SubproblemColumn>& columns, double gained) {
    using T = Tuning::Search;
    const double longest = continue_direction(columns);
    double size = 0, evaluated = 0, reached = iterate_.objective;
    for (int k = 0; k < T::max_extensions && (k == 0 || !team_.poll()); ++k) {
      double slope = rows_.slope(size > 0), ridge = 0;
      const double curvature = rows_.curvature(size > 0);
      for (const SubproblemColumn& column : columns) {
        const double at = weight_at(column, size), step = column.step();
        slope += step * (column.penalty.l2 * at + (at > 0 ? column.penalty.l1 : -column.penalty.l1));
        ridge += column.penalty.l2 * step * step;
      }
      const double by = -slope / (curvature + ridge);
      if (!(by > 0) || -0.5 * slope * by < T::worthwhile * gained) break;
      const double next = std::min({size + by, T::growth * size + T::growth_start, longest});
      const double trial = objective_at(columns, next);
      evaluated = next;
      if (!(trial < reached)) break;
      size = next;
      gained += reached - trial;
      reached = trial;
      if (next == longest) break;
    }
    if (size == 0) return;
    if (evaluated != size) reached = objective_at(columns, size);
    accept(columns, size, std::min(reached, iterate_.objective), true);
  }

  // Makes each point the column's weight and the same step once more its direction, but for weights that are now 0.
  // Returns the largest size within the bounds.
  double continue_direction(std::vector<SubproblemColumn>& columns) {
    double longest = Tuning::Search::max_size;
    for (SubproblemColumn& column : columns) {
      double step = column.step();
      if (column.point == 0 && column.penalty.l1 > 0 && step != 0) {
        view_.for_each_nonzero(column.feature, [&](std::int32_t i, double x) { rows_.direction[i] -= step * x; });
        step = 0;
      }
      column.weight = column.point;
      column.point += step;
      if (step == 0) continue;
      const double bound = step > 0 ? column.penalty.upper : column.penalty.lower;
      longest = std::min(longest, (bound - column.weight) / step);
    }
    return longest;
  }

  View view_;
  RowState& rows_;
  Iterate& iterate_;
  ThreadTeam& team_;
  ColumnCombination<View> combination_;
  std::vector<Term> terms_;
  double trial_penalty_ = 0;
  int n_rounding_steps_ = 0;
};

}  // namespace blockgreedy
