#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "partitions/partition.hpp"
#include "partitions/seed_column.hpp"

namespace blockgreedy {

namespace {

// A run of columns that one executor handles at a time. Its unassigned columns are columns_[first] and the
// n_columns - 1 after it, ascending; those of them that meet the seed stand in hit_columns_ and hit_keys_ from
// `first` on.
struct alignas(64) Part {
  std::int64_t first, n_columns;
  std::int64_t n_hits = 0, n_ties = 0, tie_load = 0;
  std::int64_t densest = -1;  // of the unassigned columns the one with most nonzeros, the lowest if several
};

// A block takes every unassigned column whose correlation lies above the threshold, and of those that lie on it the
// lowest n_ties, as long as their loads fit into `room`. Correlations are compared by their bits: non-negative
// doubles order like integers.
struct Cut {
  std::uint64_t threshold = 0;
  std::int64_t n_ties = 0, room = 0;
};

// What a block may still take: `size` columns, and more of them until its load has grown by `need`, but never more
// than `most`, without which the blocks after it would stay empty, nor a load of more than `room`.
struct Quota {
  std::int64_t size, most, room;
  double need;
  std::int64_t n_taken = 0;
  bool is_open() const { return most > 0 && (size > 0 || need > 0); }
  void take(std::int64_t n_columns, std::int64_t load) {
    size -= n_columns, most -= n_columns, room -= load, need -= static_cast<double>(load), n_taken += n_columns;
  }
};

struct Candidate {
  std::uint64_t key;
  std::int32_t column;
  bool operator<(const Candidate& other) const {  // the best is the largest: the lowest column of equal keys
    return key != other.key ? key < other.key : column > other.column;
  }
};

template <class View>
class Clustering {
 public:
  Clustering(const View& view, std::int64_t n_blocks, double max_load, ThreadTeam& team);
  std::vector<std::int32_t> run();

 private:
  static constexpr int digit_bits = 11;
  static constexpr bool is_sparse = requires(const View& view) { view.indices; };
  struct Histogram {
    std::array<std::int64_t, 1 << digit_bits> counts, loads;
  };

  std::int64_t densest_column() const;
  void correlate();
  Quota quota_of(std::int64_t block) const;
  Cut find_cut(const Quota& quota);
  const Histogram& count_digits(std::uint64_t prefix, int known_from, int shift);
  void count_ties(std::uint64_t threshold);
  void assign(std::int32_t block, const Cut& cut, Quota& quota);
  std::int64_t take_fitting_ties(const Part& part, Cut& left) const;
  void fill(std::int32_t block, std::int64_t seed, Quota& quota);
  void take(std::int32_t block, std::int32_t j, Quota& quota);
  void drop_assigned(Part& part, std::int32_t block);
  void assign_part(Part& part, std::int32_t block, std::uint64_t threshold, std::int64_t n_ties);
  void find_densest(Part& part) const;

  template <class F>
  void for_each_part(F&& f) {
    team_.for_each(static_cast<std::int64_t>(parts_.size()),
                   [&](std::int64_t part, int executor) { f(parts_[part], executor); });
  }

  bool is_capped() const { return most_load_ < std::numeric_limits<double>::infinity(); }
  bool is_free(std::int32_t j) const { return block_of_[j] == n_blocks_ - 1; }  // asked before the last block
  // A scan of dense columns reads their zeros too.
  std::int64_t load(std::int64_t j) const { return is_sparse ? n_nonzeros_(j) : view_.n_rows; }

  const View& view_;
  const std::int64_t n_blocks_;
  ThreadTeam& team_;
  typename SeedOf<View>::Type seed_;
  const NonzeroCounts<View> n_nonzeros_;
  std::vector<Part> parts_;
  std::vector<Histogram> histograms_;  // one per executor
  std::vector<std::int32_t> block_of_;
  // Of a block the most load, and what the blocks after it are counted on to take; load and columns not yet assigned.
  double most_load_, share_ = 0;
  std::int64_t load_left_ = 0, columns_left_;
  std::vector<Candidate> candidates_;
  // Left uninitialised: the executors touch them first, and the pages of columns without a hit are never used.
  std::unique_ptr<std::int32_t[]> columns_;
  std::unique_ptr<std::uint64_t[]> hit_keys_;
  std::unique_ptr<std::int32_t[]> hit_columns_;
};

template <class View>
Clustering<View>::Clustering(const View& view, std::int64_t n_blocks, double max_load, ThreadTeam& team)
    : view_(view),
      n_blocks_(n_blocks),
      team_(team),
      seed_(view.n_rows),
      n_nonzeros_(view, team),
      histograms_(team.size()),
      // Columns that no other block takes stay in the last one.
      block_of_(view.n_cols, static_cast<std::int32_t>(n_blocks - 1)),
      most_load_(max_load),
      columns_left_(view.n_cols),
      columns_(std::make_unique_for_overwrite<std::int32_t[]>(view.n_cols)),
      hit_keys_(std::make_unique_for_overwrite<std::uint64_t[]>(view.n_cols)),
      hit_columns_(std::make_unique_for_overwrite<std::int32_t[]>(view.n_cols)) {
  // Parts keep their columns to the end while the dense ones leave: many small parts stay balanced enough.
  constexpr std::int64_t max_parts = 1024;
  const std::int64_t work = view.n_nonzeros() + 2 * view.n_cols;
  const auto cuts = equal_nonzero_cuts(view, std::clamp<std::int64_t>(work / min_parallel_work, 1, max_parts));
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    parts_.push_back({.first = cuts[part], .n_columns = cuts[part + 1] - cuts[part]});
  }
  for_each_part([&](Part& part, int) {
    for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k)
      columns_[k] = static_cast<std::int32_t>(k);
    find_densest(part);
  });
  if (!is_capped()) return;
  std::int64_t heaviest = 0;
  for (std::int64_t j = 0; j < view.n_cols; ++j) {
    load_left_ += load(j);
    heaviest = std::max(heaviest, load(j));
  }
  // A block that leaves out columns for lack of room has more than most_load_ - heaviest.
  const double mean = static_cast<double>(load_left_) / static_cast<double>(n_blocks);
  most_load_ = std::floor(std::min(max_load * mean, static_cast<double>(load_left_)) * (1 + 1e-12));
  share_ = std::max(mean, most_load_ - static_cast<double>(heaviest));
}

template <class View>
std::vector<std::int32_t> Clustering<View>::run() {
  for (std::int64_t block = 0; block + 1 < n_blocks_ && !team_.stopped(); ++block) {
    const std::int64_t seed = densest_column();
    seed_.set(view_, seed, team_);
    correlate();
    Quota quota = quota_of(block);
    const Quota whole = quota;
    const Cut cut = find_cut(quota);
    // A stopped team leaves parts out, so the counts are incomplete.
    if (team_.stopped()) break;
    assign(static_cast<std::int32_t>(block), cut, quota);
    if (is_capped() && quota.is_open()) fill(static_cast<std::int32_t>(block), seed, quota);
    columns_left_ -= whole.most - quota.most;
    load_left_ -= whole.room - quota.room;
    seed_.clear(view_, seed, team_);
  }
  return team_.stopped() ? std::vector<std::int32_t>{} : std::move(block_of_);
}

template <class View>
std::int64_t Clustering<View>::densest_column() const {
  std::int64_t best = -1;
  for (const Part& part : parts_) {
    if (part.densest >= 0 && (best < 0 || n_nonzeros_(part.densest) > n_nonzeros_(best))) best = part.densest;
  }
  return best;
}

// Most columns of large sparse data have no row in common with the seed: only those that do are stored.
template <class View>
void Clustering<View>::correlate() {
  for_each_part([&](Part& part, int) {
    std::int64_t hit = part.first;
    multiply(view_, columns_.get() + part.first, part.n_columns, seed_, [&](std::int32_t j, double product) {
      const auto key = std::bit_cast<std::uint64_t>(std::fabs(product));
      hit_keys_[hit] = key;
      hit_columns_[hit] = j;
      hit += key != 0 ? 1 : 0;  // a branch here would be unpredictable
    });
    part.n_hits = hit - part.first;
  });
}

// Without a cap these are the sizes of block_start. With one, the first blocks hold few columns and many nonzeros;
// what they leave is shared by the others, and none leaves more than these can hold.
template <class View>
Quota Clustering<View>::quota_of(std::int64_t block) const {
  const std::int64_t after = n_blocks_ - block - 1;
  Quota quota{.size = columns_left_ / (after + 1) + (columns_left_ % (after + 1) > 0 ? 1 : 0),
              .most = columns_left_ - after,
              .room = std::numeric_limits<std::int64_t>::max(),
              .need = 0};
  if (is_capped()) {
    quota.room = static_cast<std::int64_t>(most_load_);
    quota.need = static_cast<double>(load_left_) - static_cast<double>(after) * share_;
  }
  return quota;
}

// The longest run of columns, by falling correlation, that the quota's size and room have place for: digit by digit
// from the top (radix selection).
template <class View>
Cut Clustering<View>::find_cut(const Quota& quota) {
  Cut cut{.threshold = 0, .n_ties = quota.size, .room = quota.room};
  std::int64_t n_hits = 0, hit_load = 0;
  for (const Part& part : parts_) {
    n_hits += part.n_hits;
    for (std::int64_t k = part.first; is_capped() && k < part.first + part.n_hits; ++k)
      hit_load += load(hit_columns_[k]);
  }
  if (n_hits <= quota.size && hit_load <= quota.room) {
    cut.n_ties -= n_hits, cut.room -= hit_load;
    return cut;
  }
  for (int known_from = 64; known_from > 0;) {  // the bits of the threshold from this one up are known
    const int shift = std::max(0, known_from - digit_bits);
    const auto& [counts, loads] = count_digits(cut.threshold, known_from, shift);
    std::size_t digit = counts.size() - 1;
    for (; digit > 0 && counts[digit] <= cut.n_ties && loads[digit] <= cut.room; --digit)
      cut.n_ties -= counts[digit], cut.room -= loads[digit];
    cut.threshold |= static_cast<std::uint64_t>(digit) << shift;
    known_from = shift;
  }
  return cut;
}

// How many hits have each value of the digit at `shift`, among those that agree with `prefix` from bit
// `known_from` up (the last digit overlaps the one before it).
template <class View>
auto Clustering<View>::count_digits(std::uint64_t prefix, int known_from, int shift) -> const Histogram& {
  for (Histogram& histogram : histograms_) histogram = {};
  const std::uint64_t known = known_from < 64 ? ~std::uint64_t{0} << known_from : 0;
  for_each_part([&](Part& part, int executor) {
    auto& [counts, loads] = histograms_[executor];
    for (std::int64_t k = part.first; k < part.first + part.n_hits; ++k) {
      if (((hit_keys_[k] ^ prefix) & known) != 0) continue;
      const std::size_t digit = (hit_keys_[k] >> shift) & (counts.size() - 1);
      ++counts[digit];
      if (is_capped()) loads[digit] += load(hit_columns_[k]);
    }
  });
  Histogram& total = histograms_.front();
  for (std::size_t executor = 1; executor < histograms_.size(); ++executor) {
    for (std::size_t digit = 0; digit < total.counts.size(); ++digit) {
      total.counts[digit] += histograms_[executor].counts[digit];
      total.loads[digit] += histograms_[executor].loads[digit];
    }
  }
  return total;
}

template <class View>
void Clustering<View>::count_ties(std::uint64_t threshold) {
  for_each_part([&](Part& part, int) {
    const std::uint64_t* keys = hit_keys_.get() + part.first;
    part.n_ties = threshold == 0 ? part.n_columns - part.n_hits : std::count(keys, keys + part.n_hits, threshold);
    part.tie_load = 0;
    if (!is_capped()) return;
    if (threshold == 0) {
      for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k) part.tie_load += load(columns_[k]);
    }
    for (std::int64_t k = part.first; k < part.first + part.n_hits; ++k) {
      if (threshold == 0) part.tie_load -= load(hit_columns_[k]);
      if (hit_keys_[k] == threshold) part.tie_load += load(hit_columns_[k]);
    }
  });
}

template <class View>
void Clustering<View>::assign(std::int32_t block, const Cut& cut, Quota& quota) {
  count_ties(cut.threshold);
  // Parts follow the order of the columns: the first ones may take their ties until one does not fit.
  Cut left = cut;
  for (Part& part : parts_) {
    if (part.n_ties <= left.n_ties && part.tie_load <= left.room) {
      left.n_ties -= part.n_ties, left.room -= part.tie_load;
    } else {
      part.n_ties = is_capped() ? take_fitting_ties(part, left) : left.n_ties;
      left.n_ties = 0;
    }
  }
  for_each_part([&](Part& part, int) { assign_part(part, block, cut.threshold, part.n_ties); });
  std::int64_t n_free = 0;
  for (const Part& part : parts_) n_free += part.n_columns;
  quota.take(columns_left_ - n_free, quota.room - left.room);
}

// How many of the part's ties, in their order, there is place for before one does not fit; `left` loses their room.
template <class View>
std::int64_t Clustering<View>::take_fitting_ties(const Part& part, Cut& left) const {
  std::int64_t n_fitting = 0, hit = part.first;
  const std::int64_t hit_end = part.first + part.n_hits;
  for (std::int64_t k = part.first; k < part.first + part.n_columns && n_fitting < left.n_ties; ++k) {
    const std::int32_t j = columns_[k];
    const std::uint64_t key = hit < hit_end && hit_columns_[hit] == j ? hit_keys_[hit++] : 0;
    if (key != left.threshold) continue;
    if (load(j) > left.room) break;
    left.room -= load(j);
    ++n_fitting;
  }
  return n_fitting;
}

template <class View>
void Clustering<View>::assign_part(Part& part, std::int32_t block, std::uint64_t threshold, std::int64_t n_ties) {
  std::int64_t kept = part.first, hit = part.first;
  const std::int64_t hit_end = part.first + part.n_hits;
  for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k) {
    const std::int32_t j = columns_[k];
    const std::uint64_t key = hit < hit_end && hit_columns_[hit] == j ? hit_keys_[hit++] : 0;
    if (key > threshold || (key == threshold && n_ties-- > 0)) {
      block_of_[j] = block;
    } else {
      columns_[kept++] = j;
    }
  }
  part.n_columns = kept - part.first;
  if (part.densest >= 0 && block_of_[part.densest] == block) find_densest(part);
}

// Columns that the run by correlation passed over, the best first, as long as they fit; a column that fits into no
// block has one to itself. Where a block cannot take enough for the rest to fit into the blocks after it, the
// lightest column goes beyond the limit.
template <class View>
void Clustering<View>::fill(std::int32_t block, std::int64_t seed, Quota& quota) {
  if (quota.n_taken == 0) {
    Candidate best{0, static_cast<std::int32_t>(seed)};
    for (const Part& part : parts_) {
      for (std::int64_t k = part.first; k < part.first + part.n_hits; ++k)
        best = std::max(best, {hit_keys_[k], hit_columns_[k]});
    }
    take(block, best.column, quota);
  }
  candidates_.clear();
  for (const Part& part : parts_) {
    for (std::int64_t k = part.first; k < part.first + part.n_hits; ++k) {
      const std::int32_t j = hit_columns_[k];
      if (is_free(j) && load(j) <= quota.room) candidates_.push_back({hit_keys_[k], j});
    }
  }
  std::make_heap(candidates_.begin(), candidates_.end());
  for (; !candidates_.empty() && quota.is_open() && quota.room > 0; candidates_.pop_back()) {
    std::pop_heap(candidates_.begin(), candidates_.end());
    if (load(candidates_.back().column) <= quota.room) take(block, candidates_.back().column, quota);
  }
  // Columns that do not meet the seed; those that do and are left have no place.
  std::int32_t lightest = -1;
  for (const Part& part : parts_) {
    for (std::int64_t k = part.first; k < part.first + part.n_columns && quota.is_open(); ++k) {
      const std::int32_t j = columns_[k];
      if (!is_free(j)) continue;
      if (load(j) <= quota.room) {
        take(block, j, quota);
      } else if (lightest < 0 || load(j) < load(lightest)) {
        lightest = j;
      }
    }
  }
  if (quota.most > 0 && quota.need > 0 && lightest >= 0) take(block, lightest, quota);
  for_each_part([&](Part& part, int) { drop_assigned(part, block); });
}

template <class View>
void Clustering<View>::take(std::int32_t block, std::int32_t j, Quota& quota) {
  block_of_[j] = block;
  quota.take(1, load(j));
}

template <class View>
void Clustering<View>::drop_assigned(Part& part, std::int32_t block) {
  const auto begin = columns_.get() + part.first, end = begin + part.n_columns;
  part.n_columns = std::remove_if(begin, end, [&](std::int32_t j) { return block_of_[j] == block; }) - begin;
  if (part.densest >= 0 && block_of_[part.densest] == block) find_densest(part);
}

template <class View>
void Clustering<View>::find_densest(Part& part) const {
  std::int64_t most = -1;
  part.densest = -1;
  for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k) {
    const std::int64_t count = n_nonzeros_(columns_[k]);
    if (count > most) {
      most = count;
      part.densest = columns_[k];
    }
  }
}

}  // namespace

std::vector<std::int32_t> cluster_features(const Matrix& matrix, std::int64_t n_blocks, double max_load,
                                           ThreadTeam& team) {
  return std::visit([&](const auto& view) { return Clustering(view, n_blocks, max_load, team).run(); }, matrix);
}

}  // namespace blockgreedy
