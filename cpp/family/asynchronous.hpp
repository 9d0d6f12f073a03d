// Algorithm 1 without waiting, as the paper's threads ran: each takes a block, scans it against the state that the
// others are changing, adds its best steps by atomics and goes on. P block updates count as an iteration.
//
// A thread owns a block while it works on it, and with it the weights of its features; Xw, derivs and the words of
// `support` are shared, and every access to them is atomic. All threads take blocks from one list, in the order of
// the selection, so that a slow thread delays none but its own block; a block that another thread has is passed over.
// Two threads that store the derivative of one row may leave the older of the two: it is wrong until a step touches
// the row again, or until the threads meet, when all are computed anew. Xw loses nothing but rounding.
//
// One thread alone makes a pass over the blocks in their order, each seeing the steps of those before: that is
// deterministic. More threads are exempt from bitwise repetition.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "family/scan.hpp"
#include "family/shared_state.hpp"
#include "family/updates.hpp"

namespace blockgreedy {

template <class View>
class Asynchronous {
 public:
  Asynchronous(const View& view, const BlockGreedyOptions& options, const Scan<View>& scan, Updates<View>& updates,
               State& state, Counters& counters, ThreadTeam& team)
      : view_(view),
        options_(options),
        scan_(scan),
        updates_(updates),
        state_(state),
        counters_(counters),
        team_(team),
        // P blocks at a time is what an iteration of the algorithm has.
        n_workers_(static_cast<int>(std::min<std::int64_t>(team.size(), options.blocks_per_iter))),
        most_scheduled_(std::max<std::int64_t>(1, (1 << 16) / options.blocks_per_iter)) {}

  // Up to n_iter iterations, ending early after max_seconds (but not within the first) or when the team is asked to
  // stop. Returns the number of whole iterations done; block updates beyond these count next time. The threads meet
  // after every `stretch` iterations, counted from the first of all, and then meet() is called. select() returns the
  // blocks of the next iteration; `accepted` becomes the features of the last P block updates.
  template <class Select, class Meet>
  std::int64_t run(std::int64_t n_iter, double max_seconds, std::int64_t stretch, Select select, Meet meet,
                   std::vector<std::int32_t>& accepted) {
    const double deadline = seconds_now() + max_seconds;
    prepare();
    std::int64_t done = 0;
    while (done < n_iter) {
      const std::int64_t until_meeting = stretch - counters_.n_iter % stretch;
      limit_ = std::min({until_meeting, n_iter - done, most_scheduled_}) * options_.blocks_per_iter - carried_;
      begun_ = 0;
      schedule(select);
      if (is_alone()) {
        work(0, deadline);
      } else {
        team_.for_all(n_workers_, [&](std::int64_t, int executor) { work(executor, deadline); });
        updates_.refresh();
      }
      done += settle();
      if (counters_.n_iter % stretch == 0) meet();
      if (team_.stopped() || (done > 0 && seconds_now() >= deadline)) break;
    }
    accepted.clear();
    for (std::int32_t j : recent_) {
      if (j >= 0) accepted.push_back(j);
    }
    return done;
  }

 private:
  // What a thread keeps for itself, on cache lines of its own.
  struct alignas(64) Worker {
    std::vector<Proposal> best;
    std::vector<double> derivs, buffer;
    std::int64_t updates = 0, scanned = 0;
    std::int64_t moves = 0, staleness = 0, most_stale = 0;
  };

  static constexpr bool is_sparse = requires(const View& view) { view.indices; };
  static constexpr std::int64_t work_between_polls = 1 << 14;  // nonzeros, as in the synchronous mode

  bool is_alone() const { return n_workers_ == 1; }

  // Parallel regions allocate nothing.
  void prepare() {
    if (!workers_.empty()) return;
    workers_.resize(team_.size());
    std::int64_t longest = 0;
    for (std::int64_t j = 0; j < view_.n_cols; ++j) longest = std::max(longest, view_.count(j));
    for (Worker& worker : workers_) {
      worker.best.resize(options_.per_block);
      if (options_.update == UpdateRule::line_search)
        worker.buffer.resize(Updates<View>::buffer_per_nonzero * longest);
      // A vector loop needs derivatives that stay as they are. Of sparse columns the copy would cost too much: a
      // block may have fewer nonzeros than there are rows.
      if (!is_sparse && !is_alone()) worker.derivs.resize(view_.n_rows);
    }
    taken_.resize(options_.n_blocks);
    recent_.assign(options_.blocks_per_iter * options_.per_block, -1);
  }

  // Blocks in the order in which they are taken, as many as this stretch needs.
  template <class Select>
  void schedule(Select select) {
    const bool everything = options_.blocks_per_iter == options_.n_blocks;  // then one pass, again and again
    if (!everything) {
      const std::int64_t used = std::min<std::int64_t>(next_, std::ssize(order_));
      order_.erase(order_.begin(), order_.begin() + used);
      next_ = 0;
    }
    while (std::ssize(order_) < (everything ? options_.n_blocks : limit_)) {
      const std::vector<std::int32_t>& selected = select();
      order_.insert(order_.end(), selected.begin(), selected.end());
    }
  }

  void work(int executor, double deadline) {
    Worker& mine = workers_[executor];
    std::int64_t unpolled = 0;
    while (!team_.stopped()) {
      const std::int64_t number = begun_.fetch_add(1, std::memory_order_relaxed);
      if (number >= load_shared(limit_)) return;
      const std::int64_t b = claim();
      const std::int64_t nonzeros = scan_.nonzeros_of(b);
      update_block(b, number, mine);
      std::atomic_ref<std::uint8_t>(taken_[b]).store(0, std::memory_order_release);
      ++mine.updates;
      mine.scanned += nonzeros;
      unpolled += nonzeros + 64;
      if (unpolled < work_between_polls) continue;
      unpolled = 0;
      if (executor == 0) team_.poll();
      if (number >= options_.blocks_per_iter && seconds_now() >= deadline) store_shared(limit_, std::int64_t{0});
    }
  }

  // The next block that no other thread works on. There always is one: workers are no more than the blocks of an
  // iteration, which differ.
  std::int64_t claim() {
    for (;;) {
      const std::int64_t place = next_.fetch_add(1, std::memory_order_relaxed);
      const std::int64_t b = order_[place % std::ssize(order_)];
      if (std::atomic_ref<std::uint8_t>(taken_[b]).exchange(1, std::memory_order_acquire) == 0) return b;
    }
  }

  void update_block(std::int64_t b, std::int64_t number, Worker& mine) {
    const std::int64_t seen = applied_.load(std::memory_order_relaxed);
    const double* derivs = is_alone() ? state_.derivs.data() : nullptr;
    if (!mine.derivs.empty()) {
      for (std::int64_t i = 0; i < view_.n_rows; ++i) mine.derivs[i] = load_shared(state_.derivs[i]);
      derivs = mine.derivs.data();
    }
    scan_.best_of_shared(b, derivs, mine.best.data());
    std::int64_t count = 0;
    while (count < options_.per_block && mine.best[count].feature >= 0) ++count;
    std::int32_t* recent = recent_.data() + number % options_.blocks_per_iter * options_.per_block;
    for (std::int64_t s = 0; s < options_.per_block; ++s) store_shared(recent[s], mine.best[s].feature);
    if (count > 0) move(mine, count, seen);
  }

  // The steps of a block are made against one state, as in the synchronous mode.
  void move(Worker& mine, std::int64_t count, std::int64_t seen) {
    if (options_.update == UpdateRule::line_search) {
      for (std::int64_t s = 0; s < count; ++s)
        mine.best[s].target = updates_.refined_target(mine.best[s], mine.buffer.data());
    }
    for (std::int64_t s = 0; s < count; ++s) {
      const Proposal& proposal = mine.best[s];
      updates_.add_column_shared(proposal.feature, proposal.target - state_.weight(proposal.feature));
      set_shared_weight(state_, proposal.feature, proposal.target);
    }
    for (std::int64_t s = 0; s < count; ++s) updates_.refresh_rows_of(mine.best[s].feature);
    const std::int64_t overtaken = applied_.fetch_add(1, std::memory_order_relaxed) - seen;
    ++mine.moves;
    mine.staleness += overtaken;
    mine.most_stale = std::max(mine.most_stale, overtaken);
  }

  // Adds up what the threads counted; returns the whole iterations among it.
  std::int64_t settle() {
    const std::int64_t critical_before = scanned_ / options_.blocks_per_iter;
    for (Worker& worker : workers_) {
      carried_ += worker.updates;
      scanned_ += worker.scanned;
      counters_.nonzeros_touched += worker.scanned;
      counters_.moves += worker.moves;
      counters_.staleness += worker.staleness;
      counters_.most_stale = std::max(counters_.most_stale, worker.most_stale);
      worker.updates = worker.scanned = worker.moves = worker.staleness = 0;
    }
    const std::int64_t done = carried_ / options_.blocks_per_iter;
    carried_ %= options_.blocks_per_iter;
    counters_.n_iter += done;
    // Nobody waits: with P threads each would have read a P-th.
    counters_.critical_nonzeros += scanned_ / options_.blocks_per_iter - critical_before;
    return done;
  }

  View view_;
  BlockGreedyOptions options_;
  const Scan<View>& scan_;
  Updates<View>& updates_;
  State& state_;
  Counters& counters_;
  ThreadTeam& team_;
  int n_workers_;
  std::int64_t most_scheduled_;  // iterations whose blocks are listed at a time
  std::vector<Worker> workers_;
  std::vector<std::int32_t> order_;   // of blocks; read again from its start where passing over has used it up
  std::vector<std::uint8_t> taken_;   // by block: a thread works on it
  std::vector<std::int32_t> recent_;  // what the last P block updates accepted, per_block places each; -1: none
  std::int64_t carried_ = 0;          // block updates that make no whole iteration yet
  std::int64_t scanned_ = 0;          // nonzeros
  std::int64_t limit_ = 0;            // block updates of this stretch
  alignas(64) std::atomic<std::int64_t> begun_{0};    // block updates of this stretch
  alignas(64) std::atomic<std::int64_t> next_{0};     // place in order_
  alignas(64) std::atomic<std::int64_t> applied_{0};  // block updates that moved a weight
};

}  // namespace blockgreedy
