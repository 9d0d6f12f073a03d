// Which columns a solve on rows has to have as columns, judged by their products with a θ or a dual point.
#pragma once

#include <cfloat>
#include <cstdint>

#include "base/transpose.hpp"
#include "math/penalties.hpp"
#include "working_set/scan_result.hpp"

namespace blockgreedy {

// A column that may have a weight whatever its gradient.
inline bool is_free(const CoordinatePenalty& penalty) {
  return penalty.l1 == 0 && (penalty.lower < 0 || penalty.upper > 0);
}

// Marks columns whose product exceeds this share of their threshold, and those without penalty. NaN counts as large.
inline void mark_near(const double* products, std::int64_t n_columns, const Penalty& penalty, double share,
                      std::uint8_t* kept) {
  for (std::int64_t j = 0; j < n_columns; ++j) {
    const CoordinatePenalty own = penalty.at(j);
    const bool is_near = !(products[j] == products[j]) | !(slack_at_zero(own, products[j]) >= (1 - share) * own.l1);
    kept[j] |= static_cast<std::uint8_t>(is_free(own) | is_near);  // without a branch, which could not be predicted
  }
}

// Whether a column can get a weight where products of dual points with it are no larger than this.
inline bool is_reached(const CoordinatePenalty& penalty, double largest_product) {
  const bool is_pinned = penalty.lower == 0 && penalty.upper == 0;
  return is_free(penalty) | (!is_pinned & !(largest_product <= penalty.l1));
}

// Marks columns whose product may exceed their threshold at a point without entries larger than `most`, judged by
// their length and the largest value of all; and those without penalty.
inline void mark_reachable(const RowsToColumns& rows, const Penalty& penalty, double most, std::uint8_t* kept) {
  const double reach = rows.largest() * most * (1 + Tuning::Screening::static_margin);
  for (std::int64_t j = 0; j < rows.n_columns(); ++j) {
    kept[j] |= static_cast<std::uint8_t>(is_reached(penalty.at(j), static_cast<double>(rows.count(j)) * reach));
  }
}

// The same, judged by what RowsToColumns::reaches has added up: sums of as many terms as the column has entries.
inline void mark_reaching(const RowsToColumns& rows, const double* reaches, const Penalty& penalty,
                          std::uint8_t* kept) {
  for (std::int64_t j = 0; j < rows.n_columns(); ++j) {
    const double rounding = Tuning::Screening::static_margin + DBL_EPSILON * static_cast<double>(rows.count(j));
    kept[j] |= static_cast<std::uint8_t>(is_reached(penalty.at(j), reaches[j] * (1 + rounding)));
  }
}

// Columns that are not kept and may break their threshold at a point whose largest entry has this size. A sum of m
// terms is off by less than m·DBL_EPSILON times the sum of their sizes.
inline std::int64_t count_missing(const RowsToColumns& rows, const double* products, const Penalty& penalty,
                                  double size, const std::uint8_t* kept) {
  constexpr double extra = 16;  // of additions: of the sums of runs of rows
  std::int64_t missing = 0;
  for (std::int64_t j = 0; j < rows.n_columns(); ++j) {
    const auto m = static_cast<double>(rows.count(j));
    const double rounding = DBL_EPSILON * (m + extra) * m * rows.largest() * size;
    const bool is_kept = kept[j] != 0, is_number = products[j] == products[j];
    missing += !is_kept & !(is_number & (slack_at_zero(penalty.at(j), products[j]) >= rounding));
  }
  return missing;
}

}  // namespace blockgreedy
