// The update step: applies the accepted proposals by one of four rules, which share how a set of steps changes Xw and
// derivs.
#pragma once

#include "family/block_greedy.hpp"

namespace blockgreedy {

template <class View>
class Updates {
 public:
  Updates(const View& view, const CoreProblem& problem, const BlockGreedyOptions& options, State& state,
          ThreadTeam& team);

  // Moves the accepted features (block order) by the rule of the options.
  void apply(std::vector<Proposal>& accepted);
  // Moves them to their targets, whatever the rule is.
  void move_to_targets(const std::vector<Proposal>& accepted);
  // Xw and derivs anew from w and the intercept.
  void rebuild();
  // Adds this to the intercept, and so to all predictions.
  void shift_intercept(double by);
  // derivs anew from Xw.
  void refresh();

  // For threads that do not wait for each other: every number that rows share is read and written atomically.
  double refined_target(const Proposal& proposal, double* buffer) const;
  static constexpr std::int64_t buffer_per_nonzero = 6;  // numbers that it needs for each of the column's
  void add_column_shared(std::int64_t j, double step);
  void refresh_rows_of(std::int64_t j);

 private:
  void line_search(std::vector<Proposal>& accepted);
  void sweep(std::vector<Proposal>& accepted);
  void joint(std::vector<Proposal>& accepted);
  void absorb_Xd(const std::vector<Proposal>& accepted);

  void add_atomically(const std::vector<Proposal>& accepted);
  bool touches_all_rows(std::int64_t nonzeros) const;
  template <class Change>
  void refresh_all_rows(std::int64_t work, Change change);
  void add_column(std::int64_t j, double step);
  BLOCKGREEDY_INLINE void compute_derivs(const double* y, const double* t, const double* row_weights, std::int64_t n,
                                         double* out) const;
  void refresh_slice(std::int64_t slice);
  std::int64_t count_nonzeros(const std::vector<Proposal>& accepted) const;

  View view_;
  CoreProblem problem_;
  BlockGreedyOptions options_;
  State& state_;
  ThreadTeam& team_;
  double row_scale_, scale_;  // scale = beta row_scale, the factor of the quadratic majoriser
  RowSlices slices_;
  std::vector<double> Xd_, weighted_Xd_;      // Xd and ω∘Xd, private to joint, all zero between calls
  std::vector<std::vector<double>> scratch_;  // per executor
};

}  // namespace blockgreedy
