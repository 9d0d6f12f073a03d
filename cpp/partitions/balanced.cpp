#include "partitions/balanced.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "base/random.hpp"
#include "kernels/kernels.hpp"
#include "partitions/correlation_groups.hpp"
#include "partitions/packing.hpp"

namespace blockgreedy {

namespace {

// Values of row_of_ that are no row. Cluster c of dense columns is stored as is_dense - c.
constexpr std::int32_t no_row = -1, is_dense = -2;

// A cluster is at most 1/pieces_per_block of a block. A column of more than alone_beyond times the mean mass is a
// cluster by itself: its weight will likely be nonzero, and such columns should be spread over the blocks. Measured
// over the four sets of the benchmark: 4 to 64 pieces hardly differ; from 4 times the mean on, heavily regularised
// runs need more iterations, and below the mean the clusters no longer help on wide data.
constexpr float pieces_per_block = 16, alone_beyond = 2;

// With more rows than this, neighbouring rows share a group: more groups would not balance any better.
constexpr std::int64_t most_groups = 1 << 18;

template <class View>
class Balancing {
 public:
  Balancing(const View& view, const float* target, std::int64_t n_blocks, std::uint64_t seed, ThreadTeam& team)
      : view_(view), target_(target), n_blocks_(n_blocks), seed_(seed), team_(team) {
    row_of_ = std::make_unique_for_overwrite<std::int32_t[]>(view.n_cols);
    second_ = std::make_unique_for_overwrite<std::uint32_t[]>(view.n_cols);
    mass_ = std::make_unique_for_overwrite<float[]>(view.n_cols);
  }

  std::vector<std::int32_t> run();

 private:
  void read_columns();
  void group_dense();
  void group_sparse();
  template <class Groups, class F>
  void for_each_sparse(Groups& groups, F&& f);
  std::vector<std::int32_t> assign(const std::vector<std::int32_t>& block_of_cluster) const;

  Load load(std::int64_t j) const {
    return {per_nonzero_ * static_cast<float>(view_.count(j)), per_mass_ * mass_[j]};
  }
  std::int32_t new_cluster(const Load& load) {
    clusters_.push_back(load);
    return static_cast<std::int32_t>(clusters_.size()) - 1;
  }

  const View& view_;
  const float* target_;
  const std::int64_t n_blocks_;
  const std::uint64_t seed_;
  ThreadTeam& team_;
  float per_nonzero_ = 0, per_mass_ = 0;
  float mean_mass_ = 0;  // of the columns that have rows, as a share
  // Of each column: the first of its rows in a random order (later its cluster), the least rank in another order, and
  // |x·target|/‖x‖. Left uninitialised: the executors touch them first.
  std::unique_ptr<std::int32_t[]> row_of_;
  std::unique_ptr<std::uint32_t[]> second_;
  std::unique_ptr<float[]> mass_;
  std::vector<std::int32_t> dense_;  // the columns with a third of the rows or more
  std::vector<Load> clusters_;
  int rows_shift_ = 0;  // 2^shift neighbouring rows make one group
};

template <class View>
void Balancing<View>::read_columns() {
  // The number of parts does not depend on that of threads, so the sum of masses does not either.
  const std::int64_t n_parts = std::clamp<std::int64_t>(view_.n_nonzeros() / min_parallel_work, 1, 256);
  const auto cuts = equal_nonzero_cuts(view_, n_parts);
  Random random(seed_);
  const Salts salts{static_cast<std::uint32_t>(random.next()), static_cast<std::uint32_t>(random.next())};
  std::vector<double> masses(n_parts);
  std::vector<std::vector<std::int32_t>> dense(masses.size());
  // Columns with at least a third of the rows share rows with every other: they are grouped by correlation instead.
  const std::int64_t many = std::max<std::int64_t>(2, (view_.n_rows + 2) / 3);
  team_.for_each(n_parts, [&](std::int64_t part, int) {
    const std::int64_t first = cuts[part];
    kernels().of(view_).signatures(view_, first, cuts[part + 1] - first, target_, salts,
                                   {mass_.get() + first, row_of_.get() + first, second_.get() + first});
    masses[part] = std::accumulate(mass_.get() + cuts[part], mass_.get() + cuts[part + 1], 0.0);
    for (std::int64_t j = first; j < cuts[part + 1]; ++j) {
      if (view_.count(j) < many) continue;
      row_of_[j] = is_dense;
      dense[part].push_back(static_cast<std::int32_t>(j));
    }
  });
  for (const auto& columns : dense) dense_.insert(dense_.end(), columns.begin(), columns.end());
  const double total = std::accumulate(masses.begin(), masses.end(), 0.0);
  per_mass_ = total > 0 ? static_cast<float>(1 / total) : 0;
  const auto n_empty = std::count(row_of_.get(), row_of_.get() + view_.n_cols, no_row);
  mean_mass_ = 1 / static_cast<float>(std::max<std::int64_t>(1, view_.n_cols - n_empty));
  per_nonzero_ = 1 / static_cast<float>(std::max<std::int64_t>(1, view_.n_nonzeros()));
}

template <class View>
void Balancing<View>::group_dense() {
  if (dense_.empty()) return;
  std::vector<Load> loads;
  for (std::int32_t j : dense_) loads.push_back(load(j));
  CorrelationGroups<View> groups(view_, dense_, seed_, team_);
  groups.run(loads, n_blocks_, [&](const std::vector<std::int32_t>& members, const Load& total) {
    const std::int32_t cluster = new_cluster(total);
    for (std::int32_t j : members) row_of_[j] = is_dense - cluster;
  });
}

// Columns with the same first row are a group. A group too large for one cluster is divided by a second order of the
// rows, so that columns with nearly the same rows stay together.
template <class View>
void Balancing<View>::group_sparse() {
  struct Group {
    Load load;
    std::uint32_t first_cluster = 0, n_clusters = 0;
  };
  while ((view_.n_rows - 1) >> rows_shift_ >= most_groups) ++rows_shift_;
  std::vector<Group> groups(((view_.n_rows - 1) >> rows_shift_) + 1);
  const float most = 1 / (pieces_per_block * static_cast<float>(n_blocks_));
  const auto is_alone = [&](const Load& mine) {
    return mine.work > most || mine.mass > most || mine.mass > alone_beyond * mean_mass_;
  };
  for_each_sparse(groups, [&](Group& group, std::int32_t&, const Load& mine, std::uint32_t) {
    if (!is_alone(mine)) group.load.add(mine);
  });
  for (Group& group : groups) {
    group.first_cluster = static_cast<std::uint32_t>(clusters_.size());
    group.n_clusters = static_cast<std::uint32_t>(std::ceil(std::max(group.load.work, group.load.mass) / most));
    clusters_.resize(clusters_.size() + group.n_clusters);
    if (group.n_clusters == 1) clusters_.back() = group.load;
  }
  for_each_sparse(groups, [&](Group& group, std::int32_t& cluster, const Load& mine, std::uint32_t second) {
    if (is_alone(mine)) {
      cluster = new_cluster(mine);
      return;
    }
    const std::uint64_t piece = std::uint64_t{second * 0x9e3779b1U} * group.n_clusters >> 32;
    cluster = static_cast<std::int32_t>(group.first_cluster + piece);
    if (group.n_clusters > 1) clusters_[cluster].add(mine);
  });
}

// f(group of its first row, that row, its load, its rank in the second order) for the sparse columns that have rows.
template <class View>
template <class Groups, class F>
void Balancing<View>::for_each_sparse(Groups& groups, F&& f) {
  constexpr std::int64_t ahead = 16;  // prefetch distance: groups are visited in random order
  for (std::int64_t j = 0; j < view_.n_cols; ++j) {
    if (j + ahead < view_.n_cols && row_of_[j + ahead] >= 0) {
      __builtin_prefetch(groups.data() + (row_of_[j + ahead] >> rows_shift_));
    }
    std::int32_t& row = row_of_[j];
    if (row < 0) continue;
    f(groups[row >> rows_shift_], row, load(j), second_[j]);
  }
}

template <class View>
std::vector<std::int32_t> Balancing<View>::assign(const std::vector<std::int32_t>& block_of_cluster) const {
  std::vector<std::int32_t> block_of(view_.n_cols);
  std::vector<std::int64_t> sizes(n_blocks_);
  std::int64_t n_empty = 0;
  for (std::size_t j = 0; j < block_of.size(); ++j) {
    const std::int32_t cluster = row_of_[j] <= is_dense ? is_dense - row_of_[j] : row_of_[j];
    block_of[j] = cluster == no_row ? static_cast<std::int32_t>(n_empty++ % n_blocks_)  // round robin
                                    : block_of_cluster[cluster];
    ++sizes[block_of[j]];
  }
  // With few clusters a block may be empty: it takes the last column of the largest block.
  for (auto none = std::find(sizes.begin(), sizes.end(), 0); none != sizes.end();
       none = std::find(none, sizes.end(), 0)) {
    const auto largest = std::max_element(sizes.begin(), sizes.end());
    const auto giver =
        std::find(block_of.rbegin(), block_of.rend(), static_cast<std::int32_t>(largest - sizes.begin()));
    *giver = static_cast<std::int32_t>(none - sizes.begin());
    --*largest;
    ++*none;
  }
  return block_of;
}

template <class View>
std::vector<std::int32_t> Balancing<View>::run() {
  read_columns();
  if (team_.stopped()) return {};
  group_dense();
  if (team_.stopped()) return {};
  group_sparse();
  return assign(Packing(n_blocks_).place(clusters_));
}

}  // namespace

std::vector<std::int32_t> balance_features(const Matrix& matrix, const float* target, std::int64_t n_blocks,
                                           std::uint64_t seed, ThreadTeam& team) {
  return std::visit([&](const auto& view) { return Balancing(view, target, n_blocks, seed, team).run(); }, matrix);
}

}  // namespace blockgreedy
