#include "folds/fold_paths.hpp"

#include <algorithm>
#include <cmath>

#include "folds/fold_lane.hpp"
#include "folds/lane_subproblem.hpp"
#include "working_set/repeated_columns.hpp"
#include "working_set/scan_result.hpp"
#include "working_set/screening.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

namespace {

template <class View>
class Solver final : public FoldPaths {
  using T = Tuning::Folds;

 public:
  Solver(const View& view, const std::vector<CoreProblem*>& problems, const std::vector<double>& f_null,
         ThreadTeam& team)
      : view_(view),
        team_(team),
        rows_(view.n_rows, team),
        subproblem_(view, {problems.begin(), problems.end()}, team),
        cuts_(equal_nonzero_cuts(view, n_column_parts)),
        bounds_(view.n_rows, view.n_cols, true, false, team),
        repeated_(view, problems[0]->penalty),
        reference_(view.n_rows),
        moved_(static_cast<std::size_t>(view.n_rows)),
        found_(n_column_parts) {
    for (std::size_t f = 0; f < problems.size(); ++f)
      lanes_.push_back(std::make_unique<FoldLane<View>>(view, *problems[f], f_null[f]));
    for (const CoreProblem* problem : problems)
      may_merge_ = may_merge_ && problem->penalty.weights == problems[0]->penalty.weights;
    team_.for_work(n_column_parts, view_.n_nonzeros(), [&](std::int64_t part) { add_columns(part); });
    out_of_range = std::any_of(found_.begin(), found_.end(), [](const Found& own) { return own.out_of_range; });
  }

  void start(int fold, double* w, const std::vector<std::int32_t>& features, double intercept) override {
    lanes_[fold]->start(w, features, intercept);
    for (std::int32_t j : features) bounds_.scan_each_time(j);  // whatever was known of its slack
  }

  void move_to(double alpha, double l2, double coming) override {
    Clock clock(*this);
    for_lanes([&](FoldLane<View>& lane) { lane.lower(alpha, l2); });
    alpha_ = alpha;
    width_ = T::strong_rule_factor * (alpha - coming);
    read_rows();
    clock.next(0);
    if (!(alpha >= prepared_for_)) scan();
    prepared_for_ = coming;
    clock.next(1);
  }

  void return_to(double alpha, double l2) override {
    Clock clock(*this);
    for_lanes([&](FoldLane<View>& lane) { lane.move_to(alpha, l2); });
    alpha_ = prepared_for_ = alpha;
    width_ = 0;
    read_rows();
    clock.next(0);
    scan();
    clock.next(1);
  }

  double step(double share) override {
    Clock clock(*this);
    ++n_steps;
    list_columns();
    subproblem_.begin();
    clock.next(2);
    Lanes negligible{}, gained{};
    for (int f = 0; f < n_used(); ++f) negligible[f] = share * lanes_[f]->objective;
    const double least_work = T::least_passes * static_cast<double>(view_.n_nonzeros());
    subproblem_.solve(negligible, static_cast<std::int64_t>(least_work));
    clock.next(3);
    team_.for_work(n_used(), view_.n_rows * n_used(), [&](std::int64_t f) {
      FoldLane<View>& lane = *lanes_[f];
      read_step(static_cast<int>(f), lane.columns);
      subproblem_.read_direction(static_cast<int>(f), lane.rows.direction);
      gained[f] = lane.step() / lane.f_null;
    });
    read_rows();
    clock.next(4);
    scan();
    nonzeros_touched = scanned_ + subproblem_.nonzeros_touched;
    cg_iterations = subproblem_.cg_iterations;
    clock.next(1);
    return *std::max_element(gained.begin(), gained.end());
  }

  const Iterate& fold(int fold) const override { return *lanes_[fold]; }
  double gap(int fold) const override { return lanes_[fold]->gap; }
  const std::vector<double>& predictions(int fold) const override { return lanes_[fold]->rows.predictions; }
  double drift(int fold) override { return lanes_[fold]->drift() / lanes_[fold]->f_null; }

 private:
  class Clock {
   public:
    explicit Clock(Solver& solver) : solver_(solver), since_(seconds_now()) {}
    void next(std::size_t ended) {
      const double now = seconds_now();
      solver_.seconds[ended] += now - since_;
      since_ = now;
    }

   private:
    Solver& solver_;
    double since_;
  };

  int n_used() const { return static_cast<int>(lanes_.size()); }

  template <class F>
  void for_lanes(F&& f) {
    team_.for_work(n_used(), view_.n_rows * n_used(), [&](std::int64_t lane) { f(*lanes_[lane]); });
  }

  // Every column is due at first.
  void add_columns(std::int64_t part) {
    for (std::int64_t j = cuts_[part]; j < cuts_[part + 1]; ++j) {
      using S = Tuning::Screening;
      const double squares = column_squared_norm(view_, j), stored = static_cast<double>(view_.count(j));
      if (squares > 0 && !(squares > S::min_mean_square * stored && squares < S::max_mean_square * stored))
        found_[part].out_of_range = true;
      double weight = 0;
      for (const auto& lane : lanes_) weight = std::max(weight, lane->problem().penalty.weight(j));
      bounds_.add(j, squares > 0 ? squares : 1.0, weight, view_.count(j));
      if (squares > 0) bounds_.scan_each_time(j);
      else bounds_.store(j, infinity);
    }
  }

  // The derivatives and curvatures of all lanes side by side.
  void read_rows() {
    const RowSlices& slices = rows_.slices();
    team_.for_work(slices.count(), n_lanes * view_.n_rows, [&](std::int64_t slice) {
      for (int f = 0; f < n_used(); ++f) {
        const RowState& rows = lanes_[f]->rows;
        for (std::int64_t i = slices.begin(slice); i < slices.end(slice); ++i) {
          subproblem_.theta[n_lanes * i + f] = static_cast<float>(rows.theta[i]);
          subproblem_.curvatures[n_lanes * i + f] = rows.root_curvature[i] * rows.root_curvature[i];
        }
      }
    });
  }

  void list_columns() {
    auto& columns = subproblem_.columns;
    columns.clear();
    if (lanes_[0]->problem().fit_intercept) {
      columns.push_back({.feature = -1});
      for (int f = 0; f < n_used(); ++f) columns.back().weight[f] = lanes_[f]->intercept;
    }
    for (std::int32_t j : working_set_) {
      columns.push_back({.feature = j});
      for (int f = 0; f < n_used(); ++f) columns.back().weight[f] = lanes_[f]->weights[j];
    }
  }

  // The columns of one lane that have a weight or get one.
  void read_step(int f, std::vector<SubproblemColumn>& out) const {
    out.clear();
    for (const auto& column : subproblem_.columns) {
      if (column.weight[f] == 0 && column.point[f] == 0 && column.feature >= 0) continue;
      out.push_back({.feature = column.feature,
                     .grad = column.grad[f],
                     .weight = column.weight[f],
                     .point = column.point[f],
                     .penalty = subproblem_.penalty(column, f)});
    }
  }

  // What a run of columns found: those of the working set, and what the gap of each lane is made of.
  struct Found {
    std::vector<std::int32_t> features;
    Lanes complementarity{}, size{}, violation{};
    std::int64_t touched = 0;
    bool out_of_range = false;
  };

  // The columns that have a weight in some lane, violate their threshold or would if it fell by width_ (the
  // sequential strong rule). Bounds as in screening.hpp, on the largest change of any lane.
  void scan() {
    rows_.for_each([&](std::size_t i) {
      float largest = 0;
      const auto first = static_cast<std::int64_t>(n_lanes * i);
      for (std::int64_t at = first; at < first + n_lanes; ++at) {
        largest = std::max(largest, std::fabs(subproblem_.theta[at] - reference_[at]));
        reference_[at] = subproblem_.theta[at];
      }
      moved_[i] = static_cast<double>(largest);
    });
    constexpr float margin = Tuning::Screening::float_margin;
    const DistanceBounds distance = distance_between(moved_.data(), moved_.data(), 0.0, view_.n_rows, team_);
    SlackMove move;
    for (std::size_t k = 0; k < distance.size(); ++k)
      move.distance[k] = static_cast<float>(distance[k]) * (1 + margin);
    move.scale = 1;
    move.shift =
        static_cast<float>(alpha_ - width_ - threshold_ - static_cast<double>(margin) * 2 * (alpha_ + width_));
    move.rounding = margin;
    move.report_below = -std::numeric_limits<float>::infinity();
    threshold_ = alpha_ - width_;
    const std::int64_t work = std::max(expected_work_, view_.n_cols / Tuning::Screening::columns_per_nonzero);
    team_.for_work(n_column_parts, work, [&](std::int64_t part) { scan_part(part, move); });
    collect();
  }

  void scan_part(std::int64_t part, const SlackMove& move) {
    Found& own = found_[part];
    own = Found{.features = std::move(own.features)};
    own.features.clear();
    bounds_.for_each_reached(cuts_[part], cuts_[part + 1], move, true, [&](std::int64_t j, float) {
      const auto feature = static_cast<std::int32_t>(j);
      const Lanes grad = subproblem_.dot({.feature = feature}, subproblem_.theta);
      own.touched += view_.count(j);
      double least = infinity;
      for (int f = 0; f < n_used(); ++f) least = std::min(least, judge(own, feature, grad[f], f));
      if (least < 0) own.features.push_back(feature);
      bounds_.store(j, least < 0 ? -infinity : least);
    });
  }

  // Adds a column to what is known of a lane; returns its slack, −∞ if it has a weight or no penalty.
  double judge(Found& own, std::int32_t j, double grad, int f) const {
    const FoldLane<View>& lane = *lanes_[f];
    const CoordinatePenalty penalty = lane.problem().penalty.at(j);
    const double weight = lane.weights[j], slack = slack_at_zero(penalty, grad);
    if (slack < 0 && penalty.l1 > 0 && limits_dual(penalty, grad))
      own.violation[f] = std::max(own.violation[f], -slack / penalty.l1);
    if (weight != 0 || slack < 0) {
      own.complementarity[f] += penalty.value(weight) + grad * weight;
      if (!limits_dual(penalty, grad)) own.complementarity[f] += penalty.conjugate(-grad);
      own.size[f] += penalty.l1 * std::fabs(weight);
    }
    if (weight != 0 || penalty.l1 == 0) return penalty.lower == 0 && penalty.upper == 0 ? infinity : -infinity;
    return slack - width_ * lane.problem().penalty.weight(j);
  }

  // Of columns that are multiples of each other the first to get here represents all, see repeated_columns.hpp; but
  // not where penalties differ between lanes.
  bool is_alias(std::int32_t j) {
    if (!may_merge_ || repeated_.is_registered(j)) return false;
    const bool has_weight =
        std::any_of(lanes_.begin(), lanes_.end(), [=](const auto& lane) { return lane->weights[j] != 0; });
    return repeated_.add(j, has_weight);
  }

  void collect() {
    working_set_.clear();
    expected_work_ = 0;
    Lanes complementarity{}, size{}, violation{};
    for (const Found& own : found_) {
      for (std::int32_t j : own.features) {
        if (is_alias(j)) bounds_.store(j, infinity);
        else working_set_.push_back(j);
      }
      expected_work_ += own.touched;
      add(own.complementarity, complementarity);
      add(own.size, size);
      for (int f = 0; f < n_lanes; ++f) violation[f] = std::max(violation[f], own.violation[f]);
    }
    scanned_ += expected_work_;
    for (int f = 0; f < n_used(); ++f) lanes_[f]->gap = lanes_[f]->gap_of(complementarity[f], size[f], violation[f]);
  }

  View view_;
  ThreadTeam& team_;
  Rows rows_;
  std::vector<std::unique_ptr<FoldLane<View>>> lanes_;
  LaneSubproblem<View> subproblem_;
  const std::vector<std::int64_t> cuts_;
  ScreeningBounds bounds_;
  RepeatedColumns<View> repeated_;
  bool may_merge_ = true;
  LaneRows reference_;         // θ of the last scan
  std::vector<double> moved_;  // by row: how far a lane's θ is from there
  std::vector<Found> found_;   // by run of columns
  std::vector<std::int32_t> working_set_;
  double alpha_ = 0, width_ = 0;    // width_ of the strong rule
  double threshold_ = 0;            // the alpha that the slacks count from
  double prepared_for_ = infinity;  // the alpha that the working set is good for
  std::int64_t scanned_ = 0, expected_work_ = 0;
};

}  // namespace

std::unique_ptr<FoldPaths> make_fold_paths(const Matrix& matrix, const std::vector<CoreProblem*>& problems,
                                           const std::vector<double>& f_null, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) -> std::unique_ptr<FoldPaths> {
        using View = std::remove_cvref_t<decltype(view)>;
        if constexpr (requires { view.indices; }) return std::make_unique<Solver<View>>(view, problems, f_null, team);
        else return nullptr;
      },
      matrix);
}

}  // namespace blockgreedy
