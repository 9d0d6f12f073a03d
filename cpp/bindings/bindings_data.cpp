// Bindings of what makes data and partitions.
#include "bindings/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "data/generate.hpp"
#include "data/svmlight.hpp"
#include "data/table_rows.hpp"
#include "partitions/balanced.hpp"
#include "partitions/partition.hpp"

namespace blockgreedy {

namespace {

void bind_partition(nb::module_& m) {
  m.def(
      "block_sizes",
      [](Vector<std::int32_t> block_of, std::int64_t n_blocks) {
        return give_away(block_sizes(block_of.data(), static_cast<std::int64_t>(block_of.size()), n_blocks));
      },
      "block_of"_a, "n_blocks"_a, "Features per block; those whose block is none of 0 … n_blocks-1 are not counted.");
  m.def(
      "random_blocks",
      [](std::int64_t n_features, std::int64_t n_blocks, std::uint64_t seed) {
        if (n_blocks < 1 || n_blocks > n_features) throw std::invalid_argument("n_blocks must lie in 1..n_features");
        return give_away(random_blocks(n_features, n_blocks, seed));
      },
      "n_features"_a, "n_blocks"_a, "seed"_a);
  m.def(
      "cluster_features",
      [](const PyMatrix& matrix, std::int64_t n_blocks, double max_load, int n_threads) {
        if (n_blocks < 1 || n_blocks > matrix.n_cols()) throw std::invalid_argument("n_blocks must lie in 1..n_cols");
        if (!(max_load >= 1)) throw std::invalid_argument("max_load must be at least 1");
        std::vector<std::int32_t> block_of;
        with_team(n_threads,
                  [&](ThreadTeam& team) { block_of = cluster_features(matrix.view, n_blocks, max_load, team); });
        return give_away(std::move(block_of));
      },
      "matrix"_a, "n_blocks"_a, "max_load"_a, "n_threads"_a);
  m.def(
      "balance_features",
      [](const PyMatrix& matrix, std::optional<Vector<float>> target, std::int64_t n_blocks, std::uint64_t seed,
         int n_threads) {
        if (n_blocks < 1 || n_blocks > matrix.n_cols()) throw std::invalid_argument("n_blocks must lie in 1..n_cols");
        if (target) check_size("target", target->size(), matrix.n_rows());
        std::vector<std::int32_t> block_of;
        with_team(n_threads, [&](ThreadTeam& team) {
          block_of = balance_features(matrix.view, target ? target->data() : nullptr, n_blocks, seed, team);
        });
        return give_away(std::move(block_of));
      },
      "matrix"_a, "target"_a.none(), "n_blocks"_a, "seed"_a, "n_threads"_a);
}

// Sizes first, then contents, into NumPy's own memory.
template <class Shape>
void check_buffers(const Shape& shape, std::int64_t n_compressed, Vector<std::int64_t> indptr, std::size_t n_indices,
                   std::size_t n_data, std::size_t n_labels) {
  check_size("indptr", indptr.size(), n_compressed + 1);
  check_size("indices", n_indices, indptr.data()[n_compressed]);
  check_size("data", n_data, indptr.data()[n_compressed]);
  check_size("labels", n_labels, shape.n_samples);
}

void bind_generators(nb::module_& m) {
  m.def(
      "kdda_pointers",
      [](std::int64_t n_samples, std::int64_t n_features, std::int64_t n_nonzeros, std::uint64_t seed,
         Buffer<std::int64_t> indptr, int n_threads) {
        check_size("indptr", indptr.size(), n_features + 1);
        const KddaShape shape{n_samples, n_features, n_nonzeros, seed};
        with_team(n_threads, [&](ThreadTeam& team) { kdda_pointers(shape, indptr.data(), team); });
      },
      "n_samples"_a, "n_features"_a, "n_nonzeros"_a, "seed"_a, "indptr"_a.noconvert(), "n_threads"_a);
  m.def(
      "kdda_fill",
      [](std::int64_t n_samples, std::int64_t n_features, std::int64_t n_nonzeros, std::uint64_t seed,
         Vector<std::int64_t> indptr, Buffer<std::int32_t> indices, Buffer<float> data, Buffer<std::int8_t> labels,
         int n_threads) {
        const KddaShape shape{n_samples, n_features, n_nonzeros, seed};
        check_buffers(shape, n_features, indptr, indices.size(), data.size(), labels.size());
        with_team(n_threads, [&](ThreadTeam& team) {
          kdda_fill(shape, indptr.data(), indices.data(), data.data(), labels.data(), team);
        });
      },
      "n_samples"_a, "n_features"_a, "n_nonzeros"_a, "seed"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
      "data"_a.noconvert(), "labels"_a.noconvert(), "n_threads"_a);
  m.def(
      "text_pointers",
      [](std::int64_t n_samples, std::int64_t n_features, double mean_nonzeros, std::int64_t n_topics,
         std::uint64_t seed, Buffer<std::int64_t> indptr, int n_threads) {
        check_size("indptr", indptr.size(), n_samples + 1);
        const TextShape shape{n_samples, n_features, mean_nonzeros, n_topics, seed};
        with_team(n_threads, [&](ThreadTeam& team) { text_pointers(shape, indptr.data(), team); });
      },
      "n_samples"_a, "n_features"_a, "mean_nonzeros"_a, "n_topics"_a, "seed"_a, "indptr"_a.noconvert(),
      "n_threads"_a);
  m.def(
      "text_fill",
      [](std::int64_t n_samples, std::int64_t n_features, double mean_nonzeros, std::int64_t n_topics,
         std::uint64_t seed, Vector<std::int64_t> indptr, Buffer<std::int32_t> indices, Buffer<float> data,
         Buffer<std::int8_t> labels, int n_threads) {
        const TextShape shape{n_samples, n_features, mean_nonzeros, n_topics, seed};
        check_buffers(shape, n_samples, indptr, indices.size(), data.size(), labels.size());
        with_team(n_threads, [&](ThreadTeam& team) {
          text_fill(shape, indptr.data(), indices.data(), data.data(), labels.data(), team);
        });
      },
      "n_samples"_a, "n_features"_a, "mean_nonzeros"_a, "n_topics"_a, "seed"_a, "indptr"_a.noconvert(),
      "indices"_a.noconvert(), "data"_a.noconvert(), "labels"_a.noconvert(), "n_threads"_a);
}

// Text, and the array that owns its memory.
struct PyText {
  nb::object array;
  SvmlightText text;
};

template <class T>
nb::object parse(PyText& self, Buffer<std::int64_t> indptr, Buffer<std::int32_t> indices, Buffer<T> data,
                 Buffer<double> labels, int base, bool strict, int n_threads) {
  SvmlightText& text = self.text;
  check_size("indptr", indptr.size(), text.max_rows() + 1);
  check_size("indices", indices.size(), text.max_entries());
  check_size("data", data.size(), text.max_entries());
  check_size("labels", labels.size(), text.max_rows());
  with_team(n_threads, [&](ThreadTeam& team) {
    text.parse(SvmlightRows<T>{indptr.data(), indices.data(), data.data(), labels.data()}, base, strict, team);
  });
  const SvmlightFault& fault = text.fault();
  if (fault.line == 0) return nb::none();
  return nb::make_tuple(fault.line, fault.column, fault.expected, nb::bytes(fault.found.data(), fault.found.size()));
}

template <class T>
void bind_parse(nb::class_<PyText>& text) {
  text.def("parse", &parse<T>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "labels"_a.noconvert(), "base"_a, "strict"_a, "n_threads"_a,
           "Once. None, or the first fault: (line, column, what was expected, what was found).");
}

void bind_svmlight(nb::module_& m) {
  nb::class_<PyText> text(m, "SvmlightText");
  text.def(
      "__init__",
      [](PyText* self, Vector<std::uint8_t> bytes, int n_threads) {
        const auto* begin = reinterpret_cast<const char*>(bytes.data());
        with_team(n_threads, [&](ThreadTeam& team) {
          new (self) PyText{nb::object(), SvmlightText(begin, static_cast<std::int64_t>(bytes.size()), team)};
        });
        self->array = nb::cast(bytes);
      },
      "text"_a.noconvert(), "n_threads"_a);
  text.def_prop_ro("max_rows", [](const PyText& t) { return t.text.max_rows(); });
  text.def_prop_ro("max_entries", [](const PyText& t) { return t.text.max_entries(); });
  text.def_prop_ro("lines", [](const PyText& t) { return t.text.lines(); });
  text.def_prop_ro("rows", [](const PyText& t) { return t.text.rows(); });
  text.def_prop_ro("entries", [](const PyText& t) { return t.text.entries(); });
  text.def_prop_ro("smallest", [](const PyText& t) { return t.text.smallest(); });
  text.def_prop_ro("largest", [](const PyText& t) { return t.text.largest(); });
  bind_parse<float>(text);
  bind_parse<double>(text);
}

// Columns of codes or of numbers; which of them an entry is, its type says.
std::vector<TableColumn> table_columns(const std::vector<nb::object>& arrays, const std::vector<std::int64_t>& widths,
                                       std::int64_t n_rows) {
  check_size("widths", widths.size(), static_cast<std::int64_t>(arrays.size()));
  std::vector<TableColumn> columns;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    TableColumn column;
    if (Vector<double> numbers; nb::try_cast(arrays[k], numbers, false)) {
      check_size("column", numbers.size(), n_rows);
      column.numbers = numbers.data();
    } else {
      const auto codes = nb::cast<Vector<std::int32_t>>(arrays[k], false);
      check_size("column", codes.size(), n_rows);
      column.codes = codes.data();
      column.width = widths[k];
      const auto [least, most] = std::minmax_element(codes.data(), codes.data() + n_rows);
      if (n_rows > 0 && (*least < -1 || *most >= column.width)) {
        throw std::invalid_argument("codes must lie in -1..width-1");
      }
    }
    columns.push_back(column);
  }
  return columns;
}

void check_crosses(const std::vector<TableColumn>& columns, const std::vector<CrossedColumns>& crosses) {
  for (const CrossedColumns& crossed : crosses) {
    for (const std::int32_t k : crossed) {
      if (k < 0 || k >= static_cast<std::int32_t>(columns.size()) || !columns[k].codes) {
        throw std::invalid_argument("crosses must name columns of codes");
      }
    }
  }
}

// A table, and the arrays that own its memory.
struct PyTable {
  std::vector<nb::object> arrays;
  std::vector<std::int64_t> widths;
  TableRows rows;
};

template <class T>
nb::object fill_table(const PyTable& self, Vector<std::int64_t> indptr, Buffer<std::int32_t> indices, Buffer<T> data,
                      int n_threads) {
  check_size("indptr", indptr.size(), self.rows.n_rows() + 1);
  check_size("indices", indices.size(), indptr.data()[self.rows.n_rows()]);
  check_size("data", data.size(), indptr.data()[self.rows.n_rows()]);
  std::vector<std::int64_t> unknown;
  with_team(n_threads,
            [&](ThreadTeam& team) { unknown = self.rows.fill(indptr.data(), indices.data(), data.data(), team); });
  return nb::cast(give_away(std::move(unknown)));
}

void bind_tables(nb::module_& m) {
  m.def(
      "find_crosses",
      [](std::int64_t n_rows, const std::vector<nb::object>& codes, const std::vector<std::int64_t>& widths,
         const std::vector<CrossedColumns>& crosses, std::int64_t min_count, int n_threads) {
        const std::vector<TableColumn> columns = table_columns(codes, widths, n_rows);
        check_crosses(columns, crosses);
        std::vector<std::vector<std::int64_t>> found;
        with_team(n_threads,
                  [&](ThreadTeam& team) { found = find_crosses(columns, n_rows, crosses, min_count, team); });
        std::vector<nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>> keys;
        for (auto& own : found) keys.push_back(give_away(std::move(own)));
        return keys;
      },
      "n_rows"_a, "codes"_a, "widths"_a, "crosses"_a, "min_count"_a, "n_threads"_a,
      "For each cross the keys, ascending, of the combinations that at least min_count rows have.");
  nb::class_<PyTable> table(m, "TableRows");
  table.def(
      "__init__",
      [](PyTable* self, std::int64_t n_rows, const std::vector<nb::object>& columns,
         const std::vector<std::int64_t>& widths, const std::vector<CrossedColumns>& crosses,
         const std::vector<Vector<std::int64_t>>& keys) {
        std::vector<TableColumn> taken = table_columns(columns, widths, n_rows);
        check_crosses(taken, crosses);
        check_size("keys", keys.size(), static_cast<std::int64_t>(crosses.size()));
        std::vector<TableRows::Cross> made;
        for (std::size_t k = 0; k < crosses.size(); ++k) {
          made.push_back({crosses[k], keys[k].data(), static_cast<std::int64_t>(keys[k].size())});
        }
        new (self) PyTable{columns, widths, TableRows(std::move(taken), n_rows, made)};
      },
      "n_rows"_a, "columns"_a, "widths"_a, "crosses"_a, "keys"_a,
      "Columns are float64 numbers or int32 codes; widths count the features of each.");
  table.def(
      "take",
      [](PyTable& self, std::int64_t n_rows, const std::vector<nb::object>& columns) {
        self.rows.take(table_columns(columns, self.widths, n_rows), n_rows);
        self.arrays = columns;
      },
      "n_rows"_a, "columns"_a, "Other rows of the same columns.");
  table.def_prop_ro("n_features", [](const PyTable& t) { return t.rows.n_features(); });
  table.def(
      "count",
      [](const PyTable& self, Buffer<std::int64_t> indptr, bool single, int n_threads) {
        check_size("indptr", indptr.size(), self.rows.n_rows() + 1);
        with_team(n_threads, [&](ThreadTeam& team) {
          single ? self.rows.count<float>(indptr.data(), team) : self.rows.count<double>(indptr.data(), team);
        });
      },
      "indptr"_a.noconvert(), "single"_a, "n_threads"_a, "Where rows begin; single: entries will be float32.");
  table.def("fill", &fill_table<float>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
            "n_threads"_a);
  table.def("fill", &fill_table<double>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
            "n_threads"_a, "For each cross the rows whose combination has no feature.");
}

}  // namespace

void bind_data(nb::module_& m) {
  bind_partition(m);
  bind_generators(m);
  bind_svmlight(m);
  bind_tables(m);
}

}  // namespace blockgreedy
