#include "working_set/pacing.hpp"

#include "tests/check.hpp"

namespace blockgreedy {
namespace {

using T = Tuning::Pacing;

TEST("pacing: a proof is attempted where the predicted decrease is within the gap") {
  Pacing pacing(1e-3, false);
  pacing.plan_proof(1.01, 1.0);
  CHECK(!pacing.attempts_proof());
  pacing.plan_proof(0.99, 1.0);
  CHECK(pacing.attempts_proof());
  CHECK(!pacing.polishes());
  pacing.plan_proof(0.99 * T::only_proof_share, 1.0);
  CHECK(pacing.attempts_proof() && pacing.polishes());
  pacing.skip_proof();
  CHECK(!pacing.attempts_proof() && !pacing.polishes());
}

TEST("pacing: after a failed proof the next waits for a smaller prediction") {
  Pacing pacing(1e-3, false);
  pacing.plan_proof(0.5, 1.0);
  pacing.proof_failed(0.5);
  pacing.plan_proof(0.51 * T::retry_share, 1.0);
  CHECK(!pacing.attempts_proof());
  pacing.plan_proof(0.49 * T::retry_share, 1.0);
  CHECK(pacing.attempts_proof());
}

TEST("pacing: waiting ends after some iterations in which only the proof was missing, and may then cost more") {
  Pacing pacing(1e-3, false);
  const double tiny = 0.5 * T::only_proof_share;
  pacing.proof_failed(tiny);
  CHECK_EQUAL(pacing.max_polish_iterations(100), 100);
  CHECK_EQUAL(pacing.max_polish_iterations(0), T::min_polish_iterations);
  std::int64_t patience = 1;
  for (int attempt = 0; attempt < 10; ++attempt) {
    for (int k = 0; k < T::max_waits; ++k) {
      pacing.plan_proof(tiny, 1.0);
      CHECK(!pacing.attempts_proof());
    }
    pacing.plan_proof(tiny, 1.0);
    CHECK(pacing.attempts_proof());
    pacing.proof_failed(tiny);
    patience = patience * 2 > T::max_patience ? T::max_patience : patience * 2;
    CHECK_EQUAL(pacing.max_polish_iterations(100), 100 * patience);
  }
  pacing.begin_alpha();
  CHECK_EQUAL(pacing.max_polish_iterations(100), 100);
  pacing.plan_proof(tiny, 1.0);
  CHECK(pacing.attempts_proof());
}

TEST("pacing: every few idle iterations try a proof that was not planned") {
  Pacing pacing(1e-3, false);
  pacing.plan_proof(2.0, 1.0);
  for (int k = 1; k <= 3 * T::idle_period; ++k) {
    CHECK(!pacing.tries_unplanned_proof(2 * T::only_proof_share, 1.0));  // not idle
    CHECK_EQUAL(pacing.tries_unplanned_proof(0.0, 1.0), k % T::idle_period == 0);
  }
}

TEST("pacing: effort doubles where full steps gain little less than the last, and halves where far less") {
  Pacing pacing(1e-3, false);
  CHECK_EQUAL(pacing.cycles(), T::cycles);
  pacing.full_step(1.0, 10.0);  // the first: nothing to compare with, and much smaller than infinity
  CHECK_EQUAL(pacing.cycles(), T::cycles);
  pacing.full_step(0.9, 10.0);
  CHECK_EQUAL(pacing.cycles(), 2 * T::cycles);
  pacing.full_step(0.8, 10.0);
  pacing.full_step(0.7, 10.0);
  CHECK_EQUAL(pacing.cycles(), static_cast<int>(T::max_effort) * T::cycles);
  CHECK_EQUAL(pacing.expected_passes(), T::max_effort * Tuning::Layout::gram_passes);
  pacing.full_step(0.001, 10.0);
  CHECK_EQUAL(pacing.cycles(), 2 * T::cycles);
}

TEST("pacing: fewer rows are dropped near the end, and fewer still where effort did not help") {
  Pacing pacing(1e-3, false);
  CHECK_EQUAL(pacing.dropped_share(), Tuning::Layout::max_dropped);
  pacing.full_step(1e-10, 1.0);
  CHECK_EQUAL(pacing.dropped_share(), Tuning::Layout::dropped_per_root_decrease * std::sqrt(1e-10));
  Pacing slow(1e-3, false);
  for (int k = 0; k < 4; ++k) slow.full_step(1.0, 1.0);
  CHECK_EQUAL(slow.dropped_share(), Tuning::Layout::max_dropped * Tuning::Layout::dropped_factor);
  CHECK_EQUAL(Pacing(1e-3, true).dropped_share(), 0.0);
}

TEST("pacing: conjugate gradients are stopped later near the end and for factors") {
  Pacing pacing(1e-3, false);
  CHECK_EQUAL(pacing.cg_stop(false), T::coarsest_stop);
  CHECK_EQUAL(pacing.cg_iterations(false), T::cg_iterations);
  CHECK_EQUAL(pacing.cg_stop(true), T::factor_stop);
  pacing.full_step(1e-12, 1.0);
  CHECK_EQUAL(pacing.cg_stop(false), T::finest_stop);
  CHECK_EQUAL(pacing.cg_iterations(false), T::cg_iterations_fine);
}

TEST("pacing: no decrease is negligible at small tol, after a failed proof or an idle step") {
  Pacing pacing(1e-3, false);
  CHECK_EQUAL(pacing.negligible_decrease(2.0), 2 * T::negligible);
  CHECK_EQUAL(Pacing(0.5 * T::finest_tol, false).negligible_decrease(2.0), 0.0);
  pacing.proof_failed(1.0);
  CHECK_EQUAL(pacing.negligible_decrease(2.0), 0.0);
  pacing.begin_alpha();
  CHECK_EQUAL(pacing.negligible_decrease(2.0), 2 * T::negligible);
  pacing.tries_unplanned_proof(0.0, 2.0);
  CHECK_EQUAL(pacing.negligible_decrease(2.0), 0.0);
}

}  // namespace
}  // namespace blockgreedy
