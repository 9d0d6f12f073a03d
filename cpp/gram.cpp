#include "blockgreedy/gram.hpp"

#include <algorithm>

#include "blockgreedy/subproblem.hpp"

namespace blockgreedy {

namespace {

constexpr std::int64_t largest = 4096;  // 64 MB

template <class F>
void for_each_entry(const ModelColumn& column, const float* values, F&& f) {
  const float* z = values + column.start;
  for (std::int64_t i = 0; i < column.count; ++i) {
    if (z[i] != 0) f(column.dense ? static_cast<std::int32_t>(i) : column.at[i], z[i]);
  }
}

}  // namespace

void Gram::reserve(std::int64_t n_slots) {
  if (n_slots <= capacity_) return;
  const std::int64_t wanted = std::min(std::max(2 * n_slots, std::int64_t{256}), 2 * largest);
  std::vector<float> wider(static_cast<std::size_t>(wanted * wanted));
  for (std::int64_t s = 0; s < n_slots_; ++s) {
    std::copy_n(products_.data() + s * capacity_, n_slots_, wider.data() + s * wanted);
  }
  products_.swap(wider);
  capacity_ = wanted;
}

bool Gram::update(const std::vector<ModelColumn>& columns, const float* values, std::int64_t n_rows,
                  std::int64_t n_nonzeros) {
  const auto m = static_cast<std::int64_t>(columns.size());
  if (given_up_ || m > largest || m * m > 2 * n_nonzeros) return false;
  // Columns that left are forgotten when new ones come, since their products with the new are not known.
  std::int64_t n_new = 0;
  slots_.resize(columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const auto found = slot_of_.find(columns[k].feature);
    slots_[k] = found == slot_of_.end() ? -1 : found->second;
    n_new += slots_[k] < 0;
  }
  if (n_new == 0) return true;
  if (n_slots_ + n_new > 2 * largest) {
    slot_of_.clear();
    std::fill(slots_.begin(), slots_.end(), -1);
    n_slots_ = 0;
    n_new = m;
  }
  // The columns in order of their slots, new ones last.
  std::vector<std::int32_t> order;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (slots_[k] >= 0) order.push_back(static_cast<std::int32_t>(k));
  }
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return slots_[static_cast<std::size_t>(a)] < slots_[static_cast<std::size_t>(b)];
  });
  const std::size_t n_old = order.size();
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (slots_[k] < 0) order.push_back(static_cast<std::int32_t>(k));
  }
  // Rows of the columns, entries in that order.
  std::vector<std::int32_t> starts(static_cast<std::size_t>(n_rows) + 1);
  std::int64_t work = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const bool is_new = at >= n_old;
    for_each_entry(columns[static_cast<std::size_t>(order[at])], values, [&](std::int32_t i, float) {
      const std::int32_t count = ++starts[static_cast<std::size_t>(i) + 1];
      if (is_new) work += count;
    });
  }
  if (work > 40 * n_nonzeros) {
    given_up_ = true;
    return false;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_rows); ++i) starts[i + 1] += starts[i];
  const auto n_entries = static_cast<std::size_t>(starts.back());
  std::vector<std::int32_t> next(starts.begin(), starts.end() - 1), which(n_entries);
  std::vector<float> value(n_entries);
  slot_of_.clear();
  reserve(n_slots_ + n_new);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto k = static_cast<std::size_t>(order[at]);
    if (slots_[k] < 0) slots_[k] = static_cast<std::int32_t>(n_slots_++);
    slot_of_.emplace(columns[k].feature, slots_[k]);
    const std::int32_t slot = slots_[k];
    for_each_entry(columns[k], values, [&](std::int32_t i, float z) {
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(i)]++);
      which[to] = slot;
      value[to] = z;
    });
  }
  const auto multiply = [&](std::int64_t part) {
    const auto k = static_cast<std::size_t>(order[n_old + static_cast<std::size_t>(part)]);
    const std::int32_t own = slots_[k];
    std::vector<double> sums(static_cast<std::size_t>(own) + 1);
    for_each_entry(columns[k], values, [&](std::int32_t i, float z) {
      const double factor = static_cast<double>(z);
      for (auto e = static_cast<std::size_t>(starts[static_cast<std::size_t>(i)]); which[e] <= own; ++e) {
        sums[static_cast<std::size_t>(which[e])] += factor * static_cast<double>(value[e]);
        if (which[e] == own) break;
      }
    });
    for (std::int32_t s = 0; s <= own; ++s) {
      const auto product = static_cast<float>(sums[static_cast<std::size_t>(s)]);
      products_[static_cast<std::size_t>(own * capacity_ + s)] = product;
      products_[static_cast<std::size_t>(s * capacity_ + own)] = product;
    }
  };
  if (team_.size() > 1 && work >= min_parallel_work) {
    team_.for_all(n_new, [&](std::int64_t part, int) { multiply(part); });
  } else {
    for (std::int64_t part = 0; part < n_new; ++part) multiply(part);
  }
  return true;
}

}  // namespace blockgreedy
