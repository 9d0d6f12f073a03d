// The columns of a working set in the rows that a rank of the tile solver owns, and products with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

// X_W as given, and Z = diag(root) X_W in float32. Rows are cut into blocks whose number depends on the data alone: a block's part of Zp stays in the cache until its
// part of Zᵀ(Zp) is done, threads share blocks, and sums come out the same for any number of threads.
template <class T>
class WorkingColumns {
 public:
  explicit WorkingColumns(const CscView<T>& view)
      : view_(view), z_(view.n_nonzeros()), root_(view.n_rows), u_(view.n_rows) {
    constexpr std::int64_t entries_per_block = 100000, most_blocks = 16;
    n_blocks_ = std::clamp<std::int64_t>(view.n_nonzeros() / entries_per_block, 1, most_blocks);
    cuts_.resize((n_blocks_ + 1) * view.n_cols);
    for (std::int64_t j = 0; j < view.n_cols; ++j) {
      for (std::int64_t b = 0; b <= n_blocks_; ++b) {
        cuts_[b * view.n_cols + j] = b == n_blocks_ ? view.start(j + 1) : view.seek(j, first_row(b));
      }
    }
  }

  std::int64_t n_rows() const { return view_.n_rows; }
  std::int64_t n_cols() const { return view_.n_cols; }

  // Takes the roots of the rows' curvatures; fills the diagonal of ZᵀZ and Σ root²·x of each column, which couples it
  // to an intercept.
  void bend(const float* root, double* diagonal, double* coupling, ThreadTeam& team) {
    std::copy(root, root + view_.n_rows, root_.begin());
    const auto cuts = equal_nonzero_cuts(view_, n_parts);
    team.for_work(n_parts, 2 * view_.n_nonzeros(), [&](std::int64_t part) {
      for (std::int64_t j = cuts[part]; j < cuts[part + 1]; ++j) {
        const std::int64_t at = view_.start(j);
        const std::int32_t* rows = view_.indices + at;
        diagonal[j] = scale_column(rows, view_.data + at, view_.count(j), root_.data(), z_.data() + at);
        coupling[j] = kernels().float_dot(rows, z_.data() + at, view_.count(j), root_.data());
      }
    });
    nonzeros_touched += view_.n_nonzeros();
  }

  // out_k = (ZᵀZp)_j for j = wanted[k].
  void gram_product(const double* p, const std::int32_t* wanted, std::int64_t n_wanted, float* out,
                    ThreadTeam& team) {
    moved_.clear();
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      if (p[j] != 0) moved_.push_back(static_cast<std::int32_t>(j));
    }
    partial_.resize(n_blocks_ * n_wanted);
    team.for_work(n_blocks_, 2 * view_.n_nonzeros(), [&](std::int64_t b) {
      const std::int64_t begin = first_row(b), end = first_row(b + 1);
      for (std::int64_t i = begin; i < end; ++i) u_[i] = 0;
      for (const std::int32_t j : moved_) {
        const std::int64_t at = cut(b, j);
        kernels().float_axpy(view_.indices + at, z_.data() + at, cut(b + 1, j) - at, static_cast<float>(p[j]),
                             u_.data());
      }
      double* own = partial_.data() + b * n_wanted;
      for (std::int64_t k = 0; k < n_wanted; ++k) {
        const std::int64_t at = cut(b, wanted[k]);
        own[k] = kernels().float_dot(view_.indices + at, z_.data() + at, cut(b + 1, wanted[k]) - at, u_.data());
      }
    });
    for (std::int64_t k = 0; k < n_wanted; ++k) {
      double sum = 0;
      for (std::int64_t b = 0; b < n_blocks_; ++b) sum += partial_[b * n_wanted + k];
      out[k] = static_cast<float>(sum);
    }
    count(moved_.data(), static_cast<std::int64_t>(moved_.size()));
    count(wanted, n_wanted);
  }

  // X_W d in float64, from the columns as they are given.
  void combine(const double* d, double* out, ThreadTeam& team) {
    moved_.clear();
    for (std::int64_t j = 0; j < view_.n_cols; ++j) {
      if (d[j] != 0) moved_.push_back(static_cast<std::int32_t>(j));
    }
    team.for_work(n_blocks_, view_.n_nonzeros(), [&](std::int64_t b) {
      for (std::int64_t i = first_row(b); i < first_row(b + 1); ++i) out[i] = 0;
      for (const std::int32_t j : moved_) {
        for (std::int64_t at = cut(b, j); at < cut(b + 1, j); ++at) {
          out[view_.indices[at]] += d[j] * static_cast<double>(view_.data[at]);
        }
      }
    });
    count(moved_.data(), static_cast<std::int64_t>(moved_.size()));
  }

  std::int64_t nonzeros_touched = 0;

 private:
  static constexpr std::int64_t n_parts = 64;

  std::int64_t first_row(std::int64_t block) const { return view_.n_rows * block / n_blocks_; }
  std::int64_t cut(std::int64_t block, std::int64_t j) const { return cuts_[block * view_.n_cols + j]; }
  void count(const std::int32_t* columns, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) nonzeros_touched += view_.count(columns[k]);
  }

  CscView<T> view_;
  std::int64_t n_blocks_;
  std::vector<std::int64_t> cuts_;  // entry of a block's first row in each column
  std::vector<float> z_, root_, u_;
  std::vector<double> partial_;
  std::vector<std::int32_t> moved_;
};

}  // namespace blockgreedy
