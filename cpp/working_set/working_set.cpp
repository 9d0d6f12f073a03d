#include "working_set/working_set.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rows.hpp"
#include "working_set/candidates.hpp"
#include "working_set/dual_point.hpp"
#include "working_set/kept_products.hpp"
#include "working_set/model_copy.hpp"
#include "working_set/subproblem.hpp"

namespace blockgreedy {

namespace {

// A model is solved well enough when going on promises less than this part of what is asked for: 1e-2 made more
// iterations than it saved, smaller ones save less. Where much is asked for, nothing is negligible: the last digits
// of a float32 model decide whether the next one gets any further.
constexpr double negligible = 1e-3, loosest_fine_tol = 1e-5;

// Objective and dual value are sums of as many terms as there are rows: what they differ by is known to about this
// part of them.
constexpr double rounding_share = 1e-13;

// A point carried over from the last alpha is worth a proof only if it is this much better than asked for: else a
// step is taken anyway (path.py).
constexpr double sure = 1e-3;

template <class View>
class Solver final : public WorkingSet {
 public:
  Solver(const View& view, const CoreProblem& problem, const WorkingSetOptions& options, ThreadTeam& team)
      : view_(view),
        problem_(problem),
        traits_(problem.loss.traits()),
        options_(options),
        team_(team),
        rows_(view.n_rows, team),
        candidates_(view, problem, options.least_alpha, team),
        proof_(view, problem, team, candidates_, dual, dual_value),
        copy_(view, team),
        model_(team),
        products_(2 * view.n_nonzeros(), view.n_rows, team) {
    const auto n = static_cast<std::size_t>(view.n_rows);
    for (auto* rows : {&t_, &theta_, &new_theta_, &Xd_}) rows->resize(n);
    root_.resize(n);
    new_root_.resize(n);
  }

  void start(double* w, double b) override {
    w_ = w;
    intercept = b;
    rows_.for_each([&](std::size_t i) { t_[i] = b + (problem_.offset ? problem_.offset[i] : 0.0); });
    penalty = 0;
    support.clear();
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      if (w[j] == 0) continue;
      if (is_empty(view_, j, problem_.row_weights)) {  // no step would ever come to it
        w[j] = 0;
        continue;
      }
      view_.for_each_nonzero(j, [&](std::int32_t i, double x) { t_[static_cast<std::size_t>(i)] += w[j] * x; });
      support.push_back(static_cast<std::int32_t>(j));
      penalty += problem_.penalty.at(j).value(w[j]);
    }
    Clock clock(*this, Phase::rows);
    objective = advance(nullptr, 0.0, theta_, root_) + penalty;
    f_null = options_.f_null < 0 ? objective : options_.f_null;
    enough = std::max(options_.tol * f_null, options_.f_null < 0 ? rounding_share * f_null : options_.floor);
    clock.next(Phase::gradients);
    const bool at_zero = support.empty() && b == 0 && problem_.offset == nullptr;
    candidates_.begin(theta_, w_, at_zero, room(), found_);
    n_candidates = candidates_.size();
    clock.next(Phase::certificate);
    proof_.reset();
    out_of_range = candidates_.out_of_range;
    if (!out_of_range) certify();
  }

  void alpha_fell(const Penalty& before) override {
    Clock clock(*this, Phase::gradients);
    const double fall = before.alpha - problem_.penalty.alpha;
    double less = 0;
    for (std::int32_t j : support) less += before.at(j).value(w_[j]) - problem_.penalty.at(j).value(w_[j]);
    penalty -= less;
    objective -= less;
    clock.next(Phase::rows);
    extrapolate(fall);
    clock.next(Phase::gradients);
    candidates_.guess(theta_, w_, fall, room(), found_);
    stale_ = false;
    // What the last alpha taught of how far the end is says nothing of this one.
    failed_ = last_decrease_ = infinity;
    n_waits_ = n_idle_ = n_tiny_ = 0;
    patience_ = 1;
    clock.next(Phase::certificate);
    proof_.reset();
    certify(sure);
  }

  void certify_anyway() override {
    rows_.copy(theta_, new_theta_);
    if (!proof_.try_point(new_theta_, 2, here())) stale_ = true;
  }
  const std::vector<double>& predictions() const override { return t_; }

  Verdict verify(const std::int32_t* features, const double* values, std::size_t count, double b) override {
    Clock clock(*this, Phase::guard);
    moving_.clear();
    std::int64_t work = 0;
    double penalty = 0, size = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const CoordinatePenalty own = problem_.penalty.at(features[k]);
      penalty += values[k] >= own.lower && values[k] <= own.upper ? own.value(values[k]) : infinity;
      moving_.push_back({features[k], values[k]});
      work += view_.count(features[k]);
      size += std::fabs(values[k]) * std::sqrt(column_squared_norm(view_, features[k]));
    }
    const auto base = [&](std::size_t i) { return b + (problem_.offset ? problem_.offset[i] : 0.0); };
    accumulate(work, base);
    // Columns that nearly cancel: what is left of them has lost digits.
    if (size > 100 * std::sqrt(rows_.product(Xd_.data(), Xd_.data()))) accumulate_exactly(base);
    const auto losses = loss_kernels(problem_.loss).values;
    const double loss = rows_.sum(4, [&](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t chunk = 256;
      std::array<double, chunk> value;
      double sum = 0;
      for (std::int64_t first = begin; first < end; first += chunk) {
        const std::int64_t n = std::min(chunk, end - first);
        losses(problem_.y + first, Xd_.data() + first, n, problem_.loss.delta, value.data());
        if (problem_.row_weights)
          sum += std::inner_product(value.begin(), value.begin() + n, problem_.row_weights + first, 0.0);
        else sum += kernels().sum(value.data(), n) / static_cast<double>(view_.n_rows);
      }
      return sum;
    });
    return {loss + penalty, penalty, proof_.recompute(here())};
  }

  bool step() override {
    if (out_of_range) return false;
    Clock clock(*this, Phase::gradients);
    if (stale_) look();
    clock.next(Phase::selection);
    truncated_ = select();
    clock.next(Phase::copy);
    copy_columns();
    clock.next(Phase::sweeps);
    const double predicted = solve_model(clock);
    // The step is not worth more than tol: what is missing may only be the certificate.
    const bool only_proof = predicted <= 0.02 * enough;
    hopeful_ = predicted <= std::min(enough, 0.3 * failed_);
    if (only_proof && !hopeful_ && ++n_waits_ > 2) {  // nothing else is left to gain: the proof may cost more
      hopeful_ = true;
      patience_ = std::min<std::int64_t>(2 * patience_, 64);
    }
    if (hopeful_) n_waits_ = 0;
    if (hopeful_ && only_proof && !truncated_) polish(clock);
    if (team_.stopped()) return true;  // Ctrl-C: the weights are still those of the last iteration
    clock.next(Phase::rows);
    const double before = objective;
    if (!search_line() && !(n_tiny_ == 0 && search_line_of_sweeps())) return false;
    // Promises that are not kept may hide that the end is reached.
    const bool idle = !hopeful_ && before - objective <= 0.02 * enough && ++n_idle_ % 4 == 0;
    nonzeros_touched = candidates_.nonzeros_touched + model_.nonzeros_touched;
    n_cg = model_.cg_iterations;
    stale_ = true;
    ++n_iter;
    if (hopeful_) {
      clock.next(Phase::certificate);
      proof_.try_point(candidate_, 2, here());
      if (objective - dual_value <= enough) return true;
      failed_ = predicted;
    }
    if (idle) {
      clock.next(Phase::certificate);
      certify_anyway();
    }
    clock.next(Phase::gradients);
    look();
    clock.next(Phase::certificate);
    certify();
    return true;
  }

 private:
  void look() {
    candidates_.look(theta_, w_, room(), found_, [](std::int64_t, std::int32_t, double, double) {});
    stale_ = false;
  }

  // Weights go on as they went from the last alpha but one to the last: for the squared loss, where they are
  // piecewise linear in alpha, that is the solution unless the support changes. Predictions go on likewise, but for
  // the columns whose weights may not.
  void extrapolate(double fall) {
    const double share = last_fall_ > 0 ? fall / last_fall_ : 0.0;
    std::vector<ModelColumn>& columns = model_.columns;
    columns.clear();
    moving_.clear();
    std::int64_t work = 0;
    const auto put_right = [&](std::int32_t j, double by) {
      moving_.push_back({j, by});
      work += view_.count(j);
    };
    if (problem_.fit_intercept) {
      columns.push_back({-1,
                         true,
                         0,
                         0,
                         0,
                         0,
                         intercept,
                         intercept + share * (intercept - last_intercept_),
                         {0, 0, -infinity, infinity}});
    }
    auto last = last_weights_.begin();
    const auto left_before = [&](std::int64_t j) {  // weights that have become 0 stay there
      for (; last != last_weights_.end() && last->feature < j; ++last) put_right(last->feature, share * last->step);
    };
    for (std::int32_t j : support) {
      left_before(j);
      const double from = last != last_weights_.end() && last->feature == j ? (last++)->step : 0.0;
      const CoordinatePenalty penalty = problem_.penalty.at(j);
      const double on = w_[j] + share * (w_[j] - from);
      double to = std::clamp(on, penalty.lower, penalty.upper);
      if (penalty.l1 > 0 && to * w_[j] < 0) to = 0;
      if (to != on) put_right(j, to - on);
      columns.push_back({j, false, 0, 0, 0, 0, w_[j], to, penalty});
    }
    left_before(view_.n_cols);
    const bool goes_on = share > 0 && !support.empty();
    if (goes_on) accumulate(work, [&](std::size_t i) { return share * (t_[i] - last_t_[i]); });
    last_weights_.clear();
    for (std::int32_t j : support) last_weights_.push_back({j, w_[j]});
    last_intercept_ = intercept;
    last_fall_ = fall;
    last_t_.resize(t_.size());
    rows_.copy(t_, last_t_);
    if (!goes_on) return;
    const double trial = objective_at(1);
    if (trial < objective) take_step(1, trial, true);
  }

  class Clock {
   public:
    Clock(Solver& solver, Phase phase) : solver_(solver), phase_(phase), since_(seconds_now()) {}
    ~Clock() { next(phase_); }
    void next(Phase phase) {
      const double now = seconds_now();
      solver_.seconds[static_cast<std::size_t>(phase_)] += now - since_;
      since_ = now;
      phase_ = phase;
    }

   private:
    Solver& solver_;
    Phase phase_;
    double since_;
  };

  // What RowTerms should beware of: see the losses.
  double caution() const {
    if (traits_.curvature_vanishes_on_slopes) return careful_ ? -1.0 : -infinity;
    return last_move_;
  }

  // Derivatives and curvatures at the predictions t_ + step·direction; returns the loss.
  double advance(const double* direction, double step, std::vector<double>& theta, std::vector<float>& root) {
    const RowRun rows{problem_.y,
                      problem_.row_weights,
                      1.0 / static_cast<double>(view_.n_rows),
                      problem_.loss.delta,
                      caution(),
                      flat_,
                      t_.data(),
                      direction,
                      step,
                      theta.data(),
                      root.data()};
    const auto advance_rows = loss_kernels(problem_.loss).advance;
    return rows_.sum(4, [&](std::int64_t begin, std::int64_t end) { return advance_rows(rows, begin, end); });
  }

  // How many columns may join the working set.
  std::size_t room() const { return std::max<std::size_t>(200, 2 * support.size()); }

  // The support, unpenalised columns and the proposals of largest predicted decrease. True if some had to wait.
  bool select() {
    n_violators = found_.n_violators;
    chosen_ = found_.support;
    chosen_.insert(chosen_.end(), found_.proposals.begin(), found_.proposals.end());
    std::sort(chosen_.begin(), chosen_.end(), [](const Looked& a, const Looked& b) { return a.feature < b.feature; });
    working_set_size = static_cast<std::int64_t>(chosen_.size());
    return found_.n_violators > static_cast<std::int64_t>(found_.proposals.size());
  }

  // The chosen columns, scaled by √h, and their curvatures.
  void copy_columns() {
    const std::int64_t n = view_.n_rows;
    const bool exact = traits_.is_quadratic;
    auto& columns = model_.columns;
    columns.clear();
    if (problem_.fit_intercept) {
      const double grad = rows_.sum(
          1, [&](std::int64_t begin, std::int64_t end) { return kernels().sum(theta_.data() + begin, end - begin); });
      columns.push_back({-1, true, 0, n, grad, 0, intercept, intercept, {0, 0, -infinity, infinity}});
    }
    for (const Looked& entry : chosen_) {
      const std::int64_t count = view_.count(entry.feature);
      const bool dense = 3 * count >= n;
      columns.push_back({entry.feature, dense, 0, dense ? n : count, entry.grad, 0, w_[entry.feature],
                         w_[entry.feature], problem_.penalty.at(entry.feature)});
      if (dense && problem_.fit_intercept) {
        columns.back().shift = copy_.shift(entry.feature);
        columns.back().grad -= columns.back().shift * columns.front().grad;
      }
    }
    model_.set_rows(n);
    // Squared loss keeps the products for the models to come.
    const double passes = (exact ? 50 : 25) * effort_;
    compressed_ =
        !truncated_ && options_.n_blocks == 0 && options_.block_of == nullptr &&
        model_.compress(passes, exact, [&](std::int32_t feature, std::int64_t first, std::int64_t count, float* out) {
          copy_.read(feature, root_, first, count, out);
        });
    compressed_ = compressed_ || square();
    if (compressed_) {
      n_blocks = 1;
      return;
    }
    const double share = exact ? 0.0 : std::min(most_dropped_, 0.3 * std::sqrt(relative_decrease_));
    copy_.choose_rows(root_, share);
    model_.set_rows(copy_.n_rows());
    n_blocks = model_.arrange(options_.block_of, options_.n_blocks);
    copy_.fill(model_, root_);
  }

  // On the path of a squared loss: products of the columns instead of the columns, where that makes less to touch.
  bool square() {
    const auto m = static_cast<std::int64_t>(model_.columns.size());
    std::int64_t work = 0;
    bool shifted = false;
    std::vector<std::int32_t> features;
    for (const ModelColumn& column : model_.columns) {
      features.push_back(column.feature);
      work += column.count;
      shifted = shifted || column.shift != 0;
    }
    if (last_fall_ == 0 || !traits_.is_quadratic || truncated_ || shifted || options_.n_blocks != 0 ||
        options_.block_of != nullptr)
      return false;
    if (m > products_.most()) products_.clear();  // columns only get more
    const bool sparse = 3 * work < m * view_.n_rows && work < INT32_MAX && 8 * view_.n_rows < view_.n_nonzeros();
    if (!sparse || m > products_.most() || m * m > 5 * work) return false;
    products_.keep(features, work, ScaledColumns{view_, root_.data()});
    model_.take_products(products_);
    ++n_models_by_products;
    return true;
  }

  // Returns the decrease that the model promises.
  double solve_model(Clock& clock) {
    const bool exact = traits_.is_quadratic;
    model_.reset();
    if (truncated_) {
      double total = 0;
      for (int k = 0; k < 3 && !team_.poll(); ++k) total += model_.sweep(k > 0);
      return total;
    }
    double total = 0;
    const int cycles = static_cast<int>((exact ? 2 : 1) * effort_);
    // The closer to the end, the better a quadratic model describes the loss, and the more its solution is worth.
    const double stop = compressed_ ? 0.01 : std::clamp(3.0 * std::sqrt(relative_decrease_), 0.05, 0.1);
    // A proof that failed, or a step that brought nothing, asks for a better point than that.
    const bool first = failed_ == infinity && n_idle_ == 0;
    const double worth = first && options_.tol > loosest_fine_tol ? negligible * enough : 0.0;
    const std::int64_t before = model_.nonzeros_touched;
    const std::int64_t frame = candidates_.last_touched + 3 * model_.n_nonzeros();
    for (int cycle = 0; cycle < cycles || model_.nonzeros_touched - before < frame; ++cycle) {
      if (team_.poll()) break;
      clock.next(Phase::sweeps);
      double gained = model_.sweep(false);
      if (exact) gained += model_.sweep(true);
      clock.next(Phase::conjugate_gradients);
      const double solved = model_.solve_on_support(stop < 0.1 ? 50 : 25, stop, infinity, worth);
      total += gained + solved;
      if (gained + solved <= std::max((compressed_ ? 0.01 : 0.1) * total, worth)) break;
    }
    return total;
  }

  // Solves the model until its dual point keeps the constraints well enough for a certificate.
  void polish(Clock& clock) {
    double size = 0;
    for (const ModelColumn& column : model_.columns) size += column.penalty.l1 * std::fabs(column.point);
    const double accuracy = size > 0 ? std::max(0.25 * enough / size, 1e-7) : 1e-7;  // enough may be 0 as well
    // It may cost as much again as the solution so far.
    const std::int64_t until =
        model_.cg_iterations + patience_ * std::max<std::int64_t>(model_.cg_iterations - n_cg, 10);
    while (!team_.poll()) {
      const auto left = static_cast<int>(until - model_.cg_iterations);
      if (left <= 0) break;
      const auto before = model_.cg_iterations;
      clock.next(Phase::conjugate_gradients);
      model_.solve_on_support(left, infinity, accuracy);
      clock.next(Phase::sweeps);
      if (model_.worst_outside() <= accuracy) break;
      if (!(model_.sweep(false) > 0) && model_.cg_iterations == before) break;  // nothing moves any more
    }
  }

  // Where full steps stop paying, the model is solved too coarsely; where they pay well, more than needed.
  void adapt_effort(double decrease) {
    relative_decrease_ = decrease / objective;
    if (decrease > 0.5 * last_decrease_) {
      if (effort_ == 4) most_dropped_ *= 0.1;  // effort was not what was missing
      effort_ = std::min(effort_ * 2, 4.0);
    } else if (decrease < 0.02 * last_decrease_) effort_ = std::max(effort_ / 2, 1.0);
    last_decrease_ = decrease;
  }

  // Conjugate gradients in float32 may go astray on singular systems; sweeps never do.
  bool search_line_of_sweeps() {
    hopeful_ = false;
    model_.reset();
    for (int k = 0; k < 3; ++k) model_.sweep(k > 0);
    return search_line();
  }

  // Moves along the model's direction until the objective falls enough; false if it does not.
  bool search_line() {
    const double linear = model_.linear_change();
    if (!(linear < 0)) return false;
    accumulate_direction();
    if (hopeful_) linearise();
    // Near the end the fall is smaller than the rounding of the objective, while the step still improves the
    // gradient: full steps are taken as long as the objective stays where it is.
    const bool tiny = -linear <= 1e-11 * objective;
    if (tiny && ++n_tiny_ > 20) return false;
    if (!tiny) n_tiny_ = 0;
    const double allowed = tiny ? 4e-15 * objective : 0.0;
    double size = 1, trial = objective_at(size);
    if (tiny && !(trial <= objective + allowed)) return false;
    for (int k = 0; !tiny && !(trial <= objective + 0.01 * size * linear); ++k) {
      if (k == 40) return false;
      remember_bends(size);
      size *= 0.5;
      trial = objective_at(size);
    }
    const double before = objective;
    take_step(size, std::min(trial, objective));
    if (size == 1 && !tiny) go_on(before - objective);
    return true;
  }

  // A step that went too far shows where the loss bends though it has no curvature here: rows with a large margin.
  // They keep the curvature that would have foretold their new derivative, until full steps succeed.
  void remember_bends(double size) {
    bends_.resize(theta_.size());
    has_bends_ = true;
    rows_.for_each([&](std::size_t i) {
      const double secant = (new_theta_[i] - theta_[i]) / (size * Xd_[i]);
      if (secant > 0) bends_[i] = std::max(bends_[i], static_cast<float>(std::sqrt(secant)));
    });
  }

  // Called where new curvatures have come in.
  void keep_bends(bool full_step) {
    if (!has_bends_) return;
    const float fade = full_step ? 0.3F : 1.0F;
    const double left = rows_.sum(1, [&](std::int64_t begin, std::int64_t end) {
      double count = 0;
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        bends_[i] *= fade;
        if (bends_[i] <= root_[i]) bends_[i] = 0;
        else root_[i] = bends_[i];
        count += bends_[i] > 0;
      }
      return count;
    });
    has_bends_ = left > 0;
  }

  // The dual point that belongs to the model's solution: of second order where θ at the new weights is of first.
  void linearise() {
    candidate_.resize(theta_.size());
    rows_.for_each([&](std::size_t i) {
      candidate_[i] = theta_[i] + static_cast<double>(root_[i]) * static_cast<double>(root_[i]) * Xd_[i];
    });
    proof_.into_domain(candidate_);
  }

  // A full step is often too short: a Newton model of the logistic loss underestimates how far margins should grow,
  // squared hinge and Huber are flat in places where the model is not, and few sweeps leave a model half solved. The
  // weights that the step did not set to zero go on in the same direction to the minimum along it.
  void go_on(double gained) {
    double longest = 1 << 20;
    for (ModelColumn& column : model_.columns) {
      double step = column.step();
      if (column.point == 0 && column.penalty.l1 > 0 && step != 0) {
        view_.for_each_nonzero(column.feature,
                               [&](std::int32_t i, double x) { Xd_[static_cast<std::size_t>(i)] -= step * x; });
        step = 0;
      }
      column.weight = column.point;
      column.point += step;
      if (step == 0) continue;
      const double bound = step > 0 ? column.penalty.upper : column.penalty.lower;
      longest = std::min(longest, (bound - column.weight) / step);
    }
    const double* theta = theta_.data();
    const float* root = root_.data();
    double size = 0, evaluated = 0, reached = objective;
    for (int k = 0; k < 20; ++k) {
      double slope = rows_.product(theta, Xd_.data());
      const double curvature = rows_.sum(2, [&](std::int64_t begin, std::int64_t end) {
        double sum = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          const double v = static_cast<double>(root[i]) * Xd_[static_cast<std::size_t>(i)];
          sum += v * v;
        }
        return sum;
      });
      double ridge = 0;
      for (const ModelColumn& column : model_.columns) {
        const double at = weight_at(column, size), step = column.step();
        slope += step * (column.penalty.l2 * at + (at > 0 ? column.penalty.l1 : -column.penalty.l1));
        ridge += column.penalty.l2 * step * step;
      }
      const double by = -slope / (curvature + ridge);
      if (!(by > 0) || -0.5 * slope * by < 0.05 * gained) break;
      const double next = std::min({size + by, 4 * size + 2, longest});
      const double trial = objective_at(next);
      evaluated = next;
      if (!(trial < reached)) break;
      size = next;
      gained += reached - trial;
      reached = trial;
      theta = new_theta_.data();
      root = new_root_.data();
      if (next == longest) break;
    }
    if (size == 0) return;
    if (evaluated != size) reached = objective_at(size);
    take_step(size, std::min(reached, objective), true);
  }

  double weight_at(const ModelColumn& column, double size) const {
    const double to = size == 1 ? column.point : column.weight + size * column.step();
    return std::clamp(to, column.penalty.lower, column.penalty.upper);  // rounding may have passed a bound
  }

  // Evaluates the point at `size` along the direction, into the new_ arrays.
  double objective_at(double size) {
    new_penalty_ = 0;
    for (const ModelColumn& column : model_.columns) {
      const double to = weight_at(column, size);
      if (column.feature >= 0 && to != 0) new_penalty_ += column.penalty.value(to);
    }
    return advance(Xd_.data(), size, new_theta_, new_root_) + new_penalty_;
  }

  // What objective_at(size) evaluated last becomes the state.
  void take_step(double size, double reached, bool going_on = false) {
    support.clear();
    for (const ModelColumn& column : model_.columns) {
      const double to = weight_at(column, size);
      if (column.feature < 0) {
        intercept = to;
        continue;
      }
      w_[column.feature] = to;
      if (to != 0) support.push_back(column.feature);
    }
    std::sort(support.begin(), support.end());  // columns stand by blocks
    step_size = size;
    if (traits_.has_flat_parts) {
      // Damping where the loss is flat: less after each success, or it would slow the end down.
      if (!going_on) flat_ = size >= 1 ? std::max(0.3 * flat_, 1e-7) : std::min(10 * flat_, 0.1);
      if (!going_on) last_move_ = 0;
      for (double v : Xd_) last_move_ = std::max(last_move_, size * std::fabs(v));
    }
    careful_ = size < 1 || objective - reached > 1e-3 * objective;
    if (!truncated_ && size >= 1 && !going_on) adapt_effort(objective - reached);
    objective = reached;
    penalty = new_penalty_;
    rows_.for_each([&](std::size_t i) { t_[i] += size * Xd_[i]; });
    theta_.swap(new_theta_);
    root_.swap(new_root_);
    if (!going_on) keep_bends(size >= 1);
  }

  // Xd in float64, from the original columns.
  void accumulate_direction() {
    moving_.clear();
    std::int64_t work = 0;
    double made_up = 0;  // by the intercept, for columns taken about their means
    for (const ModelColumn& column : model_.columns) made_up += column.shift * column.step();
    double intercept_step = 0;
    for (ModelColumn& column : model_.columns) {
      if (column.feature < 0) {
        column.point -= made_up;
        intercept_step = column.step();
      } else if (column.point != column.weight) {
        moving_.push_back({column.feature, column.point - column.weight});
        work += view_.count(column.feature);
      }
    }
    accumulate(work, [=](std::size_t) { return intercept_step; });
  }

  // Xd = base(row) + Σ step·x_j over the columns that move, whose nonzeros are `work`.
  template <class Base>
  void accumulate(std::int64_t work, Base base) {
    const auto n = static_cast<std::size_t>(view_.n_rows);
    if (is_tall(view_.n_rows)) {  // private sums would cost more than finding the rows of a slice
      team_.for_work(rows_.slices().count(), work + view_.n_rows, [&](std::int64_t slice) {
        double* out = Xd_.data();
        for (auto i = rows_.slices().begin(slice); i < rows_.slices().end(slice); ++i)
          out[i] = base(static_cast<std::size_t>(i));
        for (const Move& move : moving_) {
          const double step = move.step;
          view_.for_each_nonzero(move.feature, rows_.slices().begin(slice), rows_.slices().end(slice),
                                 [=](std::int32_t i, double x) { out[i] += step * x; });
        }
      });
      return;
    }
    const std::int64_t n_parts = std::clamp<std::int64_t>(work / (10 * view_.n_rows), 1, 16);
    if (static_cast<std::int64_t>(partial_Xd_.size()) < n_parts - 1)
      partial_Xd_.resize(static_cast<std::size_t>(n_parts - 1));
    const auto cuts =
        cut_by_work(moving_.size(), work, n_parts, [&](std::size_t k) { return view_.count(moving_[k].feature); });
    team_.for_work(n_parts, work, [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      std::vector<double>& sum = part == 0 ? Xd_ : partial_Xd_[at - 1];
      sum.resize(n);
      double* out = sum.data();
      for (std::size_t i = 0; i < n; ++i) out[i] = part == 0 ? base(i) : 0.0;
      for (std::size_t k = cuts[at]; k < cuts[at + 1]; ++k) {
        const double step = moving_[k].step;
        view_.for_each_nonzero(moving_[k].feature, [=](std::int32_t i, double x) { out[i] += step * x; });
      }
    });
    if (n_parts > 1) {
      team_.for_work(rows_.slices().count(), view_.n_rows * n_parts, [&](std::int64_t slice) {
        for (std::int64_t part = 1; part < n_parts; ++part) {
          const double* from = partial_Xd_[static_cast<std::size_t>(part - 1)].data();
          double* to = Xd_.data();
          for (std::int64_t i = rows_.slices().begin(slice); i < rows_.slices().end(slice); ++i) to[i] += from[i];
        }
      });
    }
  }

  // The same with twice as many digits: each sum carries what rounding took from it.
  template <class Base>
  void accumulate_exactly(Base base) {
    std::vector<double> rest(Xd_.size());
    rows_.for_each([&](std::size_t i) { Xd_[i] = base(i); });
    for (const Move& move : moving_) {
      view_.for_each_nonzero(move.feature, [&](std::int32_t row, double x) {
        const auto i = static_cast<std::size_t>(row);
        const double product = move.step * x, sum = Xd_[i] + product, back = sum - Xd_[i];
        rest[i] += std::fma(move.step, x, -product) + ((Xd_[i] - (sum - back)) + (product - back));
        Xd_[i] = sum;
      });
    }
    rows_.for_each([&](std::size_t i) { Xd_[i] += rest[i]; });
  }

  typename DualPoint<View>::Where here() {
    return {root_, w_, static_cast<std::int64_t>(support.size()), room(), objective - enough, found_};
  }

  // Looks for a dual point good enough to end the solve, if there is hope for one.
  void certify(double share = 1) {
    if (support.empty() && found_.n_violators > 0) return;
    // What the gap would be at θ itself, and by how much θ breaks the constraints.
    double complementarity = 0, size = 0;
    const auto count_in = [&](const Looked& entry) {
      const CoordinatePenalty penalty = problem_.penalty.at(entry.feature);
      const double weight = w_[entry.feature];
      complementarity += penalty.value(weight) + entry.grad * weight;
      if (!limits_dual(penalty, entry.grad)) complementarity += penalty.conjugate(-entry.grad);
      size += penalty.l1 * std::fabs(weight);
    };
    for (const Looked& entry : found_.support) count_in(entry);
    for (const Looked& entry : found_.proposals) count_in(entry);
    const double to_scale = size * found_.worst / (1 + found_.worst);
    if (std::fabs(complementarity) + to_scale <= share * enough) {
      rows_.copy(theta_, new_theta_);
      if (!proof_.try_point(new_theta_, 0, here())) stale_ = true;
    }
  }

  struct Move {
    std::int32_t feature;
    double step;
  };

  View view_;
  const CoreProblem& problem_;
  const LossTraits traits_;
  WorkingSetOptions options_;
  ThreadTeam& team_;
  Rows rows_;
  Candidates<View> candidates_;
  DualPoint<View> proof_;
  ModelCopy<View> copy_;
  Subproblem model_;
  KeptProducts products_;
  double* w_ = nullptr;
  double failed_ = infinity;
  double new_penalty_ = 0;
  bool careful_ = true;
  double last_move_ = 1;  // of a prediction, in the last step
  double flat_ = 0.03;
  double relative_decrease_ = 1;
  double most_dropped_ = 0.02;  // share of the curvature that rows left out of a model may hold
  int n_waits_ = 0;             // iterations without an attempt at a proof, when only that was missing
  int n_idle_ = 0;              // iterations that gained next to nothing, without an attempt
  std::int64_t patience_ = 1;   // grows when the proof does not come
  double effort_ = 1, last_decrease_ = infinity;
  bool truncated_ = false;
  bool compressed_ = false;  // the model is a Cholesky factor: touching it costs next to nothing
  int n_tiny_ = 0;
  std::vector<double> t_, theta_, new_theta_, Xd_;
  std::vector<float> root_, new_root_;
  std::vector<float> bends_;  // least roots of curvatures that failed steps asked for
  bool has_bends_ = false;
  std::vector<std::vector<double>> partial_Xd_;
  Findings found_;
  std::vector<Looked> chosen_;
  std::vector<Move> moving_;
  std::vector<Move> last_weights_;  // at the last alpha: feature and weight
  std::vector<double> last_t_;      // and the predictions
  double last_intercept_ = 0, last_fall_ = 0;
  bool hopeful_ = false;
  std::vector<double> candidate_;  // for the dual point
  bool stale_ = false;             // the last look was not at θ
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
