// Bindings of rows whose columns are wanted.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "base/transpose.hpp"
#include "bindings/bindings_problem.hpp"
#include "working_set/near_columns.hpp"

namespace blockgreedy {

namespace {

using Mask = Vector<std::uint8_t>;  // 1 for columns that are kept

using Block = LargeArray<std::byte>;  // memory of one array or of several

// A NumPy array in memory that `block` keeps alive.
template <class T>
nb::object array_in(const std::shared_ptr<Block>& block, T* begin, std::int64_t size) {
  nb::capsule owner(new std::shared_ptr<Block>(block),
                    [](void* p) noexcept { delete static_cast<std::shared_ptr<Block>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(begin, {static_cast<std::size_t>(size)}, owner));
}

// Rows in one of the types that users hold, and the arrays that own their memory.
class PyRows {
 public:
  template <class Pointer, class Index, class T>
  PyRows(std::int64_t n_rows, std::int64_t n_cols, Vector<Pointer> indptr, Vector<Index> indices, Vector<T> data,
         int n_threads)
      : n_rows_(n_rows),
        n_cols_(n_cols),
        is_double_(sizeof(T) == 8),
        arrays_{nb::cast(indptr), nb::cast(indices), nb::cast(data)} {
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

  std::int64_t n_entries(std::optional<Mask> kept) const { return sound().n_entries(checked(kept)); }

  void mark_near(Vector<double> products, double share, double alpha, OptionalVector weights, NumberOrVector lower,
                 NumberOrVector upper, Buffer<std::uint8_t> kept) const {
    check_size("products", products.size(), n_cols_);
    check_size("kept", kept.size(), n_cols_);
    const Penalty penalty = penalty_of(alpha, weights, lower, upper);
    blockgreedy::mark_near(products.data(), n_cols_, penalty, share, kept.data());
  }

  void mark_reachable(double most, double alpha, OptionalVector weights, NumberOrVector lower, NumberOrVector upper,
                      Buffer<std::uint8_t> kept) const {
    check_size("kept", kept.size(), n_cols_);
    const Penalty penalty = penalty_of(alpha, weights, lower, upper);
    blockgreedy::mark_reachable(sound(), penalty, most, kept.data());
  }

  void mark_reaching(Vector<double> reaches, double alpha, OptionalVector weights, NumberOrVector lower,
                     NumberOrVector upper, Buffer<std::uint8_t> kept) const {
    check_size("reaches", reaches.size(), n_cols_);
    check_size("kept", kept.size(), n_cols_);
    const Penalty penalty = penalty_of(alpha, weights, lower, upper);
    blockgreedy::mark_reaching(sound(), reaches.data(), penalty, kept.data());
  }

  std::int64_t count_missing(Vector<double> products, double size, double alpha, OptionalVector weights,
                             NumberOrVector lower, NumberOrVector upper, Mask kept) const {
    check_size("products", products.size(), n_cols_);
    check_size("kept", kept.size(), n_cols_);
    const Penalty penalty = penalty_of(alpha, weights, lower, upper);
    return blockgreedy::count_missing(sound(), products.data(), penalty, size, kept.data());
  }

  // (data, indices, indptr, fault)
  nb::tuple write(std::optional<Mask> kept, int n_threads) const {
    return is_double_ ? write_as<double>(checked(kept), n_threads) : write_as<float>(checked(kept), n_threads);
  }

  // None if the rows have changed.
  nb::object products(Vector<double> theta, std::int64_t every, int n_threads) const {
    check_size("theta", theta.size(), n_rows_);
    if (every < 1) throw std::invalid_argument("every must be at least 1");
    return of_columns(
        n_threads, [&](double* out, ThreadTeam& team) { return sound().products(theta.data(), every, out, team); });
  }

  // None if the rows have changed.
  nb::object reaches(Vector<double> most, int n_threads) const {
    check_size("most", most.size(), n_rows_);
    return of_columns(n_threads,
                      [&](double* out, ThreadTeam& team) { return sound().reaches(most.data(), out, team); });
  }

  nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>> long_columns(std::int64_t least) const {
    std::vector<std::int64_t> found;
    for (std::int64_t j = 0; j < n_cols_; ++j) {
      if (sound().count(j) >= least) found.push_back(j);
    }
    return give_away(std::move(found));
  }

  std::string fault;

 private:
  const RowsToColumns& sound() const {
    if (!fault.empty()) throw std::runtime_error("these rows are broken");
    return *rows_;
  }

  const std::uint8_t* checked(const std::optional<Mask>& kept) const {
    if (!kept) return nullptr;
    check_size("kept", kept->size(), n_cols_);
    std::uint8_t bits = 0;
    for (std::int64_t j = 0; j < n_cols_; ++j) bits |= kept->data()[j];
    if (bits > 1) throw std::invalid_argument("kept must hold 0 and 1");
    return kept->data();
  }

  Penalty penalty_of(double alpha, const OptionalVector& weights, const NumberOrVector& lower,
                     const NumberOrVector& upper) const {
    Penalty penalty;
    penalty.alpha = alpha;
    const auto array = [&](const Vector<double>& values) {
      check_size("weights, lower and upper", values.size(), n_cols_);
      return values.data();
    };
    if (weights) penalty.weights = array(*weights);
    if (const auto* values = std::get_if<Vector<double>>(&lower)) penalty.lower = array(*values);
    else penalty.lower_all = std::get<double>(lower);
    if (const auto* values = std::get_if<Vector<double>>(&upper)) penalty.upper = array(*values);
    else penalty.upper_all = std::get<double>(upper);
    return penalty;
  }

  // A number for each column, or None if `write` finds that the rows have changed.
  template <class Write>
  nb::object of_columns(int n_threads, Write&& write) const {
    const auto block = std::make_shared<Block>(Block::unset(n_cols_ * std::int64_t{sizeof(double)}));
    auto* out = reinterpret_cast<double*>(block->data());
    bool is_sound = false;
    with_team(n_threads, [&](ThreadTeam& team) { is_sound = write(out, team); });
    return is_sound ? array_in(block, out, n_cols_) : nb::none();
  }

  template <class T>
  nb::tuple write_as(const std::uint8_t* kept, int n_threads) const {
    const std::int64_t n_entries = sound().n_entries(kept);
    return n_entries > INT32_MAX ? write_to<T, std::int64_t>(kept, n_entries, n_threads)
                                 : write_to<T, std::int32_t>(kept, n_entries, n_threads);
  }

  template <class T, class Out>
  nb::tuple write_to(const std::uint8_t* kept, std::int64_t n_entries, int n_threads) const {
    // One block for all three: memory that was given back in one piece is used again in one piece.
    const auto bytes = [](std::int64_t count, std::size_t each) {
      return (count * static_cast<std::int64_t>(each) + 63) / 64 * 64;
    };
    const std::int64_t rows_at = bytes(n_entries, sizeof(T)), pointers_at = rows_at + bytes(n_entries, 4);
    const auto block = std::make_shared<Block>(Block::unset(pointers_at + bytes(n_cols_ + 1, sizeof(Out))));
    auto* data = reinterpret_cast<T*>(block->data());
    auto* indices = reinterpret_cast<std::int32_t*>(block->data() + rows_at);
    auto* indptr = reinterpret_cast<Out*>(block->data() + pointers_at);
    std::string found;
    with_team(n_threads, [&](ThreadTeam& team) {
      found = sound().write(kept, {indptr, sizeof(Out) == 8, indices, data}, team);
    });
    return nb::make_tuple(array_in(block, data, n_entries), array_in(block, indices, n_entries),
                          array_in(block, indptr, n_cols_ + 1), found);
  }

  std::int64_t n_rows_, n_cols_;
  bool is_double_;
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
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<PyRows> rows(m, "Rows", "Rows whose columns are wanted: see cpp/base/transpose.hpp.");
  bind_types<float>(rows);
  bind_types<double>(rows);
  rows.def_ro("fault", &PyRows::fault, "\"\" for sound rows, else one of indptr, range, finite.");
  rows.def("n_entries", &PyRows::n_entries, "kept"_a.none(), "Of the columns that are kept (None: all).");
  rows.def("mark_near", &PyRows::mark_near, "products"_a, "share"_a, "alpha"_a, "weights"_a.none(), "lower"_a,
           "upper"_a, "kept"_a.noconvert(), "Keeps columns whose product exceeds this share of their threshold too.");
  rows.def("mark_reachable", &PyRows::mark_reachable, "most"_a, "alpha"_a, "weights"_a.none(), "lower"_a, "upper"_a,
           "kept"_a.noconvert(),
           "Keeps columns that points with entries of at most this size could bring so far too.");
  rows.def("mark_reaching", &PyRows::mark_reaching, "reaches"_a, "alpha"_a, "weights"_a.none(), "lower"_a, "upper"_a,
           "kept"_a.noconvert(), "The same, judged by what ``reaches`` has returned.");
  rows.def("count_missing", &PyRows::count_missing, "products"_a, "size"_a, "alpha"_a, "weights"_a.none(), "lower"_a,
           "upper"_a, "kept"_a,
           "Columns that are not kept and may break their threshold at a point whose largest entry is this.");
  rows.def("write", &PyRows::write, "kept"_a.none(), "n_threads"_a,
           "(data, indices, indptr, fault) of the columns that are kept, all others empty.",
           nb::sig("def write(self, kept: NDArray[numpy.uint8] | None, n_threads: int) -> tuple[object, object, "
                   "object, str]"));
  rows.def(
      "products", &PyRows::products, "theta"_a, "every"_a, "n_threads"_a,
      "x_j·theta of every column, or an estimate from rows 0, every, 2·every, …; None if the rows have changed.");
  rows.def("reaches", &PyRows::reaches, "most"_a, "n_threads"_a,
           "Σ_i |x_ij| most_i of every column; None if the rows have changed.");
  m.def(
      "release_spare_memory", [] { SpareMemory::shared().clear(); },
      "Gives memory that is kept for the next fit back to the system.");
  rows.def("long_columns", &PyRows::long_columns, "least"_a, "Those with at least so many entries.");
}

}  // namespace blockgreedy
