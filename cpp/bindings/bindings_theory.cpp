// Bindings of what the theory and standardisation ask of a matrix.
#include "bindings/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "math/certificate.hpp"
#include "math/scales.hpp"
#include "partitions/cross_products.hpp"

namespace blockgreedy {

namespace {

BlockOf checked_blocks(Vector<std::int32_t> block_of, std::int64_t n_blocks, std::int64_t n_cols) {
  check_size("block_of", block_of.size(), n_cols);
  for (std::int64_t j = 0; j < n_cols; ++j) {
    if (block_of.data()[j] < 0 || block_of.data()[j] >= n_blocks) {
      throw std::invalid_argument("block_of must lie in 0..n_blocks-1");
    }
  }
  return {block_of.data(), n_blocks};
}

bool is_float64(const Matrix& matrix) {
  return std::holds_alternative<CscView<double>>(matrix) || std::holds_alternative<DenseView<double>>(matrix);
}

using Numbers = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

std::tuple<Numbers, Numbers, Numbers> cross_products_of(const PyMatrix& columns, const PyMatrix& rows,
                                                        std::optional<Vector<double>> tilt,
                                                        Vector<std::int32_t> block_of, std::int64_t n_blocks,
                                                        Vector<std::int32_t> seeds, int n_threads) {
  const BlockOf blocks = checked_blocks(block_of, n_blocks, columns.n_cols());
  const bool sparse = std::holds_alternative<CscView<double>>(columns.view);
  if (!is_float64(columns.view)) throw std::invalid_argument("columns must be float64");
  if (sparse && (!std::holds_alternative<CscView<double>>(rows.view) || rows.n_cols() != columns.n_rows() ||
                 rows.n_rows() != columns.n_cols())) {
    throw std::invalid_argument("rows must be the transpose of columns");
  }
  if (tilt && !sparse) throw std::invalid_argument("tilt is for sparse columns; centre dense ones");
  if (tilt) check_size("tilt", tilt->size(), columns.n_cols());
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    if (seeds.data()[k] < 0 || seeds.data()[k] >= columns.n_cols()) throw std::invalid_argument("no such seed");
  }
  CrossProducts found;
  with_team(n_threads, [&](ThreadTeam& team) {
    const UnitMatrix unit{columns.view, rows.view, tilt ? tilt->data() : nullptr};
    found = cross_products(unit, blocks, {seeds.data(), seeds.size()}, team);
  });
  return {give_away(std::move(found.largest)), give_away(std::move(found.sums)), give_away(std::move(found.between))};
}

nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> blocks_touched_of(const PyMatrix& matrix,
                                                                    Vector<std::int32_t> block_of,
                                                                    std::int64_t n_blocks, int n_threads) {
  const BlockOf blocks = checked_blocks(block_of, n_blocks, matrix.n_cols());
  std::vector<std::int32_t> counts;
  with_team(n_threads, [&](ThreadTeam& team) { counts = blocks_touched(matrix.view, blocks, team); });
  return give_away(std::move(counts));
}

Numbers weighted_squares_of(const PyMatrix& matrix, std::optional<Vector<double>> weights, int n_threads) {
  if (weights) check_size("weights", weights->size(), matrix.n_rows());
  std::vector<double> sums;
  with_team(n_threads, [&](ThreadTeam& team) {
    sums = weighted_squares(matrix.view, weights ? weights->data() : nullptr, team);
  });
  return give_away(std::move(sums));
}

Numbers column_scales_of(const PyMatrix& matrix, std::optional<Vector<double>> row_weights, bool centred,
                         int n_threads) {
  if (row_weights) check_size("row_weights", row_weights->size(), matrix.n_rows());
  std::vector<double> scales;
  with_team(n_threads, [&](ThreadTeam& team) {
    scales = column_scales(matrix.view, row_weights ? row_weights->data() : nullptr, centred, team);
  });
  return give_away(std::move(scales));
}

Numbers column_products_of(const PyMatrix& matrix, Vector<double> r, int n_threads) {
  check_size("r", r.size(), matrix.n_rows());
  std::vector<double> products(matrix.n_cols());
  with_team(n_threads, [&](ThreadTeam& team) { column_products(matrix.view, r.data(), products.data(), team); });
  return give_away(std::move(products));
}

Numbers combine_columns_of(const PyMatrix& matrix, Vector<double> w) {
  check_size("w", w.size(), matrix.n_cols());
  std::vector<double> Xw(matrix.n_rows());
  {
    nb::gil_scoped_release release;
    predict(matrix.view, w.data(), Xw.data());
  }
  return give_away(std::move(Xw));
}

void check_features(const PyMatrix& matrix, const Vector<std::int32_t>& features) {
  for (std::size_t k = 0; k < features.size(); ++k) {
    if (features.data()[k] < 0 || features.data()[k] >= matrix.n_cols()) {
      throw std::invalid_argument("features must lie in 0..n_cols-1");
    }
  }
}

Numbers squared_norms_of(const PyMatrix& matrix, Vector<std::int32_t> features) {
  check_features(matrix, features);
  std::vector<double> squares(features.size());
  std::visit(
      [&](const auto& view) {
        for (std::size_t k = 0; k < squares.size(); ++k) squares[k] = column_squared_norm(view, features.data()[k]);
      },
      matrix.view);
  return give_away(std::move(squares));
}

Numbers some_column_products_of(const PyMatrix& matrix, Vector<std::int32_t> features, Vector<double> r) {
  check_size("r", r.size(), matrix.n_rows());
  check_features(matrix, features);
  std::vector<double> products(features.size());
  {
    nb::gil_scoped_release release;
    std::visit(
        [&](const auto& view) {
          column_dots(view, features.data(), 0, static_cast<std::int64_t>(features.size()), r.data(),
                      products.data());
        },
        matrix.view);
  }
  return give_away(std::move(products));
}

Numbers combine_some_columns_of(const PyMatrix& matrix, Vector<std::int32_t> features, Vector<double> values) {
  check_size("values", values.size(), static_cast<std::int64_t>(features.size()));
  check_features(matrix, features);
  std::vector<double> Xw(matrix.n_rows());
  {
    nb::gil_scoped_release release;
    std::visit(
        [&](const auto& view) {
          for (std::size_t k = 0; k < features.size(); ++k) {
            const double weight = values.data()[k];
            view.for_each_nonzero(features.data()[k], [&](std::int32_t row, double x) { Xw[row] += weight * x; });
          }
        },
        matrix.view);
  }
  return give_away(std::move(Xw));
}

}  // namespace

void bind_theory(nb::module_& m) {
  m.def("cross_products", &cross_products_of, "columns"_a, "rows"_a, "tilt"_a.none(), "block_of"_a.noconvert(),
        "n_blocks"_a, "seeds"_a.noconvert(), "n_threads"_a);
  m.def("blocks_touched", &blocks_touched_of, "matrix"_a, "block_of"_a.noconvert(), "n_blocks"_a, "n_threads"_a);
  m.def("weighted_squares", &weighted_squares_of, "matrix"_a, "weights"_a.none(), "n_threads"_a);
  m.def("column_scales", &column_scales_of, "matrix"_a, "row_weights"_a.none(), "centred"_a, "n_threads"_a);
  m.def("column_products", &column_products_of, "matrix"_a, "r"_a.noconvert(), "n_threads"_a);
  m.def("combine_columns", &combine_columns_of, "matrix"_a, "w"_a.noconvert());
  m.def("combine_some_columns", &combine_some_columns_of, "matrix"_a, "features"_a.noconvert(),
        "values"_a.noconvert(), "Σ over the features of values_k x_j.");
  m.def("some_column_products", &some_column_products_of, "matrix"_a, "features"_a.noconvert(), "r"_a.noconvert(),
        "x_j·r of these features.");
  m.def("squared_norms", &squared_norms_of, "matrix"_a, "features"_a.noconvert(), "‖x_j‖² of these features.");
}

}  // namespace blockgreedy
