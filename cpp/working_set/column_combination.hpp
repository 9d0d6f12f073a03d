// Linear combinations of columns in float64, shared by the threads: sums are the same for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rows.hpp"
#include "kernels/kernels.hpp"
#include "math/core_problem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

// One column and its coefficient.
struct Term {
  std::int32_t feature;
  double coefficient;
};

template <class View>
class ColumnCombination {
 public:
  ColumnCombination(const View& view, ThreadTeam& team) : view_(view), team_(team), rows_(view.n_rows, team) {}

  // out_i = base(i) + Σ coefficient·x_ij
  template <class Base>
  void sum(const std::vector<Term>& terms, Base base, std::vector<double>& out) {
    std::int64_t work = 0;
    for (const Term& term : terms) work += view_.count(term.feature);
    // On tall data private sums would cost more than finding the rows of a slice in long columns; dense ones have
    // them for nothing.
    if (is_dense ? rows_.slices().count() >= min_slices : is_tall(view_.n_rows) && has_long_columns(terms, work))
      sum_by_rows(terms, work, base, out.data());
    else sum_by_columns(terms, work, base, out);
  }

  // The same with twice as many digits: compensated summation, each sum carries what rounding took from it.
  template <class Base>
  void sum_compensated(const std::vector<Term>& terms, Base base, std::vector<double>& out) {
    std::vector<double> rest(out.size());
    rows_.for_each([&](std::size_t i) { out[i] = base(i); });
    for (const Term& term : terms) {
      view_.for_each_nonzero(term.feature, [&](std::int32_t row, double x) {
        const auto i = static_cast<std::size_t>(row);
        const double product = term.coefficient * x, sum = out[i] + product, back = sum - out[i];
        rest[i] += std::fma(term.coefficient, x, -product) + ((out[i] - (sum - back)) + (product - back));
        out[i] = sum;
      });
    }
    rows_.for_each([&](std::size_t i) { out[i] += rest[i]; });
  }

 private:
  static constexpr bool is_dense = !requires(View view) { view.indices; };
  static constexpr std::int64_t min_slices = 4;  // fewer would leave threads without work

  bool has_long_columns(const std::vector<Term>& terms, std::int64_t work) const {
    using T = Tuning::Layout;
    const auto pieces = static_cast<std::int64_t>(terms.size()) * rows_.slices().count();
    return work >= T::least_in_slab * pieces || work < T::rows_without_slabs * view_.n_rows;
  }

  template <class Base>
  void sum_by_rows(const std::vector<Term>& terms, std::int64_t work, Base base, double* out) {
    team_.for_work(rows_.slices().count(), work + view_.n_rows, [&](std::int64_t slice) {
      const std::int64_t begin = rows_.slices().begin(slice), end = rows_.slices().end(slice);
      for (auto i = begin; i < end; ++i) out[i] = base(i);
      add(terms, 0, terms.size(), begin, end, out);
    });
  }

  // Adds terms first … last in rows begin … end.
  void add(const std::vector<Term>& terms, std::size_t first, std::size_t last, std::int64_t begin, std::int64_t end,
           double* out) const {
    if constexpr (is_dense) {
      constexpr std::size_t batch = 64;
      std::array<const typename View::Value*, batch> x;
      std::array<double, batch> coefficients;
      for (; first < last; first += std::min(batch, last - first)) {
        const std::size_t count = std::min(batch, last - first);
        for (std::size_t k = 0; k < count; ++k) {
          x[k] = view_.data + view_.start(terms[first + k].feature) + begin;
          coefficients[k] = terms[first + k].coefficient;
        }
        kernels()
            .of(view_.data)
            .combine(x.data(), coefficients.data(), static_cast<std::int64_t>(count), end - begin, out + begin);
      }
    } else {
      for (; first < last; ++first) {
        const double coefficient = terms[first].coefficient;
        const auto put = [=](std::int32_t i, double x) { out[i] += coefficient * x; };
        if (begin == 0 && end == view_.n_rows) view_.for_each_nonzero(terms[first].feature, put);
        else view_.for_each_nonzero(terms[first].feature, begin, end, put);
      }
    }
  }

  // Parts of the columns have private sums, which are added up by slices of rows.
  template <class Base>
  void sum_by_columns(const std::vector<Term>& terms, std::int64_t work, Base base, std::vector<double>& total) {
    const auto n = static_cast<std::size_t>(view_.n_rows);
    const std::int64_t n_parts = std::clamp<std::int64_t>(
        work / (Tuning::Layout::rows_per_private_sum * view_.n_rows), 1, Tuning::Layout::max_private_sums);
    if (static_cast<std::int64_t>(partial_.size()) < n_parts - 1) partial_.resize(n_parts - 1);
    const auto cuts =
        cut_by_work(terms.size(), work, n_parts, [&](std::size_t k) { return view_.count(terms[k].feature); });
    team_.for_work(n_parts, work, [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      std::vector<double>& sum = part == 0 ? total : partial_[at - 1];
      sum.resize(n);
      double* out = sum.data();
      for (std::size_t i = 0; i < n; ++i) out[i] = part == 0 ? base(i) : 0.0;
      add(terms, cuts[at], cuts[at + 1], 0, view_.n_rows, out);
    });
    if (n_parts == 1) return;
    team_.for_work(rows_.slices().count(), view_.n_rows * n_parts, [&](std::int64_t slice) {
      for (std::int64_t part = 1; part < n_parts; ++part) {
        const double* from = partial_[part - 1].data();
        double* to = total.data();
        for (std::int64_t i = rows_.slices().begin(slice); i < rows_.slices().end(slice); ++i) to[i] += from[i];
      }
    });
  }

  View view_;
  ThreadTeam& team_;
  Rows rows_;
  std::vector<std::vector<double>> partial_;
};

}  // namespace blockgreedy
