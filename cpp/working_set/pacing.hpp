// How much work the default solver puts into a subproblem, and when it attempts a proof (a dual point whose gap ends
// the solve). Decides by the decreases that subproblems predict and that steps bring; knows nothing of the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "math/penalties.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

class Pacing {
 public:
  // tol: the relative gap asked for.
  Pacing(double tol, bool is_quadratic) : tol_(tol), is_quadratic_(is_quadratic) {}

  // The last alpha's progress says nothing of how far the end is at this one.
  void begin_alpha() {
    failed_prediction_ = last_decrease_ = infinity;
    n_waits_ = n_idle_ = 0;
    patience_ = 1;
  }

  // Whether this iteration attempts a proof. predicted: the decrease that the subproblem promises; gap: the one asked
  // for.
  void plan_proof(double predicted, double gap) {
    using T = Tuning::Pacing;
    only_proof_missing_ = predicted <= T::only_proof_share * gap;
    attempts_proof_ = predicted <= std::min(gap, T::retry_share * failed_prediction_);
    if (only_proof_missing_ && !attempts_proof_ && ++n_waits_ > T::max_waits) {
      attempts_proof_ = true;
      patience_ = std::min<std::int64_t>(2 * patience_, T::max_patience);
    }
    if (attempts_proof_) n_waits_ = 0;
  }
  bool attempts_proof() const { return attempts_proof_; }
  // The step is worth next to nothing: the subproblem is solved further, for its dual point.
  bool polishes() const { return attempts_proof_ && only_proof_missing_; }
  void skip_proof() { attempts_proof_ = false; }
  void proof_failed(double predicted) { failed_prediction_ = predicted; }

  // After a step: whether the dual point at the weights is tried without a plan, since predictions that do not come
  // true may hide that the end is reached.
  bool tries_unplanned_proof(double decrease, double gap) {
    return !attempts_proof_ && decrease <= Tuning::Pacing::only_proof_share * gap &&
           ++n_idle_ % Tuning::Pacing::idle_period == 0;
  }

  // Conjugate gradient iterations that polishing may take; so_far: those of this iteration.
  std::int64_t max_polish_iterations(std::int64_t so_far) const {
    return patience_ * std::max<std::int64_t>(so_far, Tuning::Pacing::min_polish_iterations);
  }

  // After a full step on a working set that was not truncated, from this objective.
  void full_step(double decrease, double objective) {
    using T = Tuning::Pacing;
    relative_decrease_ = decrease / objective;
    if (decrease > T::slow_decrease * last_decrease_) {
      if (effort_ == T::max_effort)
        max_dropped_ *= Tuning::Layout::dropped_factor;  // effort was not what was missing
      effort_ = std::min(effort_ * 2, T::max_effort);
    } else if (decrease < T::fast_decrease * last_decrease_) effort_ = std::max(effort_ / 2, 1.0);
    last_decrease_ = decrease;
  }

  // Cycles of sweeps and conjugate gradients.
  int cycles() const {
    return static_cast<int>((is_quadratic_ ? Tuning::Pacing::cycles_quadratic : Tuning::Pacing::cycles) * effort_);
  }
  // Passes over the columns that solving the subproblem is expected to take.
  double expected_passes() const {
    return (is_quadratic_ ? Tuning::Layout::gram_passes_quadratic : Tuning::Layout::gram_passes) * effort_;
  }
  // Share of all curvature that rows left out of the subproblem may hold.
  double dropped_share() const {
    if (is_quadratic_) return 0.0;
    return std::min(max_dropped_, Tuning::Layout::dropped_per_root_decrease * std::sqrt(relative_decrease_));
  }
  // Conjugate gradients stop when an iteration adds less than this part of the decrease. factorised: the subproblem
  // is a Cholesky factor, cheap to touch.
  double cg_stop(bool factorised) const {
    using T = Tuning::Pacing;
    if (factorised) return T::factor_stop;
    return std::clamp(T::stop_per_root_decrease * std::sqrt(relative_decrease_), T::finest_stop, T::coarsest_stop);
  }
  int cg_iterations(bool factorised) const {
    using T = Tuning::Pacing;
    return cg_stop(factorised) < T::coarsest_stop ? T::cg_iterations_fine : T::cg_iterations;
  }
  static double cycle_stop(bool factorised) {
    return factorised ? Tuning::Pacing::factor_stop : Tuning::Pacing::cycle_stop;
  }
  // A decrease of the subproblem that is not worth an iteration of its own; 0 where tol is small, and after a proof
  // that failed or a step that brought nothing, which ask for a better point.
  double negligible_decrease(double gap) const {
    const bool first_attempt = failed_prediction_ == infinity && n_idle_ == 0;
    return first_attempt && tol_ > Tuning::Pacing::finest_tol ? Tuning::Pacing::negligible * gap : 0.0;
  }

 private:
  const double tol_;
  const bool is_quadratic_;
  double effort_ = 1;  // 1 to max_effort
  double last_decrease_ = infinity;
  double relative_decrease_ = 1;  // of the last full step
  double max_dropped_ = Tuning::Layout::max_dropped;
  bool attempts_proof_ = false, only_proof_missing_ = false;
  double failed_prediction_ = infinity;  // the predicted decrease when the last proof failed
  std::int64_t patience_ = 1;            // factor of what polishing may cost; grows when no proof succeeds
  int n_waits_ = 0;                      // iterations without an attempt, when only the proof was missing
  int n_idle_ = 0;                       // iterations that gained next to nothing, without an attempt
};

}  // namespace blockgreedy
