// The Gram matrix of sparse columns, kept along a path of the squared loss, where it never changes: a new column
// costs one pass over the columns that are kept, shared by all that are new, and then every coordinate step of a
// subproblem touches as many numbers as there are columns instead of as many as they have nonzeros. A column's slot
// is its row and column of that matrix.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/threads.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

class KeptProducts {
  using T = Tuning::Products;

 public:
  // For at most so many bytes, of which none is touched before it is needed; that limits the columns to
  // max_columns().
  KeptProducts(std::int64_t n_bytes, std::int64_t n_rows, ThreadTeam& team)
      : max_columns_(std::clamp<std::int64_t>(static_cast<std::int64_t>(std::sqrt(static_cast<double>(n_bytes / 4))),
                                              T::min_columns, T::max_columns)),
        n_rows_(n_rows),
        team_(team) {}

  std::int64_t max_columns() const { return max_columns_; }

  // Adds what is missing for these features (ascending), whose columns have `work` nonzeros together, fewer than 2³¹.
  //   columns.for_each(feature, f)             f(row, z) for the nonzeros of the scaled column
  //   columns.root(row)                        what the row is scaled by
  //   columns.block_dot(feature, block, out)   see kernels.hpp; with the column as it is, not scaled
  template <class Columns>
  void keep(const std::vector<std::int32_t>& features, std::int64_t work, const Columns& columns) {
    find_slots(features);
    if (size() > max_columns_ ||
        size() > T::stale_factor * static_cast<std::int64_t>(features.size()) + T::stale_extra) {
      drop_others(features);
      find_slots(features);
    }
    if (!products_) products_.reset(new float[max_columns_ * max_columns_]);
    if (n_known_ == size()) return;
    if (size() - n_known_ <= T::few_columns && 16 * n_rows_ <= T::block_limit) add_few(work, columns);
    else add_many(work, columns);
    for (std::int64_t known = 0; known < n_known_; ++known) {
      const float* from = products_.get() + known * max_columns_;
      for (std::int64_t slot = n_known_; slot < size(); ++slot) products_[slot * max_columns_ + known] = from[slot];
    }
    n_known_ = size();
  }

  void clear() {
    features_.clear();
    order_.clear();
    n_known_ = 0;
    products_.reset();
    row_ends_ = {};
    entries_ = {};
    groups_ = {};
    block_ = {};
  }

  std::int64_t size() const { return static_cast<std::int64_t>(features_.size()); }
  // Of the features that keep() was last called with.
  const std::vector<std::int32_t>& slots() const { return slots_; }
  const float* data() const { return products_.get(); }
  // Where the products of the column at a slot start; there are size() of them, in order of slots.
  std::int64_t start(std::int32_t slot) const { return slot * max_columns_; }

 private:
  // Known features keep their slot, the others get the next ones.
  void find_slots(const std::vector<std::int32_t>& features) {
    slots_.clear();
    const std::size_t n_old = order_.size();
    std::size_t old = 0;
    for (std::int32_t feature : features) {
      while (old < n_old && features_[order_[old]] < feature) ++old;
      if (old < n_old && features_[order_[old]] == feature) {
        slots_.push_back(order_[old]);
      } else {
        slots_.push_back(static_cast<std::int32_t>(features_.size()));
        order_.push_back(slots_.back());
        features_.push_back(feature);
      }
    }
    std::inplace_merge(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(n_old), order_.end(),
                       [&](std::int32_t a, std::int32_t b) { return features_[a] < features_[b]; });
  }

  // Of what is known, keeps these features only.
  void drop_others(const std::vector<std::int32_t>& features) {
    std::vector<std::int32_t> kept;  // slots, ascending
    for (std::int32_t slot = 0; slot < n_known_; ++slot) {
      if (std::binary_search(features.begin(), features.end(), features_[slot])) kept.push_back(slot);
    }
    for (std::size_t a = 0; a < kept.size(); ++a) {  // none moves up: nothing is overwritten before it is read
      float* to = products_.get() + static_cast<std::int64_t>(a) * max_columns_;
      const float* from = products_.get() + start(kept[a]);
      for (std::size_t b = 0; b < kept.size(); ++b) to[b] = from[kept[b]];
      features_[a] = features_[kept[a]];
    }
    features_.resize(kept.size());
    n_known_ = size();
    order_.resize(kept.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(),
              [&](std::int32_t a, std::int32_t b) { return features_[a] < features_[b]; });
  }

  // Products with all columns, for the new ones: these stand side by side, with their zeros, 16 at a time.
  template <class Columns>
  void add_few(std::int64_t work, const Columns& columns) {
    for (std::int64_t first = n_known_; first < size(); first += 16) {
      block_.assign(static_cast<std::size_t>(16 * n_rows_), 0.0F);
      const std::int64_t count = std::min<std::int64_t>(16, size() - first);
      for (std::int64_t c = 0; c < count; ++c) {
        columns.for_each(feature_at(first + c), [&](std::int32_t row, float z) {
          block_[16 * static_cast<std::size_t>(row) + static_cast<std::size_t>(c)] = z * columns.root(row);
        });
      }
      const std::int64_t n_parts = std::min<std::int64_t>(size(), T::max_parts);
      team_.for_work(n_parts, work, [&](std::int64_t part) {
        std::array<float, 16> sums;
        for (std::int64_t slot = part; slot < size(); slot += n_parts) {
          columns.block_dot(feature_at(slot), block_.data(), sums.data());
          std::copy_n(sums.begin(), count, products_.get() + slot * max_columns_ + first);
        }
      });
    }
  }

  // The same by rows: every column walks down its rows and meets the new ones that have an entry there.
  template <class Columns>
  void add_many(std::int64_t work, const Columns& columns) {
    const auto n_new = static_cast<std::size_t>(size() - n_known_);
    row_ends_.assign(static_cast<std::size_t>(n_rows_ + 1), 0);  // where rows begin, until they are filled
    for (std::size_t k = 0; k < n_new; ++k) {
      columns.for_each(feature_at(n_known_ + static_cast<std::int64_t>(k)),
                       [&](std::int32_t row, float) { ++row_ends_[row + 1]; });
    }
    std::partial_sum(row_ends_.begin(), row_ends_.end(), row_ends_.begin());
    entries_.resize(row_ends_.back());
    for (std::size_t k = 0; k < n_new; ++k) {
      columns.for_each(feature_at(n_known_ + static_cast<std::int64_t>(k)), [&](std::int32_t row, float z) {
        entries_[row_ends_[row]++] = {static_cast<std::int32_t>(k), z};
      });
    }
    group_entries(n_new);
    const std::int64_t n_parts = std::min<std::int64_t>(size(), T::max_parts);
    team_.for_work(n_parts, 2 * work, [&](std::int64_t part) {
      std::vector<float> sums(n_new + T::n_dummies);
      for (std::int64_t slot = part; slot < size(); slot += n_parts) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        columns.for_each(feature_at(slot), [&](std::int32_t row, float z) {
          const Group* group = &groups_[row];
          for (;;) {
            for (std::size_t k = 0; k < T::group_size; ++k) sums[group->columns[k]] += z * group->z[k];
            if (group->next == 0) [[likely]]
              break;
            group = &groups_[group->next];
          }
        });
        std::copy_n(sums.begin(), n_new, products_.get() + slot * max_columns_ + n_known_);
      }
    });
  }

  // Most rows have a few entries, and branches on how many would be mispredicted: they are added in groups of fixed
  // size, padded with entries that add 0 to a dummy sum (in turn: one sum would have to wait for itself).
  void group_entries(std::size_t n_new) {
    groups_.resize(n_rows_);
    std::int32_t at = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows_); ++row) {
      for (std::size_t to = row;; to = groups_.size() - 1) {
        Group& group = groups_[to];
        for (std::size_t k = 0; k < T::group_size; ++k) {
          const bool any = at < row_ends_[row];
          group.columns[k] = static_cast<std::uint16_t>(any ? static_cast<std::size_t>(entries_[at].column)
                                                            : n_new + (row + k) % T::n_dummies);
          group.z[k] = any ? entries_[at].z : 0.0F;
          at += any;
        }
        group.next = at < row_ends_[row] ? static_cast<std::int32_t>(groups_.size()) : 0;
        if (group.next == 0) break;
        groups_.emplace_back();
      }
    }
  }

  std::int32_t feature_at(std::int64_t slot) const { return features_[slot]; }

  struct Entry {
    std::int32_t column;  // among the new ones
    float z;
  };
  struct Group {
    std::array<float, T::group_size> z;
    std::array<std::uint16_t, T::group_size> columns;
    std::int32_t next;  // group of the same row, or 0
  };

  const std::int64_t max_columns_, n_rows_;
  ThreadTeam& team_;
  std::vector<std::int32_t> features_;  // by slot
  std::vector<std::int32_t> order_;     // slots, by feature
  std::vector<std::int32_t> slots_;
  std::int64_t n_known_ = 0;           // columns whose products are there
  std::unique_ptr<float[]> products_;  // never initialised: what is not used costs no memory
  std::vector<std::int32_t> row_ends_;
  std::vector<Entry> entries_;
  std::vector<float> block_;
  std::vector<Group> groups_;  // the first of each row, then the others
};

}  // namespace blockgreedy
