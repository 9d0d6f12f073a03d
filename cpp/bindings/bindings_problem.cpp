#include "bindings/bindings_problem.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include "math/certificate.hpp"
#include "math/settling.hpp"

namespace blockgreedy {

PyProblem::PyProblem(nb::object matrix, Vector<double> y, int loss, double delta, double alpha, double l2,
                     OptionalVector weights, OptionalVector l2_weights, NumberOrVector lower, NumberOrVector upper,
                     OptionalVector row_weights, OptionalVector offset, bool fit_intercept, int n_threads)
    : matrix_object(matrix),
      matrix(nb::cast<const PyMatrix&>(matrix)),
      team(n_threads, [this] { return hook.poll(); }),
      y_(y),
      weights_(weights),
      l2_weights_(l2_weights),
      row_weights_(row_weights),
      offset_(offset) {
  check_size("y", y.size(), this->matrix.n_rows());
  for (const auto* option : {&row_weights_, &offset_}) {
    if (*option) check_size("row_weights and offset", (*option)->size(), this->matrix.n_rows());
  }
  if (row_weights_) core.row_weights = row_weights_->data();
  if (offset_) core.offset = offset_->data();
  core.fit_intercept = fit_intercept;
  if (const auto* array = std::get_if<Vector<double>>(&lower)) lower_ = *array;
  else core.penalty.lower_all = std::get<double>(lower);
  if (const auto* array = std::get_if<Vector<double>>(&upper)) upper_ = *array;
  else core.penalty.upper_all = std::get<double>(upper);
  for (const auto* option : {&weights_, &l2_weights_, &lower_, &upper_}) {
    if (*option) check_size("weights, l2_weights, lower and upper", (*option)->size(), this->matrix.n_cols());
  }
  if (loss < 0 || loss >= n_losses) throw std::invalid_argument("unknown loss number");
  core.y = y.data();
  core.loss = {static_cast<LossKind>(loss), delta};
  core.penalty.alpha = alpha;
  core.penalty.l2 = l2;
  if (weights_) core.penalty.weights = weights_->data();
  if (l2_weights_) core.penalty.l2_weights = l2_weights_->data();
  if (lower_) core.penalty.lower = lower_->data();
  if (upper_) core.penalty.upper = upper_->data();
}

double PyProblem::objective_at(Vector<double> w, Vector<double> Xw) {
  check_size("w", w.size(), matrix.n_cols());
  check_size("Xw", Xw.size(), matrix.n_rows());
  return pass([&] { return objective(core, matrix.n_rows(), matrix.n_cols(), w.data(), Xw.data(), team); });
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> PyProblem::predict_at(Vector<double> w) {
  check_size("w", w.size(), matrix.n_cols());
  std::vector<double> Xw(matrix.n_rows());
  pass([&] {
    predict(matrix.view, w.data(), Xw.data());
    return 0;
  });
  return give_away(std::move(Xw));
}

void PyProblem::products(Vector<double> r, Buffer<double> out) {
  check_size("r", r.size(), matrix.n_rows());
  check_size("out", out.size(), matrix.n_cols());
  pass([&] {
    column_products(matrix.view, r.data(), out.data(), team);
    return 0;
  });
}

double PyProblem::alpha_needed_by(Vector<double> theta, bool at_null, double rounding) {
  check_size("theta", theta.size(), matrix.n_rows());
  return pass([&] { return alpha_needed(matrix.view, core.penalty, theta.data(), at_null, rounding, team); });
}

double PyProblem::conjugate_at(Vector<double> theta, double scale, double rounding, double most) {
  check_size("theta", theta.size(), matrix.n_rows());
  return pass(
      [&] { return penalty_conjugate(matrix.view, core.penalty, theta.data(), scale, rounding, most, team); });
}

double PyProblem::residual_at(Vector<double> w, Vector<double> theta) {
  check_size("w", w.size(), matrix.n_cols());
  check_size("theta", theta.size(), matrix.n_rows());
  return pass([&] { return kkt_residual(matrix.view, core.penalty, w.data(), theta.data(), team); });
}

std::optional<PyProblem::PySettledPoint> PyProblem::settled_from(Vector<double> w, double intercept) {
  check_size("w", w.size(), matrix.n_cols());
  auto point = pass([&] { return settled(matrix.view, core, w.data(), intercept); });
  if (!point) return {};
  return PySettledPoint{give_away(std::move(point->weights)), point->intercept, point->objective};
}

void bind_problem(nb::module_& m) {
  nb::class_<PyProblem>(m, "CoreProblem", "Objective and certificate passes over one matrix.")
      .def(nb::init<nb::object, Vector<double>, int, double, double, double, OptionalVector, OptionalVector,
                    NumberOrVector, NumberOrVector, OptionalVector, OptionalVector, bool, int>(),
           "matrix"_a, "y"_a, "loss"_a, "delta"_a, "alpha"_a, "l2"_a, "weights"_a.none(), "l2_weights"_a.none(),
           "lower"_a, "upper"_a, "row_weights"_a.none(), "offset"_a.none(), "fit_intercept"_a, "n_threads"_a)
      .def("objective", &PyProblem::objective_at, "w"_a, "Xw"_a)
      .def("predict", &PyProblem::predict_at, "w"_a)
      .def("column_products", &PyProblem::products, "r"_a, "out"_a.noconvert(), "out_j = x_j·r")
      .def("alpha_needed", &PyProblem::alpha_needed_by, "theta"_a, "at_null"_a, "rounding"_a)
      .def("penalty_conjugate", &PyProblem::conjugate_at, "theta"_a, "scale"_a, "rounding"_a, "most"_a)
      .def("kkt_residual", &PyProblem::residual_at, "w"_a, "theta"_a)
      .def("settled", &PyProblem::settled_from, "w"_a, "intercept"_a,
           "Weights, intercept and objective of the minimum near this point; None where its signs are others.");
}

}  // namespace blockgreedy
