// Columns of a table → rows of a sparse matrix: numbers, one-hot categories, and crosses of categories.
//
// A category is a code, counted from 0; -1 is none. A cross of columns is a feature for each combination of their
// categories; a combination is named by its key, the codes read as the digits of one number, so that the order of the
// keys is the order of the combinations.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"

namespace blockgreedy {

// One of `codes` and `numbers` is set. `width` is its number of features: 1 for numbers.
struct TableColumn {
  const std::int32_t* codes = nullptr;
  const double* numbers = nullptr;
  std::int64_t width = 1;
};

using CrossedColumns = std::vector<std::int32_t>;  // places in the table

// For each cross the keys of the combinations that at least `min_count` rows have, ascending.
std::vector<std::vector<std::int64_t>> find_crosses(const std::vector<TableColumn>& columns, std::int64_t n_rows,
                                                    const std::vector<CrossedColumns>& crosses,
                                                    std::int64_t min_count, ThreadTeam& team);

// Where a key stands in an ascending list of them, without searching.
class KeyPlaces {
 public:
  KeyPlaces(const std::int64_t* keys, std::int64_t n_keys, std::int64_t n_possible);

  // -1: it is not in the list.
  std::int32_t find(std::int64_t key) const {
    if (slots_.empty()) return places_[key];
    for (std::size_t at = slot_of(key, shift_);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == key) return places_[at];
      if (slots_[at] < 0) return -1;
    }
  }

  static std::size_t slot_of(std::int64_t key, int shift) {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u) >> shift);
  }

 private:
  std::vector<std::int64_t> slots_;  // keys by their hash, -1 where free; none where every possible key has a place
  std::vector<std::int32_t> places_;
  int shift_ = 0;
};

// The matrix: row pointers first, then entries, both into memory that the caller owns.
class TableRows {
 public:
  struct Cross {
    CrossedColumns columns;
    const std::int64_t* keys;
    std::int64_t n_keys;
  };

  TableRows(std::vector<TableColumn> columns, std::int64_t n_rows, const std::vector<Cross>& crosses);

  // Other rows of the same columns: combinations are found as before, without looking at their keys again.
  void take(const std::vector<TableColumn>& columns, std::int64_t n_rows);

  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t n_features() const { return n_features_; }

  // Where each row begins. `T` is the type of the entries, in which small numbers may be 0.
  template <class T>
  void count(std::int64_t* indptr, ThreadTeam& team) const;
  // Features ascend within rows. For each cross: how many rows have a category in each of its columns, but a
  // combination that has no feature.
  template <class T>
  std::vector<std::int64_t> fill(const std::int64_t* indptr, std::int32_t* indices, T* data, ThreadTeam& team) const;

 private:
  struct Lookup {
    CrossedColumns columns;
    KeyPlaces places;
    std::int64_t first;  // feature
  };
  template <class T>
  void features_of(const TableColumn& column, std::int64_t first, std::int64_t begin, std::int64_t end,
                   std::int32_t* features) const;
  std::int64_t features_of(const Lookup& cross, std::int64_t begin, std::int64_t end, std::int32_t* features) const;
  template <class T, class F>
  void for_each_slice(ThreadTeam& team, F&& f) const;

  std::vector<TableColumn> columns_;
  std::int64_t n_rows_;
  std::int64_t n_features_ = 0;
  std::vector<std::int64_t> firsts_;  // features of the columns
  std::vector<Lookup> crosses_;
};

}  // namespace blockgreedy
