// The problem as Python holds it. Included by bindings*.cpp only.
#pragma once

#include <optional>
#include <variant>

#include "bindings/bindings.hpp"
#include "math/core_problem.hpp"

namespace blockgreedy {

using OptionalVector = std::optional<Vector<double>>;
using NumberOrVector = std::variant<double, Vector<double>>;

// A CoreProblem with the arrays it points into, its matrix, and the threads that run passes over it.
class PyProblem {
 public:
  PyProblem(nb::object matrix, Vector<double> y, int loss, double delta, double alpha, double l2,
            OptionalVector weights, OptionalVector l2_weights, NumberOrVector lower, NumberOrVector upper,
            OptionalVector row_weights, OptionalVector offset, bool fit_intercept, int n_threads);

  // Runs f without the GIL; Ctrl-C during a pass is raised, since half a pass has no meaning.
  template <class F>
  auto pass(F&& f) {
    team.begin();
    auto result = [&] {
      nb::gil_scoped_release release;
      return f();
    }();
    if (hook.take()) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw nb::python_error();
    }
    return result;
  }

  double objective_at(Vector<double> w, Vector<double> Xw);
  nb::ndarray<nb::numpy, double, nb::ndim<1>> predict_at(Vector<double> w);
  void products(Vector<double> r, Buffer<double> out);
  double alpha_needed_by(Vector<double> theta, bool at_null, double rounding);
  double conjugate_at(Vector<double> theta, double scale, double rounding, double most);
  double residual_at(Vector<double> w, Vector<double> theta);
  using PySettledPoint = std::tuple<nb::ndarray<nb::numpy, double, nb::ndim<1>>, double, double>;
  std::optional<PySettledPoint> settled_from(Vector<double> w, double intercept);

  nb::object matrix_object;
  const PyMatrix& matrix;
  SignalHook hook;
  ThreadTeam team;
  CoreProblem core{};

 private:
  Vector<double> y_;  // this and the others: what `core` points into
  OptionalVector weights_, l2_weights_, lower_, upper_, row_weights_, offset_;
};

}  // namespace blockgreedy
