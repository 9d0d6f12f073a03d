// The columns of a working set in the rows that a rank of the tile solver owns, and products with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"
#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"

namespace blockgreedy {

// X_W where it lies, in columns of several matrices, and Z = diag(root) X_W in float32. Threads share blocks of rows,
// or, where columns are so short that finding their pieces would take longer than multiplying, parts of the columns,
// each with a sum of its own. How many there are depends on the data alone, so that sums come out the same for any
// number of threads.
template <class T>
class WorkingColumns {
 public:
  // `places`: of each column its matrix, and its number there.
  WorkingColumns(const std::vector<CscView<T>>& matrices, const std::int32_t* places, std::int64_t count)
      : n_rows_(matrices.front().n_rows), columns_(count), h_(n_rows_), u_(n_rows_) {
    std::int64_t total = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const CscView<T>& matrix = matrices[places[2 * k]];
      const std::int64_t j = places[2 * k + 1], at = matrix.start(j);
      columns_[k] = {matrix.indices + at, matrix.data + at, nullptr, total};
      total += matrix.count(j);
    }
    n_entries_ = total;
    columns_.push_back({nullptr, nullptr, nullptr, total});
    if constexpr (!std::is_same_v<T, float>) copies_.resize(total);
    for (std::int64_t k = 0; k < count; ++k) {
      if constexpr (std::is_same_v<T, float>) {
        columns_[k].floats = columns_[k].values;
      } else {
        float* to = copies_.data() + columns_[k].first;
        for (std::int64_t i = 0; i < size(k); ++i) to[i] = static_cast<float>(columns_[k].values[i]);
        columns_[k].floats = to;
      }
    }
    constexpr std::int64_t entries_per_block = 100000, most_blocks = 16;
    n_blocks_ = std::clamp<std::int64_t>(total / entries_per_block, 1, most_blocks);
    // Pieces of 64 entries and more; else private sums, if rows have entries enough to pay for them. Measured as in
    // the default solver (tuning.hpp).
    constexpr std::int64_t least_in_block = 64, entries_per_row = 4;
    n_parts_ = std::min<std::int64_t>(total / (entries_per_row * std::max<std::int64_t>(n_rows_, 1)), most_blocks);
    if (n_blocks_ == 1 || n_parts_ < 4 || total >= least_in_block * n_blocks_ * count) n_parts_ = 0;
    if (n_parts_ > 0) return;
    cuts_.resize((n_blocks_ + 1) * count);
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int32_t *begin = columns_[k].rows, *end = begin + size(k);
      for (std::int64_t b = 0; b <= n_blocks_; ++b) {
        const std::int32_t* at = b == n_blocks_ ? end : std::lower_bound(begin, end, first_row(b));
        cuts_[b * count + k] = static_cast<std::int32_t>(at - begin);
      }
    }
  }

  std::int64_t n_rows() const { return n_rows_; }
  std::int64_t n_cols() const { return static_cast<std::int64_t>(columns_.size()) - 1; }

  // Takes the roots of the rows' curvatures; fills the diagonal of ZᵀZ and Σ h·x of each column, which couples it to
  // an intercept.
  void bend(const float* root, double* diagonal, double* coupling, ThreadTeam& team) {
    for (std::int64_t i = 0; i < n_rows_; ++i) h_[i] = root[i] * root[i];
    const std::int64_t n_parts = std::min<std::int64_t>(64, std::max<std::int64_t>(n_cols(), 1));
    team.for_work(n_parts, 2 * n_entries_, [&](std::int64_t part) {
      for (std::int64_t k = n_cols() * part / n_parts; k < n_cols() * (part + 1) / n_parts; ++k) {
        const Column& column = columns_[k];
        double squares = 0, sum = 0;
        for (std::int64_t i = 0; i < size(k); ++i) {
          const double x = static_cast<double>(column.floats[i]), hx = static_cast<double>(h_[column.rows[i]]) * x;
          sum += hx;
          squares += hx * x;
        }
        diagonal[k] = squares;
        coupling[k] = sum;
      }
    });
    nonzeros_touched += n_entries_;
  }

  // out_k = (ZᵀZp)_j for j = wanted[k].
  void gram_product(const double* p, const std::int32_t* wanted, std::int64_t n_wanted, float* out,
                    ThreadTeam& team) {
    find_moved(p);
    if (n_parts_ > 0) {
      gram_product_by_parts(p, wanted, n_wanted, out, team);
      return;
    }
    partial_.resize(n_blocks_ * n_wanted);
    team.for_work(n_blocks_, 2 * n_entries_, [&](std::int64_t b) {
      std::fill(u_.begin() + first_row(b), u_.begin() + first_row(b + 1), 0.0F);
      for (const std::int32_t j : moved_) {
        const std::int32_t at = cut(b, j);
        kernels().float_axpy(columns_[j].rows + at, columns_[j].floats + at, cut(b + 1, j) - at,
                             static_cast<float>(p[j]), u_.data());
      }
      for (std::int64_t i = first_row(b); i < first_row(b + 1); ++i) u_[i] *= h_[i];
      double* own = partial_.data() + b * n_wanted;
      for (std::int64_t k = 0; k < n_wanted; ++k) {
        const std::int32_t j = wanted[k], at = cut(b, j);
        own[k] = kernels().float_dot(columns_[j].rows + at, columns_[j].floats + at, cut(b + 1, j) - at, u_.data());
      }
    });
    for (std::int64_t k = 0; k < n_wanted; ++k) {
      double sum = 0;
      for (std::int64_t b = 0; b < n_blocks_; ++b) sum += partial_[b * n_wanted + k];
      out[k] = static_cast<float>(sum);
      nonzeros_touched += size(wanted[k]);
    }
  }

  // X_W d in float64, from the columns as they are given.
  void combine(const double* d, double* out, ThreadTeam& team) {
    find_moved(d);
    if (n_parts_ > 0) {
      std::vector<double> sums;
      sum_by_parts(sums, out, team, [&](std::int32_t j, double* to) {
        const Column& column = columns_[j];
        for (std::int64_t i = 0; i < size(j); ++i) {
          to[column.rows[i]] += d[j] * static_cast<double>(column.values[i]);
        }
      });
      return;
    }
    team.for_work(n_blocks_, n_entries_, [&](std::int64_t b) {
      std::fill(out + first_row(b), out + first_row(b + 1), 0.0);
      for (const std::int32_t j : moved_) {
        const Column& column = columns_[j];
        for (std::int32_t at = cut(b, j); at < cut(b + 1, j); ++at) {
          out[column.rows[at]] += d[j] * static_cast<double>(column.values[at]);
        }
      }
    });
  }

  std::int64_t nonzeros_touched = 0;

 private:
  struct Column {
    const std::int32_t* rows;
    const T* values;
    const float* floats;
    std::int64_t first;  // of its entries, among those of all columns
  };

  std::int64_t size(std::int64_t k) const { return columns_[k + 1].first - columns_[k].first; }
  std::int64_t first_row(std::int64_t block) const { return n_rows_ * block / n_blocks_; }
  std::int32_t cut(std::int64_t block, std::int64_t j) const { return cuts_[block * n_cols() + j]; }
  void find_moved(const double* p) {
    moved_.clear();
    moved_entries_ = 0;
    for (std::int64_t j = 0; j < n_cols(); ++j) {
      if (p[j] == 0) continue;
      moved_.push_back(static_cast<std::int32_t>(j));
      moved_entries_ += size(j);
    }
    nonzeros_touched += moved_entries_;
  }

  // out = Σ of what add(j, …) adds for each column that moves, by parts of them; `sums`: scratch.
  template <class Real, class Add>
  void sum_by_parts(std::vector<Real>& sums, Real* out, ThreadTeam& team, Add add) {
    sums.resize((n_parts_ - 1) * n_rows_);
    const auto moved_cuts =
        cut_by_work(moved_.size(), moved_entries_, n_parts_, [&](std::size_t k) { return size(moved_[k]); });
    team.for_work(n_parts_, n_entries_, [&](std::int64_t part) {
      Real* to = part == 0 ? out : sums.data() + (part - 1) * n_rows_;
      std::fill(to, to + n_rows_, Real(0));
      for (auto k = moved_cuts[part]; k < moved_cuts[part + 1]; ++k) add(moved_[k], to);
    });
    const RowSlices slices(n_rows_);
    team.for_work(slices.count(), n_parts_ * n_rows_, [&](std::int64_t slice) {
      for (std::int64_t part = 1; part < n_parts_; ++part) {
        const Real* from = sums.data() + (part - 1) * n_rows_;
        for (std::int64_t i = slices.begin(slice); i < slices.end(slice); ++i) out[i] += from[i];
      }
    });
  }

  void gram_product_by_parts(const double* p, const std::int32_t* wanted, std::int64_t n_wanted, float* out,
                             ThreadTeam& team) {
    sum_by_parts(sums_, u_.data(), team, [&](std::int32_t j, float* to) {
      kernels().float_axpy(columns_[j].rows, columns_[j].floats, size(j), static_cast<float>(p[j]), to);
    });
    for (std::int64_t i = 0; i < n_rows_; ++i) u_[i] *= h_[i];
    const std::int64_t n_shares = std::min<std::int64_t>(64, n_wanted);
    team.for_work(n_shares, n_entries_, [&](std::int64_t share) {
      for (std::int64_t k = n_wanted * share / n_shares; k < n_wanted * (share + 1) / n_shares; ++k) {
        const Column& column = columns_[wanted[k]];
        out[k] = static_cast<float>(kernels().float_dot(column.rows, column.floats, size(wanted[k]), u_.data()));
      }
    });
    for (std::int64_t k = 0; k < n_wanted; ++k) nonzeros_touched += size(wanted[k]);
  }

  std::int64_t n_rows_;
  std::vector<Column> columns_;  // and one that ends the last
  std::vector<float> h_, u_, copies_, sums_;
  std::int64_t n_blocks_ = 1, n_entries_ = 0;
  std::int64_t n_parts_ = 0;        // of the columns, where threads do not share blocks of rows
  std::vector<std::int32_t> cuts_;  // of a block's first row in each column
  std::vector<double> partial_;
  std::vector<std::int32_t> moved_;
  std::int64_t moved_entries_ = 0;
};

}  // namespace blockgreedy
