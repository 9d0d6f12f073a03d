// The columns that may still get a weight, and the scans of those that are due.
//
// Static screening: a column whose gradient cannot reach its threshold whatever the weights (losses with bounded
// derivative have such a bound), down to the least alpha of a path, is dropped for good. Dynamic screening
// (screening.hpp): of the others, a scan computes the gradients of those whose bound on the slack is used up. Both
// are exact: no column is missed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "math/penalties.hpp"
#include "working_set/repeated_columns.hpp"
#include "working_set/scan_result.hpp"
#include "working_set/screening.hpp"
#include "working_set/static_screening.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

template <class View>
class Candidates {
 public:
  static constexpr bool is_full = !requires(View view) { view.indices; };  // dense

  Candidates(const View& view, const CoreProblem& problem, double least_alpha, ThreadTeam& team)
      : view_(view),
        problem_(problem),
        least_alpha_(least_alpha),
        team_(team),
        bounds_(view.n_rows, view.n_cols, problem.penalty.weights != nullptr, is_full, team),
        cuts_(equal_nonzero_cuts(view, n_column_parts)),
        repeated_(view, problem.penalty),
        features_(new std::int32_t[view.n_cols]),
        counts_(static_cast<std::size_t>(n_column_parts)),
        parts_(static_cast<std::size_t>(n_column_parts)) {}

  // The first scan, of every column: norms, static screening, gradients. at_zero: all predictions are 0.
  void begin(const std::vector<double>& theta, const double* w, bool at_zero, std::size_t max_proposals,
             ScanResult& result) {
    bounds_.set_reference(theta, problem_.penalty.alpha);
    repeated_.clear();
    const StaticScreening<View> screening(view_, problem_, least_alpha_, at_zero);
    const std::size_t pool = Tuning::Repeated::first_pool * max_proposals;
    team_.for_work(n_column_parts, view_.n_nonzeros(),
                   [&](std::int64_t part) { begin_part(part, screening, theta, w, pool); });
    collect(pool, max_proposals, result);
    out_of_range = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.out_of_range; });
    size_ = std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
    nonzeros_touched = last_touched = view_.n_nonzeros();
    expected_work_ = last_touched;
  }

  // θ or alpha has moved since the last scan: computes the gradients of the columns that may violate their threshold,
  // and calls visit(part, j, ‖x_j‖, x_j·θ) for each. θ becomes the reference of the bounds.
  template <class Visit>
  void scan(const std::vector<double>& theta, const double* w, std::size_t max_proposals, ScanResult& result,
            Visit visit) {
    const SlackMove move = bounds_.move_to(theta, problem_.penalty.alpha, strong_width_);
    bounds_.set_reference(theta, problem_.penalty.alpha);
    const std::size_t pool = pool_for(max_proposals);
    const bool registers_all = repeated_.are_many();
    scan_parts(pool, max_proposals, result, [&](std::int64_t part, Part& own) {
      own.strong.clear();
      Products products(*this, theta, [&](std::int64_t k, double grad) {
        const std::int32_t j = feature(k);
        bounds_.store(k, classify(own.result, k, grad, w[j], pool));
        if (bounds_.is_strong(k, move)) own.strong.push_back(k);
        if (registers_all && !repeated_.is_registered(j))
          repeated_.collect(j, static_cast<std::int32_t>(k), own.fresh);
        visit(part, j, bounds_.norm(k), grad);
      });
      bounds_.for_each_reached(begin_of(part), end_of(part), move, true, [&](std::int64_t k, float left) {
        if (left <= 0) products.add(k);
        else own.strong.push_back(k);
      });
      return products.finish();
    });
  }

  // Alpha fell by `fall`, thresholds by fall·u_j. Sequential strong rule (Tibshirani et al. 2012): finds what
  // violates at θ if no gradient changes faster than alpha. A heuristic, verified by the scan of the iteration that
  // follows; an exact scan where the last one was not prepared for such a fall.
  void apply_strong_rule(const std::vector<double>& theta, const double* w, double fall, std::size_t max_proposals,
                         ScanResult& result) {
    const bool prepared = Tuning::Screening::strong_rule_factor * fall <= strong_width_;
    strong_width_ = Tuning::Screening::strong_rule_factor * fall;
    if (!prepared) {
      scan(theta, w, max_proposals, result, [](std::int64_t, std::int32_t, double, double) {});
      return;
    }
    const std::size_t pool = pool_for(max_proposals);
    scan_parts(pool, max_proposals, result, [&](std::int64_t, Part& own) {
      Products products(*this, theta, [&](std::int64_t k, double grad) {
        const double slack = classify(own.result, k, grad, w[feature(k)], pool);
        if (slack < 0) bounds_.scan_each_time(k);  // it may get a weight
      });
      for (std::int64_t k : own.strong) products.add(k);
      return products.finish();
    });
  }

  // Proposes the columns that keep their thresholds as well, but for aliases: where nearly all violate theirs, these
  // will once the others have moved.
  void propose_rest(const std::vector<double>& theta, ScanResult& result) {
    for (std::int64_t part = 0; part < n_column_parts; ++part) {
      for (std::int64_t k = begin_of(part); k < end_of(part); ++k) {
        const std::int32_t j = feature(k);
        if (bounds_.is_scanned_each_time(k) || repeated_.is_alias(j)) continue;
        if (!repeated_.is_registered(j) && repeated_.add(j, false)) {
          bounds_.store(k, infinity);
          continue;
        }
        const double grad = column_dot(view_, j, theta.data());
        result.proposals.push_back(
            {j, static_cast<std::int32_t>(k), grad, bounds_.norm(k), -slack_at_zero(problem_.penalty.at(j), grad)});
        bounds_.scan_each_time(k);
        nonzeros_touched += view_.count(j);
      }
    }
  }

  // Calls visit(part, j, ‖x_j‖, x_j·point) for every column that may violate its threshold at `point`; the others do
  // not. The reference stays.
  template <class Visit>
  void visit_violators(const std::vector<double>& point, Visit visit) {
    const SlackMove move = bounds_.move_to(point, problem_.penalty.alpha, 0);
    visit_products(point, visit, [&](std::int64_t part, auto& products) {
      bounds_.for_each_reached(begin_of(part), end_of(part), move, false, [&](std::int64_t k, float left) {
        if (left <= 0) products.add(k);
      });
    });
  }

  // The same with bounds in float64, for the guard of a result.
  template <class Visit>
  void visit_violators_exactly(const std::vector<double>& point, Visit visit) {
    const ScreeningBounds::FinalMove move = bounds_.final_move_to(point, problem_.penalty.alpha);
    visit_products(point, visit, [&](std::int64_t part, auto& products) {
      bounds_.for_each_reached(begin_of(part), end_of(part), move, [&](std::int64_t k) { products.add(k); });
    });
  }

  // For the guard, which does not rely on the comparison that merged columns: whether the constraints of all aliases
  // follow from those of their representatives.
  bool aliases_are_confirmed() {
    const auto [are_confirmed, touched] = repeated_.confirm(team_);
    nonzeros_touched += touched;
    return are_confirmed;
  }

  std::int64_t size() const { return size_; }
  const RepeatedColumns<View>& repeated() const { return repeated_; }
  // Before begin: moves weights between columns that are multiples of each other until one of them has all.
  void merge_repeated(const std::vector<std::int32_t>& features, double* w) { repeated_.merge_weights(features, w); }
  std::int64_t nonzeros_touched = 0, last_touched = 0;
  bool out_of_range = false;  // begin found a column whose norm float32 cannot work with

 private:
  using T = Tuning::Screening;

  // What one of the n_column_parts runs of columns knows.
  struct Part {
    ScanResult result;
    bool out_of_range = false;
    typename RepeatedColumns<View>::ByShard fresh;  // columns to be registered
    std::vector<std::int64_t> strong;  // positions of the columns that the strong rule keeps for the next alpha
    std::int64_t touched = 0;
  };

  void begin_part(std::int64_t part, const StaticScreening<View>& screening, const std::vector<double>& theta,
                  const double* w, std::size_t pool) {
    Part& own = parts_[part];
    own.result.clear();
    own.out_of_range = false;
    const bool bounded = screening.is_bounded();
    std::int64_t position = begin_of(part);
    const std::int64_t end = cuts_[part + 1];
    std::array<ColumnSums, T::sort_window> sums;
    std::array<std::int32_t, T::sort_window> columns;
    for (std::int64_t first = position; first < end; first += T::sort_window) {
      const std::int64_t count = std::min(T::sort_window, end - first);
      sort_by_length(first, count, columns);
      column_sums(view_, columns.data(), count, theta.data(), problem_.row_weights, sums.data());
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t j = columns[k];
        const ColumnSums& sum = sums[k];
        const CoordinatePenalty penalty = screening.least.at(j);
        if (bounded && w[j] == 0 && screening.drops(j, sum, penalty.l1)) continue;
        const auto stored = static_cast<double>(view_.count(j));
        const bool fits = sum.squares > T::min_mean_square * stored && sum.squares < T::max_mean_square * stored;
        if (!fits && !(sum.squares == 0 && is_empty(view_, j, problem_.row_weights))) own.out_of_range = true;
        if (!fits || (penalty.lower == 0 && penalty.upper == 0)) continue;
        features_[position] = static_cast<std::int32_t>(j);
        bounds_.add(position, sum.squares, problem_.penalty.weight(j), view_.count(j));
        bounds_.store(position, classify(own.result, position, sum.product, w[j], pool));
        ++position;
      }
    }
    counts_[part] = position - begin_of(part);
    own.touched = 0;
  }

  // The columns first … first + count, those of equal length side by side: what a processor loses on short columns
  // is the wrong prediction of where each ends.
  void sort_by_length(std::int64_t first, std::int64_t count,
                      std::array<std::int32_t, T::sort_window>& columns) const {
    std::array<std::uint8_t, T::sort_window> lengths;
    std::array<std::int64_t, T::sort_longest + 2> next{};
    for (std::int64_t k = 0; k < count; ++k) {
      lengths[k] = static_cast<std::uint8_t>(std::min(view_.count(first + k), T::sort_longest));
      ++next[lengths[k] + std::size_t{1}];
    }
    for (std::size_t k = 1; k < next.size(); ++k) next[k] += next[k - 1];
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t at = next[lengths[k]]++;
      columns[at] = static_cast<std::int32_t>(first + k);
    }
  }

  // Positions of the columns of a part that are left.
  std::int64_t begin_of(std::int64_t part) const { return cuts_[part]; }
  std::int64_t end_of(std::int64_t part) const { return begin_of(part) + counts_[part]; }
  std::int32_t feature(std::int64_t position) const { return features_[position]; }

  // Calls f(part, its Part), which returns how many nonzeros it touched; returns the sum.
  template <class F>
  std::int64_t for_each_part(F&& f) {
    team_.for_work(n_column_parts, expected_work_, [&](std::int64_t part) {
      Part& own = parts_[part];
      own.touched = f(part, own);
    });
    std::int64_t touched = 0;
    for (const Part& part : parts_) touched += part.touched;
    return touched;
  }

  template <class F>
  void scan_parts(std::size_t pool, std::size_t max_proposals, ScanResult& result, F&& f) {
    for (Part& part : parts_) part.result.clear();
    last_touched = for_each_part(f);
    collect(pool, max_proposals, result);
    nonzeros_touched += last_touched;
    expected_work_ = last_touched + size_ / T::columns_per_nonzero;
  }

  // choose(part, products) adds the columns whose products with the point visit is to get.
  template <class Visit, class Choose>
  void visit_products(const std::vector<double>& point, Visit visit, Choose choose) {
    nonzeros_touched += for_each_part([&](std::int64_t part, Part&) {
      Products products(*this, point,
                        [&](std::int64_t k, double product) { visit(part, feature(k), bounds_.norm(k), product); });
      choose(part, products);
      return products.finish();
    });
  }

  // Calls visit(position, product) with the products of columns and r, computed a batch at a time.
  template <class Visit>
  class Products {
   public:
    Products(const Candidates& all, const std::vector<double>& r, Visit visit) : all_(all), r_(r), visit_(visit) {}
    void add(std::int64_t position) {
      features_[count_] = all_.feature(position);
      positions_[count_] = position;
      if (++count_ == T::batch) flush();
    }
    // Returns the nonzeros of all columns.
    std::int64_t finish() {
      flush();
      return touched_;
    }

   private:
    void flush() {
      column_dots(all_.view_, features_.data(), 0, count_, r_.data(), products_.data());
      for (std::int64_t k = 0; k < count_; ++k) {
        touched_ += all_.view_.count(features_[k]);
        visit_(positions_[k], products_[k]);
      }
      count_ = 0;
    }
    const Candidates& all_;
    const std::vector<double>& r_;
    Visit visit_;
    std::array<std::int32_t, T::batch> features_;
    std::array<std::int64_t, T::batch> positions_;
    std::array<double, T::batch> products_;
    std::int64_t count_ = 0, touched_ = 0;
  };

  // Support, proposal or neither: returns the slack, −∞ for the first two, which are scanned each time.
  double classify(ScanResult& result, std::int64_t position, double grad, double weight, std::size_t pool) const {
    const std::int32_t j = feature(position);
    const auto at = static_cast<std::int32_t>(position);
    const CoordinatePenalty penalty = problem_.penalty.at(j);
    const double slack = slack_at_zero(penalty, grad);
    if (slack < 0 && penalty.l1 > 0 && limits_dual(penalty, grad))
      result.largest_violation = std::max(result.largest_violation, -slack / penalty.l1);
    if (weight != 0 || penalty.l1 == 0) {
      result.support.push_back({j, at, grad, bounds_.norm(position), -slack});
      return -infinity;
    }
    if (slack < -T::violation_rounding * penalty.l1) {
      if (repeated_.is_alias(j)) return infinity;
      result.propose({j, at, grad, bounds_.norm(position), -slack}, pool);
      return -infinity;
    }
    return slack;
  }

  // How many violators are kept until the aliases among them are known.
  std::size_t pool_for(std::size_t max_proposals) const {
    using R = Tuning::Repeated;
    const auto factor = static_cast<std::size_t>(static_cast<double>(R::pool) * repeated_.repetition());
    return std::min(factor, R::max_pool) * max_proposals;
  }

  void collect(std::size_t pool, std::size_t max_proposals, ScanResult& result) {
    result.clear();
    for (const Part& part : parts_) result.add(part.result, pool);
    remove_aliases(result);
    result.keep_best(max_proposals);
  }

  // Of violators that are multiples of each other the best one is the first of the lowest penalty per unit.
  void remove_aliases(ScanResult& result) {
    for (const ScannedColumn& entry : result.support) {
      if (!repeated_.is_registered(entry.feature)) repeated_.add(entry.feature, true);
    }
    register_fresh(result);
    const auto known = [&](const ScannedColumn& entry) { return repeated_.is_registered(entry.feature); };
    const auto fresh = std::partition(result.proposals.begin(), result.proposals.end(), known);
    std::sort(fresh, result.proposals.end(), ScannedColumn::better);
    const auto end = std::remove_if(fresh, result.proposals.end(), [&](const ScannedColumn& entry) {
      if (!repeated_.add(entry.feature, false)) return false;
      bounds_.store(entry.position, infinity);
      return true;
    });
    result.n_violators -= result.proposals.end() - end;
    result.proposals.erase(end, result.proposals.end());
  }

  // Registers the columns that the last scan put aside for it.
  void register_fresh(ScanResult& result) {
    std::atomic<std::int64_t> n_aliases{0}, n_violators{0};
    const auto retire = [&](std::int64_t position) {
      n_violators += bounds_.is_scanned_each_time(position);
      ++n_aliases;
      bounds_.store(position, infinity);
    };
    repeated_.add_all(n_column_parts, [&](std::int64_t part) -> auto& { return parts_[part].fresh; }, retire, team_);
    if (n_aliases == 0) return;
    result.n_violators -= n_violators;
    std::erase_if(result.proposals, [&](const ScannedColumn& entry) { return repeated_.is_alias(entry.feature); });
    if (Tuning::Repeated::compact_share * n_aliases > size_) compact();
  }

  // Takes aliases out of the candidates.
  void compact() {
    team_.for_work(n_column_parts, size_, [&](std::int64_t part) {
      std::vector<std::int64_t> removed;
      std::int64_t to = begin_of(part);
      for (std::int64_t k = begin_of(part); k < end_of(part); ++k) {
        if (repeated_.is_alias(feature(k))) {
          removed.push_back(k);
        } else {
          features_[to] = features_[k];
          bounds_.move(k, to++);
        }
      }
      counts_[part] = to - begin_of(part);
      auto& strong = parts_[part].strong;
      std::erase_if(strong, [&](std::int64_t k) { return std::binary_search(removed.begin(), removed.end(), k); });
      for (std::int64_t& k : strong) k -= std::lower_bound(removed.begin(), removed.end(), k) - removed.begin();
    });
    size_ = std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
  }

  View view_;
  const CoreProblem& problem_;
  const double least_alpha_;
  ThreadTeam& team_;
  ScreeningBounds bounds_;
  double strong_width_ = 0;  // strong_rule_factor times the last fall of alpha
  std::vector<std::int64_t> cuts_;
  RepeatedColumns<View> repeated_;
  // Columns that static screening left, by position: those of part p stand at cuts_[p] … + counts_[p]. The rest of
  // the memory is never touched.
  std::unique_ptr<std::int32_t[]> features_;
  std::vector<std::int64_t> counts_;
  std::vector<Part> parts_;
  std::int64_t expected_work_ = 0, size_ = 0;
};

}  // namespace blockgreedy
