// The linear systems A x = r of several folds on their supports, A = XᵀHX + ridge, by conjugate gradients side by
// side.
//
// A product with A goes down blocks of rows: forward, q = Xp, and back, Xᵀ(h∘q), while the block is in the cache. The
// columns are copied for that, block by block: short pieces of them would otherwise be waited for one by one. Threads
// share the blocks, so that nobody needs a private sum over all rows; what the blocks give back to each coordinate is
// added up in their order, and comes out the same for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "folds/lanes.hpp"
#include "kernels/kernels.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

template <class View>
class LaneSystem {
  using T = Tuning::Folds;

 public:
  LaneSystem(const View& view, const LaneRows& curvatures, ThreadTeam& team)
      : view_(view), curvatures_(curvatures), team_(team), blocks_(static_cast<std::size_t>(n_blocks(view.n_rows))) {
    for (auto* v : {&Xx, &q, &hq_}) *v = LaneRows(view.n_rows);
  }

  struct Coordinate {
    std::int32_t column, feature;             // its place in the subproblem; the feature is -1 for the intercept
    LaneFloats smooth{}, inverse{}, ridge{};  // 1 or 0: whether it takes part; of the diagonal of A, 0 if it does not
    LaneFloats x{}, r{}, Ap{};
  };
  std::vector<Coordinate> coordinates;
  std::vector<LaneFloats> p;  // by coordinate: a direction
  LaneRows Xx, q;             // by row: the predictions of x, and of the last p

  // x = 0; takes XᵀH·Xd from r, which is masked by `smooth`. Returns r·p.
  Lanes begin(const LaneRows& Xd) {
    p.resize(coordinates.size());
    work_ = 0;
    for (const Coordinate& c : coordinates) work_ += c.feature < 0 ? view_.n_rows : view_.count(c.feature);
    for_blocks([&](Block& block, std::int64_t begin, std::int64_t end) {
      copy_columns(block, static_cast<std::int32_t>(begin / n_lanes), static_cast<std::int32_t>(end / n_lanes));
      std::fill(Xx.data() + begin, Xx.data() + end, 0.0F);
      for (std::int64_t i = begin; i < end; ++i) hq_[i] = curvatures_[i] * Xd[i];
      back(block, begin);
    });
    nonzeros_touched += 2 * work_;
    return sum_coordinates([&](std::size_t k, Coordinate& c, Lanes& sum) {
      const LaneFloats product = returned(k);
      for (int f = 0; f < n_lanes; ++f) {
        c.r[f] = c.smooth[f] * (c.r[f] - product[f]);
        p[k][f] = c.inverse[f] * c.r[f];
        sum[f] += static_cast<double>(c.r[f]) * static_cast<double>(p[k][f]);
      }
    });
  }

  // Ap of the p, and q. Returns p·Ap.
  Lanes multiply() {
    for_blocks([&](Block& block, std::int64_t begin, std::int64_t end) {
      forward(block, begin, end);
      for (std::int64_t i = begin; i < end; ++i) hq_[i] = curvatures_[i] * q[i];
      back(block, begin);
    });
    nonzeros_touched += 2 * work_;
    return sum_coordinates([&](std::size_t k, Coordinate& c, Lanes& sum) {
      const LaneFloats product = returned(k);
      for (int f = 0; f < n_lanes; ++f) {
        c.Ap[f] = c.smooth[f] * (product[f] + c.ridge[f] * p[k][f]);
        sum[f] += static_cast<double>(p[k][f]) * static_cast<double>(c.Ap[f]);
      }
    });
  }

  // x += length·p, with the residual and Xx. Returns r·(inverse∘r).
  Lanes move_along(const Lanes& length) {
    const LaneFloats steps = narrow(length);
    for_blocks([&](Block&, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += n_lanes)
        for (int f = 0; f < n_lanes; ++f) Xx[i + f] += steps[f] * q[i + f];
    });
    return sum_coordinates([&](std::size_t k, Coordinate& c, Lanes& sum) {
      for (int f = 0; f < n_lanes; ++f) {
        c.x[f] += steps[f] * p[k][f];
        c.r[f] -= steps[f] * c.Ap[f];
        sum[f] += static_cast<double>(c.r[f]) * static_cast<double>(c.inverse[f] * c.r[f]);
      }
    });
  }

  // The next p: inverse∘r + more·p in lanes that run, 0 in others.
  void turn(const std::array<bool, n_lanes>& runs, const Lanes& more) {
    LaneFloats old = narrow(more), fresh{};
    for (int f = 0; f < n_lanes; ++f) fresh[f] = runs[f] ? 1.0F : 0.0F;
    for_work([&](std::int64_t part) {
      for_part(part, [&](std::size_t k, const Coordinate& c) {
        for (int f = 0; f < n_lanes; ++f) p[k][f] = fresh[f] * c.inverse[f] * c.r[f] + old[f] * p[k][f];
      });
    });
  }

  // q of the p, which is added to Xx.
  void correct() {
    for_blocks([&](Block& block, std::int64_t begin, std::int64_t end) {
      forward(block, begin, end);
      for (std::int64_t i = begin; i < end; ++i) Xx[i] += q[i];
    });
    nonzeros_touched += work_;
  }

  std::int64_t nonzeros_touched = 0;

 private:
  static LaneFloats narrow(const Lanes& wide) {
    LaneFloats values;
    for (int f = 0; f < n_lanes; ++f) values[f] = static_cast<float>(wide[f]);
    return values;
  }

  // The columns in a block of rows: as they are, with rows counted from its first one.
  struct Block {
    std::vector<std::int64_t> starts;  // by coordinate
    std::vector<std::uint16_t> rows;
    std::vector<float> values;
    std::vector<LaneFloats> returned;  // by coordinate: products
  };

  static std::int64_t n_blocks(std::int64_t n_rows) {
    const auto blocks_of = [&](std::int64_t size) { return (n_rows + size - 1) / size; };
    const std::int64_t n =
        std::max(std::min(blocks_of(T::rows_per_block), T::max_blocks), blocks_of(T::most_rows_per_block));
    return n > 1 ? (n + 3) / 4 * 4 : 1;  // two or four threads get equal shares
  }

  // f(block, begin, end) for blocks of vectors over rows and lanes.
  template <class F>
  void for_blocks(F&& f) {
    const auto n = static_cast<std::int64_t>(blocks_.size());
    team_.for_work(n, work_ + n_lanes * view_.n_rows, [&](std::int64_t k) {
      f(blocks_[k], n_lanes * (view_.n_rows * k / n), n_lanes * (view_.n_rows * (k + 1) / n));
    });
  }

  template <class F>
  void for_part(std::int64_t part, F&& f) {
    const auto size = static_cast<std::int64_t>(coordinates.size());
    for (std::int64_t k = size * part / T::n_parts; k < size * (part + 1) / T::n_parts; ++k)
      f(static_cast<std::size_t>(k), coordinates[k]);
  }
  template <class F>
  void for_work(F&& f) {
    team_.for_work(T::n_parts, n_lanes * static_cast<std::int64_t>(coordinates.size()), f);
  }
  // Σ of what f adds to the sum of its part.
  template <class F>
  Lanes sum_coordinates(F&& f) {
    std::array<Lanes, T::n_parts> sums{};
    for_work([&](std::int64_t part) { for_part(part, [&](std::size_t k, Coordinate& c) { f(k, c, sums[part]); }); });
    Lanes sum{};
    for (const Lanes& own : sums) add(own, sum);
    return sum;
  }

  void copy_columns(Block& block, std::int32_t first, std::int32_t end) {
    const auto m = coordinates.size();
    block.starts.resize(m + 1);
    block.returned.resize(m);
    std::int64_t size = 0;
    for (std::size_t k = 0; k < m; ++k) {
      block.starts[k] = size;
      const auto [from, to] = entries_between(coordinates[k].feature, first, end);
      size += to - from;
    }
    block.starts[m] = size;
    if (static_cast<std::int64_t>(block.rows.size()) < size) {
      block.rows.resize(static_cast<std::size_t>(size + size / 4));  // supports grow along a path
      block.values.resize(block.rows.size());
    }
    for (std::size_t k = 0; k < m; ++k) {
      const std::int64_t count = block.starts[k + 1] - block.starts[k];
      std::uint16_t* rows = block.rows.data() + block.starts[k];
      float* values = block.values.data() + block.starts[k];
      const std::int64_t from = entries_between(coordinates[k].feature, first, end).first;
      const bool is_intercept = coordinates[k].feature < 0;
      for (std::int64_t e = 0; e < count; ++e) {
        rows[e] = static_cast<std::uint16_t>(is_intercept ? e : view_.indices[from + e] - first);
        values[e] = is_intercept ? 1.0F : static_cast<float>(view_.data[from + e]);
      }
    }
  }

  // Of a column, those in rows first … end.
  std::pair<std::int64_t, std::int64_t> entries_between(std::int32_t j, std::int32_t first, std::int32_t end) const {
    if (j < 0) return {first, end};
    const std::int32_t *column = view_.indices + view_.start(j), *last = column + view_.count(j);
    const std::int32_t* from = std::lower_bound(column, last, first);
    return {from - view_.indices, std::lower_bound(from, last, end) - view_.indices};
  }

  // q = Σ x_k·p_k, of the rows of a block.
  void forward(const Block& block, std::int64_t begin, std::int64_t end) {
    std::fill(q.data() + begin, q.data() + end, 0.0F);
    kernels().lane_combine(block.rows.data(), block.values.data(), block.starts.data(),
                           static_cast<std::int64_t>(coordinates.size()), p.data()->data(), q.data() + begin);
  }

  // x_k·hq, of the rows of a block.
  void back(Block& block, std::int64_t begin) {
    kernels().lane_products(block.rows.data(), block.values.data(), block.starts.data(),
                            static_cast<std::int64_t>(coordinates.size()), hq_.data() + begin,
                            block.returned.data()->data());
  }

  LaneFloats returned(std::size_t k) const {
    LaneFloats sum{};
    for (const Block& block : blocks_)
      for (int f = 0; f < n_lanes; ++f) sum[f] += block.returned[k][f];
    return sum;
  }

  const View view_;
  const LaneRows& curvatures_;
  ThreadTeam& team_;
  std::vector<Block> blocks_;
  std::int64_t work_ = 0;  // entries of the coordinates' columns
  LaneRows hq_;
};

}  // namespace blockgreedy
