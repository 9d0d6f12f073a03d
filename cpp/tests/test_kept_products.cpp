#include "working_set/kept_products.hpp"

#include <cmath>

#include "tests/check.hpp"
#include "tests/random_data.hpp"
#include "working_set/scaled_columns.hpp"

namespace blockgreedy {
namespace {

using testing::is_near;
using testing::RandomMatrix;

struct Kept {
  Kept(std::int64_t n_rows, std::int64_t n_bytes, int n_threads)
      : x(n_rows, 200, 0.1, 3),
        roots(static_cast<std::size_t>(n_rows)),
        team(n_threads),
        products(n_bytes, n_rows, team) {
    for (std::size_t i = 0; i < roots.size(); ++i) roots[i] = 0.5F + 0.1F * static_cast<float>(i % 7);
  }
  void keep(const std::vector<std::int32_t>& features) {
    std::int64_t work = 0;
    for (std::int32_t j : features) work += j < 0 ? x.n_rows : x.view().count(j);
    products.keep(features, work, ColumnReader{x.view(), roots.data()});
  }
  double value(std::int64_t i, std::int32_t j) const {
    return (j < 0 ? 1.0 : x.at(i, j)) * static_cast<double>(roots[i]);
  }
  // Compares all products of these features with sums over all rows.
  bool has_products_of(const std::vector<std::int32_t>& features) const {
    bool right = products.slots().size() == features.size();
    for (std::size_t a = 0; a < features.size() && right; ++a) {
      for (std::size_t b = 0; b < features.size(); ++b) {
        double sum = 0;
        for (std::int64_t i = 0; i < x.n_rows; ++i) sum += value(i, features[a]) * value(i, features[b]);
        const float* row = products.data() + products.start(products.slots()[a]);
        right = right && is_near(static_cast<double>(row[products.slots()[b]]), sum, 1e-5);
      }
    }
    return right;
  }

  RandomMatrix x;
  std::vector<float> roots;
  ThreadTeam team;
  KeptProducts products;
};

std::vector<std::int32_t> range(std::int32_t first, std::int32_t last, std::int32_t by) {
  std::vector<std::int32_t> out;
  for (std::int32_t j = first; j < last; j += by) out.push_back(j);
  return out;
}

TEST("kept products: few new columns, many new columns and the intercept") {
  for (const int n_threads : {1, 2}) {
    Kept kept(90, 4 * 150 * 150, n_threads);
    kept.keep({-1, 5, 9});  // few
    CHECK(kept.has_products_of({-1, 5, 9}));
    std::vector<std::int32_t> more = range(3, 120, 2);
    more.insert(more.begin(), -1);
    kept.keep(more);  // many
    CHECK(kept.has_products_of(more));
    more.push_back(150);
    kept.keep(more);  // few, beside many that are known
    CHECK(kept.has_products_of(more));
    kept.keep({-1, 5, 9, 151});  // most are not asked for any more
    CHECK(kept.has_products_of({-1, 5, 9, 151}));
  }
}

TEST("kept products: what does not fit any more makes room for what is asked for") {
  Kept kept(90, 4 * 70 * 70, 1);
  CHECK_EQUAL(kept.products.max_columns(), 70);
  kept.keep(range(0, 60, 1));
  CHECK(kept.has_products_of(range(0, 60, 1)));
  kept.keep(range(30, 95, 1));  // 95 together
  CHECK(kept.products.size() <= 70);
  CHECK(kept.has_products_of(range(30, 95, 1)));
  kept.products.clear();
  CHECK_EQUAL(kept.products.size(), 0);
  kept.keep(range(10, 40, 3));
  CHECK(kept.has_products_of(range(10, 40, 3)));
}

}  // namespace
}  // namespace blockgreedy
