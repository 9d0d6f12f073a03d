// One fold among those that are solved side by side: its rows, its weights, and its steps along the path.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "math/core_problem.hpp"
#include "working_set/column_combination.hpp"
#include "working_set/extrapolation.hpp"
#include "working_set/iterate.hpp"
#include "working_set/line_search.hpp"
#include "working_set/row_state.hpp"
#include "working_set/subproblem.hpp"

namespace blockgreedy {

template <class View>
class FoldLane : public Iterate {
 public:
  FoldLane(const View& view, CoreProblem& problem, double f_null)
      : f_null(f_null),
        rows(view.n_rows, problem, alone_),
        problem_(problem),
        search_(view, rows, *this, alone_),
        extrapolation_(view, problem, alone_),
        combination_(view, alone_) {}

  // Takes w as its weights, in place: those of these features, all others are 0.
  void start(double* w, const std::vector<std::int32_t>& features, double b) {
    weights = w;
    intercept = b;
    support = features;
    objective = evaluate(rows.predictions, penalty);
    rows.evaluate();
  }

  // Alpha and l2 change; the weights stay.
  void move_to(double alpha, double l2) {
    const Penalty before = problem_.penalty;
    problem_.penalty.alpha = alpha;
    problem_.penalty.l2 = l2;
    double less = 0;
    for (std::int32_t j : support) less += before.at(j).value(weights[j]) - problem_.penalty.at(j).value(weights[j]);
    penalty -= less;
    objective -= less;
    search_.begin_alpha();
  }

  // Alpha and l2 fall; the solution there is guessed from those at the alphas before.
  void lower(double alpha, double l2) {
    const double before = problem_.penalty.alpha;
    move_to(alpha, l2);
    if (extrapolation_.propose(*this, before - alpha, rows, columns)) search_.try_extrapolation(columns);
  }

  // Along rows.direction, which leads from the weights of `columns` to their points. Returns the decrease.
  double step() {
    const double before = objective, linear = linear_change(columns);
    if (linear < 0) search_.run(columns, linear);
    return before - objective;
  }

  // About the gap of θ scaled by 1 − t into the constraints that it breaks by this factor. What the loss loses by
  // that is t² of it if it is squared, and about that otherwise: all there is to see of weights that are still 0.
  double gap_of(double complementarity, double size, double violation) const {
    const double t = violation / (1 + violation);
    return std::fabs(complementarity) + size * t + (objective - penalty) * t * t;
  }

  // By how much the objective differs from that of the weights, computed anew.
  double drift() {
    double penalty;
    return std::fabs(evaluate(rows.direction, penalty) - objective);
  }

  const CoreProblem& problem() const { return problem_; }

  const double f_null;
  double gap = infinity;  // about what it is at the weights
  std::vector<SubproblemColumn> columns;

 private:
  ThreadTeam alone_{1};  // lanes are shared by threads, not their rows

 public:
  RowState rows;

 private:
  double evaluate(std::vector<double>& predictions, double& penalty) {
    std::vector<Term> terms;
    penalty = 0;
    for (std::int32_t j : support) {
      terms.push_back({j, weights[j]});
      penalty += problem_.penalty.at(j).value(weights[j]);
    }
    combination_.sum(
        terms, [&](std::size_t i) { return intercept + (problem_.offset ? problem_.offset[i] : 0.0); }, predictions);
    return rows.loss_at(predictions) + penalty;
  }

  CoreProblem& problem_;
  LineSearch<View> search_;
  Extrapolation<View> extrapolation_;
  ColumnCombination<View> combination_;
};

}  // namespace blockgreedy
