// How long a solve spends in each of its phases.
#pragma once

#include <array>
#include <cstddef>

#include "base/threads.hpp"

namespace blockgreedy {

// Where the time goes.
enum class Phase : int { rows, gradients, selection, copy, sweeps, conjugate_gradients, certificate, guard, count };
inline constexpr std::array<const char*, static_cast<std::size_t>(Phase::count)> phase_names{
    "rows", "gradients", "selection", "copy", "sweeps", "conjugate_gradients", "certificate", "guard"};

using PhaseSeconds = std::array<double, static_cast<std::size_t>(Phase::count)>;

// Adds the time between its calls to the phases.
class PhaseClock {
 public:
  PhaseClock(PhaseSeconds& seconds, Phase phase) : seconds_(seconds), phase_(phase), since_(seconds_now()) {}
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;
  ~PhaseClock() { next(phase_); }
  void next(Phase phase) {
    const double now = seconds_now();
    seconds_[static_cast<std::size_t>(phase_)] += now - since_;
    since_ = now;
    phase_ = phase;
  }

 private:
  PhaseSeconds& seconds_;
  Phase phase_;
  double since_;
};

}  // namespace blockgreedy
