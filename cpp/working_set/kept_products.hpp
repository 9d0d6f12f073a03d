// Products of sparse columns with each other, kept along a path of the squared loss, where they never change: a new
// column costs one pass over the columns that are kept, shared by all that are new, and then every step of the model
// costs as many numbers as there are columns instead of as many as they have nonzeros.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/threads.hpp"

namespace blockgreedy {

class KeptProducts {
 public:
  // For at most so many bytes, of which none is touched before it is needed; then columns are at most `most()`.
  KeptProducts(std::int64_t n_bytes, std::int64_t n_rows, ThreadTeam& team)
      : most_(std::clamp<std::int64_t>(static_cast<std::int64_t>(std::sqrt(static_cast<double>(n_bytes / 4))), 64,
                                       8192)),
        n_rows_(n_rows),
        team_(team) {}

  std::int64_t most() const { return most_; }

  // Adds what is missing for these features (ascending), whose columns have `work` nonzeros together, fewer than 2³¹.
  //   columns.for_each(feature, f)             f(row, z) for the nonzeros of the scaled column
  //   columns.root(row)                        what the row is scaled by
  //   columns.block_dot(feature, block, out)   see kernels.hpp; with the column as it is, not scaled
  template <class Columns>
  void keep(const std::vector<std::int32_t>& features, std::int64_t work, const Columns& columns) {
    find_places(features);
    if (size() > most_ || size() > 2 * static_cast<std::int64_t>(features.size()) + 64) {
      forget_others(features);
      find_places(features);
    }
    if (!products_) products_.reset(new float[static_cast<std::size_t>(most_ * most_)]);
    if (n_known_ == size()) return;
    if (size() - n_known_ <= few && 16 * n_rows_ <= most_in_block) add_few(work, columns);
    else add_many(work, columns);
    for (std::int64_t known = 0; known < n_known_; ++known) {
      const float* from = products_.get() + known * most_;
      for (std::int64_t place = n_known_; place < size(); ++place)
        products_[static_cast<std::size_t>(place * most_ + known)] = from[place];
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
  const std::vector<std::int32_t>& places() const { return places_; }
  const float* data() const { return products_.get(); }
  // Where the products of the column at a place start; there are size() of them, in order of places.
  std::int64_t start(std::int32_t place) const { return place * most_; }

 private:
  // Known features keep their place, the others get the next ones.
  void find_places(const std::vector<std::int32_t>& features) {
    places_.clear();
    const std::size_t n_old = order_.size();
    std::size_t old = 0;
    for (std::int32_t feature : features) {
      while (old < n_old && features_[static_cast<std::size_t>(order_[old])] < feature) ++old;
      if (old < n_old && features_[static_cast<std::size_t>(order_[old])] == feature) {
        places_.push_back(order_[old]);
      } else {
        places_.push_back(static_cast<std::int32_t>(features_.size()));
        order_.push_back(places_.back());
        features_.push_back(feature);
      }
    }
    std::inplace_merge(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(n_old), order_.end(),
                       [&](std::int32_t a, std::int32_t b) {
                         return features_[static_cast<std::size_t>(a)] < features_[static_cast<std::size_t>(b)];
                       });
  }

  // Of what is known, keeps these features only.
  void forget_others(const std::vector<std::int32_t>& features) {
    std::vector<std::int32_t> kept;  // places, ascending
    for (std::int32_t place = 0; place < n_known_; ++place) {
      if (std::binary_search(features.begin(), features.end(), features_[static_cast<std::size_t>(place)]))
        kept.push_back(place);
    }
    for (std::size_t a = 0; a < kept.size(); ++a) {  // none moves up: nothing is overwritten before it is read
      float* to = products_.get() + static_cast<std::int64_t>(a) * most_;
      const float* from = products_.get() + start(kept[a]);
      for (std::size_t b = 0; b < kept.size(); ++b) to[b] = from[kept[b]];
      features_[a] = features_[static_cast<std::size_t>(kept[a])];
    }
    features_.resize(kept.size());
    n_known_ = size();
    order_.resize(kept.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      return features_[static_cast<std::size_t>(a)] < features_[static_cast<std::size_t>(b)];
    });
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
      const std::int64_t n_parts = std::min<std::int64_t>(size(), 64);
      team_.for_work(n_parts, work, [&](std::int64_t part) {
        std::array<float, 16> sums;
        for (std::int64_t place = part; place < size(); place += n_parts) {
          columns.block_dot(feature_at(place), block_.data(), sums.data());
          std::copy_n(sums.begin(), count, products_.get() + place * most_ + first);
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
                       [&](std::int32_t row, float) { ++row_ends_[static_cast<std::size_t>(row) + 1]; });
    }
    std::partial_sum(row_ends_.begin(), row_ends_.end(), row_ends_.begin());
    entries_.resize(static_cast<std::size_t>(row_ends_.back()));
    for (std::size_t k = 0; k < n_new; ++k) {
      columns.for_each(feature_at(n_known_ + static_cast<std::int64_t>(k)), [&](std::int32_t row, float z) {
        entries_[static_cast<std::size_t>(row_ends_[static_cast<std::size_t>(row)]++)] = {
            static_cast<std::int32_t>(k), z};
      });
    }
    group_entries(n_new);
    const std::int64_t n_parts = std::min<std::int64_t>(size(), 64);
    team_.for_work(n_parts, 2 * work, [&](std::int64_t part) {
      std::vector<float> sums(n_new + n_spare);
      for (std::int64_t place = part; place < size(); place += n_parts) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        columns.for_each(feature_at(place), [&](std::int32_t row, float z) {
          const Group* group = &groups_[static_cast<std::size_t>(row)];
          for (;;) {
            for (std::size_t k = 0; k < group_size; ++k) sums[group->columns[k]] += z * group->z[k];
            if (group->next == 0) [[likely]]
              break;
            group = &groups_[static_cast<std::size_t>(group->next)];
          }
        });
        std::copy_n(sums.begin(), n_new, products_.get() + place * most_ + n_known_);
      }
    });
  }

  // Most rows have a few entries, and how many is as good as random: they are added in groups, and what is missing
  // from a group goes to a sum that nobody wants. (The same one each time would have to wait for itself.)
  void group_entries(std::size_t n_new) {
    groups_.resize(static_cast<std::size_t>(n_rows_));
    std::int32_t at = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows_); ++row) {
      for (std::size_t to = row;; to = groups_.size() - 1) {
        Group& group = groups_[to];
        for (std::size_t k = 0; k < group_size; ++k) {
          const bool any = at < row_ends_[row];
          group.columns[k] =
              static_cast<std::uint16_t>(any ? static_cast<std::size_t>(entries_[static_cast<std::size_t>(at)].column)
                                             : n_new + (row + k) % n_spare);
          group.z[k] = any ? entries_[static_cast<std::size_t>(at)].z : 0.0F;
          at += any;
        }
        group.next = at < row_ends_[row] ? static_cast<std::int32_t>(groups_.size()) : 0;
        if (group.next == 0) break;
        groups_.emplace_back();
      }
    }
  }

  std::int32_t feature_at(std::int64_t place) const { return features_[static_cast<std::size_t>(place)]; }

  struct Entry {
    std::int32_t column;  // among the new ones
    float z;
  };
  static constexpr std::size_t group_size = 4;
  struct Group {
    std::array<float, group_size> z;
    std::array<std::uint16_t, group_size> columns;
    std::int32_t next;  // group of the same row, or 0
  };
  static constexpr std::size_t n_spare = 16;
  static constexpr std::int64_t few = 32, most_in_block = 1 << 18;  // numbers that a cache holds

  const std::int64_t most_, n_rows_;
  ThreadTeam& team_;
  std::vector<std::int32_t> features_;  // by place
  std::vector<std::int32_t> order_;     // places, by feature
  std::vector<std::int32_t> places_;
  std::int64_t n_known_ = 0;           // columns whose products are there
  std::unique_ptr<float[]> products_;  // never initialised: what is not used costs no memory
  std::vector<std::int32_t> row_ends_;
  std::vector<Entry> entries_;
  std::vector<float> block_;
  std::vector<Group> groups_;  // the first of each row, then the others
};

}  // namespace blockgreedy
