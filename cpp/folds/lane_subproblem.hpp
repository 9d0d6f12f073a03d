// The quadratic subproblems of several folds on one working set, solved side by side:
//
//   min over d   Σ_j grad_j d_j + ½ Σ_i h_i (Xd)_i² + Σ_j penalty_j(w_j + d_j)   for each fold, a "lane".
//
// The folds share the columns; what differs (gradients, curvatures h of the rows, weights) stands side by side, eight
// numbers at a time, so that an entry of X is read once for all of them. As in working_set/subproblem.hpp sweeps of
// coordinate descent find the signs, and conjugate gradients solve the linear systems that remain. Float32 where
// there is a number for each row, float64 where there is one for each column.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rows.hpp"
#include "folds/lane_system.hpp"
#include "folds/lanes.hpp"
#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "math/penalties.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

template <class View>
class LaneSubproblem {
  using T = Tuning::Folds;

 public:
  // One problem for each lane.
  LaneSubproblem(const View& view, std::vector<const CoreProblem*> problems, ThreadTeam& team)
      : view_(view),
        problems_(std::move(problems)),
        team_(team),
        rows_(view.n_rows, team),
        system_(view, curvatures, team) {
    for (auto* v : {&theta, &curvatures, &Xd_}) *v = LaneRows(view.n_rows);
  }

  struct Column {
    std::int32_t feature;  // -1: the intercept
    Lanes weight{}, point{}, grad{}, curvature{};
  };
  std::vector<Column> columns;
  LaneRows theta, curvatures;  // by row; set before begin

  // d = 0 at these features and weights, which the caller has put into `columns`.
  void begin() {
    work_ = 0;
    for (const Column& column : columns) work_ += count(column);
    fill(Xd_);
    for_parts(columns.size(), work_, [&](std::size_t k) {
      Column& column = columns[k];
      column.point = column.weight;
      column.grad = dot(column, theta);
      column.curvature = squares(column);
    });
    nonzeros_touched += 2 * work_;
  }

  // Cycles of a sweep and conjugate gradients: one, and more while they add more than `negligible` to a lane and have
  // touched less than least_work entries.
  void solve(const Lanes& negligible, std::int64_t least_work) {
    const std::int64_t until = nonzeros_touched + least_work;
    for (bool goes_on = true; goes_on && !team_.poll();) {
      Lanes gained = sweep(false);
      add(solve_on_support(negligible), gained);
      goes_on = false;
      for (int f = 0; f < n_used(); ++f) goes_on = goes_on || gained[f] > negligible[f];
      goes_on = goes_on && nonzeros_touched < until;
    }
  }

  // Xd of one lane.
  void read_direction(int lane, std::vector<double>& out) const {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<double>(Xd_[n_lanes * i + static_cast<std::size_t>(lane)]);
  }

  CoordinatePenalty penalty(const Column& column, int lane) const {
    return column.feature < 0 ? CoordinatePenalty{0, 0, -infinity, infinity}
                              : problems_[lane]->penalty.at(column.feature);
  }
  int n_used() const { return static_cast<int>(problems_.size()); }

  // Products of one column with the vectors of all lanes.
  Lanes dot(const Column& column, const LaneRows& v) const {
    LaneFloats out{};
    if (column.feature < 0) return sum_rows([&](std::int64_t at) { return v[at]; });
    kernel().lane_dot(indices(column), values(column), count(column), v.data(), out.data());
    return widen(out);
  }

  std::int64_t nonzeros_touched = 0, cg_iterations = 0;

 private:
  const auto& kernel() const { return kernels().of(view_.data); }
  const std::int32_t* indices(const Column& column) const { return view_.indices + view_.start(column.feature); }
  const auto* values(const Column& column) const { return view_.data + view_.start(column.feature); }
  std::int64_t count(const Column& column) const {
    return column.feature < 0 ? view_.n_rows : view_.count(column.feature);
  }

  template <class F>
  Lanes sum_rows(F&& f) const {
    Lanes sum{};
    for (std::int64_t i = 0; i < view_.n_rows; ++i)
      for (int lane = 0; lane < n_lanes; ++lane) sum[lane] += static_cast<double>(f(n_lanes * i + lane));
    return sum;
  }

  Lanes weighted_dot(const Column& column, const LaneRows& v) const {
    if (column.feature < 0) return sum_rows([&](std::int64_t at) { return curvatures[at] * v[at]; });
    LaneFloats out{};
    kernel().lane_weighted_dot(indices(column), values(column), count(column), curvatures.data(), v.data(),
                               out.data());
    return widen(out);
  }

  Lanes squares(const Column& column) const {
    if (column.feature < 0) return sum_rows([&](std::int64_t at) { return curvatures[at]; });
    LaneFloats out{};
    kernel().lane_squares(indices(column), values(column), count(column), curvatures.data(), out.data());
    return widen(out);
  }

  void add_column(const Column& column, const LaneFloats& steps, LaneRows& v) const {
    if (column.feature >= 0) {
      kernel().lane_axpy(indices(column), values(column), count(column), steps.data(), v.data());
      return;
    }
    for (std::int64_t i = 0; i < view_.n_rows; ++i)
      for (int lane = 0; lane < n_lanes; ++lane) v[n_lanes * i + lane] += steps[lane];
  }

  // f(k) for k in 0 … n, in parts of fixed number.
  template <class F>
  void for_parts(std::size_t n, std::int64_t work, F&& f) {
    const auto size = static_cast<std::int64_t>(n);
    team_.for_work(T::n_parts, work, [&](std::int64_t part) {
      for (std::int64_t k = size * part / T::n_parts; k < size * (part + 1) / T::n_parts; ++k)
        f(static_cast<std::size_t>(k));
    });
  }

  // f(begin, end) for slices of vectors over rows and lanes.
  template <class F>
  void for_rows(F&& f) {
    const RowSlices& slices = rows_.slices();
    team_.for_work(slices.count(), n_lanes * view_.n_rows,
                   [&](std::int64_t slice) { f(n_lanes * slices.begin(slice), n_lanes * slices.end(slice)); });
  }

  void fill(LaneRows& v) {
    for_rows([&](std::int64_t begin, std::int64_t end) { std::fill(v.data() + begin, v.data() + end, 0.0F); });
  }

  // One pass of coordinate descent over all columns, or in each lane over those with a weight. Returns the decreases.
  Lanes sweep(bool support_only) {
    Lanes decrease{};
    for (Column& column : columns) {
      if (support_only && !is_free(column)) continue;
      const Lanes product = weighted_dot(column, Xd_);
      nonzeros_touched += count(column);
      LaneFloats steps{};
      bool moves = false;
      for (int f = 0; f < n_used(); ++f) {
        const CoordinatePenalty own = penalty(column, f);
        double& point = column.point[f];
        if (support_only && point == 0 && own.l1 > 0) continue;
        const double grad = column.grad[f] + product[f], curvature = column.curvature[f];
        const double to = own.prox(point, grad, curvature);
        if (to == point) continue;
        decrease[f] += own.gain(point, to, grad, curvature);
        steps[f] = static_cast<float>(to - point);
        point = to == 0 ? 0.0 : std::clamp(point + static_cast<double>(steps[f]), own.lower, own.upper);
        moves = true;
      }
      if (!moves) continue;
      add_column(column, steps, Xd_);
      nonzeros_touched += count(column);
    }
    return decrease;
  }

  // Whether it has a weight in any lane, or needs none to move.
  bool is_free(const Column& column) const {
    for (int f = 0; f < n_used(); ++f) {
      if (column.point[f] != 0 || penalty(column, f).l1 == 0) return true;
    }
    return false;
  }

  // Conjugate gradients in every lane; then coordinates that would change sign are set to 0. Returns the decreases.
  Lanes solve_on_support(const Lanes& negligible) {
    set_up_system();
    if (system_.coordinates.empty()) return {};
    const std::int64_t before = system_.nonzeros_touched;
    Lanes rz = system_.begin(Xd_), decrease{};
    std::array<bool, n_lanes> runs{};
    for (int f = 0; f < n_used(); ++f) runs[f] = rz[f] > 0;
    for (int iteration = 0; iteration < T::max_cg_iterations && !team_.poll(); ++iteration) {
      ++cg_iterations;
      const Lanes pAp = system_.multiply();
      Lanes length{}, more{};
      bool any = false;
      for (int f = 0; f < n_used(); ++f) {
        if (!runs[f] || !(pAp[f] > 0)) continue;
        length[f] = rz[f] / pAp[f];
        const double own = 0.5 * length[f] * rz[f];
        decrease[f] += own;
        runs[f] = own > std::max(T::cg_stop * decrease[f], negligible[f]);
        any = any || runs[f];
      }
      const Lanes next = system_.move_along(length);
      if (!any) break;
      for (int f = 0; f < n_used(); ++f) more[f] = runs[f] && rz[f] > 0 ? next[f] / rz[f] : 0.0;
      system_.turn(runs, more);
      rz = next;
    }
    const Lanes gained = take_clipped(decrease);
    nonzeros_touched += system_.nonzeros_touched - before;
    return gained;
  }

  // The coordinates that are smooth in a lane.
  void set_up_system() {
    system_.coordinates.clear();
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const Column& column = columns[k];
      typename LaneSystem<View>::Coordinate c{.column = static_cast<std::int32_t>(k), .feature = column.feature};
      bool any = false;
      for (int f = 0; f < n_used(); ++f) {
        const CoordinatePenalty own = penalty(column, f);
        const double point = column.point[f], curvature = column.curvature[f] + own.l2;
        const bool smooth = (point != 0 || own.l1 == 0) && point > own.lower && point < own.upper && curvature > 0;
        if (!smooth) continue;
        c.smooth[f] = 1;
        c.inverse[f] = static_cast<float>(1 / curvature);
        c.ridge[f] = static_cast<float>(own.l2);
        c.r[f] = static_cast<float>(-(column.grad[f] + own.l2 * point +
                                      (point > 0   ? own.l1
                                       : point < 0 ? -own.l1
                                                   : 0.0)));
        any = true;
      }
      if (any) system_.coordinates.push_back(c);
    }
  }

  // Where a step leads that may not change the sign nor leave the bounds.
  static double clipped(const CoordinatePenalty& own, double point, double step) {
    const double to = own.l1 > 0 && (point + step) * point <= 0 ? 0.0 : point + step;
    return std::clamp(to, own.lower, own.upper);
  }

  // Goes to where the coordinates x lead, those that change sign or leave their bounds to 0 or to the bound. Lanes in
  // which that keeps too little of the decrease go as far as no coordinate changes sign.
  Lanes take_clipped(const Lanes& promised) {
    Lanes first;  // how far a lane could go
    first.fill(1.0);
    bool any = false;
    for (std::size_t k = 0; k < system_.coordinates.size(); ++k) {
      const auto& c = system_.coordinates[k];
      const Column& column = columns[c.column];
      system_.p[k] = {};  // the correction
      for (int f = 0; f < n_used(); ++f) {
        if (c.x[f] == 0) continue;
        const CoordinatePenalty own = penalty(column, f);
        const double point = column.point[f], x = static_cast<double>(c.x[f]);
        const double to = clipped(own, point, x);
        if (to == point + x) continue;
        first[f] = std::min(first[f], (to - point) / x);
        system_.p[k][f] = static_cast<float>((to - point) - x);
        any = true;
      }
    }
    if (any) system_.correct();
    const Lanes change = change_of_clipped();
    LaneFloats keep{}, scale{};  // Xd += scale·(Xx − keep·q)
    Lanes gained{};
    for (int f = 0; f < n_used(); ++f) {
      const bool taken = change[f] < 0 && -change[f] >= (first[f] < 1 ? T::min_kept_decrease * promised[f] : 0.0);
      const double t = first[f];
      scale[f] = taken ? 1.0F : static_cast<float>(t);
      keep[f] = taken || !any ? 0.0F : 1.0F;
      gained[f] = taken ? -change[f] : t * (2 - t) * promised[f];
      for (auto& c : system_.coordinates) {
        double& point = columns[c.column].point[f];
        if (c.smooth[f] == 0) continue;
        const double x = static_cast<double>(c.x[f]);
        point = taken ? clipped(penalty(columns[c.column], f), point, x) : point + t * x;
      }
    }
    for_rows([&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += n_lanes)
        for (int f = 0; f < n_lanes; ++f) Xd_[i + f] += scale[f] * (system_.Xx[i + f] - keep[f] * system_.q[i + f]);
    });
    return gained;
  }

  // The change of each lane's objective by x + p, whose predictions are Xx.
  Lanes change_of_clipped() {
    std::array<Lanes, 64> partial{};
    const RowSlices& slices = rows_.slices();
    team_.for_work(slices.count(), n_lanes * view_.n_rows, [&](std::int64_t slice) {
      Lanes& sum = partial[slice];
      for (std::int64_t i = n_lanes * slices.begin(slice); i < n_lanes * slices.end(slice); i += n_lanes)
        for (int f = 0; f < n_lanes; ++f)
          sum[f] +=
              static_cast<double>(curvatures[i + f] * system_.Xx[i + f] * (Xd_[i + f] + 0.5F * system_.Xx[i + f]));
    });
    Lanes change{};
    for (const Lanes& sum : partial) add(sum, change);
    for (std::size_t k = 0; k < system_.coordinates.size(); ++k) {
      const auto& c = system_.coordinates[k];
      const Column& column = columns[c.column];
      for (int f = 0; f < n_used(); ++f) {
        const double step = static_cast<double>(c.x[f]) + static_cast<double>(system_.p[k][f]),
                     from = column.point[f], to = from + step;
        const CoordinatePenalty own = penalty(column, f);
        change[f] += column.grad[f] * step + own.l1 * (std::fabs(to) - std::fabs(from)) +
                     0.5 * own.l2 * (to - from) * (to + from);
      }
    }
    return change;
  }

  const View view_;
  const std::vector<const CoreProblem*> problems_;
  ThreadTeam& team_;
  Rows rows_;
  std::int64_t work_ = 0;  // entries of the columns
  LaneRows Xd_;
  LaneSystem<View> system_;
};

}  // namespace blockgreedy
