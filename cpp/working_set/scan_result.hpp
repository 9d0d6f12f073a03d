// What a scan (a pass that computes the gradients x_j·θ of columns) reports of the columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "math/penalties.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

// A column whose gradient was computed.
struct ScannedColumn {
  std::int32_t feature;
  std::int32_t position;  // among the candidates
  double grad;            // x_j·θ
  double norm;            // ‖x_j‖
  double excess;          // how far the gradient is beyond the threshold at which weight 0 is no longer optimal

  // What a step along this column alone would gain, up to a common factor.
  double score() const { return excess * excess / (norm * norm); }
  static bool better(const ScannedColumn& a, const ScannedColumn& b) {
    const double sa = a.score(), sb = b.score();
    return sa != sb ? sa > sb : a.feature < b.feature;
  }
};

struct ScanResult {
  std::vector<ScannedColumn> support;    // weight not 0, or unpenalised
  std::vector<ScannedColumn> proposals;  // weight 0 is not optimal: violators. Only the best are kept
  std::int64_t n_violators = 0;          // how many there were
  double largest_violation = 0;  // excess relative to the threshold, of all columns that constrain the dual point

  void clear() {
    support.clear();
    proposals.clear();
    n_violators = 0;
    largest_violation = 0;
  }
  void propose(const ScannedColumn& entry, std::size_t max_proposals) {
    ++n_violators;
    proposals.push_back(entry);
    limit(max_proposals);
  }
  void keep_best(std::size_t max_proposals) {
    if (proposals.size() <= max_proposals) return;
    std::nth_element(proposals.begin(), proposals.begin() + static_cast<std::ptrdiff_t>(max_proposals),
                     proposals.end(), ScannedColumn::better);
    proposals.resize(max_proposals);
  }
  void add(const ScanResult& other, std::size_t max_proposals) {
    support.insert(support.end(), other.support.begin(), other.support.end());
    proposals.insert(proposals.end(), other.proposals.begin(), other.proposals.end());
    limit(max_proposals);
    n_violators += other.n_violators;
    largest_violation = std::max(largest_violation, other.largest_violation);
  }

 private:
  void limit(std::size_t max_proposals) {
    if (proposals.size() >= Tuning::Screening::list_factor * max_proposals + Tuning::Screening::list_extra)
      keep_best(max_proposals);
  }
};

// Slack: how much |x_j·θ| may grow before weight 0 is no longer optimal; infinite if it always is.
inline double slack_at_zero(const CoordinatePenalty& c, double grad) {
  const double up = c.upper > 0 ? c.l1 + grad : infinity;
  const double down = c.lower < 0 ? c.l1 - grad : infinity;
  return up < down ? up : down;
}

// Whether the dual constrains x_j·θ on the side of `product`: no bound and no l2 term stop the weight there.
inline bool limits_dual(const CoordinatePenalty& c, double product) { return c.is_unbounded(-product); }

}  // namespace blockgreedy
