// Propose and accept: the best proposals of each selected block.
//
// Threads scan slices of equal nonzeros, whatever the blocks are. With all blocks selected the slices follow
// the storage order of X, and every executor keeps a table of the best per block; otherwise they follow the
// blocks, a block larger than a slice is cut, and only the cut ones are reduced. "Best" is a maximum with a
// total order, so neither cuts nor executors can change the outcome.
#pragma once

#include <array>
#include <bit>
#include <cmath>

#include "family/block_greedy.hpp"
#include "family/blocks.hpp"
#include "family/shared_state.hpp"

namespace blockgreedy {

template <class View>
class Scan {
 public:
  Scan(const View& view, const CoreProblem& problem, const BlockGreedyOptions& options, const std::int32_t* block_of,
       const State& state, ThreadTeam& team)
      : view_(view),
        penalty_(problem.penalty),
        options_(options),
        block_of_(block_of),
        state_(state),
        team_(team),
        row_scale_(problem.row_scale(view.n_rows)),
        curvature_bound_(problem.loss.traits().curvature_bound / options.step_scale),
        smallest_l1_((1 - 1e-14) * (problem.row_weights ? 1.0 : static_cast<double>(view.n_rows)) * penalty_.alpha *
                     smallest_weight()),
        curvatures_(view, curvature_bound_ * row_scale_, problem.row_weights, team),
        everything_(options.blocks_per_iter == options.n_blocks),
        storage_order_(everything_ && options.scan == ScanMode::slices && !options.asynchronous &&
                       options.n_blocks <= std::max<std::int64_t>(1024, view.n_cols / 16)),
        blocks_(block_of, view.n_cols, options.n_blocks, !storage_order_) {
    keep_block_nonzeros();
    keep_cost_marks();
    if (storage_order_ && problem.row_weights) keep_inverse_roots(problem.row_weights);
    if (storage_order_) {
      // More slices than threads, so that a slow thread does not delay the rest and Ctrl-C is noticed.
      const std::int64_t worthwhile = view.n_nonzeros() / (min_parallel_work / 4) + 1;
      cuts_ = equal_nonzero_cuts(view, std::min<std::int64_t>(std::max(128, 8 * team.size()), worthwhile));
      table_.resize(team.size() * options.n_blocks * options.per_block);
    }
    best_.resize(options.blocks_per_iter * options.per_block);
  }

  // Fills `accepted` with up to per_block proposals of every selected block: ascending blocks, best first.
  void best_of(const std::vector<std::int32_t>& selected, Counters& counters, std::vector<Proposal>& accepted) {
    std::int64_t scanned = 0, heaviest = 0;
    if (everything_) {
      scanned = view_.n_nonzeros();
      heaviest = heaviest_block_;
    } else {
      for (std::int32_t b : selected) {
        const std::int64_t nonzeros = block_nonzeros(b);
        scanned += nonzeros;
        heaviest = std::max(heaviest, nonzeros);
      }
    }
    if (storage_order_) {
      scan_in_storage_order();
    } else {
      scan_by_block(selected, scanned);
    }
    if (team_.stopped()) return;
    counters.nonzeros_touched += scanned;
    counters.critical_nonzeros += heaviest;
    accepted.clear();
    for (const Proposal& proposal : best_) {
      if (proposal.feature >= 0) accepted.push_back(proposal);
    }
  }

  // The proposal for feature j; score 0 when it would not move, or cannot exceed the score `to_beat`.
  Proposal propose(std::int64_t j, double grad, double to_beat = 0) const {
    const double w = state_.weight(j);
    const CoordinatePenalty coordinate = penalty_.at(j);
    if (w == 0 && std::fabs(grad) <= coordinate.l1) return {};
    const double curvature = curvatures_[j];
    if (w == 0 && options_.greedy_rule == GreedyRule::gain) {  // gain <= excess²/(2 (curvature + l2)), less a box
      const double excess = std::fabs(grad) - coordinate.l1;
      const double most = (1 + 1e-9) * excess * excess + 1e-14 * std::fabs(grad) * excess;  // with gain's rounding
      if (most <= 2 * (curvature + coordinate.l2) * to_beat) return {};
    }
    const double z = coordinate.prox(w, grad, curvature);
    if (!coordinate.moves(w, z, grad, curvature)) return {};
    const double score =
        options_.greedy_rule == GreedyRule::gain ? coordinate.gain(w, z, grad, curvature) : std::fabs(z - w);
    return {score, z, grad, curvature, static_cast<std::int32_t>(j)};
  }

  // The decrease of the objective that a proposal guarantees if it alone is taken.
  double gain(const Proposal& proposal) const {
    return penalty_.at(proposal.feature)
        .gain(state_.weight(proposal.feature), proposal.target, proposal.grad, proposal.curvature);
  }

  // The best of block b, by one of several threads that change the state meanwhile: `list` has room for per_block.
  // Weights of the block must be the caller's alone. `derivs` is a copy of the caller's own; null reads those of the
  // state, each entry by an atomic load.
  void best_of_shared(std::int64_t b, const double* derivs, Proposal* list) const {
    std::fill(list, list + options_.per_block, Proposal{});
    propose_run(
        blocks_.order(), blocks_.start(b), blocks_.start(b + 1), [&](std::int64_t) { return list; },
        [&](const std::int32_t* columns, std::int64_t first, std::int64_t count, double* out) {
          if (derivs) {
            kernels().of(view_).dots(view_, columns, first, count, derivs, out);
          } else {
            for (std::int64_t k = 0; k < count; ++k) out[k] = live_dot(columns ? columns[first + k] : first + k);
          }
        });
  }

  std::int64_t nonzeros_of(std::int64_t b) const { return block_nonzeros(b); }

  double gradient(std::int64_t j) const { return row_scale_ * column_dot(view_, j, state_.derivs.data()); }

  // Start fetching what block b will need, two steps ahead of its use.
  void prefetch_pointers(std::int64_t b) const { view_.prefetch_pointers(blocks_.feature(blocks_.start(b))); }
  void prefetch_entries(std::int64_t b) const {
    const std::int64_t j = blocks_.feature(blocks_.start(b));
    view_.prefetch_entries(j);
    __builtin_prefetch(state_.w.data() + j);
  }

 private:
  static constexpr std::int64_t mark_stride = 64;

  // A run of whole selected blocks (ranks first..last), or a piece of one (positions first..last of `rank`).
  struct Part {
    std::int64_t rank, first, last;
    bool whole;
  };

  double smallest_weight() const {
    return penalty_.weights ? *std::min_element(penalty_.weights, penalty_.weights + view_.n_cols) : 1.0;
  }

  std::int64_t sum_nonzeros(std::int64_t b) const {
    std::int64_t total = 0;
    for (std::int64_t at = blocks_.start(b); at < blocks_.start(b + 1); ++at)
      total += view_.count(blocks_.feature(at));
    return total;
  }

  // Blocks of a few features are summed when asked for: B may be as large as p.
  void keep_block_nonzeros() {
    if (8 * blocks_.size() > view_.n_cols && !everything_) return;
    block_nonzeros_.resize(blocks_.size());
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      block_nonzeros_[block_of_[j]] += view_.count(j);
    }
    heaviest_block_ = *std::max_element(block_nonzeros_.begin(), block_nonzeros_.end());
  }

  std::int64_t block_nonzeros(std::int64_t b) const {
    return block_nonzeros_.empty() ? sum_nonzeros(b) : block_nonzeros_[b];
  }

  // Nonzeros before every 64th position, to cut a block in O(log).
  void keep_cost_marks() {
    const double per_iter = static_cast<double>(view_.n_nonzeros()) * static_cast<double>(options_.blocks_per_iter) /
                            static_cast<double>(options_.n_blocks);
    if (storage_order_ || team_.size() == 1 || options_.scan == ScanMode::blocks || block_nonzeros_.empty() ||
        per_iter < static_cast<double>(min_parallel_work) / 2)
      return;
    std::int64_t cost = 0;
    for (std::int64_t at = 0; at < view_.n_cols; ++at) {
      if (at % mark_stride == 0) cost_marks_.push_back(cost);
      cost += view_.count(blocks_.feature(at));
    }
  }

  static void insert(Proposal* list, std::int64_t capacity, const Proposal& proposal) {
    if (list[capacity - 1].feature >= 0 && !proposal.beats(list[capacity - 1])) return;
    std::int64_t at = capacity - 1;
    for (; at > 0 && (list[at - 1].feature < 0 || proposal.beats(list[at - 1])); --at) list[at] = list[at - 1];
    list[at] = proposal;
  }

  // x_j·derivs of derivatives that other threads may store at any time. Four sums, since an addition waits for the
  // one before.
  double live_dot(std::int64_t j) const {
    double a = 0, b = 0, c = 0, d = 0;
    if constexpr (requires { view_.indices; }) {
      const double* r = state_.derivs.data();
      const auto term = [&](std::int64_t k) {
        return static_cast<double>(view_.data[k]) * load_shared(r[view_.indices[k]]);
      };
      std::int64_t k = view_.start(j);
      const std::int64_t end = view_.start(j + 1);
      for (; k + 4 <= end; k += 4) {
        a += term(k);
        b += term(k + 1);
        c += term(k + 2);
        d += term(k + 3);
      }
      for (; k < end; ++k) a += term(k);
    } else {
      view_.for_each_nonzero(j, [&](std::int32_t i, double x) { a += x * load_shared(state_.derivs[i]); });
    }
    return (a + b) + (c + d);
  }

  // Proposes for positions first..last and hands every proposal that moves to list_of(j). Most features stay
  // at zero: they are passed over 64 at a time.
  template <class ListOf>
  BLOCKGREEDY_INLINE void propose_run(const std::int32_t* columns, std::int64_t first, std::int64_t last,
                                      ListOf list_of) const {
    propose_run(columns, first, last, list_of,
                [&](const std::int32_t* of, std::int64_t at, std::int64_t count, double* out) {
                  kernels().of(view_).dots(view_, of, at, count, state_.derivs.data(), out);
                });
  }

  template <class ListOf, class Dots>
  BLOCKGREEDY_INLINE void propose_run(const std::int32_t* columns, std::int64_t first, std::int64_t last,
                                      ListOf list_of, Dots dots) const {
    std::array<double, 64> products;
    for (std::int64_t at = first, end; at < last; at = end) {
      end = columns ? at + 64 : (at / 64 + 1) * 64;  // storage order keeps in step with the words of support
      if (end > last) end = last;
      dots(columns, at, end - at, products.data());
      std::uint64_t may_move = kernels().above(products.data(), end - at, smallest_l1_);
      may_move |= support_bits(columns, at, end - at);
      for (; may_move != 0; may_move &= may_move - 1) {
        const auto k = static_cast<std::int64_t>(std::countr_zero(may_move));
        const std::int64_t j = columns ? columns[at + k] : at + k;
        Proposal* list = list_of(j);
        if (cannot_beat(list[options_.per_block - 1], j)) continue;
        const double to_beat = list[options_.per_block - 1].score;
        const Proposal proposal = propose(j, row_scale_ * products[k], to_beat);
        if (proposal.score > 0) insert(list, options_.per_block, proposal);
      }
    }
  }

  BLOCKGREEDY_INLINE std::uint64_t support_bits(const std::int32_t* columns, std::int64_t at, std::int64_t n) const {
    if (!columns) {
      const std::uint64_t word = load_shared(state_.support[at / 64]) >> (at % 64);
      return n < 64 ? word & ((std::uint64_t{1} << n) - 1) : word;
    }
    std::uint64_t bits = 0;
    for (std::int64_t k = 0; k < n; ++k) bits |= static_cast<std::uint64_t>(state_.weight(columns[at + k]) != 0) << k;
    return bits;
  }

  // gain <= grad²/(2 curvature) for a weight at zero, and grad² <= ‖x‖² Σ derivs²/n² over the column's rows, so
  // gain <= count max(derivs²)/(2 beta n): a rare feature often cannot win, and its norm is not needed. With row
  // weights grad = Σ √ω x · derivs/√ω, so that grad² <= Σ ω x² Σ derivs²/ω and gain <= count max(derivs²/ω)/(2 beta);
  // derivs, which hold ω, are 0 where ω is.
  BLOCKGREEDY_INLINE bool cannot_beat(const Proposal& worst_kept, std::int64_t j) const {
    return worst_kept.score >= gain_per_nonzero_ * static_cast<double>(view_.count(j)) && state_.weight(j) == 0;
  }

  // Only where a pass over all derivs pays: an iteration that scans less than n nonzeros must not cost O(n).
  void bound_gains() {
    if (options_.greedy_rule != GreedyRule::gain) return;
    const double largest = inverse_roots_.empty()
                               ? kernels().f64.largest_magnitude(state_.derivs.data(), view_.n_rows)
                               : largest_over_roots();
    gain_per_nonzero_ = (1 + 1e-9) * largest * largest * row_scale_ / (2 * curvature_bound_);
  }

  // 1/√ω_i, or 0 for rows without weight, which change no gradient.
  void keep_inverse_roots(const double* row_weights) {
    inverse_roots_.resize(view_.n_rows);
    for (std::int64_t i = 0; i < view_.n_rows; ++i)
      inverse_roots_[i] = row_weights[i] > 0 ? 1 / std::sqrt(row_weights[i]) : 0.0;
  }

  double largest_over_roots() const {
    double largest = 0;
    for (std::int64_t i = 0; i < view_.n_rows; ++i)
      largest = std::max(largest, std::fabs(state_.derivs[i] * inverse_roots_[i]));
    return largest;
  }

  void scan_in_storage_order() {
    const std::int64_t k = options_.per_block, row = options_.n_blocks * k;
    std::fill(table_.begin(), table_.end(), Proposal{});
    bound_gains();
    team_.for_each(static_cast<std::int64_t>(cuts_.size()) - 1, [&](std::int64_t slice, int executor) {
      Proposal* mine = table_.data() + executor * row;
      propose_run(nullptr, cuts_[slice], cuts_[slice + 1], [&](std::int64_t j) { return mine + block_of_[j] * k; });
    });
    std::copy(table_.begin(), table_.begin() + row, best_.begin());
    for (int executor = 1; executor < team_.size(); ++executor) {
      for (std::int64_t b = 0; b < options_.n_blocks; ++b)
        merge(best_.data() + b * k, table_.data() + executor * row + b * k);
    }
  }

  void merge(Proposal* into, const Proposal* from) const {
    for (std::int64_t s = 0; s < options_.per_block && from[s].feature >= 0; ++s)
      insert(into, options_.per_block, from[s]);
  }

  void scan_block(std::int64_t rank, std::int64_t b) {
    Proposal* list = best_.data() + rank * options_.per_block;
    std::fill(list, list + options_.per_block, Proposal{});
    propose_run(blocks_.order(), blocks_.start(b), blocks_.start(b + 1), [&](std::int64_t) { return list; });
  }

  void scan_by_block(const std::vector<std::int32_t>& selected, std::int64_t scanned) {
    const auto n_selected = static_cast<std::int64_t>(selected.size());
    if (team_.size() == 1 || scanned < min_parallel_work) {
      for (std::int64_t rank = 0; rank < n_selected; ++rank) {
        if (rank + 8 < n_selected) prefetch_pointers(selected[rank + 8]);
        if (rank + 4 < n_selected) prefetch_entries(selected[rank + 4]);
        scan_block(rank, selected[rank]);
        if (block_nonzeros_.empty() || n_selected == 1) continue;
        team_.poll();
        if (team_.stopped()) return;  // what is scanned in part is not used
      }
      return;
    }
    cut_into_parts(selected, scanned / (4 * team_.size()) + 1);
    partial_.assign(parts_.size() * options_.per_block, Proposal{});
    team_.for_each(static_cast<std::int64_t>(parts_.size()), [&](std::int64_t at, int) {
      const Part& part = parts_[at];
      if (part.whole) {
        for (std::int64_t rank = part.first; rank < part.last; ++rank) {
          scan_block(rank, selected[rank]);
        }
      } else {
        Proposal* list = partial_.data() + at * options_.per_block;
        propose_run(blocks_.order(), part.first, part.last, [&](std::int64_t) { return list; });
      }
    });
    for (std::size_t at = 0; at < parts_.size(); ++at) {
      const Part& part = parts_[at];
      if (part.whole) continue;
      Proposal* list = best_.data() + part.rank * options_.per_block;
      const bool first_piece = at == 0 || parts_[at - 1].whole || parts_[at - 1].rank != part.rank;
      if (first_piece) std::fill(list, list + options_.per_block, Proposal{});
      merge(list, partial_.data() + static_cast<std::int64_t>(at) * options_.per_block);
    }
  }

  // Groups small blocks and cuts large ones so that every part costs about `share` nonzeros. With
  // scan="blocks" a part is a block, as in the paper: its load imbalance is then there to be studied.
  void cut_into_parts(const std::vector<std::int32_t>& selected, std::int64_t share) {
    parts_.clear();
    const auto n_selected = static_cast<std::int64_t>(selected.size());
    const bool literal = options_.scan == ScanMode::blocks;
    // for_each numbers its parts with 20 bits
    const std::int64_t most_ranks = literal ? n_selected / (1 << 19) + 1 : n_selected;
    std::int64_t group_start = 0, group_cost = 0;
    for (std::int64_t rank = 0; rank < n_selected; ++rank) {
      const std::int64_t b = selected[rank];
      const std::int64_t cost = block_nonzeros(b);
      if (!literal && cost > 2 * share && !cost_marks_.empty()) {
        if (group_start < rank) parts_.push_back({0, group_start, rank, true});
        cut_block(rank, b, cost / share);
        group_start = rank + 1;
        group_cost = 0;
        continue;
      }
      group_cost += cost;
      if ((literal && rank + 1 - group_start >= most_ranks) || (!literal && group_cost >= share)) {
        parts_.push_back({0, group_start, rank + 1, true});
        group_start = rank + 1;
        group_cost = 0;
      }
    }
    if (group_start < n_selected) parts_.push_back({0, group_start, n_selected, true});
  }

  void cut_block(std::int64_t rank, std::int64_t b, std::int64_t n_pieces) {
    const std::int64_t begin = blocks_.start(b), end = blocks_.start(b + 1);
    const auto first_mark = cost_marks_.begin() + begin / mark_stride;
    const auto last_mark = cost_marks_.begin() + (end - 1) / mark_stride + 1;
    const std::int64_t from = *first_mark, cost = block_nonzeros(b);
    std::int64_t at = begin;
    for (std::int64_t piece = 1; piece <= n_pieces && at < end; ++piece) {
      std::int64_t to = end;
      if (piece < n_pieces) {
        const auto mark = std::lower_bound(first_mark, last_mark, from + cost / n_pieces * piece);
        to = std::min(end, std::max(at, (mark - cost_marks_.begin()) * mark_stride));
      }
      if (to > at) parts_.push_back({rank, at, to, false});
      at = to;
    }
  }

  View view_;
  Penalty penalty_;
  BlockGreedyOptions options_;
  const std::int32_t* block_of_;
  const State& state_;
  ThreadTeam& team_;
  double row_scale_;
  double curvature_bound_;  // beta, over the step scale
  double smallest_l1_;      // |x_j·derivs| up to which no feature moves from zero, less rounding
  double gain_per_nonzero_ = infinity;
  Curvatures<View> curvatures_;
  bool everything_, storage_order_;
  Blocks blocks_;
  std::int64_t heaviest_block_ = 0;
  std::vector<std::int64_t> block_nonzeros_, cost_marks_, cuts_;
  std::vector<double> inverse_roots_;  // of row weights, where there are any and bound_gains needs them
  std::vector<Proposal> table_, best_, partial_;
  std::vector<Part> parts_;
};

}  // namespace blockgreedy
