#include "working_set/subproblem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace blockgreedy {

namespace {

using T = Tuning::Layout;

std::int64_t parts_for(std::int64_t work) { return std::clamp<std::int64_t>(work / T::part_work, 1, T::max_parts); }

// Blocks that a sweep works on side by side.
std::int64_t blocks_for(std::int64_t n_nonzeros) {
  if (n_nonzeros < T::two_blocks) return 1;
  if (n_nonzeros < T::four_blocks) return 2;
  return n_nonzeros < T::eight_blocks ? 4 : 8;
}

}  // namespace

std::int64_t Subproblem::arrange(const std::int32_t* block_of, std::int64_t n_blocks) {
  n_nonzeros_ = 0;
  for (const SubproblemColumn& column : columns) n_nonzeros_ += column.count;
  move_shared_to_end();
  if (n_blocks == 0) {
    std::int64_t in_blocks = 0;
    for (std::int64_t k = 0; k < first_shared_; ++k) in_blocks += columns[k].count;
    n_blocks = blocks_for(in_blocks);
  }
  n_blocks = std::clamp<std::int64_t>(n_blocks, 1, std::max<std::int64_t>(first_shared_, 1));
  if (n_blocks > 1) sort_into_blocks(choose_blocks(block_of, n_blocks), n_blocks);
  else block_starts_ = {0, first_shared_};
  cut_rounds();
  slice_starts_ = cut_by_work(columns.size(), n_nonzeros_, T::slices_per_part * parts_for(n_nonzeros_),
                              [&](std::size_t k) { return columns[k].count; });
  std::int64_t at = 0;
  for (SubproblemColumn& column : columns) {
    column.start = at;
    at += column.count;
  }
  if (capacity_ < n_nonzeros_) {
    capacity_ = n_nonzeros_ + n_nonzeros_ / T::growth_share;
    indices_.reset();  // first: nothing is carried over
    values_ = {};
    indices_.reset(new std::int32_t[capacity_]);
    values_ = LargeArray<float>::unset(capacity_);
  }
  z_ = values_.data();
  stride_ = 0;
  is_tiled_ = false;
  return n_blocks;
}

// On tall data all threads share each column that would be too much of a block; these come last.
void Subproblem::move_shared_to_end() {
  const std::int64_t longest =
      is_tall(n_rows_) ? std::max(2 * min_parallel_work, n_nonzeros_ / T::long_share) : n_nonzeros_;
  const auto fits_block = [&](const SubproblemColumn& column) { return column.count <= longest; };
  first_shared_ = std::stable_partition(columns.begin(), columns.end(), fits_block) - columns.begin();
}

// The block of each column that is not shared: the given one, or the longest columns first to the lightest block.
std::vector<std::int32_t> Subproblem::choose_blocks(const std::int32_t* block_of, std::int64_t n_blocks) const {
  std::vector<std::int32_t> block(static_cast<std::size_t>(first_shared_));
  if (block_of != nullptr) {
    for (std::size_t k = 0; k < block.size(); ++k) {
      block[k] = columns[k].feature < 0 ? 0 : block_of[columns[k].feature] % static_cast<std::int32_t>(n_blocks);
    }
    return block;
  }
  std::vector<std::int32_t> order(block.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return columns[a].count > columns[b].count; });
  std::vector<std::int64_t> load(static_cast<std::size_t>(n_blocks));
  for (std::int32_t k : order) {
    const auto lightest = std::min_element(load.begin(), load.end());
    block[k] = static_cast<std::int32_t>(lightest - load.begin());
    *lightest += columns[k].count + T::column_cost;
  }
  return block;
}

void Subproblem::sort_into_blocks(const std::vector<std::int32_t>& block, std::int64_t n_blocks) {
  std::vector<SubproblemColumn> sorted;
  sorted.reserve(columns.size());
  block_starts_.assign(1, 0);
  for (std::int32_t b = 0; b < n_blocks; ++b) {
    for (std::size_t k = 0; k < block.size(); ++k) {
      if (block[k] == b) sorted.push_back(columns[k]);
    }
    block_starts_.push_back(static_cast<std::int64_t>(sorted.size()));
  }
  sorted.insert(sorted.end(), columns.begin() + first_shared_, columns.end());
  columns.swap(sorted);
}

bool Subproblem::use_cholesky_factor(double passes, bool keep, const Gram::Reader& read) {
  const auto m = static_cast<std::int64_t>(columns.size());
  const bool dense = std::all_of(columns.begin(), columns.end(), [](const SubproblemColumn& c) { return c.dense; });
  if (m == 0 || !dense || T::gram_rows_per_column * m > n_rows_) return false;  // without columns no rows were left
  std::vector<std::int32_t> features(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) features[k] = columns[k].feature;
  const double per_entry = m * n_rows_ > T::cached_entries ? T::uncached_ns : T::cached_ns;
  const double saved = passes * per_entry * static_cast<double>(m * (n_rows_ - m / 2));
  const double cost = gram_.plan(features, n_rows_, keep);
  if (cost > saved || !team_.has_time_for(1e-9 * cost)) return false;
  factor_.resize(m * (m + 1) / 2);
  gram_.factor(read, factor_.data());
  z_ = factor_.data();
  stride_ = 0;
  is_tiled_ = false;
  for (std::int64_t k = 0; k < m; ++k) {
    SubproblemColumn& column = columns[k];
    column.start = k * (k + 1) / 2;
    column.count = k + 1;
    column.curvature = gram_.product(k, k);
  }
  set_rows(m);
  first_shared_ = m;
  block_starts_ = {0, m};
  n_rounds_ = 1;
  return true;
}

void Subproblem::use_products(const KeptProducts& products) {
  const auto m = static_cast<std::int64_t>(columns.size());
  z_ = products.data();
  is_tiled_ = false;
  stride_ = products.start(1);
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const std::int32_t slot = products.slots()[k];
    columns[k].start = products.start(slot);
    columns[k].count = products.size();
    columns[k].dense = true;
    columns[k].curvature = static_cast<double>(z_[columns[k].start + slot]);
  }
  set_rows(products.size());
  first_shared_ = m;
  block_starts_ = {0, m};
  n_rounds_ = 1;
}

void Subproblem::use_tiles(double scale) {
  tile_scale_ = scale;
  is_tiled_ = true;
  stride_ = 0;
  tiles_.arrange(columns, n_rows_, scale);
}

// Blocks are joined several times in a sweep (a round each), so that no private residual is stale for long. Joining
// costs a few passes over the rows per block.
void Subproblem::cut_rounds() {
  const auto n_blocks = static_cast<std::int64_t>(block_starts_.size()) - 1;
  n_rounds_ = n_blocks == 1 ? 1
                            : std::clamp<std::int64_t>(n_nonzeros_ / (n_rows_ * n_blocks), 1,
                                                       n_blocks == 2 ? T::max_rounds_of_two : T::max_rounds);
  run_starts_.clear();
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const auto first = block_starts_[b], last = block_starts_[b + 1];
    std::int64_t total = 0, done = 0;
    for (std::int64_t k = first; k < last; ++k) total += columns[k].count;
    run_starts_.push_back(first);
    std::int64_t k = first;
    for (std::int64_t round = 1; round < n_rounds_; ++round) {
      while (k < last && done < total * round / n_rounds_) done += columns[k++].count;
      run_starts_.push_back(k);
    }
  }
  run_starts_.push_back(first_shared_);
}

void Subproblem::reset() {
  fill_rows(Zd_);
  n_nonzeros_ = 0;
  for (SubproblemColumn& column : columns) {
    column.point = column.weight;
    n_nonzeros_ += column.count;
  }
  std::vector<std::int32_t> features(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) features[k] = columns[k].feature;
  memory_.follow(std::move(features));
  cut_slabs();
}

void Subproblem::cut(Subset& subset) const {
  subset.work = 0;
  for (std::int32_t k : subset.members) subset.work += columns[k].count;
  std::int64_t n_parts = parts_for(subset.work);
  // Without slabs every part has a private sum over all rows, which must not cost more than the part.
  if (!by_slabs_) {
    const std::int64_t least = is_tall(n_rows_) ? T::rows_per_tall_sum : T::rows_per_private_sum;
    // a working set without columns has no rows either
    n_parts = std::clamp<std::int64_t>(subset.work / std::max<std::int64_t>(least * n_rows_, 1), 1, n_parts);
    if (is_tall(n_rows_)) n_parts = std::min(n_parts, T::max_private_sums);
  }
  subset.cuts = cut_by_work(subset.members.size(), subset.work, n_parts,
                            [&](std::size_t k) { return columns[subset.members[k]].count; });
}

void Subproblem::cut_slabs() {
  slab_starts_.clear();
  by_slabs_ = is_tall(n_rows_);
  if (!by_slabs_) return;
  const std::int64_t n_slabs = rows_.slices().count(), n_columns = static_cast<std::int64_t>(columns.size());
  by_slabs_ = n_nonzeros_ >= T::least_in_slab * n_slabs * n_columns || n_nonzeros_ < T::rows_without_slabs * n_rows_;
  first_slabbed_ = by_slabs_ ? 0 : first_shared_;
  const std::int64_t m = n_columns - first_slabbed_;
  slab_starts_.resize(static_cast<std::size_t>(m * (n_slabs + 1)));
  team_.for_work(64, by_slabs_ ? n_nonzeros_ : m, [&](std::int64_t part) {
    for (std::int64_t k = m * part / 64; k < m * (part + 1) / 64; ++k) {
      const SubproblemColumn& column = columns[first_slabbed_ + k];
      std::int64_t* starts = slab_starts_.data() + k * (n_slabs + 1);
      const std::int32_t *end = column.rows + column.count, *at = column.rows;
      for (std::int64_t slab = 0; slab <= n_slabs; ++slab) {
        const std::int64_t row = slab == n_slabs ? n_rows_ : rows_.slices().begin(slab);
        if (!column.dense) at = std::lower_bound(at, end, static_cast<std::int32_t>(row));
        starts[slab] = column.dense ? row : at - column.rows;
      }
    }
  });
}

// Σ p_k z_k in the rows of one slab.
void Subproblem::add_slab(const Subset& subset, const std::vector<double>& p, std::int64_t slab, float* q) const {
  std::fill(q + rows_.slices().begin(slab), q + rows_.slices().end(slab), 0.0F);
  for (std::size_t k = 0; k < subset.members.size(); ++k) {
    const std::int32_t member = subset.members[k];
    const std::int64_t* starts = slab_starts_of(member) + slab;
    const std::int64_t count = starts[1] - starts[0];
    if (count == 0 || p[k] == 0) continue;
    const auto step = static_cast<float>(p[k]);
    const SubproblemColumn& column = columns[member];
    const float* z = z_ + column.start + starts[0];
    if (column.dense) kernels().float_dense_axpy(z, step, q + rows_.slices().begin(slab), count);
    else kernels().float_axpy(column.rows + starts[0], z, count, step, q);
  }
}

// q = Σ p_k z_k
void Subproblem::forward(const Subset& subset, const std::vector<double>& p, std::vector<float>& q) {
  nonzeros_touched += subset.work;
  q.resize(n_rows_);
  if (by_slabs_) {
    team_.for_work(rows_.slices().count(), subset.work,
                   [&](std::int64_t slab) { add_slab(subset, p, slab, q.data()); });
    return;
  }
  const auto n_parts = static_cast<std::int64_t>(subset.cuts.size()) - 1;
  if (static_cast<std::int64_t>(private_sums_.size()) < n_parts) private_sums_.resize(n_parts);
  team_.for_work(n_parts, subset.work, [&](std::int64_t part) {
    const auto at = static_cast<std::size_t>(part);
    std::vector<float>& sum = part == 0 ? q : private_sums_[at];
    sum.assign(static_cast<std::size_t>(n_rows_), 0.0F);
    for (std::size_t k = subset.cuts[at]; k < subset.cuts[at + 1]; ++k) {
      if (p[k] != 0) add(columns[subset.members[k]], p[k], sum.data());
    }
  });
  if (n_parts == 1) return;
  team_.for_work(rows_.slices().count(), n_rows_ * n_parts, [&](std::int64_t slice) {
    const std::int64_t first = rows_.slices().begin(slice), count = rows_.slices().end(slice) - first;
    for (std::int64_t part = 1; part < n_parts; ++part) {
      kernels().float_dense_axpy(private_sums_[part].data() + first, 1.0F, q.data() + first, count);
    }
  });
}

// out_k = z_k·(Σ p_l z_l); q is scratch.
void Subproblem::hessian_product(const Subset& subset, const std::vector<double>& p, std::vector<float>& q,
                                 std::vector<double>& out) {
  const std::size_t m = subset.members.size();
  if (!by_slabs_) {
    forward(subset, p, q);
    nonzeros_touched += subset.work;
    team_.for_work(static_cast<std::int64_t>(subset.cuts.size()) - 1, subset.work, [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      for (std::size_t k = subset.cuts[at]; k < subset.cuts[at + 1]; ++k) {
        out[k] = product(columns[subset.members[k]], q.data());
      }
    });
    return;
  }
  nonzeros_touched += 2 * subset.work;
  const std::int64_t n_slabs = rows_.slices().count();
  q.resize(n_rows_);
  slab_products_.resize(m * static_cast<std::size_t>(n_slabs));
  team_.for_work(n_slabs, subset.work, [&](std::int64_t slab) {
    add_slab(subset, p, slab, q.data());
    double* products = slab_products_.data() + m * static_cast<std::size_t>(slab);
    for (std::size_t k = 0; k < m; ++k) {
      const std::int32_t member = subset.members[k];
      const std::int64_t* starts = slab_starts_of(member) + slab;
      const std::int64_t count = starts[1] - starts[0];
      const SubproblemColumn& column = columns[member];
      const float* z = z_ + column.start + starts[0];
      if (count == 0) products[k] = 0;
      else if (column.dense) products[k] = kernels().float_dense_dot(z, q.data() + rows_.slices().begin(slab), count);
      else products[k] = kernels().float_dot(column.rows + starts[0], z, count, q.data());
    }
  });
  std::fill(out.begin(), out.end(), 0.0);
  for (std::int64_t slab = 0; slab < n_slabs; ++slab) {
    for (std::size_t k = 0; k < m; ++k) out[k] += slab_products_[m * static_cast<std::size_t>(slab) + k];
  }
}

// v = 0
void Subproblem::fill_rows(std::vector<float>& v) {
  v.resize(n_rows_);
  team_.for_work(rows_.slices().count(), n_rows_, [&](std::int64_t slice) {
    std::fill(v.begin() + rows_.slices().begin(slice), v.begin() + rows_.slices().end(slice), 0.0F);
  });
}

// v += factor·u
void Subproblem::add_rows(const std::vector<float>& u, double factor, std::vector<float>& v) {
  team_.for_work(rows_.slices().count(), n_rows_, [&](std::int64_t slice) {
    const std::int64_t first = rows_.slices().begin(slice);
    kernels().float_dense_axpy(u.data() + first, static_cast<float>(factor), v.data() + first,
                               rows_.slices().end(slice) - first);
  });
}

double Subproblem::largest_violation_at_zero() {
  Subset rest;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (columns[k].point == 0 && columns[k].penalty.l1 > 0) rest.members.push_back(static_cast<std::int32_t>(k));
  }
  cut(rest);
  nonzeros_touched += rest.work;
  std::vector<double> excess(rest.members.size());
  team_.for_work(static_cast<std::int64_t>(rest.cuts.size()) - 1, rest.work, [&](std::int64_t part) {
    for (std::size_t k = rest.cuts[part]; k < rest.cuts[part + 1]; ++k) {
      const SubproblemColumn& column = columns[rest.members[k]];
      const double grad = column.grad + product(column, Zd_.data()) + column.dropped_curvature * column.step();
      const double slack = std::min(column.penalty.upper > 0 ? column.penalty.l1 + grad : infinity,
                                    column.penalty.lower < 0 ? column.penalty.l1 - grad : infinity);
      excess[k] = -slack / column.penalty.l1;
    }
  });
  return excess.empty() ? 0.0 : *std::max_element(excess.begin(), excess.end());
}

double linear_change(const std::vector<SubproblemColumn>& columns) {
  double sum = 0;
  for (const SubproblemColumn& column : columns) {
    if (column.point != column.weight) {
      sum += column.grad * (column.point - column.weight) + column.penalty_change(column.weight, column.point);
    }
  }
  return sum;
}

}  // namespace blockgreedy
