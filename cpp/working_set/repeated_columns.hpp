// Columns that are multiples of each other, x_j = c·x_r exactly, as one-hot crosses and n-grams have them by the
// thousand. Of these only one, the representative, needs a weight: where its penalty per unit is the lowest, u_r·|c|
// ≤ u_j, any weight of x_j can be moved to x_r without raising the objective, and x_j's dual constraint follows from
// that of x_r. The others are aliases: they are never scanned nor selected again.
//
// Columns are registered when they first violate their optimality condition, so that nobody pays for those that never
// matter; once copies turn out to be many, when they are next scanned.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/threads.hpp"
#include "kernels/kernels.hpp"
#include "math/penalties.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

struct Alias {
  std::int32_t feature, representative;
};

template <class View>
class RepeatedColumns {
 public:
  // Columns are divided by their hash, so that threads can register many at once.
  static constexpr std::size_t n_shards = 16;
  struct Hashed {
    std::uint64_t hash;
    std::int32_t feature, position;
  };
  using ByShard = std::array<std::vector<Hashed>, n_shards>;

  RepeatedColumns(const View& view, const Penalty& penalty) : view_(view), penalty_(penalty) { clear(); }

  void clear() {
    state_.reset(static_cast<std::uint8_t*>(std::calloc(static_cast<std::size_t>(view_.n_cols) + 1, 1)));
    if (!state_) throw std::bad_alloc();
    for (Shard& shard : shards_) shard = {};
  }

  bool is_registered(std::int32_t j) const { return state_[j] != unknown; }
  bool is_alias(std::int32_t j) const { return state_[j] == alias; }
  std::vector<Alias> aliases() const {
    std::vector<Alias> all;
    for (const Shard& shard : shards_) all.insert(all.end(), shard.aliases.begin(), shard.aliases.end());
    return all;
  }

  std::size_t n_aliases() const {
    std::size_t sum = 0;
    for (const Shard& shard : shards_) sum += shard.aliases.size();
    return sum;
  }

  // How many columns were registered for each one that is no alias.
  double repetition() const { return n_kept() > 0 ? 1 + static_cast<double>(n_aliases()) / n_kept() : 1.0; }
  // Whether copies are so many that all columns are worth a hash, be they violators or not.
  bool are_many() const {
    return n_kept() + static_cast<double>(n_aliases()) >= T::min_registered && repetition() >= T::many;
  }

  // Makes column j known; true if it is an alias of one that was registered before it. Columns with a weight never
  // are.
  bool add(std::int32_t j, bool has_weight) {
    const std::uint64_t hash = hash_of(j);
    return add_to(shards_[shard_of(hash)], hash, j, has_weight);
  }

  // To be registered by add_all; threads may call it with lists of their own.
  void collect(std::int32_t j, std::int32_t position, ByShard& into) const {
    const std::uint64_t hash = hash_of(j);
    into[shard_of(hash)].push_back({hash, j, position});
  }
  // Registers columns without weights, and calls on_alias(position) for the aliases among them. of(part) are n_parts
  // lists, which are emptied.
  template <class Of, class OnAlias>
  void add_all(std::int64_t n_parts, Of of, OnAlias on_alias, ThreadTeam& team) {
    const std::int64_t n_groups = std::min<std::int64_t>(team.size(), n_shards);
    team.for_each(n_groups, [&](std::int64_t group, int) {
      for (std::int64_t part = 0; part < n_parts; ++part) {  // outermost: its columns stay in the cache
        for (auto shard = static_cast<std::size_t>(group); shard < n_shards; shard += n_groups) {
          std::vector<Hashed>& list = of(part)[shard];
          for (std::size_t k = 0; k < list.size(); ++k) {
            prefetch(shards_[shard], list, k);
            const Hashed& column = list[k];
            if (is_registered(column.feature)) continue;
            if (add_to(shards_[shard], column.hash, column.feature, false)) on_alias(column.position);
          }
          list.clear();
        }
      }
    });
  }

  // Whether the aliases since the last call are what they are taken for, by other means than multiple_of: products
  // with random numbers that are in the ratio of the columns' lengths, at a penalty that is no lower. Also how many
  // entries that read.
  std::pair<bool, std::int64_t> confirm(ThreadTeam& team) {
    std::vector<Alias> fresh;
    for (const Shard& shard : shards_)
      fresh.insert(fresh.end(), shard.aliases.begin() + static_cast<std::ptrdiff_t>(shard.n_confirmed),
                   shard.aliases.end());
    if (fresh.empty()) return {true, 0};
    draw_numbers();
    const auto n_batches = static_cast<std::int64_t>((fresh.size() + batch - 1) / batch);
    std::atomic<std::int64_t> n_touched{0};
    std::atomic<bool> all{true};
    team.for_work(n_batches, static_cast<std::int64_t>(fresh.size()) * T::confirmed_work, [&](std::int64_t k) {
      const std::size_t first = static_cast<std::size_t>(k) * batch;
      n_touched += confirm_batch(fresh.data() + first, std::min(batch, fresh.size() - first), all);
    });
    if (all) {
      for (Shard& shard : shards_) shard.n_confirmed = shard.aliases.size();
    }
    return {all, n_touched};
  }

  // Moves weights of aliases to their representatives, for weights that are 0 but at these features.
  void merge_weights(const std::vector<std::int32_t>& features, double* w) {
    if (features.size() < 2) return;
    clear();
    for (std::int32_t j : features) add(j, false);
    for (const Alias& alias : aliases()) {  // of a shard, in the order of registration
      const std::int32_t j = alias.feature, r = alias.representative;
      w[r] += multiple_of(j, r) * w[j];
      w[j] = 0;
    }
    clear();
  }

  // c in x_j = c·x_r, 0 if there is none: exactly, by products in twice the precision. Where such a product or its
  // rounding error is too small for a float64 to hold, nothing is known, and the columns are no multiples.
  double multiple_of(std::int64_t j, std::int64_t r) const {
    const std::int64_t count = view_.count(j);
    if (count != view_.count(r)) return 0;
    const auto *x = view_.data + view_.start(j), *z = view_.data + view_.start(r);
    const auto n = static_cast<std::size_t>(count);
    if constexpr (requires { view_.indices; }) {
      const std::size_t bytes = n * sizeof(*view_.indices);
      if (std::memcmp(view_.indices + view_.start(j), view_.indices + view_.start(r), bytes) != 0) return 0;
    }
    if (std::memcmp(x, z, n * sizeof(*x)) == 0) return 1;
    const std::int64_t pivot = first_nonzero(j);
    if (pivot < 0 || z[pivot] == 0) return 0;
    const auto a = static_cast<double>(x[pivot]), b = static_cast<double>(z[pivot]);
    for (std::int64_t k = 0; k < count; ++k) {
      const auto u = static_cast<double>(x[k]), v = static_cast<double>(z[k]);
      if (u == 0 && v == 0) continue;
      const double left = u * b, right = v * a;
      if (!(std::fabs(left) >= T::least_product && std::fabs(left) < infinity)) return 0;
      if (left != right || std::fma(u, b, -left) != std::fma(v, a, -right)) return 0;
    }
    return ratio_of(a, b);
  }

 private:
  using T = Tuning::Repeated;
  static constexpr std::size_t batch = 64;
  enum : std::uint8_t { unknown, distinct, alias };
  // The only entry of a column that has no other: kept beside its hash, since most copies are of such columns, and
  // reading them again would be most of the work.
  struct Single {
    std::int32_t row = -1;
    double value = 0;
  };
  struct Entry {
    std::uint64_t hash = 0;
    std::int32_t feature = -1;
    Single single = {};
  };
  struct Shard {
    std::vector<Entry> table;                 // open addressing; empty where feature < 0
    std::size_t n_entries = 0, n_single = 0;  // n_single: registered without a hash
    std::vector<Alias> aliases;
    std::size_t n_confirmed = 0;  // of the aliases
  };
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };

  // One number between 1/2 and 3/2 for each row, of either sign.
  void draw_numbers() {
    if (!numbers_.empty()) return;
    Random random(T::confirm_seed);
    numbers_.resize(static_cast<std::size_t>(view_.n_rows));
    for (double& number : numbers_) {
      const double size = 0.5 + random.uniform();
      number = random.next() & 1 ? size : -size;
    }
  }

  // The entries read; `all` becomes false where one of these aliases is none.
  std::int64_t confirm_batch(const Alias* aliases, std::size_t count, std::atomic<bool>& all) const {
    std::array<std::int32_t, 2 * batch> columns;
    std::array<ColumnSums, 2 * batch> sums;
    std::int64_t touched = 0;
    for (std::size_t k = 0; k < count; ++k) {
      columns[k] = aliases[k].feature;
      columns[count + k] = aliases[k].representative;
      touched += 2 * view_.count(columns[k]);
    }
    column_sums(view_, columns.data(), static_cast<std::int64_t>(2 * count), numbers_.data(), nullptr, sums.data());
    for (std::size_t k = 0; k < count; ++k) {
      const ColumnSums &own = sums[k], &other = sums[count + k];
      const double ratio = own.magnitude / other.magnitude;
      const double apart = std::fabs(own.product) / own.magnitude - std::fabs(other.product) / other.magnitude;
      const double most = (1 + T::confirm_rounding) * penalty_.weight(columns[k]);
      if (!(std::fabs(apart) <= T::confirm_rounding && ratio * penalty_.weight(columns[count + k]) <= most))
        all = false;
    }
    return touched;
  }

  // 0 where the ratio has lost digits or is beyond all numbers.
  static double ratio_of(double a, double b) {
    const double ratio = a / b;
    return std::isnormal(ratio) ? ratio : 0.0;
  }

  double n_kept() const {
    std::size_t sum = 0;
    for (const Shard& shard : shards_) sum += shard.n_entries + shard.n_single;
    return static_cast<double>(sum);
  }

  // What the columns after k of the list will read: the place in the table, then where the column found there begins,
  // then that column. Without this, half of the time is spent waiting for memory.
  void prefetch(const Shard& shard, const std::vector<Hashed>& list, std::size_t k) const {
    if (shard.table.empty()) return;
    constexpr std::size_t ahead = T::prefetched;
    const std::size_t mask = shard.table.size() - 1;
    const auto found = [&](std::size_t at) {
      const Entry& entry = shard.table[list[at].hash & mask];
      return entry.hash == list[at].hash && entry.single.row < 0 ? entry.feature : -1;
    };
    if (k + 3 * ahead < list.size()) __builtin_prefetch(&shard.table[list[k + 3 * ahead].hash & mask]);
    if (k + 2 * ahead < list.size()) {
      if (const std::int32_t r = found(k + 2 * ahead); r >= 0) view_.prefetch_pointers(r);
    }
    if (k + ahead < list.size()) {
      if (const std::int32_t r = found(k + ahead); r >= 0) {
        __builtin_prefetch(view_.data + view_.start(r));
        if constexpr (requires { view_.indices; }) __builtin_prefetch(view_.indices + view_.start(r));
      }
    }
  }

  bool add_to(Shard& shard, std::uint64_t hash, std::int32_t j, bool has_weight) {
    state_[j] = distinct;
    if (hash == 0) {
      ++shard.n_single;
      return false;
    }
    reserve_one(shard);
    const Single single = single_of(j);
    int n_compared = 0;
    const std::size_t mask = shard.table.size() - 1;
    std::size_t at = hash & mask;
    for (; shard.table[at].feature >= 0; at = (at + 1) & mask) {
      if (has_weight || shard.table[at].hash != hash || ++n_compared > T::max_compared) continue;
      const std::int32_t r = shard.table[at].feature;
      const Single& other = shard.table[at].single;
      double ratio = 0;
      if (single.row < 0 && other.row < 0) ratio = multiple_of(j, r);
      else if (single.row == other.row) ratio = ratio_of(single.value, other.value);
      if (ratio != 0 && replaces(r, j, ratio)) {
        state_[j] = alias;
        shard.aliases.push_back({j, r});
        return true;
      }
    }
    shard.table[at] = {hash, j, single};
    ++shard.n_entries;
    return false;
  }

  // Whether every weight of x_j = ratio·x_r can be moved to x_r without raising the objective.
  bool replaces(std::int32_t r, std::int32_t j, double ratio) const {
    if (!(penalty_.weight(r) * std::fabs(ratio) <= penalty_.weight(j))) return false;
    const CoordinatePenalty own = penalty_.at(j), other = penalty_.at(r);
    const bool up = (ratio > 0 ? own.upper : -own.lower) > 0, down = (ratio > 0 ? own.lower : -own.upper) < 0;
    return (!up || other.upper == infinity) && (!down || other.lower == -infinity);
  }

  Single single_of(std::int64_t j) const {
    if constexpr (requires { view_.indices; }) {
      const std::int64_t at = view_.start(j);
      if (view_.count(j) == 1) return {view_.indices[at], static_cast<double>(view_.data[at])};
    }
    return {};
  }

  std::int64_t first_nonzero(std::int64_t j) const {
    const auto* x = view_.data + view_.start(j);
    for (std::int64_t k = 0, count = view_.count(j); k < count; ++k) {
      if (x[k] != 0) return k;
    }
    return -1;
  }

  // Of rows and ratios of values, which are the same to the last bit for multiples: division rounds correctly. Of
  // long columns only a sample is read. 0: to be left alone, since l2 spreads a weight over equal columns, and what
  // is unpenalised belongs to the null model.
  std::uint64_t hash_of(std::int64_t j) const {
    const CoordinatePenalty own = penalty_.at(j);
    const std::int64_t count = view_.count(j), pivot = first_nonzero(j);
    if (own.l2 != 0 || !(own.l1 > 0) || pivot < 0) return 0;
    const std::int64_t start = view_.start(j);
    const std::int64_t stride = count <= T::hashed_entries ? 1 : 1 + (count - 1) / T::hashed_entries;
    const auto unit = static_cast<double>(view_.data[start + pivot]);
    std::uint64_t hash = mixed(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(pivot));
    for (std::int64_t k = 0; k < count; k += stride) {
      const double ratio = static_cast<double>(view_.data[start + k]) / unit + 0.0;
      hash = mixed(hash, __builtin_bit_cast(std::uint64_t, ratio));
      if constexpr (requires { view_.indices; })
        hash = mixed(hash, static_cast<std::uint64_t>(view_.indices[start + k]));
    }
    return hash != 0 ? hash : 1;
  }

  static std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {  // multiplication by 2^64/φ spreads the bits
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    return hash ^ (hash >> 29);
  }
  static std::size_t shard_of(std::uint64_t hash) { return hash >> 60; }

  static void reserve_one(Shard& shard) {
    if (2 * (shard.n_entries + 1) <= shard.table.size()) return;
    std::vector<Entry> old(std::max<std::size_t>(2 * shard.table.size(), 64));
    old.swap(shard.table);
    const std::size_t mask = shard.table.size() - 1;
    for (const Entry& entry : old) {
      if (entry.feature < 0) continue;
      std::size_t at = entry.hash & mask;
      while (shard.table[at].feature >= 0) at = (at + 1) & mask;
      shard.table[at] = entry;
    }
  }

  View view_;
  const Penalty& penalty_;
  std::unique_ptr<std::uint8_t[], Free> state_;  // by feature; pages that nobody writes to cost nothing
  std::array<Shard, n_shards> shards_;
  std::vector<double> numbers_;  // by row: what confirm() multiplies columns with
};

}  // namespace blockgreedy
