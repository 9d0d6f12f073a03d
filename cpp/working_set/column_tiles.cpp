#include "working_set/column_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/kernels.hpp"
#include "working_set/subproblem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

using T = Tuning::Tiles;

void ColumnTiles::arrange(std::vector<SubproblemColumn>& columns, std::int64_t n_rows, double scale) {
  n_rows_ = n_rows;
  rows_ = Rows(n_rows, team_);
  scale_ = scale;
  moved_.clear();
  steps_.clear();
  tiles_.clear();
  // What is slow to settle is what neighbours in different tiles have in common: the next time they are in one.
  is_shifted_ = !is_shifted_;
  std::size_t width = is_shifted_ ? T::width / 2 : T::width;
  for (std::size_t first = 0; first < columns.size(); first += tiles_.back().values.size()) {
    Tile& tile = tiles_.emplace_back();
    tile.first = first;
    for (std::size_t k = first; k < std::min(columns.size(), first + width); ++k)
      tile.values.push_back(columns[k].values);
    width = T::width;
  }
  const auto work = static_cast<std::int64_t>(columns.size()) * n_rows;
  team_.for_work(static_cast<std::int64_t>(tiles_.size()), work, [&](std::int64_t t) {
    Tile& tile = tiles_[t];
    multiply(tile);
    for (std::size_t k = 0; k < tile.values.size(); ++k) {
      SubproblemColumn& column = columns[tile.first + k];
      column.curvature = tile.gram[k * tile.values.size() + k] + column.dropped_curvature;
    }
  });
}

void ColumnTiles::multiply(Tile& tile) const {
  const std::size_t count = tile.values.size();
  tile.gram.assign(count * count, 0.0);
  kernels().tile_gram(tile.values.data(), static_cast<std::int64_t>(count), n_rows_, tile.gram.data());
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t l = 0; l <= k; ++l) {
      tile.gram[k * count + l] *= scale_ * scale_;
      tile.gram[l * count + k] = tile.gram[k * count + l];
    }
  }
}

ColumnTiles::Outcome ColumnTiles::sweep(std::vector<SubproblemColumn>& columns, bool support_only,
                                        std::vector<float>& Zd) {
  Outcome outcome;
  for (const Tile& tile : tiles_) {
    choose(columns, tile, support_only);
    if (members_.empty()) continue;
    read_gradients(columns, Zd);
    descend(columns, tile, outcome);
  }
  if (!moved_.empty()) add_steps(Zd);
  return outcome;
}

void ColumnTiles::choose(const std::vector<SubproblemColumn>& columns, const Tile& tile, bool support_only) {
  members_.clear();
  columns_.clear();
  values_.clear();
  for (std::size_t k = 0; k < tile.values.size(); ++k) {
    const SubproblemColumn& column = columns[tile.first + k];
    if (support_only && column.point == 0 && column.penalty.l1 > 0) continue;
    members_.push_back(k);
    columns_.push_back(tile.first + k);
    values_.push_back(column.values);
  }
}

// The gradients of the members. Slices of Zd first take the steps of the tile before, while they are in the cache.
void ColumnTiles::read_gradients(const std::vector<SubproblemColumn>& columns, std::vector<float>& Zd) {
  const std::size_t count = members_.size();
  const RowSlices& slices = rows_.slices();
  partial_.resize(count * static_cast<std::size_t>(slices.count()));
  const auto n_moved = static_cast<std::int64_t>(moved_.size()), n_read = static_cast<std::int64_t>(count);
  team_.for_work(slices.count(), (n_moved + n_read) * n_rows_ / T::entries_per_nonzero, [&](std::int64_t slice) {
    const std::int64_t begin = slices.begin(slice), length = slices.end(slice) - begin;
    std::array<const float*, T::width> z;
    if (n_moved > 0) {
      for (std::int64_t k = 0; k < n_moved; ++k) z[k] = moved_[k] + begin;
      kernels().tile_axpy(z.data(), steps_.data(), n_moved, length, Zd.data() + begin);
    }
    for (std::int64_t k = 0; k < n_read; ++k) z[k] = values_[k] + begin;
    kernels().tile_dots(z.data(), n_read, length, Zd.data() + begin, partial_.data() + count * slice);
  });
  moved_.clear();
  steps_.clear();
  grads_.assign(count, 0.0);
  for (std::int64_t slice = 0; slice < slices.count(); ++slice) {
    for (std::size_t k = 0; k < count; ++k) grads_[k] += partial_[count * static_cast<std::size_t>(slice) + k];
  }
  for (std::size_t k = 0; k < count; ++k) {
    const SubproblemColumn& column = columns[columns_[k]];
    grads_[k] = column.grad + scale_ * grads_[k] + column.dropped_curvature * column.step();
  }
}

// Coordinate descent over the members until it no longer pays; their steps go to moved_.
void ColumnTiles::descend(std::vector<SubproblemColumn>& columns, const Tile& tile, Outcome& outcome) {
  const std::size_t count = members_.size(), stride = tile.values.size();
  std::array<double, T::width> before;
  for (std::size_t k = 0; k < count; ++k) before[k] = columns[columns_[k]].point;
  double first_decrease = 0;
  for (int round = 0; round < T::max_rounds; ++round) {
    double decrease = 0;
    for (std::size_t k = 0; k < count; ++k) {
      SubproblemColumn& column = columns[columns_[k]];
      const double to = column.penalty.prox(column.point, grads_[k], column.curvature);
      const double step = to - column.point;
      if (round == 0 && column.penalty.l1 > 0)
        outcome.excess = std::max(outcome.excess, std::fabs(step) * column.curvature / column.penalty.l1);
      if (step == 0) continue;
      decrease += column.penalty.gain(column.point, to, grads_[k], column.curvature);
      const double* row = tile.gram.data() + members_[k] * stride;
      for (std::size_t l = 0; l < count; ++l) grads_[l] += step * row[members_[l]];
      grads_[k] += step * column.dropped_curvature;
      column.point = to;
    }
    outcome.decrease += decrease;
    if (round == 0) first_decrease = decrease;
    if (!(decrease > T::worthwhile * first_decrease)) break;
  }
  for (std::size_t k = 0; k < count; ++k) {
    const double step = columns[columns_[k]].point - before[k];
    if (step == 0) continue;
    moved_.push_back(values_[k]);
    steps_.push_back(static_cast<float>(scale_ * step));
  }
}

void ColumnTiles::add_steps(std::vector<float>& Zd) {
  const RowSlices& slices = rows_.slices();
  const auto count = static_cast<std::int64_t>(moved_.size());
  team_.for_work(slices.count(), count * n_rows_ / T::entries_per_nonzero, [&](std::int64_t slice) {
    const std::int64_t begin = slices.begin(slice);
    std::array<const float*, T::width> z;
    for (std::int64_t k = 0; k < count; ++k) z[k] = moved_[k] + begin;
    kernels().tile_axpy(z.data(), steps_.data(), count, slices.end(slice) - begin, Zd.data() + begin);
  });
  moved_.clear();
  steps_.clear();
}

}  // namespace blockgreedy
