#include "family/block_greedy.hpp"

#include <array>
#include <numeric>

#include "base/random.hpp"
#include "family/asynchronous.hpp"

namespace blockgreedy {

namespace {

template <class View>
class Solver final : public BlockGreedy {
 public:
  Solver(const View& view, const CoreProblem& problem, const BlockGreedyOptions& options, const InterceptRange& range,
         const std::int32_t* block_of, ThreadTeam& team)
      : options_(options),
        has_intercept_(problem.fit_intercept),
        round_((options.n_blocks - 1) / options.blocks_per_iter + 1),
        team_(team),
        random_(options.seed),
        scan_(view, problem, options, block_of, state, team),
        updates_(view, problem, options, state, team),
        intercept_(problem, view.n_rows, range, team),
        asynchronous_(view, options, scan_, updates_, state, counters, team) {
    state.resize(view.n_rows, view.n_cols);
    restart();
    if (options.blocks_per_iter == options.n_blocks) {
      selected_.resize(options.n_blocks);
      std::iota(selected_.begin(), selected_.end(), 0);
    }
  }

  std::int64_t run(std::int64_t n_iter, double max_seconds) override {
    if (options_.asynchronous) return run_asynchronously(n_iter, max_seconds);
    // Reading the clock costs as much as a tenth of an SCD step: it is read once per thousand nonzeros or so.
    constexpr std::int64_t work_between_polls = 1 << 14;
    const double deadline = seconds_now() + max_seconds;
    std::int64_t done = 0, work = 0;
    while (done < n_iter) {
      select();
      const std::int64_t touched_before = counters.nonzeros_touched;
      scan_.best_of(selected_, counters, proposals_);
      if (team_.stopped()) break;
      accepted.clear();
      for (const Proposal& proposal : proposals_) accepted.push_back(proposal.feature);
      if (is_recording) record_proposals();
      updates_.apply(proposals_);
      count_iteration();
      if (is_recording) record_steps();
      ++done;
      work += counters.nonzeros_touched - touched_before + 64;
      if (work >= work_between_polls) {
        work = 0;
        if (team_.poll() || seconds_now() >= deadline) break;
      }
    }
    return done;
  }

  void set_weights(const double* w, double intercept) override {
    for (std::size_t j = 0; j < state.w.size(); ++j) state.set_weight(static_cast<std::int64_t>(j), w[j]);
    state.intercept = intercept;
    restart();
  }

  void set_sparse_weights(const std::int64_t* features, const double* values, std::int64_t count,
                          double intercept) override {
    state.resize(static_cast<std::int64_t>(state.Xw.size()), static_cast<std::int64_t>(state.w.size()));
    for (std::int64_t k = 0; k < count; ++k) state.set_weight(features[k], values[k]);
    state.intercept = intercept;
    restart();
  }

  void fit_intercept() override {
    if (!intercept_is_stale_) return;
    const double shift = intercept_.best_shift(state.Xw.data());
    intercept_is_stale_ = team_.is_late();
    if (shift != 0) updates_.shift_intercept(shift);
  }

  std::vector<std::int32_t> update_order() const override {
    std::vector<std::int32_t> features;
    for (const Proposal& proposal : proposals_) features.push_back(proposal.feature);
    return features;
  }

  void update_with(const std::vector<std::int32_t>& features) override {
    proposals_.clear();
    for (std::int32_t j : features) {
      const Proposal proposal = scan_.propose(j, scan_.gradient(j));
      if (proposal.feature >= 0) proposals_.push_back(proposal);
    }
    updates_.apply(proposals_);
    count_iteration();
  }

  void move_to(const std::vector<std::int32_t>& features, const double* targets) override {
    proposals_.clear();
    for (std::size_t k = 0; k < features.size(); ++k) {
      Proposal& proposal = proposals_.emplace_back();
      proposal.feature = features[k];
      proposal.target = targets[k];
    }
    updates_.move_to_targets(proposals_);
    count_iteration();
  }

 private:
  // Xw, derivs and intercept from the weights.
  void restart() {
    updates_.rebuild();
    intercept_is_stale_ = has_intercept_;
    fit_intercept();
  }

  void count_iteration() {
    ++counters.n_iter;
    if (!has_intercept_) return;
    intercept_is_stale_ = true;
    if (counters.n_iter % round_ == 0) fit_intercept();
  }

  // Before the update: what it may reorder or overwrite. The weights stand in for the steps until record_steps.
  void record_proposals() {
    record.selected.insert(record.selected.end(), selected_.begin(), selected_.end());
    record.selected_counts.push_back(std::ssize(selected_));
    record.accepted.insert(record.accepted.end(), accepted.begin(), accepted.end());
    record.accepted_counts.push_back(std::ssize(accepted));
    for (const Proposal& proposal : proposals_) {
      record.steps.push_back(state.weight(proposal.feature));
      record.gains.push_back(scan_.gain(proposal));
    }
  }

  void record_steps() {
    record.iterations.push_back(counters.n_iter);
    double* before = record.steps.data() + record.steps.size() - accepted.size();
    for (std::size_t k = 0; k < accepted.size(); ++k) before[k] = state.weight(accepted[k]) - before[k];
  }

  std::int64_t run_asynchronously(std::int64_t n_iter, double max_seconds) {
    intercept_is_stale_ = has_intercept_;
    const auto meet = [&] {
      intercept_is_stale_ = has_intercept_;
      fit_intercept();
    };
    const auto next_selection = [&]() -> const std::vector<std::int32_t>& {
      select();
      return selected_;
    };
    return asynchronous_.run(n_iter, max_seconds, 10 * round_, next_selection, meet, accepted);
  }

  void select() {
    if (options_.blocks_per_iter == options_.n_blocks) return;
    if (options_.blocks_per_iter > 1) {
      sampler_.draw(random_, options_.n_blocks, options_.blocks_per_iter, selected_);
      return;
    }
    // One block at a time (SCD) is bound by memory latency: blocks are drawn ahead, in the same order, and
    // what they need is fetched while earlier ones are worked on.
    selected_.resize(1);
    if (ahead_filled_ < ahead_.size()) {
      for (; ahead_filled_ < ahead_.size(); ++ahead_filled_) draw_ahead(ahead_filled_);
    }
    selected_[0] = ahead_[at_];
    draw_ahead(at_);
    at_ = (at_ + 1) % ahead_.size();
    scan_.prefetch_entries(ahead_[(at_ + ahead_.size() / 2) % ahead_.size()]);
  }

  void draw_ahead(std::size_t slot) {
    ahead_[slot] = static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(options_.n_blocks)));
    scan_.prefetch_pointers(ahead_[slot]);
  }

  BlockGreedyOptions options_;
  bool has_intercept_, intercept_is_stale_ = false;
  std::int64_t round_;  // ⌈B/P⌉ iterations, in which each block has been selected once on average
  ThreadTeam& team_;
  Random random_;
  SubsetSampler sampler_;
  Scan<View> scan_;
  Updates<View> updates_;
  InterceptFit intercept_;
  Asynchronous<View> asynchronous_;
  std::vector<std::int32_t> selected_;
  std::vector<Proposal> proposals_;
  std::array<std::int32_t, 16> ahead_{};
  std::size_t ahead_filled_ = 0, at_ = 0;
};

}  // namespace

std::unique_ptr<BlockGreedy> make_block_greedy(const Matrix& matrix, const CoreProblem& problem,
                                               const BlockGreedyOptions& options, const InterceptRange& range,
                                               const std::int32_t* block_of, ThreadTeam& team) {
  return std::visit(
      [&](const auto& view) -> std::unique_ptr<BlockGreedy> {
        using View = std::remove_cvref_t<decltype(view)>;
        return std::make_unique<Solver<View>>(view, problem, options, range, block_of, team);
      },
      matrix);
}

}  // namespace blockgreedy
