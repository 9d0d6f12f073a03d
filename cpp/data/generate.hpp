// Generators of sparse data: every row or column has a random stream of its own, so the result depends on the
// seed alone and not on the number of threads.
//
// Both work in two steps, sizes and then contents, into memory that the caller owns: at the KDDA size a copy of
// the arrays would cost 2.4 GB. The caller checks the shapes (the accepted ranges stand beside the fields);
// after a stop was asked for through the team the contents are incomplete.
#pragma once

#include <cstdint>

#include "base/threads.hpp"

namespace blockgreedy {

// Shaped like KDD Cup 2010 (algebra): compressed sparse columns, rows of unit norm.
//   - Column counts follow A / rank, at most 0.95 n_samples and at least 1; columns are shuffled.
//   - Four fifths of a column's nonzeros lie in rows of its group: an aligned run of rows (a student's session)
//     or rows that recur with a period (a problem); groups are nested, as their lengths are powers of two.
//   - Labels are drawn from a logistic model on a few thousand columns, dense ones among them.
struct KddaShape {
  std::int64_t n_samples;   // 100 <= n_samples < 2^31
  std::int64_t n_features;  // 100 <= n_features < 2^31
  std::int64_t n_nonzeros;  // n_features <= n_nonzeros <= n_samples * n_features / 4
  std::uint64_t seed;
};

// Fills indptr[0..n_features]; its last entry is n_nonzeros to within 1 %.
void kdda_pointers(const KddaShape& shape, std::int64_t* indptr, ThreadTeam& team);

// Fills indices and data (indptr[n_features] entries each) and the n_samples labels, +1 or -1.
void kdda_fill(const KddaShape& shape, const std::int64_t* indptr, std::int32_t* indices, float* data,
               std::int8_t* labels, ThreadTeam& team);

// Shaped like text: compressed sparse rows, (1 + log tf) * log((1 + n) / df), rows of unit norm.
//   - A document mixes a Zipf law over all terms with one or two topics that have terms of their own.
//   - Lengths (distinct terms per document) are log-normal. No term is empty if there are nonzeros enough.
//   - Labels are the side of a sparse linear model over terms of medium frequency; 5 % are flipped.
struct TextShape {
  std::int64_t n_samples;   // 10 <= n_samples < 2^31
  std::int64_t n_features;  // 100 <= n_features < 2^31
  double mean_nonzeros;     // per row: 1 <= mean_nonzeros <= n_features / 8
  std::int64_t n_topics;    // 1 <= n_topics <= n_features / 4
  std::uint64_t seed;
};

// Fills indptr[0..n_samples]; its last entry is n_samples * mean_nonzeros to within 1 %.
void text_pointers(const TextShape& shape, std::int64_t* indptr, ThreadTeam& team);

// Fills indices and data (indptr[n_samples] entries each) and the n_samples labels, +1 or -1.
void text_fill(const TextShape& shape, const std::int64_t* indptr, std::int32_t* indices, float* data,
               std::int8_t* labels, ThreadTeam& team);

}  // namespace blockgreedy
