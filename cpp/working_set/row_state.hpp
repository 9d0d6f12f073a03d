// What the default solver knows of each row: prediction, loss derivative and curvature at the current point, and the
// same at a trial point along a direction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rows.hpp"
#include "math/core_problem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

// The step that RowState::accept_trial takes.
struct AcceptedStep {
  double size;
  bool large_decrease;        // of the objective, see Tuning::Curvature
  bool is_extension = false;  // of a step that was accepted before, or of the path: says nothing of the quadratic
};

// Curvatures are those of the quadratic that the next step minimises: the second derivative, but larger where that
// would mislead (see the losses), or where an earlier step went too far.
class RowState {
 public:
  RowState(std::int64_t n_rows, const CoreProblem& problem, ThreadTeam& team)
      : problem_(problem), traits_(problem.loss.traits()), n_rows_(n_rows), rows_(n_rows, team) {
    const auto n = static_cast<std::size_t>(n_rows);
    for (auto* v : {&predictions, &theta, &trial_theta, &direction}) v->resize(n);
    for (auto* v : {&root_curvature, &trial_root_curvature}) v->resize(n);
    const double* weights = problem.row_weights;
    largest_weight_ = weights ? *std::max_element(weights, weights + n) : 1.0 / static_cast<double>(n_rows);
  }

  // Derivatives and curvatures at the predictions; returns the loss.
  double evaluate() { return evaluate(nullptr, 0.0, theta, root_curvature); }

  // The same at predictions + size·direction, into the trial arrays.
  double evaluate_trial(double size) { return evaluate(direction.data(), size, trial_theta, trial_root_curvature); }

  // What evaluate_trial(step.size) computed last becomes the current point.
  void accept_trial(const AcceptedStep& step);

  // After a trial of this size that went too far: rows in which the loss turned out to bend though it has no
  // curvature here (those with a large margin) get at least the secant curvature, which would have foretold their new
  // derivative, until full steps succeed.
  void remember_secants(double size);

  // First and second derivative of the loss along the direction, at the current point or at the trial point.
  double slope(bool at_trial) const {
    return rows_.product(at_trial ? trial_theta.data() : theta.data(), direction.data());
  }
  double curvature(bool at_trial) const;

  // The derivatives that the quadratic predicts at the end of the direction: a dual point of second order, where θ at
  // the new weights is of first.
  void predict_theta(std::vector<double>& out) const;

  // The loss of other predictions.
  double loss_at(const std::vector<double>& predictions) const;

  // By how much a weight that is free can lower the objective at least, whose column has this derivative and norm.
  double least_gain(double grad, double norm) const {
    return grad * grad / (2 * traits_.curvature_bound * largest_weight_ * norm * norm);
  }

  double norm(const std::vector<double>& v) const;
  double sum(const std::vector<double>& v) const;
  const Rows& rows() const { return rows_; }

  std::vector<double> predictions;  // Xw + intercept + offset
  // Whether they are one sum of columns times weights, with nothing added since: that of the start, or the direction
  // of a full step from predictions that are all 0.
  bool is_one_sum = false, are_zero = false;
  std::vector<double> theta;          // θ: weight of the row times the derivative of its loss
  std::vector<float> root_curvature;  // √(weight of the row · curvature)
  std::vector<double> direction;      // Xd + step of the intercept
  std::vector<double> trial_theta;    // between steps: scratch
  std::vector<float> trial_root_curvature;

 private:
  double evaluate(const double* along, double size, std::vector<double>& derivatives, std::vector<float>& roots);
  double safeguard() const;
  void adapt_safeguards(const AcceptedStep& step);
  void apply_secants(bool full_step);

  const CoreProblem& problem_;
  const LossTraits traits_;
  double largest_weight_;  // of a row
  const std::int64_t n_rows_;
  Rows rows_;
  bool majorise_ = true;                               // logistic: large negative margins use the majorising parabola
  double largest_change_ = 1;                          // of a prediction in the last step
  double damping_ = Tuning::Curvature::first_damping;  // curvature where the loss is flat
  std::vector<float> secant_roots_;                    // least √curvature that failed steps asked for; may be empty
  bool has_secants_ = false;
};

}  // namespace blockgreedy
