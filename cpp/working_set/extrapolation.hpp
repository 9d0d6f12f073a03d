// A starting point for the next alpha of a path: weights and predictions continue as they changed from the last alpha
// but one to the last. For the squared loss, where they are piecewise linear in alpha, that is the solution unless
// the support changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "math/penalties.hpp"
#include "working_set/column_combination.hpp"
#include "working_set/iterate.hpp"
#include "working_set/row_state.hpp"
#include "working_set/subproblem.hpp"

namespace blockgreedy {

template <class View>
class Extrapolation {
 public:
  Extrapolation(const View& view, const CoreProblem& problem, ThreadTeam& team)
      : view_(view), problem_(problem), combination_(view, team) {}

  // Alpha fell by `fall` from where `iterate` is the solution, which is remembered for the next call. Fills `columns`
  // and rows.direction; false if there is nothing to continue. Weights keep their sign and their bounds; the
  // predictions follow the columns whose weights may not continue.
  bool propose(const Iterate& iterate, double fall, RowState& rows, std::vector<SubproblemColumn>& columns) {
    const double share = last_fall_ > 0 ? fall / last_fall_ : 0.0;
    corrections_.clear();
    fill_columns(iterate, share, columns);
    const bool continues = share > 0 && !iterate.support.empty();
    if (continues) {
      combination_.sum(
          corrections_, [&](std::size_t i) { return share * (rows.predictions[i] - last_predictions_[i]); },
          rows.direction);
    }
    last_weights_.clear();
    for (std::int32_t j : iterate.support) last_weights_.push_back({j, iterate.weights[j]});
    last_intercept_ = iterate.intercept;
    last_fall_ = fall;
    last_predictions_.resize(rows.predictions.size());
    rows.rows().copy(rows.predictions, last_predictions_);
    return continues;
  }

  // Whether alpha has fallen yet.
  bool on_path() const { return last_fall_ != 0; }

 private:
  void fill_columns(const Iterate& iterate, double share, std::vector<SubproblemColumn>& columns) {
    columns.clear();
    if (problem_.fit_intercept) {
      columns.push_back({.feature = -1,
                         .dense = true,
                         .weight = iterate.intercept,
                         .point = iterate.intercept + share * (iterate.intercept - last_intercept_)});
    }
    auto last = last_weights_.begin();
    const auto stay_at_zero_before = [&](std::int64_t j) {  // weights that have become 0 stay there
      for (; last != last_weights_.end() && last->feature < j; ++last)
        corrections_.push_back({last->feature, share * last->coefficient});
    };
    for (std::int32_t j : iterate.support) {
      stay_at_zero_before(j);
      const double from = last != last_weights_.end() && last->feature == j ? (last++)->coefficient : 0.0;
      const CoordinatePenalty penalty = problem_.penalty.at(j);
      const double weight = iterate.weights[j], linear = weight + share * (weight - from);
      double to = std::clamp(linear, penalty.lower, penalty.upper);
      if (penalty.l1 > 0 && to * weight < 0) to = 0;
      if (to != linear) corrections_.push_back({j, to - linear});
      columns.push_back({.feature = j, .weight = weight, .point = to, .penalty = penalty});
    }
    stay_at_zero_before(view_.n_cols);
  }

  View view_;
  const CoreProblem& problem_;
  ColumnCombination<View> combination_;
  std::vector<Term> corrections_;   // to the linear continuation of the predictions
  std::vector<Term> last_weights_;  // at the last alpha
  std::vector<double> last_predictions_;
  double last_intercept_ = 0, last_fall_ = 0;
};

}  // namespace blockgreedy
