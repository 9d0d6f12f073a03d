// Bindings of rows whose columns are wanted.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/transpose.hpp"
#include "bindings/bindings.hpp"
#include "math/core_problem.hpp"

namespace blockgreedy {

namespace {

// Rows in one of the types that users hold, and the arrays that own their memory.
class PyRows {
 public:
  template <class Pointer, class Index, class T>
  PyRows(std::int64_t n_rows, std::int64_t n_cols, Vector<Pointer> indptr, Vector<Index> indices, Vector<T> data,
         int n_threads)
      : n_cols_(n_cols), value_bytes_(sizeof(T)), arrays_{nb::cast(indptr), nb::cast(indices), nb::cast(data)} {
    check_size("indptr", indptr.size(), n_rows + 1);
    const auto nnz = static_cast<std::int64_t>(indptr.data()[n_rows]);
    if (nnz < 0 || nnz > static_cast<std::int64_t>(std::min(indices.size(), data.size()))) {
      fault = "indptr";
      return;
    }
    rows_ = std::make_unique<TypedRowsToColumns<Pointer, Index, T>>(
        CsrArrays<Pointer, Index, T>{n_rows, n_cols, indptr.data(), indices.data(), data.data()});
    with_team(n_threads, [&](ThreadTeam& team) { fault = rows_->scan(team); });
  }

  std::int64_t keep_all() { return sound().keep_all(); }

  std::int64_t keep_above(double limit, std::optional<Vector<double>> weights, Vector<std::int32_t> features) {
    if (weights) check_size("weights", weights->size(), n_cols_);
    const std::int32_t *first = features.data(), *last = first + features.size();
    if (std::any_of(first, last, [&](std::int32_t j) { return j < 0 || j >= n_cols_; }))
      throw std::invalid_argument("feature out of range");
    return sound().keep_above(limit, weights ? weights->data() : nullptr, first, features.size());
  }

  template <class Out, class T>
  std::string write(Buffer<Out> indptr, Buffer<std::int32_t> indices, Buffer<T> data, int n_threads) {
    RowsToColumns& rows = sound();
    check_size("kept", rows.kept().size(), n_cols_);
    check_size("bytes of a value", sizeof(T), value_bytes_);
    check_size("indptr", indptr.size(), n_cols_ + 1);
    check_size("indices", indices.size(), rows.n_kept_entries());
    check_size("data", data.size(), rows.n_kept_entries());
    std::string found;
    with_team(n_threads, [&](ThreadTeam& team) {
      found = rows.write({indptr.data(), sizeof(Out) == 8, indices.data(), data.data()}, team);
    });
    return found;
  }

  nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>> long_columns(std::int64_t least) const {
    std::vector<std::int64_t> found;
    for (std::int64_t j = 0; j < n_cols_; ++j) {
      if (sound().count(j) >= least) found.push_back(j);
    }
    return give_away(std::move(found));
  }

  bool has_kept(Vector<std::int32_t> features) const {
    const auto& kept = sound().kept();
    return !kept.empty() && std::all_of(features.data(), features.data() + features.size(),
                                        [&](std::int32_t j) { return j >= 0 && j < n_cols_ && kept[j] != 0; });
  }

  nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>> cuts() const {
    return give_away(sound().equal_nonzero_cuts(n_column_parts));
  }

  std::string fault;

 private:
  RowsToColumns& sound() const {
    if (!fault.empty()) throw std::runtime_error("these rows are broken");
    return *rows_;
  }

  std::int64_t n_cols_, value_bytes_;
  std::vector<nb::object> arrays_;
  std::unique_ptr<RowsToColumns> rows_;
};

template <class Pointer, class Index, class T>
void bind_init(nb::class_<PyRows>& rows) {
  rows.def(nb::init<std::int64_t, std::int64_t, Vector<Pointer>, Vector<Index>, Vector<T>, int>(), "n_rows"_a,
           "n_cols"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "n_threads"_a);
}

template <class T>
void bind_types(nb::class_<PyRows>& rows) {
  bind_init<std::int32_t, std::int32_t, T>(rows);
  bind_init<std::int64_t, std::int32_t, T>(rows);
  bind_init<std::int64_t, std::int64_t, T>(rows);
  rows.def("write", &PyRows::write<std::int32_t, T>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
           "data"_a.noconvert(), "n_threads"_a);
  rows.def("write", &PyRows::write<std::int64_t, T>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
           "data"_a.noconvert(), "n_threads"_a);
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<PyRows> rows(m, "Rows", "Rows whose columns are wanted: see cpp/base/transpose.hpp.");
  bind_types<float>(rows);
  bind_types<double>(rows);
  rows.def_ro("fault", &PyRows::fault, "\"\" for sound rows, else one of indptr, range, finite.");
  rows.def("keep_all", &PyRows::keep_all, "Entries that `write` will write.");
  rows.def("keep_above", &PyRows::keep_above, "limit"_a, "weights"_a.none(), "features"_a,
           "Keeps columns whose Σ|x| may exceed limit·weights, and these features. Entries that `write` will write.");
  rows.def("has_kept", &PyRows::has_kept, "features"_a);
  rows.def("long_columns", &PyRows::long_columns, "least"_a, "Those with at least so many entries.");
  rows.def("cuts", &PyRows::cuts, "Runs of all columns with about equal numbers of entries.");
}

}  // namespace blockgreedy
