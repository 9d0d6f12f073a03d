#include "data/table_rows.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <new>
#include <stdexcept>

namespace blockgreedy {

namespace {

constexpr std::int64_t slice_rows = 512;  // rows at a time; with some dozens of columns they fit in a cache
// From one column of a slice to the next: not a power of two, or all of a row would compete for the same cache lines.
constexpr std::int64_t stride = slice_rows + 16;

std::int64_t n_combinations(const std::vector<TableColumn>& columns, const CrossedColumns& crossed) {
  std::int64_t product = 1;
  for (const std::int32_t k : crossed) {
    const std::int64_t width = std::max<std::int64_t>(columns[k].width, 1);
    if (product > std::numeric_limits<std::int64_t>::max() / width) {
      throw std::overflow_error("a cross has more than 2^63 possible combinations");
    }
    product *= width;
  }
  return product;
}

// f(row, key) for the rows that have a category in every column.
template <class F>
void for_each_key(const std::vector<TableColumn>& columns, const CrossedColumns& crossed, std::int64_t begin,
                  std::int64_t end, F&& f) {
  for (std::int64_t row = begin; row < end; ++row) {
    std::int64_t key = 0;
    bool is_whole = true;
    for (const std::int32_t k : crossed) {
      const TableColumn& column = columns[k];
      const std::int32_t code = column.codes[row];
      is_whole = is_whole && code >= 0;
      key = key * column.width + (is_whole ? code : 0);
    }
    if (is_whole) f(row, key);
  }
}

// How often each key was seen, where there are too many possible ones for a counter each.
class KeyCounts {
 public:
  KeyCounts() : keys_(1024, -1), counts_(1024, 0) {}

  void add(std::int64_t key) {
    const std::size_t at = place(key);
    if (keys_[at] < 0) {
      keys_[at] = key;
      if (2 * ++n_keys_ > keys_.size()) {
        grow();
        ++counts_[place(key)];
        return;
      }
    }
    ++counts_[at];
  }

  template <class F>
  void for_each(F&& f) const {
    for (std::size_t at = 0; at < keys_.size(); ++at) {
      if (keys_[at] >= 0) f(keys_[at], counts_[at]);
    }
  }

 private:
  std::size_t place(std::int64_t key) const {
    const int shift = 64 - std::countr_zero(keys_.size());
    std::size_t at = KeyPlaces::slot_of(key, shift);
    while (keys_[at] >= 0 && keys_[at] != key) at = (at + 1) & (keys_.size() - 1);
    return at;
  }

  void grow() {
    std::vector<std::int64_t> keys(2 * keys_.size(), -1), counts(keys.size(), 0);
    keys.swap(keys_);
    counts.swap(counts_);
    for (std::size_t old = 0; old < keys.size(); ++old) {
      if (keys[old] < 0) continue;
      const std::size_t at = place(keys[old]);
      keys_[at] = keys[old];
      counts_[at] = counts[old];
    }
  }

  std::vector<std::int64_t> keys_, counts_;
  std::size_t n_keys_ = 0;
};

std::vector<std::int64_t> frequent_keys(const std::vector<TableColumn>& columns, std::int64_t n_rows,
                                        const CrossedColumns& crossed, std::int64_t min_count) {
  std::vector<std::int64_t> found;
  const std::int64_t n_possible = n_combinations(columns, crossed);
  if (n_possible <= std::max<std::int64_t>(n_rows, 1 << 16)) {
    std::vector<std::int64_t> counts(n_possible, 0);
    for_each_key(columns, crossed, 0, n_rows, [&](std::int64_t, std::int64_t key) { ++counts[key]; });
    for (std::int64_t key = 0; key < n_possible; ++key) {
      const std::int64_t count = counts[key];
      if (count > 0 && count >= min_count) found.push_back(key);
    }
    return found;
  }
  KeyCounts counts;
  for_each_key(columns, crossed, 0, n_rows, [&](std::int64_t, std::int64_t key) { counts.add(key); });
  counts.for_each([&](std::int64_t key, std::int64_t count) {
    if (count >= min_count) found.push_back(key);
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::vector<std::int64_t>> find_crosses(const std::vector<TableColumn>& columns, std::int64_t n_rows,
                                                    const std::vector<CrossedColumns>& crosses,
                                                    std::int64_t min_count, ThreadTeam& team) {
  for (const CrossedColumns& crossed : crosses) n_combinations(columns, crossed);  // errors come before the threads
  std::vector<std::vector<std::int64_t>> found(crosses.size());
  std::atomic<bool> out_of_memory{false};  // a thread may not throw
  team.for_each(static_cast<std::int64_t>(crosses.size()), [&](std::int64_t part, int) {
    try {
      found[part] = frequent_keys(columns, n_rows, crosses[part], min_count);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  });
  if (out_of_memory) throw std::bad_alloc();
  return found;
}

KeyPlaces::KeyPlaces(const std::int64_t* keys, std::int64_t n_keys, std::int64_t n_possible) {
  if (n_possible <= 8 * n_keys + 1024) {  // a place for every possible key takes hardly more memory
    places_.assign(n_possible, -1);
    for (std::int64_t k = 0; k < n_keys; ++k) {
      places_[keys[k]] = static_cast<std::int32_t>(k);
    }
    return;
  }
  slots_.assign(std::bit_ceil(static_cast<std::size_t>(2 * n_keys + 2)), -1);
  places_.assign(slots_.size(), -1);
  shift_ = 64 - std::countr_zero(slots_.size());
  for (std::int64_t k = 0; k < n_keys; ++k) {
    std::size_t at = slot_of(keys[k], shift_);
    while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = keys[k];
    places_[at] = static_cast<std::int32_t>(k);
  }
}

TableRows::TableRows(std::vector<TableColumn> columns, std::int64_t n_rows, const std::vector<Cross>& crosses)
    : columns_(std::move(columns)), n_rows_(n_rows) {
  for (const TableColumn& column : columns_) {
    firsts_.push_back(n_features_);
    n_features_ += column.width;
  }
  for (const Cross& cross : crosses) {
    const std::int64_t n_possible = n_combinations(columns_, cross.columns);
    for (std::int64_t k = 0; k < cross.n_keys; ++k) {
      if (cross.keys[k] < (k ? cross.keys[k - 1] + 1 : 0) || cross.keys[k] >= n_possible) {
        throw std::invalid_argument("keys must ascend, and be combinations of the categories");
      }
    }
    crosses_.push_back({cross.columns, KeyPlaces(cross.keys, cross.n_keys, n_possible), n_features_});
    n_features_ += cross.n_keys;
  }
  if (n_features_ > std::numeric_limits<std::int32_t>::max()) {
    throw std::overflow_error("more than 2^31 - 1 features");
  }
}

void TableRows::take(const std::vector<TableColumn>& columns, std::int64_t n_rows) {
  const auto is_alike = [](const TableColumn& one, const TableColumn& other) {
    return !one.codes == !other.codes && one.width == other.width;
  };
  if (!std::equal(columns.begin(), columns.end(), columns_.begin(), columns_.end(), is_alike)) {
    throw std::invalid_argument("columns must be codes or numbers where they were before");
  }
  columns_ = columns;
  n_rows_ = n_rows;
}

template <class T>
void TableRows::features_of(const TableColumn& column, std::int64_t first, std::int64_t begin, std::int64_t end,
                            std::int32_t* features) const {
  for (std::int64_t row = begin; row < end; ++row) {
    const bool is_there = column.codes ? column.codes[row] >= 0 : static_cast<T>(column.numbers[row]) != T(0);
    const std::int64_t feature = column.codes ? first + column.codes[row] : first;
    features[row - begin] = is_there ? static_cast<std::int32_t>(feature) : -1;
  }
}

std::int64_t TableRows::features_of(const Lookup& cross, std::int64_t begin, std::int64_t end,
                                    std::int32_t* features) const {
  std::fill(features, features + (end - begin), -1);
  std::int64_t n_unknown = 0;
  for_each_key(columns_, cross.columns, begin, end, [&](std::int64_t row, std::int64_t key) {
    const std::int32_t place = cross.places.find(key);
    if (place >= 0) {
      features[row - begin] = static_cast<std::int32_t>(cross.first + place);
    } else {
      ++n_unknown;
    }
  });
  return n_unknown;
}

// f(slice, first row, end, features column by column, unknown combinations of the crosses)
template <class T, class F>
void TableRows::for_each_slice(ThreadTeam& team, F&& f) const {
  const std::size_t n_parts = columns_.size() + crosses_.size(), size = n_parts * stride;
  std::vector<std::vector<std::int32_t>> features(team.size());
  std::vector<std::vector<std::int64_t>> unknown(features.size());
  for (auto& own : features) own.resize(size);
  for (auto& own : unknown) own.resize(crosses_.size());
  team.for_each((n_rows_ + slice_rows - 1) / slice_rows, [&](std::int64_t slice, int executor) {
    const std::int64_t begin = slice * slice_rows, end = std::min(n_rows_, begin + slice_rows);
    std::int32_t* own = features[executor].data();
    std::int64_t* missed = unknown[executor].data();
    std::int32_t* out = own;
    for (std::size_t k = 0; k < columns_.size(); ++k, out += stride) {
      features_of<T>(columns_[k], firsts_[k], begin, end, out);
    }
    for (std::size_t k = 0; k < crosses_.size(); ++k, out += stride) {
      missed[k] = features_of(crosses_[k], begin, end, out);
    }
    f(slice, begin, end, own, missed);
  });
}

template <class T>
void TableRows::count(std::int64_t* indptr, ThreadTeam& team) const {
  const std::size_t n_parts = columns_.size() + crosses_.size();
  for_each_slice<T>(team, [&](std::int64_t, std::int64_t begin, std::int64_t end, const std::int32_t* features,
                              const std::int64_t*) {
    std::fill(indptr + begin + 1, indptr + end + 1, 0);
    for (std::size_t k = 0; k < n_parts; ++k, features += stride) {
      for (std::int64_t row = begin; row < end; ++row) indptr[row + 1] += features[row - begin] >= 0;
    }
  });
  indptr[0] = 0;
  for (std::int64_t row = 0; row < n_rows_; ++row) indptr[row + 1] += indptr[row];
}

template <class T>
std::vector<std::int64_t> TableRows::fill(const std::int64_t* indptr, std::int32_t* indices, T* data,
                                          ThreadTeam& team) const {
  const std::size_t n_parts = columns_.size() + crosses_.size();
  std::vector<std::atomic<std::int64_t>> unknown(crosses_.size());  // whole numbers: no order of threads matters
  for_each_slice<T>(team, [&](std::int64_t, std::int64_t begin, std::int64_t end, const std::int32_t* features,
                              const std::int64_t* missed) {
    for (std::size_t k = 0; k < crosses_.size(); ++k) unknown[k].fetch_add(missed[k], std::memory_order_relaxed);
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t at = indptr[row];
      for (std::size_t k = 0; k < n_parts; ++k) {
        const std::int32_t feature = features[k * stride + (row - begin)];
        if (feature < 0) continue;
        indices[at] = feature;
        const double* numbers = k < columns_.size() ? columns_[k].numbers : nullptr;
        data[at++] = numbers ? static_cast<T>(numbers[row]) : T(1);
      }
    }
  });
  return {unknown.begin(), unknown.end()};
}

template void TableRows::count<float>(std::int64_t*, ThreadTeam&) const;
template void TableRows::count<double>(std::int64_t*, ThreadTeam&) const;
template std::vector<std::int64_t> TableRows::fill<float>(const std::int64_t*, std::int32_t*, float*,
                                                          ThreadTeam&) const;
template std::vector<std::int64_t> TableRows::fill<double>(const std::int64_t*, std::int32_t*, double*,
                                                           ThreadTeam&) const;

}  // namespace blockgreedy
