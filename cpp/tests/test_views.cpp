#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/threads.hpp"
#include "base/transpose.hpp"
#include "base/views.hpp"
#include "kernels/kernels.hpp"
#include "tests/check.hpp"

namespace blockgreedy {
namespace {

// 4 × 3:  1 0 2
//         0 0 3
//         4 0 0
//         5 0 6
struct Example {
  std::vector<std::int32_t> indptr{0, 3, 3, 6}, indices{0, 2, 3, 0, 1, 3};
  std::vector<double> data{1, 4, 5, 2, 3, 6};

  CscView<double> view() const { return {4, 3, indptr.data(), false, indices.data(), data.data()}; }
  std::string fault() const {
    ThreadTeam team(2);
    return describe_fault(view(), team);
  }
};

TEST("a view knows its columns, for both widths of pointers") {
  const Example example;
  const std::vector<std::int64_t> wide(example.indptr.begin(), example.indptr.end());
  CscView<double> second = example.view();
  second.indptr = wide.data();
  second.wide = true;
  for (const auto& view : {example.view(), second}) {
    CHECK_EQUAL(view.n_nonzeros(), 6);
    CHECK_EQUAL(view.count(0), 3);
    CHECK_EQUAL(view.count(1), 0);
    double sum = 0;
    view.for_each_nonzero(2, [&](std::int32_t row, double x) { sum += x * (row + 1); });
    CHECK_EQUAL(sum, 2 + 6 + 24);
    view.for_each_nonzero(2, 1, 3, [&](std::int32_t row, double x) { sum -= x * (row + 1); });
    CHECK_EQUAL(sum, 2 + 24);
  }
}

TEST("seek and walk continue where they stopped") {
  const Example example;
  const auto view = example.view();
  std::vector<std::int32_t> rows;
  const auto note = [&](std::int32_t row, double) { rows.push_back(row); };
  std::int64_t at = view.seek(0, 1);
  at = view.walk(0, at, 3, note);
  CHECK_EQUAL(rows.size(), 1U);
  view.walk(0, at, 4, note);
  CHECK_EQUAL(rows.size(), 2U);
  CHECK_EQUAL(rows.back(), 3);
}

TEST("sparse and dense columns have the same products and norms") {
  const Example example;
  const auto sparse = example.view();
  std::vector<double> values(12), r{0.5, -1, 2, 3};
  for (std::int64_t j = 0; j < 3; ++j) {
    sparse.for_each_nonzero(j, [&](std::int32_t row, double x) { values[4 * j + row] = x; });
  }
  const DenseView<double> dense{4, 3, values.data()};
  for (std::int64_t j = 0; j < 3; ++j) {
    CHECK_EQUAL(column_dot(sparse, j, r.data()), column_dot(dense, j, r.data()));
    CHECK_EQUAL(column_squared_norm(sparse, j), column_squared_norm(dense, j));
  }
  CHECK_EQUAL(column_dot(sparse, 0, r.data()), 0.5 + 8 + 15);
}

TEST("faults of a matrix are named, and the lowest wins") {
  CHECK_EQUAL(Example().fault(), "");
  Example example;
  example.data[3] = std::numeric_limits<double>::quiet_NaN();
  CHECK_EQUAL(example.fault(), "finite");
  example.indices[1] = 0;
  CHECK_EQUAL(example.fault(), "unsorted");
  example.indices[5] = 4;
  CHECK_EQUAL(example.fault(), "range");
  example.indices[5] = -1;
  CHECK_EQUAL(example.fault(), "range");
  example.indptr[2] = 2;
  CHECK_EQUAL(example.fault(), "indptr");
  const std::vector<float> values{1, std::numeric_limits<float>::infinity()};
  ThreadTeam team(1);
  CHECK_EQUAL(std::string(describe_fault(DenseView<float>{2, 1, values.data()}, team)), "finite");
}

TEST("cuts of columns begin at 0, end at n_cols and do not fall") {
  const Example example;
  for (const std::int64_t n_parts : {1, 2, 3, 64}) {
    const auto cuts = equal_nonzero_cuts(example.view(), n_parts);
    CHECK_EQUAL(static_cast<std::int64_t>(cuts.size()), n_parts + 1);
    CHECK(cuts.front() == 0 && cuts.back() == 3);
    for (std::size_t k = 1; k < cuts.size(); ++k) CHECK(cuts[k] >= cuts[k - 1]);
  }
}

TEST("row ranks are a permutation, and row_at_rank is its inverse") {
  for (const std::uint32_t salt : {0U, 1U, 0xdeadbeefU}) {
    for (const std::uint32_t row : {0U, 1U, 77U, 0x7fffffffU})
      CHECK_EQUAL(row_at_rank(row_rank(row, salt), salt), row);
  }
}

// Of a transposition: the fault and the columns.
using Transposed = std::tuple<std::string, std::vector<std::int64_t>, std::vector<std::int32_t>, std::vector<float>>;

Transposed transposed(std::int64_t n_cols, const std::vector<std::int64_t>& indptr,
                      const std::vector<std::int64_t>& indices, const std::vector<float>& data, int n_threads) {
  ThreadTeam team(n_threads);
  std::vector<std::int64_t> out_indptr(n_cols + 1);
  std::vector<std::int32_t> out_indices(data.size());
  std::vector<float> out_data(data.size());
  const auto n_rows = static_cast<std::int64_t>(indptr.size()) - 1;
  TypedRowsToColumns<std::int64_t, std::int64_t, float> rows(
      {n_rows, n_cols, indptr.data(), indices.data(), data.data()});
  std::string fault = rows.scan(team);
  if (fault.empty())
    fault = rows.write(nullptr, {out_indptr.data(), true, out_indices.data(), out_data.data()}, team);
  return {fault, out_indptr, out_indices, out_data};
}

TEST("rows become columns") {
  const auto [fault, indptr, indices, data] = transposed(3, {0, 2, 3, 3, 5}, {0, 2, 1, 2, 0}, {1, 2, 3, 4, 5}, 1);
  CHECK_EQUAL(fault, "");
  CHECK((indptr == std::vector<std::int64_t>{0, 2, 3, 5}));
  CHECK((indices == std::vector<std::int32_t>{0, 3, 1, 0, 3}));
  CHECK((data == std::vector<float>{1, 5, 3, 2, 4}));
}

TEST("a transposition does not depend on the number of threads") {
  std::vector<std::int64_t> indptr{0}, indices;
  std::vector<float> data;
  const std::int64_t n_cols = 101;
  for (std::int64_t i = 0; i < 6000; ++i) {  // enough entries for several runs of rows
    for (std::int64_t j = i % 3; j < n_cols; j += 2 + i % 2) indices.push_back(j);
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
  for (std::size_t k = 0; k < indices.size(); ++k) data.push_back(static_cast<float>(k % 1000));
  const auto alone = transposed(n_cols, indptr, indices, data, 1);
  CHECK_EQUAL(std::get<0>(alone), "");
  CHECK(transposed(n_cols, indptr, indices, data, 2) == alone);
  CHECK(transposed(n_cols, indptr, indices, data, 4) == alone);
}

TEST("faults of rows are named") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_EQUAL(std::get<0>(transposed(2, {1, 2}, {0, 1}, {1, 2}, 1)), "indptr");
  CHECK_EQUAL(std::get<0>(transposed(2, {0, 2, 1}, {0, 1}, {1, 2}, 1)), "indptr");
  CHECK_EQUAL(std::get<0>(transposed(2, {0, 2}, {0, 2}, {1, 2}, 1)), "range");
  CHECK_EQUAL(std::get<0>(transposed(2, {0, 2}, {0, -1}, {1, 2}, 1)), "range");
  CHECK_EQUAL(std::get<0>(transposed(2, {0, 2}, {1, 1}, {1, 2}, 1)), "unsorted");
  CHECK_EQUAL(std::get<0>(transposed(2, {0, 2}, {0, 1}, {1, nan}, 1)), "finite");
}

}  // namespace
}  // namespace blockgreedy
