// The working-set solver, which is the default.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bindings/bindings_problem.hpp"
#include "working_set/working_set.hpp"

namespace blockgreedy {
namespace {

class PyWorkingSet {
 public:
  PyWorkingSet(nb::object problem, std::int64_t n_blocks, std::optional<Vector<std::int32_t>> block_of, double tol,
               double f_null, double floor, double least_alpha)
      : problem_object_(problem),
        problem_(nb::cast<PyProblem&>(problem)),
        least_alpha_(least_alpha),
        block_of_(block_of) {
    WorkingSetOptions options;
    options.n_blocks = n_blocks;
    options.tol = tol;
    options.f_null = f_null;
    options.floor = floor;
    options.least_alpha = least_alpha;
    if (block_of) {
      check_size("block_of", block_of->size(), problem_.matrix.n_cols());
      options.block_of = block_of_->data();
    }
    nb::gil_scoped_release release;
    solver_ = make_working_set(problem_.matrix.view, problem_.core, options, problem_.team);
  }
  // True if interrupted by Ctrl-C; w is written to from here on. seconds, here and below: when to hurry to an end.
  bool start(Buffer<double> w, double intercept, double seconds) {
    check_size("w", w.size(), problem_.matrix.n_cols());
    w_ = w;
    problem_.team.begin(seconds);
    {
      nb::gil_scoped_release release;
      solver_->start(w_.data(), intercept);
      problem_.team.poll();
    }
    return problem_.hook.take();
  }
  // Goes on to a lower alpha from where the solve stands. True if interrupted by Ctrl-C.
  bool lower_alpha(double alpha, double l2, double seconds) {
    if (w_.data() == nullptr) throw std::runtime_error("start first");
    Penalty& penalty = problem_.core.penalty;
    const Penalty before = penalty;
    if (!(alpha <= before.alpha && alpha >= least_alpha_)) throw std::invalid_argument("alpha must only fall");
    if (!(l2 <= before.l2 && (l2 > 0) == (before.l2 > 0))) throw std::invalid_argument("l2 must only fall, not to 0");
    penalty.alpha = alpha;
    penalty.l2 = l2;
    problem_.team.begin(seconds);
    {
      nb::gil_scoped_release release;
      solver_->alpha_fell(before);
      problem_.team.poll();
    }
    return problem_.hook.take();
  }
  // (did anything improve, interrupted by Ctrl-C)
  std::pair<bool, bool> step(double seconds) {
    if (w_.data() == nullptr) throw std::runtime_error("start first");
    problem_.team.begin(seconds);
    bool improved = false;
    {
      nb::gil_scoped_release release;
      improved = solver_->step();
      problem_.team.poll();
    }
    return {improved, problem_.hook.take()};
  }
  void certify(bool repairs, double seconds) {
    if (w_.data() == nullptr) throw std::runtime_error("start first");
    problem_.team.begin(seconds);
    nb::gil_scoped_release release;
    solver_->certify_anyway(repairs);
  }
  std::tuple<double, double, double> verify(Vector<std::int32_t> features, Vector<double> values, double intercept) {
    check_size("values", values.size(), static_cast<std::int64_t>(features.size()));
    for (std::size_t k = 0; k < features.size(); ++k) {
      if (features.data()[k] < 0 || features.data()[k] >= problem_.matrix.n_cols())
        throw std::invalid_argument("feature out of range");
    }
    problem_.team.begin();
    nb::gil_scoped_release release;
    const Verdict verdict = solver_->verify(features.data(), values.data(), features.size(), intercept);
    return {verdict.objective, verdict.penalty, verdict.dual_value};
  }
  const WorkingSet& solver() const { return *solver_; }
  // Memory itself, not a copy: with 10^7 rows there should not be two.
  nb::ndarray<nb::numpy, double, nb::ndim<1>> release_dual() { return give_away(std::move(solver_->dual)); }

 private:
  nb::object problem_object_;
  PyProblem& problem_;
  double least_alpha_;
  std::optional<Vector<std::int32_t>> block_of_;
  Buffer<double> w_;
  std::unique_ptr<WorkingSet> solver_;
};

}  // namespace

void bind_working_set(nb::module_& m) {
  nb::class_<PyWorkingSet> binding(m, "WorkingSet", "The default solver; see cpp/working_set/working_set.hpp.");
  binding
      .def(nb::init<nb::object, std::int64_t, std::optional<Vector<std::int32_t>>, double, double, double, double>(),
           "problem"_a, "n_blocks"_a, "block_of"_a.none(), "tol"_a, "f_null"_a, "floor"_a, "least_alpha"_a)
      .def("start", &PyWorkingSet::start, "w"_a.noconvert(), "intercept"_a, "seconds"_a = infinity)
      .def("lower_alpha", &PyWorkingSet::lower_alpha, "alpha"_a, "l2"_a, "seconds"_a = infinity)
      .def("step", &PyWorkingSet::step, "seconds"_a = infinity)
      .def("certify", &PyWorkingSet::certify, "repairs"_a = true, "seconds"_a = infinity)
      .def("verify", &PyWorkingSet::verify, "features"_a, "values"_a, "intercept"_a,
           "(objective, penalty, dual value) of these weights and the dual point, recomputed.")
      .def("release_dual", &PyWorkingSet::release_dual, "Hands the dual point over; certificates end with it.")
      .def_prop_ro(
          "dual",
          [](nb::handle_t<PyWorkingSet> self) { return view_of(nb::cast<PyWorkingSet&>(self).solver().dual, self); })
      .def_prop_ro("predictions",
                   [](nb::handle_t<PyWorkingSet> self) {
                     return view_of(nb::cast<PyWorkingSet&>(self).solver().predictions(), self);
                   })
      .def_prop_ro(
          "phases",
          [](const PyWorkingSet&) { return std::vector<std::string>(phase_names.begin(), phase_names.end()); })
      .def_prop_ro("seconds", [](const PyWorkingSet& self) {
        return std::vector<double>(self.solver().seconds.begin(), self.solver().seconds.end());
      });
  const auto show = [&](const char* name, auto member) {
    binding.def_prop_ro(name, [member](const PyWorkingSet& self) { return self.solver().*member; });
  };
  show("intercept", &WorkingSet::intercept);
  show("objective", &WorkingSet::objective);
  show("penalty", &WorkingSet::penalty);
  show("dual_value", &WorkingSet::dual_value);
  show("f_null", &WorkingSet::f_null);
  show("enough", &WorkingSet::enough);
  show("out_of_range", &WorkingSet::out_of_range);
  show("step_size", &WorkingSet::step_size);
  show("n_iter", &WorkingSet::n_iter);
  show("n_blocks", &WorkingSet::n_blocks);
  binding.def_prop_ro("n_support", [](const PyWorkingSet& self) { return self.solver().support.size(); });
  binding.def("support", [](const PyWorkingSet& self) {
    std::vector<std::int32_t> features = self.solver().support;
    return give_away(std::move(features));
  });
  show("n_violators", &WorkingSet::n_violators);
  show("n_candidates", &WorkingSet::n_candidates);
  binding.def_prop_ro("n_aliases", [](const PyWorkingSet& self) { return self.solver().n_aliases(); });
  show("working_set_size", &WorkingSet::working_set_size);
  show("n_cg", &WorkingSet::n_cg);
  show("n_subproblems_by_products", &WorkingSet::n_subproblems_by_products);
  show("nonzeros_touched", &WorkingSet::nonzeros_touched);
}

}  // namespace blockgreedy
