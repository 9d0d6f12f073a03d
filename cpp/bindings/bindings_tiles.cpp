// What a rank of the tile solver computes by itself.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>
#include <variant>

#include "bindings/bindings.hpp"
#include "tiles/gathered_columns.hpp"
#include "tiles/own_rows.hpp"
#include "tiles/sound_columns.hpp"
#include "tiles/working_columns.hpp"

namespace blockgreedy {
namespace {

constexpr const char* changed_columns =
    "X has changed while it was fitted: columns have rows or entries outside of it; fit again once nobody writes to "
    "it";

// Threads that several objects share. Ctrl-C is left to Python: ranks have to agree on where to stop.
struct PyTeam {
  explicit PyTeam(int n_threads) : team(n_threads) {}
  ThreadTeam team;
};

template <class T>
using Given = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// The views of matrices of one kind.
template <class T>
std::vector<CscView<T>> views_of(const std::vector<nb::object>& matrices) {
  std::vector<CscView<T>> views;
  for (const nb::object& object : matrices) {
    const auto* view = std::get_if<CscView<T>>(&nb::cast<const PyMatrix&>(object).view);
    if (view == nullptr) throw std::invalid_argument("matrices must be sparse and of one type");
    views.push_back(*view);
  }
  return views;
}

bool is_float(const std::vector<nb::object>& matrices) {
  if (matrices.empty()) throw std::invalid_argument("matrices must not be empty");
  return std::holds_alternative<CscView<float>>(nb::cast<const PyMatrix&>(matrices.front()).view);
}

class PyWorkingColumns {
  using Float = WorkingColumns<float>;
  using Double = WorkingColumns<double>;

  template <class F>
  auto with(F&& f) {
    return columns_.index() == 1 ? f(std::get<Float>(columns_)) : f(std::get<Double>(columns_));
  }

 public:
  PyWorkingColumns(std::vector<nb::object> matrices, Vector<std::int32_t> places, nb::object team)
      : matrices_(std::move(matrices)), team_(team), threads_(nb::cast<PyTeam&>(team).team) {
    const auto count = static_cast<std::int64_t>(places.size()) / 2;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int32_t matrix = places.data()[2 * k], column = places.data()[2 * k + 1];
      if (matrix < 0 || matrix >= static_cast<std::int32_t>(matrices_.size()) || column < 0 ||
          column >= nb::cast<const PyMatrix&>(matrices_[matrix]).n_cols())
        throw std::invalid_argument("places must be those of columns");
    }
    if (is_float(matrices_)) columns_.emplace<Float>(views_of<float>(matrices_), places.data(), count);
    else columns_.emplace<Double>(views_of<double>(matrices_), places.data(), count);
  }

  Given<double> bend(Vector<float> root) {
    return with([&](auto& columns) {
      check_size("root", root.size(), columns.n_rows());
      std::vector<double> sums(2 * columns.n_cols());
      {
        nb::gil_scoped_release release;
        columns.bend(root.data(), sums.data(), sums.data() + columns.n_cols(), threads_);
      }
      return give_away(std::move(sums));
    });
  }

  Given<float> gram_product(Vector<double> p, Vector<std::int32_t> wanted) {
    return with([&](auto& columns) {
      check_size("p", p.size(), columns.n_cols());
      const auto n = static_cast<std::int64_t>(wanted.size());
      for (std::int64_t k = 0; k < n; ++k) {
        if (wanted.data()[k] < 0 || wanted.data()[k] >= columns.n_cols())
          throw std::invalid_argument("wanted must be columns of the matrix");
      }
      std::vector<float> out(wanted.size());
      {
        nb::gil_scoped_release release;
        columns.gram_product(p.data(), wanted.data(), n, out.data(), threads_);
      }
      return give_away(std::move(out));
    });
  }

  Given<double> combine(Vector<double> d) {
    return with([&](auto& columns) {
      check_size("d", d.size(), columns.n_cols());
      std::vector<double> out(columns.n_rows());
      {
        nb::gil_scoped_release release;
        columns.combine(d.data(), out.data(), threads_);
      }
      return give_away(std::move(out));
    });
  }

  std::int64_t nonzeros_touched() {
    return with([](auto& columns) { return columns.nonzeros_touched; });
  }

 private:
  std::vector<nb::object> matrices_;
  nb::object team_;
  ThreadTeam& threads_;
  std::variant<std::monostate, Float, Double> columns_;
};

OwnRows own_rows(Vector<double> y, Vector<double> weights, int loss, double delta) {
  if (loss < 0 || loss >= n_losses) throw std::invalid_argument("unknown loss number");
  check_size("weights", weights.size(), static_cast<std::int64_t>(y.size()));
  return {y.data(), weights.data(), static_cast<std::int64_t>(y.size()), Loss{static_cast<LossKind>(loss), delta}};
}

double evaluate_rows(PyTeam& team, Vector<double> y, Vector<double> weights, int loss, double delta,
                     Vector<double> predictions, double margin, double flat, Buffer<double> theta,
                     Buffer<float> root) {
  const OwnRows rows = own_rows(y, weights, loss, delta);
  check_size("predictions", predictions.size(), rows.n_rows);
  check_size("theta", theta.size(), rows.n_rows);
  check_size("root", root.size(), rows.n_rows);
  nb::gil_scoped_release release;
  return rows.evaluate(predictions.data(), margin, flat, theta.data(), root.data(), team.team);
}

Given<double> losses_along(PyTeam& team, Vector<double> y, Vector<double> weights, int loss, double delta,
                           Vector<double> predictions, Vector<double> direction, Vector<double> steps) {
  const OwnRows rows = own_rows(y, weights, loss, delta);
  check_size("predictions", predictions.size(), rows.n_rows);
  check_size("direction", direction.size(), rows.n_rows);
  std::vector<double> out(steps.size());
  {
    nb::gil_scoped_release release;
    rows.losses_along(predictions.data(), direction.data(), steps.data(), static_cast<std::int64_t>(steps.size()),
                      out.data(), team.team);
  }
  return give_away(std::move(out));
}

using Three = std::tuple<nb::object, nb::object, nb::object>;

template <class T>
Three gathered(PyTeam& team, const std::vector<nb::object>& matrices, const std::vector<std::int32_t>& first_rows,
               const std::vector<std::int32_t>& begins, const std::vector<std::int32_t>& ends,
               const std::vector<Vector<std::int32_t>>& columns) {
  const std::vector<CscView<T>> views = views_of<T>(matrices);
  const std::size_t n_wanted = columns.front().size();
  std::vector<ColumnPart<T>> parts;
  for (std::size_t k = 0; k < views.size(); ++k) {
    check_size("columns", columns[k].size(), static_cast<std::int64_t>(n_wanted));
    for (std::size_t j = 0; j < n_wanted; ++j) {
      if (columns[k].data()[j] >= views[k].n_cols) throw std::invalid_argument("columns must be those of matrices");
    }
    if (begins[k] < 0 || begins[k] > ends[k] || ends[k] > views[k].n_rows)
      throw std::invalid_argument("begins and ends must be rows of matrices");
    parts.push_back({views[k], first_rows[k], begins[k], ends[k], columns[k].data()});
  }
  std::optional<GatheredColumns<T>> gathered;
  {
    nb::gil_scoped_release release;
    gathered = gather_columns(parts, static_cast<std::int64_t>(n_wanted), team.team);
  }
  if (!gathered) throw std::invalid_argument(changed_columns);
  GatheredColumns<T>& found = *gathered;
  return {nb::cast(give_away(std::move(found.indptr))), nb::cast(give_away(std::move(found.indices))),
          nb::cast(give_away(std::move(found.data)))};
}

Three gather(PyTeam& team, std::vector<nb::object> matrices, std::vector<std::int32_t> first_rows,
             std::vector<std::int32_t> begins, std::vector<std::int32_t> ends,
             std::vector<Vector<std::int32_t>> columns) {
  const auto n = static_cast<std::int64_t>(matrices.size());
  check_size("first_rows", first_rows.size(), n);
  check_size("begins", begins.size(), n);
  check_size("ends", ends.size(), n);
  check_size("columns", columns.size(), n);
  return is_float(matrices) ? gathered<float>(team, matrices, first_rows, begins, ends, columns)
                            : gathered<double>(team, matrices, first_rows, begins, ends, columns);
}

Given<std::uint64_t> column_keys(const PyMatrix& matrix, std::int64_t first_row) {
  std::vector<std::uint64_t> keys(matrix.n_cols());
  const auto fill = [&](const auto& view) {
    for (std::int64_t j = 0; j < view.n_cols; ++j) keys[j] = column_key(view, j, first_row);
  };
  {
    nb::gil_scoped_release release;
    if (const auto* f32 = std::get_if<CscView<float>>(&matrix.view)) fill(*f32);
    else if (const auto* f64 = std::get_if<CscView<double>>(&matrix.view)) fill(*f64);
  }
  return give_away(std::move(keys));
}

// x_j·r of these columns; returns the entries read.
std::int64_t products_of(PyTeam& team, const PyMatrix& matrix, Vector<double> r, Vector<std::int32_t> columns,
                         Buffer<double> out) {
  const auto n = static_cast<std::int64_t>(columns.size());
  check_size("r", r.size(), matrix.n_rows());
  check_size("out", out.size(), n);
  for (std::int64_t k = 0; k < n; ++k) {
    if (columns.data()[k] < 0 || columns.data()[k] >= matrix.n_cols())
      throw std::invalid_argument("columns must be those of the matrix");
  }
  nb::gil_scoped_release release;
  return std::visit(
      [&](const auto& view) {
        std::int64_t work = 0;
        for (std::int64_t k = 0; k < n; ++k) {
          if (!is_within(view, columns.data()[k])) throw std::invalid_argument(changed_columns);
          work += view.count(columns.data()[k]);
        }
        // A column that grows meanwhile counts as long as it may be.
        const auto cuts = cut_by_work(columns.size(), work + n, n_column_parts, [&](std::size_t k) {
          return std::clamp<std::int64_t>(view.count(columns.data()[k]), 0, work) + 1;
        });
        std::atomic<bool> is_sound{true};
        team.team.for_work(n_column_parts, work, [&](std::int64_t part) {
          const std::int32_t* own = columns.data() + cuts[part];
          const auto count = static_cast<std::int64_t>(cuts[part + 1] - cuts[part]);
          const bool all = for_sound_runs(view, own, count, [&](std::int64_t first, std::int64_t n_run) {
            column_dots(view, own + first, 0, n_run, r.data(), out.data() + cuts[part] + first);
          });
          if (!all) is_sound = false;
        });
        if (!is_sound) throw std::invalid_argument(changed_columns);
        return work;
      },
      matrix.view);
}

}  // namespace

void bind_tiles(nb::module_& m) {
  nb::class_<PyTeam>(m, "Team", "Threads that live as long as this object.").def(nb::init<int>(), "n_threads"_a);
  nb::class_<PyWorkingColumns>(m, "WorkingColumns", "Columns of a working set, and products with them.")
      .def(nb::init<std::vector<nb::object>, Vector<std::int32_t>, nb::object>(), "matrices"_a,
           "places"_a.noconvert(), "team"_a, "places: of each column its matrix, and its number there.")
      .def("bend", &PyWorkingColumns::bend, "root"_a.noconvert(),
           "The diagonal of ZᵀZ, then Σ root²·x of each column.")
      .def("gram_product", &PyWorkingColumns::gram_product, "p"_a, "wanted"_a.noconvert())
      .def("combine", &PyWorkingColumns::combine, "d"_a)
      .def_prop_ro("nonzeros_touched", &PyWorkingColumns::nonzeros_touched);
  m.def("evaluate_rows", &evaluate_rows, "team"_a, "y"_a, "weights"_a, "loss"_a, "delta"_a, "predictions"_a,
        "margin"_a, "flat"_a, "theta"_a, "root"_a, "Fills theta and root; returns the loss.");
  m.def("losses_along", &losses_along, "team"_a, "y"_a, "weights"_a, "loss"_a, "delta"_a, "predictions"_a,
        "direction"_a, "steps"_a);
  m.def("gather_columns", &gather, "team"_a, "matrices"_a, "first_rows"_a, "begins"_a, "ends"_a, "columns"_a,
        "(indptr, indices, data) of columns whose rows lie in several matrices, of which rows begin … end - 1 are "
        "taken; columns: their numbers in each, or -1.");
  m.def("column_keys", &column_keys, "matrix"_a, "first_row"_a, "A hash of each column, which adds up over rows.");
  m.def("products_of", &products_of, "team"_a, "matrix"_a, "r"_a, "columns"_a.noconvert(), "out"_a.noconvert(),
        "Fills out with x_j·r of these columns; returns the number of entries read.");
}

}  // namespace blockgreedy
