// The module: matrices, the single functions that tests evaluate, and what the other bindings_*.cpp add. No other
// part of the core knows Python.
#include "bindings/bindings.hpp"
#include "base/dense_columns.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <new>

#include "base/random.hpp"
#include "kernels/kernels.hpp"
#include "math/penalties.hpp"

namespace blockgreedy {
namespace {

template <class T, class Pointer>
PyMatrix hold_csc(std::int64_t n_rows, Vector<Pointer> indptr, Vector<std::int32_t> indices, Vector<T> data) {
  if (indptr.size() < 1) throw std::invalid_argument("indptr must not be empty");
  const auto n_cols = static_cast<std::int64_t>(indptr.size()) - 1;
  const Pointer last = indptr.data()[n_cols];
  if (last < 0 || static_cast<std::size_t>(last) > indices.size() || static_cast<std::size_t>(last) > data.size()) {
    throw std::invalid_argument("indptr points past the end of indices or data");
  }
  const auto n_stored = static_cast<std::int64_t>(std::min(indices.size(), data.size()));
  return {CscView<T>{n_rows, n_cols, indptr.data(), sizeof(Pointer) == 8, indices.data(), data.data(), n_stored},
          {nb::cast(indptr), nb::cast(indices), nb::cast(data)}};
}

template <class T>
PyMatrix hold_dense(Columns<T> x) {
  return {DenseView<T>{static_cast<std::int64_t>(x.shape(0)), static_cast<std::int64_t>(x.shape(1)), x.data()},
          {nb::cast(x)}};
}

template <class T>
void copy_dense(nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows,
                nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu> columns, int n_threads) {
  for (std::size_t axis : {0, 1})
    check_size("columns", columns.shape(axis), static_cast<std::int64_t>(rows.shape(axis)));
  const T* from = rows.data();
  T* to = columns.data();
  const auto n_rows = static_cast<std::int64_t>(rows.shape(0)), n_cols = static_cast<std::int64_t>(rows.shape(1));
  nb::gil_scoped_release release;
  ThreadTeam team(n_threads);
  copy_columns(from, n_rows, n_cols, to, team);
}

std::string find_fault(const PyMatrix& matrix, int n_threads) {
  nb::gil_scoped_release release;
  ThreadTeam team(n_threads);
  return describe_fault(matrix.view, team);
}

std::vector<double> evaluate_loss(int loss, const std::string& what, Vector<double> y, Vector<double> t,
                                  double delta) {
  if (loss < 0 || loss >= n_losses) throw std::invalid_argument("unknown loss number");
  check_size("t", t.size(), static_cast<std::int64_t>(y.size()));
  const LossKernels& table = kernels().losses[loss];
  std::vector<double> out(y.size());
  const auto n = static_cast<std::int64_t>(y.size());
  if (what == "value") table.values(y.data(), t.data(), n, delta, out.data());
  else if (what == "deriv") table.derivs(y.data(), t.data(), n, delta, out.data());
  else if (what == "curvature") table.curvatures(y.data(), t.data(), n, delta, out.data());
  else if (what == "conjugate") table.conjugates(y.data(), t.data(), n, delta, out.data());
  else throw std::invalid_argument("what must be value, deriv, curvature or conjugate");
  return out;
}

double evaluate_penalty(const std::string& what, double l1, double l2, double lower, double upper, double a, double b,
                        double c, double d) {
  const CoordinatePenalty coordinate{l1, l2, lower, upper};
  if (what == "value") return coordinate.value(a);
  if (what == "prox") return coordinate.prox(a, b, c);
  if (what == "gain") return coordinate.gain(a, b, c, d);
  if (what == "conjugate") return coordinate.conjugate(a, b);
  if (what == "subgradient_distance") return coordinate.subgradient_distance(a, b);
  throw std::invalid_argument("what must be value, prox, gain, conjugate or subgradient_distance");
}

void bind_matrix(nb::module_& m) {
  nb::class_<PyMatrix>(m, "Matrix", "A design matrix, used by the core without a copy.")
      .def_prop_ro("n_rows", &PyMatrix::n_rows)
      .def_prop_ro("n_cols", &PyMatrix::n_cols)
      .def_prop_ro("n_nonzeros", &PyMatrix::n_nonzeros);
  m.def("csc", &hold_csc<float, std::int32_t>, "n_rows"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert());
  m.def("csc", &hold_csc<float, std::int64_t>, "n_rows"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert());
  m.def("csc", &hold_csc<double, std::int32_t>, "n_rows"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert());
  m.def("csc", &hold_csc<double, std::int64_t>, "n_rows"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert());
  m.def("dense", &hold_dense<float>, "x"_a.noconvert());
  m.def("dense", &hold_dense<double>, "x"_a.noconvert());
  m.def("copy_dense", &copy_dense<float>, "rows"_a.noconvert(), "columns"_a.noconvert(), "n_threads"_a);
  m.def("copy_dense", &copy_dense<double>, "rows"_a.noconvert(), "columns"_a.noconvert(), "n_threads"_a,
        "Copies an array that stands row after row into one that stands column after column.");
  m.def("find_fault", &find_fault, "matrix"_a, "n_threads"_a,
        "\"\" for a sound matrix, else one of indptr, range, unsorted, finite.");
}

void bind_parts(nb::module_& m) {
  m.def("isa", [] { return kernels().name; }, "The instruction set the hot loops run on.");
  m.def("evaluate_loss", &evaluate_loss, "loss"_a, "what"_a, "y"_a, "t"_a, "delta"_a);
  m.def("evaluate_penalty", &evaluate_penalty, "what"_a, "l1"_a, "l2"_a, "lower"_a, "upper"_a, "a"_a, "b"_a = 0.0,
        "c"_a = 0.0, "d"_a = 0.0);
  m.def(
      "draw_subset",
      [](std::uint64_t seed, std::int64_t m_, std::int64_t k, std::int64_t repeats) {
        Random random(seed);
        SubsetSampler sampler;
        std::vector<std::int32_t> subset;
        std::vector<std::vector<std::int32_t>> all;
        for (std::int64_t r = 0; r < repeats; ++r) {
          sampler.draw(random, m_, k, subset);
          all.push_back(subset);
        }
        return all;
      },
      "seed"_a, "m"_a, "k"_a, "repeats"_a);
}

}  // namespace
}  // namespace blockgreedy

NB_MODULE(_core, m) {
  m.doc() = "The compiled core of blockgreedy.";
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "not enough memory for the arrays of this step");
    }
  });
  blockgreedy::bind_matrix(m);
  blockgreedy::bind_problem(m);
  blockgreedy::bind_block_greedy(m);
  blockgreedy::bind_folds(m);
  blockgreedy::bind_working_set(m);
  blockgreedy::bind_rows(m);
  blockgreedy::bind_tiles(m);
  blockgreedy::bind_data(m);
  blockgreedy::bind_theory(m);
  blockgreedy::bind_parts(m);
}
