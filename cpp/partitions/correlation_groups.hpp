// Groups of dense columns by correlation. (Sparse columns are grouped by common rows, which dense ones all share.)
//
// A column is reduced to a sketch of 256 numbers: rows 256 apart are added up with random signs. Products of sketches
// are those of the columns up to an error of about 1/16, which is enough to tell a correlation of 0.4 from 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/threads.hpp"
#include "kernels/kernels.hpp"
#include "partitions/packing.hpp"

namespace blockgreedy {

template <class View>
class CorrelationGroups {
 public:
  CorrelationGroups(const View& view, std::vector<std::int32_t> columns, std::uint64_t seed, ThreadTeam& team)
      : view_(view), columns_(std::move(columns)), seed_(seed), team_(team) {}

  // Calls emit(members, load) for each group. Seeds are the columns of largest mass; members correlate with the seed
  // by 0.4 or more, the most correlated first, up to the largest load of a group. Columns left over are groups of
  // their own.
  template <class F>
  void run(const std::vector<Load>& loads, std::int64_t n_blocks, F&& emit) {
    const auto n = static_cast<std::int64_t>(columns_.size());
    std::vector<std::int32_t> left(columns_.size());
    std::iota(left.begin(), left.end(), 0);
    const auto mass = [&](std::int32_t k) { return loads[k].mass; };
    std::sort(left.begin(), left.end(),
              [&](auto a, auto b) { return mass(a) != mass(b) ? mass(a) > mass(b) : a < b; });
    // A group has at most a block's share of the work of the dense columns. Its share of all work would be too much
    // where dense columns are few (stop words in text): one block would get all of them.
    Load total;
    for (const Load& load : loads) total.add(load);
    const float share = (1 + 1e-5F) / static_cast<float>(n_blocks);
    const Load most{share * total.work, mass_factor * share};
    if (!two_fit(loads, most)) {
      for (std::int32_t k : left) emit_group({k}, loads, emit);
      return;
    }
    sketch_columns();
    std::vector<float> correlations(columns_.size());
    std::int64_t alone = 0;
    for (std::int64_t group = 0; group < 4 * n_blocks && alone < n_blocks && left.size() > 1; ++group) {
      compare(left, correlations);
      if (team_.stopped()) return;
      const std::vector<std::int32_t> members = choose(left, correlations, loads, most);
      alone = members.size() > 1 ? 0 : alone + 1;
      emit_group(members, loads, emit);
      std::vector<char> taken(n);
      for (std::int32_t k : members) taken[k] = 1;
      std::erase_if(left, [&](auto k) { return taken[k] != 0; });
    }
    for (std::int32_t k : left) emit_group({k}, loads, emit);
  }

 private:
  static constexpr float threshold = 0.4F, mass_factor = 4;
  static constexpr std::int64_t width = 256;

  // Whether the two lightest columns are below the largest load of a group.
  static bool two_fit(const std::vector<Load>& loads, const Load& most) {
    if (loads.size() < 2) return false;
    std::vector<float> work(loads.size());
    std::transform(loads.begin(), loads.end(), work.begin(), [](const Load& load) { return load.work; });
    std::nth_element(work.begin(), work.begin() + 1, work.end());
    return work[0] + work[1] <= most.work;
  }

  void sketch_columns() {
    std::vector<double> signs(view_.n_rows, 1.0), ones(width);
    Random random(seed_);
    if (width < view_.n_rows) {
      for (double& sign : signs) sign = random.next() >> 63 ? 1.0 : -1.0;
    }
    for (std::size_t row = 0; row < signs.size(); ++row) ones[row % width] += signs[row];
    sketches_.resize(columns_.size() * width);
    team_.for_each(static_cast<std::int64_t>(columns_.size()),
                   [&](std::int64_t k, int) { sketch_column(columns_[k], signs, ones, sketch(k)); });
  }

  // Centred and of norm 1, so that products are correlations; zero for constant columns.
  void sketch_column(std::int64_t j, const std::vector<double>& signs, const std::vector<double>& ones,
                     float* out) const {
    double sums[width] = {}, total = 0;
    if constexpr (requires { view_.indices; }) {
      view_.for_each_nonzero(j, [&](std::int32_t row, double x) {
        sums[row % width] += signs[row] * x;
        total += x;
      });
    } else {
      total = kernels().of(view_.data).fold(view_.data + view_.start(j), view_.n_rows, signs.data(), sums);
    }
    const double mean = total / static_cast<double>(view_.n_rows);
    const double before = kernels().f64.squared_norm(sums, width);
    for (std::int64_t k = 0; k < width; ++k) sums[k] -= mean * ones[k];
    const double squares = kernels().f64.squared_norm(sums, width);
    const double scale = squares > 1e-12 * before ? 1 / std::sqrt(squares) : 0;
    for (std::int64_t k = 0; k < width; ++k) out[k] = static_cast<float>(scale * sums[k]);
  }

  // |correlation| of every column left with the first of them.
  void compare(const std::vector<std::int32_t>& left, std::vector<float>& correlations) {
    const float* seed = sketch(left.front());
    const auto n = static_cast<std::int64_t>(left.size()), run = std::max<std::int64_t>(1, min_parallel_work / width);
    team_.for_each((n + run - 1) / run, [&](std::int64_t part, int) {
      for (std::int64_t k = part * run; k < std::min(n, (part + 1) * run); ++k) {
        const std::int32_t column = left[k];
        correlations[column] = static_cast<float>(std::fabs(kernels().float_dense_dot(seed, sketch(column), width)));
      }
    });
  }

  std::vector<std::int32_t> choose(const std::vector<std::int32_t>& left, const std::vector<float>& correlations,
                                   const std::vector<Load>& loads, const Load& most) const {
    const auto correlation = [&](std::int32_t k) { return correlations[k]; };
    std::vector<std::int32_t> similar;
    std::copy_if(left.begin() + 1, left.end(), std::back_inserter(similar),
                 [&](auto k) { return correlation(k) >= threshold; });
    std::sort(similar.begin(), similar.end(), [&](auto a, auto b) {
      return correlation(a) != correlation(b) ? correlation(a) > correlation(b) : a < b;
    });
    std::vector<std::int32_t> members{left.front()};
    Load load = loads[left.front()];
    for (std::int32_t k : similar) {
      load.add(loads[k]);
      if (load.work > most.work || load.mass > most.mass) break;
      members.push_back(k);
    }
    return members;
  }

  template <class F>
  void emit_group(const std::vector<std::int32_t>& members, const std::vector<Load>& loads, F&& emit) const {
    Load load;
    std::vector<std::int32_t> columns;
    for (std::int32_t k : members) {
      load.add(loads[k]);
      columns.push_back(columns_[k]);
    }
    emit(columns, load);
  }

  float* sketch(std::int64_t k) { return sketches_.data() + k * width; }
  const float* sketch(std::int64_t k) const { return sketches_.data() + k * width; }

  const View& view_;
  const std::vector<std::int32_t> columns_;
  const std::uint64_t seed_;
  ThreadTeam& team_;
  std::vector<float> sketches_;
};

}  // namespace blockgreedy
