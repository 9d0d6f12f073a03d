// The Gram matrix ZᵀZ of the subproblem's columns and its Cholesky factor L. With Lᵀ in place of Z the subproblem has
// the same minimum and only as many rows as columns, which pays on dense data with many rows. For squared loss the
// products stay valid from one subproblem to the next, and only those of new columns are computed. (Sparse columns:
// kept_products.hpp.) Not done by a BLAS, because results would depend on its number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/threads.hpp"

namespace blockgreedy {

class Gram {
 public:
  // Writes `count` numbers of the scaled column of a feature, from row `first` on.
  using Reader = std::function<void(std::int32_t feature, std::int64_t first, std::int64_t count, float* out)>;

  explicit Gram(ThreadTeam& team) : team_(team) {}

  // Returns about how many nanoseconds factor() will take for the columns of these features. keep: products computed
  // earlier are still right.
  double plan(const std::vector<std::int32_t>& features, std::int64_t n_rows, bool keep);

  // L with L·Lᵀ = Zᵀ·Z for the planned columns, row after row up to the diagonal. Where a column depends on those
  // before it, its diagonal is 0.
  void factor(const Reader& read, float* out);

  // Of the planned columns k and l.
  double product(std::int64_t k, std::int64_t l) const {
    const auto [low, high] = std::minmax(places_[k], places_[l]);
    return static_cast<double>(products_[high * size_ + low]);
  }

 private:
  // Products over some of the rows.
  struct Part {
    std::vector<float> products;  // of the new columns with all before them
    std::vector<float> rows;      // the columns side by side
  };
  std::int64_t n_columns() const { return static_cast<std::int64_t>(features_.size()); }
  void add_rows(const Reader& read, std::int64_t begin, std::int64_t end, Part& part) const;
  bool is_short() const;
  void add_short(const Reader& read, std::int64_t begin, std::int64_t end, Part& part) const;
  void add_few(const Reader& read, std::int64_t begin, std::int64_t end, Part& part) const;
  void make_space();
  void gather();
  void factorise(float* out);

  ThreadTeam& team_;
  std::int64_t n_rows_ = 0;
  std::vector<std::int32_t> features_;  // whose products are kept: the first n_known_ have theirs
  std::int64_t n_known_ = 0;
  std::vector<std::int32_t> places_;  // of the planned columns among them
  double cost_ = 0;
  std::vector<Part> parts_;
  std::int64_t size_ = 0;        // of the rows of products_
  std::vector<float> products_;  // up to the diagonal
  std::vector<float> left_;      // the Schur complement of the columns of L found so far, negated
};

}  // namespace blockgreedy
