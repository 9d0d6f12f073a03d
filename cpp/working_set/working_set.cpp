#include "working_set/working_set.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "working_set/candidates.hpp"
#include "working_set/column_combination.hpp"
#include "working_set/column_layout.hpp"
#include "working_set/dual_point.hpp"
#include "working_set/extrapolation.hpp"
#include "working_set/line_search.hpp"
#include "working_set/pacing.hpp"
#include "working_set/phase_clock.hpp"
#include "working_set/row_state.hpp"
#include "working_set/subproblem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

namespace {

template <class View>
class Solver final : public WorkingSet {
 public:
  Solver(const View& view, const CoreProblem& problem, const WorkingSetOptions& options, ThreadTeam& team)
      : view_(view),
        problem_(problem),
        is_quadratic_(problem.loss.traits().is_quadratic),
        options_(options),
        team_(team),
        rows_(view.n_rows, problem, team),
        candidates_(view, problem, options.least_alpha, team),
        dual_point_(view, problem, team, candidates_, dual, dual_value),
        subproblem_(team),
        layout_(view, problem, options, rows_, subproblem_, team),
        combination_(view, team),
        line_search_(view, rows_, *this, team),
        extrapolation_(view, problem, team),
        pacing_(options.tol, is_quadratic_) {}

  void start(double* w, double b) override {
    weights = w;
    intercept = b;
    find_support();
    penalty = 0;
    std::vector<Term> terms;
    for (std::int32_t j : support) {
      terms.push_back({j, w[j]});
      penalty += problem_.penalty.at(j).value(w[j]);
    }
    combination_.sum(terms, [&](std::size_t i) { return b + offset(i); }, rows_.predictions);
    rows_.is_one_sum = true;
    rows_.are_zero = support.empty() && b == 0 && problem_.offset == nullptr;
    PhaseClock clock(seconds, Phase::rows);
    objective = rows_.evaluate() + penalty;
    f_null = options_.f_null < 0 ? objective : options_.f_null;
    enough = std::max(options_.tol * f_null,
                      options_.f_null < 0 ? Tuning::Proof::rounding_share * f_null : options_.floor);
    clock.next(Phase::gradients);
    const bool at_zero = support.empty() && b == 0 && problem_.offset == nullptr;
    candidates_.begin(rows_.theta, weights, at_zero, max_proposals(), scan_);
    n_candidates = candidates_.size();
    clock.next(Phase::certificate);
    dual_point_.reset();
    out_of_range = candidates_.out_of_range;
    if (!out_of_range && !team_.poll()) certify();
  }

  void alpha_fell(const Penalty& before) override {
    PhaseClock clock(seconds, Phase::gradients);
    const double fall = before.alpha - problem_.penalty.alpha;
    double less = 0;
    for (std::int32_t j : support) less += before.at(j).value(weights[j]) - problem_.penalty.at(j).value(weights[j]);
    penalty -= less;
    objective -= less;
    clock.next(Phase::rows);
    if (extrapolation_.propose(*this, fall, rows_, subproblem_.columns))
      line_search_.try_extrapolation(subproblem_.columns);
    clock.next(Phase::gradients);
    candidates_.apply_strong_rule(rows_.theta, weights, fall, max_proposals(), scan_);
    scan_is_stale_ = false;
    pacing_.begin_alpha();
    line_search_.begin_alpha();
    clock.next(Phase::certificate);
    dual_point_.reset();
    if (!team_.poll()) certify(Tuning::Proof::carried_over_share);
  }

  // One outer iteration: scan → select → copy → solve → line search → certify, as in ARCHITECTURE.md.
  bool step() override {
    if (out_of_range) return false;
    PhaseClock clock(seconds, Phase::gradients);
    if (scan_is_stale_) scan();
    clock.next(Phase::selection);
    select();
    clock.next(Phase::copy);
    copy_columns();
    clock.next(Phase::sweeps);
    const double predicted = solve_subproblem(clock);
    pacing_.plan_proof(predicted, enough);
    if (pacing_.polishes() && !truncated_) polish(clock, predicted);
    if (team_.stopped()) return true;  // Ctrl-C: the weights are still those of the last iteration
    if (team_.is_late()) pacing_.skip_proof();
    clock.next(Phase::rows);
    const double before = objective;
    if (!search_line() && (line_search_.at_rounding() || team_.is_late() || !search_line_after_sweeps()))
      return team_.is_late();  // then nobody knows what another step would bring
    nonzeros_touched = candidates_.nonzeros_touched + subproblem_.nonzeros_touched;
    n_cg = subproblem_.cg_iterations;
    scan_is_stale_ = true;
    ++n_iter;
    if (team_.is_late()) return true;  // whoever takes the result looks for a proof
    const bool unplanned = pacing_.tries_unplanned_proof(before - objective, enough);
    clock.next(Phase::certificate);
    if (pacing_.attempts_proof()) {
      const bool was_given =
          dual_point_.try_point(dual_candidate_, is_tiled() ? 0 : Tuning::Proof::n_repairs, here());
      if (objective - dual_value <= enough) return true;
      pacing_.proof_failed(predicted);
      if (is_quadratic_ && was_given) {  // the point was θ: nothing new would be found there
        scan_is_stale_ = false;
        return true;
      }
    }
    if (unplanned) certify_anyway(true);
    clock.next(Phase::gradients);
    scan();
    clock.next(Phase::certificate);
    certify();
    return true;
  }

  void certify_anyway(bool repairs) override {
    // projections onto many equalities would take longer than all iterations
    if (!repairs && scan_.support.size() > Tuning::Proof::max_joint_equalities && gain_of_one() > enough) return;
    rows_.rows().copy(rows_.theta, rows_.trial_theta);
    if (!dual_point_.try_point(rows_.trial_theta, repairs ? Tuning::Proof::n_repairs : 0, here()))
      scan_is_stale_ = true;
  }

  const std::vector<double>& predictions() const override { return rows_.predictions; }
  std::size_t n_aliases() const override { return candidates_.repeated().n_aliases(); }

  Verdict verify(const std::int32_t* features, const double* values, std::size_t count, double b) override {
    PhaseClock clock(seconds, Phase::guard);
    std::vector<Term> terms;
    double penalty = 0, size = 0;
    std::unordered_map<std::int32_t, double> norms;  // of the last scan, which saves a pass over dense columns
    if (is_dense)
      for (const ScannedColumn& entry : scan_.support) norms.emplace(entry.feature, entry.norm);
    for (std::size_t k = 0; k < count; ++k) {
      const CoordinatePenalty own = problem_.penalty.at(features[k]);
      penalty += values[k] >= own.lower && values[k] <= own.upper ? own.value(values[k]) : infinity;
      terms.push_back({features[k], values[k]});
      const auto known = norms.find(features[k]);
      size += std::fabs(values[k]) *
              (known != norms.end() ? known->second : std::sqrt(column_squared_norm(view_, features[k])));
    }
    const auto base = [&](std::size_t i) { return b + offset(i); };
    std::vector<double>& scratch = rows_.direction;
    const bool is_known = rows_.is_one_sum && are_of(terms, b);
    if (!is_known) combination_.sum(terms, base, scratch);
    const bool cancels = size > Tuning::Proof::cancellation * rows_.norm(is_known ? rows_.predictions : scratch);
    if (cancels) combination_.sum_compensated(terms, base, scratch);
    const double value = rows_.loss_at(is_known && !cancels ? rows_.predictions : scratch) + penalty;
    return {value, penalty, dual_point_.recompute(here(value)) - dual_point_.leak(b)};
  }

 private:
  static constexpr bool is_dense = !requires(View view) { view.indices; };

  // Whether the predictions belong to just these weights and this intercept.
  bool are_of(const std::vector<Term>& terms, double b) const {
    return b == intercept && terms.size() == support.size() &&
           std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
             return term.coefficient != 0 && term.coefficient == weights[term.feature];
           });
  }

  // Of the weights of a start; those that no step would ever come to go.
  void find_support() {
    support.clear();
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      if (weights[j] == 0) continue;
      if (is_empty(view_, j, problem_.row_weights)) weights[j] = 0;
      else support.push_back(static_cast<std::int32_t>(j));
    }
    candidates_.merge_repeated(support, weights);
    std::erase_if(support, [&](std::int32_t j) { return weights[j] == 0; });
  }

  double offset(std::size_t i) const { return problem_.offset ? problem_.offset[i] : 0.0; }

  std::size_t max_proposals() const {
    // A sweep over all columns costs little more than the scan.
    if (is_dense_and_tall()) return static_cast<std::size_t>(view_.n_cols);
    return std::max(Tuning::Screening::min_proposals, Tuning::Screening::proposals_per_support * support.size());
  }

  bool is_dense_and_tall() const {
    return is_large_and_dense(view_) && Tuning::Tiles::rows_per_column * view_.n_cols <= view_.n_rows;
  }
  bool is_nearly_all(std::size_t n_columns) const {
    return Tuning::Tiles::nearly_all * static_cast<double>(n_candidates) <= static_cast<double>(n_columns);
  }

  void scan() {
    candidates_.scan(rows_.theta, weights, max_proposals(), scan_, [](std::int64_t, std::int32_t, double, double) {});
    scan_is_stale_ = false;
  }

  // The support, unpenalised columns and the proposals of largest predicted decrease; truncated if there were more.
  void select() {
    n_violators = scan_.n_violators;
    if (is_dense_and_tall() && is_nearly_all(scan_.support.size() + scan_.proposals.size()))
      candidates_.propose_rest(rows_.theta, scan_);
    working_set_ = scan_.support;
    working_set_.insert(working_set_.end(), scan_.proposals.begin(), scan_.proposals.end());
    std::sort(working_set_.begin(), working_set_.end(),
              [](const ScannedColumn& a, const ScannedColumn& b) { return a.feature < b.feature; });
    working_set_size = static_cast<std::int64_t>(working_set_.size());
    truncated_ = scan_.n_violators > static_cast<std::int64_t>(scan_.proposals.size());
  }

  void copy_columns() {
    layout_.list_columns(working_set_, weights, intercept);
    const SubproblemLayout chosen = layout_.lay_out({.truncated = truncated_,
                                                     .on_path = extrapolation_.on_path(),
                                                     .passes = pacing_.expected_passes(),
                                                     .sweeps = expected_sweeps_,
                                                     .dropped_share = pacing_.dropped_share()});
    n_blocks = chosen.n_blocks;
    form_ = chosen.form;
    n_subproblems_by_products += form_ == Form::products;
  }

  bool is_tiled() const { return form_ == Form::tiles; }
  // Cheap to touch.
  bool is_short() const { return form_ == Form::factor || form_ == Form::products; }

  // Returns the decrease that the subproblem promises.
  double solve_subproblem(PhaseClock& clock) {
    using T = Tuning::Pacing;
    subproblem_.reset();
    if (is_tiled()) return sweep_tiles();
    double total = 0;
    if (truncated_) {
      for (int k = 0; k == 0 || (k < T::truncated_sweeps && !team_.poll()); ++k) total += subproblem_.sweep(k > 0);
      return total;
    }
    const double negligible = pacing_.negligible_decrease(enough);
    const std::int64_t touched_before = subproblem_.nonzeros_touched;
    const std::int64_t least_work = candidates_.last_touched + T::min_passes * subproblem_.n_nonzeros();
    const bool exactly = is_large_and_dense(view_) && is_quadratic_ && is_short() &&
                         T::exact_rows * static_cast<std::int64_t>(subproblem_.columns.size()) <= view_.n_rows;
    const double cg_stop = exactly ? T::exact_stop : pacing_.cg_stop(is_short());
    const double cycle_stop = exactly ? T::exact_stop : Pacing::cycle_stop(is_short());
    double last = 0;
    for (int cycle = 0; cycle < pacing_.cycles() || subproblem_.nonzeros_touched - touched_before < least_work;
         ++cycle) {
      if (cycle > 0 && team_.poll()) break;  // what is there after one sweep is worth a step
      clock.next(Phase::sweeps);
      last = subproblem_.sweep(false);
      if (!team_.poll()) {
        if (is_quadratic_) last += subproblem_.sweep(true);
        clock.next(Phase::conjugate_gradients);
        last += subproblem_.solve_on_support(pacing_.cg_iterations(is_short()), cg_stop, infinity, negligible);
      }
      total += last;
      if (last <= std::max(cycle_stop * total, negligible)) break;
    }
    return exactly ? last : total;  // the step then brings all that is promised: what is left is what counts
  }

  // The same by sweeps over tiles; returns what is left to gain by the last of them. What they took decides whether a
  // Gram matrix would be better next time; that of the squared loss serves all subproblems to come, so all sweeps
  // beyond what was expected count.
  double sweep_tiles() {
    using T = Tuning::Tiles;
    // Where hardly a column of the squared loss is missing, the subproblem is the problem.
    const bool is_all = is_quadratic_ && is_nearly_all(subproblem_.columns.size());
    const double stop = is_all ? T::finest_stop : is_quadratic_ ? T::stop_quadratic : T::stop;
    const double negligible = is_all ? 0.0 : pacing_.negligible_decrease(enough);
    double total = 0, gained = 0;
    int k = 0;
    for (bool done = false; !done && k < T::max_sweeps && (k == 0 || !team_.poll()); ++k) {
      gained = subproblem_.sweep(k % T::full_period != 0);
      total += gained;
      done = k > 0 && (gained <= std::max(stop * total, negligible) ||
                       (is_quadratic_ && provable_gap(total) <= T::share_of_gap * enough));
    }
    if (is_quadratic_) expected_sweeps_ += std::max(k - T::first_sweeps, 0.0);
    else expected_sweeps_ = std::max(T::first_sweeps, static_cast<double>(k));
    return is_quadratic_ ? gained : total;  // the step brings what the squared loss promises: the rest is what counts
  }

  // The gap that the points of a squared loss prove, if their θ is scaled until it keeps the constraints: the dual
  // value is a parabola along θ, whose slope is the penalty and whose curvature the loss.
  double provable_gap(double gained) const {
    const double size = size_of_points(), excess = subproblem_.largest_excess(), shorter = excess / (1 + excess);
    return shorter * size + shorter * shorter * std::max(objective - gained - size, 0.0);
  }

  // The L1 penalty at the subproblem's points.
  double size_of_points() const {
    double size = 0;
    for (const SubproblemColumn& column : subproblem_.columns) size += column.penalty.l1 * std::fabs(column.point);
    return size;
  }

  // Solves the subproblem until its dual point keeps the constraints well enough for a proof. predicted: the decrease
  // that it promises so far.
  void polish(PhaseClock& clock, double predicted) {
    using T = Tuning::Pacing;
    const double size = size_of_points();
    const double accuracy =  // `enough` may be 0 as well
        size > 0 ? std::max(T::polish_share * enough / size, T::finest_polish) : T::finest_polish;
    if (is_tiled()) {
      clock.next(Phase::sweeps);
      for (int k = 0; k < Tuning::Tiles::max_polish_sweeps && subproblem_.largest_excess() > accuracy; ++k) {
        if (team_.poll() || !(subproblem_.sweep(false) > 0)) break;
        ++expected_sweeps_;
      }
      return;
    }
    const std::int64_t until =
        subproblem_.cg_iterations + pacing_.max_polish_iterations(subproblem_.cg_iterations - n_cg);
    // Sweeps may find decreases of rounding for ever: a round without an iteration counts as one.
    for (std::int64_t n_idle = 0; !team_.poll();) {
      const auto left = static_cast<int>(until - subproblem_.cg_iterations - n_idle);
      if (left <= 0) break;
      const auto before = subproblem_.cg_iterations;
      clock.next(Phase::conjugate_gradients);
      subproblem_.solve_on_support(left, infinity, accuracy);
      clock.next(Phase::sweeps);
      if (subproblem_.largest_violation_at_zero() <= accuracy) break;
      const bool moves = subproblem_.sweep(false) > T::rounding * predicted;
      if (subproblem_.cg_iterations > before) continue;
      if (!moves) break;
      ++n_idle;
    }
  }

  // False if no step along the subproblem's direction lowers the objective.
  bool search_line() {
    const double linear = line_search_.set_direction(subproblem_.columns);
    if (!(linear < 0)) return false;
    if (pacing_.attempts_proof()) {  // before the step changes the rows
      rows_.predict_theta(dual_candidate_);
      dual_point_.rows().into_domain(dual_candidate_);
    }
    const double before = objective;
    const LineSearchResult result = line_search_.run(subproblem_.columns, linear);
    if (result.accepted && result.size >= 1 && !truncated_) pacing_.full_step(result.decrease, before);
    return result.accepted;
  }

  // Conjugate gradients in float32 may go astray on singular systems; sweeps never do.
  bool search_line_after_sweeps() {
    pacing_.skip_proof();
    subproblem_.reset();
    for (int k = 0; k < Tuning::Pacing::fallback_sweeps; ++k) subproblem_.sweep(k > 0);
    return search_line();
  }

  typename DualPoint<View>::Where here() { return here(objective); }
  typename DualPoint<View>::Where here(double objective) {
    using T = Tuning::Proof;
    return {.root = rows_.root_curvature,
            .w = weights,
            .objective = objective,
            .n_support = static_cast<std::int64_t>(support.size()),
            .max_proposals = max_proposals(),
            .sufficient = objective - enough,
            .hopeful = objective - T::hopeful_gap * enough,
            .harmless = penalty > 0 ? T::harmless_share * enough / penalty : 0.0,
            .scan = scan_};
  }

  // By how much some unpenalised weight alone can lower the objective, at least.
  double gain_of_one() const {
    double most = 0;
    for (const ScannedColumn& entry : scan_.support) {
      const CoordinatePenalty own = problem_.penalty.at(entry.feature);
      if (own.l1 == 0 && limits_dual(own, entry.grad))
        most = std::max(most, rows_.least_gain(entry.grad, entry.norm));
    }
    return most;
  }

  // Tries θ as a dual point if the gap there would be at most this share of what is asked for, judged by the
  // complementarity of the scanned columns and by how far θ breaks the constraints.
  void certify(double share = 1) {
    if (support.empty() && scan_.n_violators > 0) return;
    double complementarity = 0, size = 0;
    const double most = dual_point_.most_penalty(here());
    const auto count_in = [&](const ScannedColumn& entry) {
      const CoordinatePenalty own = problem_.penalty.at(entry.feature);
      const double weight = weights[entry.feature];
      complementarity += own.value(weight) + entry.grad * weight;
      if (!limits_dual(own, entry.grad)) complementarity += own.conjugate(-entry.grad, most);
      size += own.l1 * std::fabs(weight);
    };
    for (const ScannedColumn& entry : scan_.support) count_in(entry);
    for (const ScannedColumn& entry : scan_.proposals) count_in(entry);
    const double loss_by_scaling = size * scan_.largest_violation / (1 + scan_.largest_violation);
    if (!(std::fabs(complementarity) + loss_by_scaling <= share * enough)) return;
    if (gain_of_one() > enough) return;  // there is no proof, however θ is repaired
    const ThreadTeam::PartOfTime part(team_, Tuning::Proof::share_of_time);
    rows_.rows().copy(rows_.theta, rows_.trial_theta);
    if (!dual_point_.try_point(rows_.trial_theta, 0, here())) scan_is_stale_ = true;
  }

  View view_;
  const CoreProblem& problem_;
  const bool is_quadratic_;
  WorkingSetOptions options_;
  ThreadTeam& team_;
  RowState rows_;
  Candidates<View> candidates_;
  DualPoint<View> dual_point_;
  Subproblem subproblem_;
  ColumnLayout<View> layout_;
  ColumnCombination<View> combination_;
  LineSearch<View> line_search_;
  Extrapolation<View> extrapolation_;
  Pacing pacing_;
  ScanResult scan_;
  std::vector<ScannedColumn> working_set_;
  std::vector<double> dual_candidate_;
  bool scan_is_stale_ = false;  // scan_ does not hold the gradients at θ
  bool truncated_ = false;      // the working set could not take all proposals
  Form form_ = Form::columns;   // of the subproblem
  double expected_sweeps_ = Tuning::Tiles::first_sweeps;
};

}  // namespace

std::unique_ptr<WorkingSet> make_working_set(const Matrix& matrix, const CoreProblem& problem,
                                             const WorkingSetOptions& options, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) -> std::unique_ptr<WorkingSet> {
        using View = std::remove_cvref_t<decltype(view)>;
        return std::make_unique<Solver<View>>(view, problem, options, team);
      },
      matrix);
}

}  // namespace blockgreedy
