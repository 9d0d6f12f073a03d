// The folds of a cross-validation, side by side.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "bindings/bindings_problem.hpp"
#include "folds/fold_paths.hpp"

namespace blockgreedy {
namespace {

class PyFoldPaths {
 public:
  PyFoldPaths(std::vector<nb::object> problems, std::vector<double> f_null)
      : objects_(std::move(problems)), weights_(objects_.size()) {
    if (objects_.empty() || objects_.size() > n_lanes)
      throw std::invalid_argument("problems must be 1 to " + std::to_string(n_lanes));
    check_size("f_null", f_null.size(), static_cast<std::int64_t>(objects_.size()));
    std::vector<CoreProblem*> cores;
    for (const nb::object& object : objects_) {
      PyProblem& problem = nb::cast<PyProblem&>(object);
      if (problem.matrix.n_rows() != first().matrix.n_rows() || problem.matrix.n_cols() != first().matrix.n_cols())
        throw std::invalid_argument("problems must share a matrix");
      cores.push_back(&problem.core);
    }
    nb::gil_scoped_release release;
    paths_ = make_fold_paths(first().matrix.view, cores, f_null, first().team);
    if (!paths_) throw std::invalid_argument("the matrix must be sparse");
  }

  // w is written to from here on.
  void start(int fold, Buffer<double> w, Vector<std::int32_t> features, double intercept) {
    check_fold(fold);
    check_size("w", w.size(), first().matrix.n_cols());
    const std::vector<std::int32_t> own(features.data(), features.data() + features.size());
    if (!std::is_sorted(own.begin(), own.end()) ||
        (!own.empty() && (own.front() < 0 || own.back() >= first().matrix.n_cols())))
      throw std::invalid_argument("features must ascend and be columns of the matrix");
    weights_[fold] = w;
    paths_->start(fold, weights_[fold].data(), own, intercept);
  }

  // True if interrupted by Ctrl-C.
  bool move_to(double alpha, double l2, double coming) {
    for (const Buffer<double>& w : weights_)
      if (w.data() == nullptr) throw std::runtime_error("start first");
    if (has_returned_) throw std::runtime_error("the walk down the alphas has ended");
    if (!(coming <= alpha && alpha <= first().core.penalty.alpha))
      throw std::invalid_argument("alpha must only fall");
    first().team.begin();
    {
      nb::gil_scoped_release release;
      paths_->move_to(alpha, l2, coming);
      first().team.poll();
    }
    has_moved_ = true;
    return first().hook.take();
  }

  // Begins anew at any alpha, after every fold was given its weights there by start(); move_to may not follow. True
  // if interrupted by Ctrl-C.
  bool return_to(double alpha, double l2) {
    if (!has_moved_) throw std::runtime_error("move_to an alpha first");
    first().team.begin();
    {
      nb::gil_scoped_release release;
      paths_->return_to(alpha, l2);
      first().team.poll();
    }
    has_returned_ = true;
    return first().hook.take();
  }

  // (the largest decrease, interrupted by Ctrl-C). seconds: when to hurry to an end.
  std::pair<double, bool> step(double share, double seconds) {
    if (!has_moved_) throw std::runtime_error("move_to an alpha first");
    first().team.begin(seconds);
    double gained = 0;
    {
      nb::gil_scoped_release release;
      gained = paths_->step(share);
      first().team.poll();
    }
    return {gained, first().hook.take()};
  }

  FoldPaths& paths() const { return *paths_; }
  const Iterate& fold(int fold) const {
    check_fold(fold);
    return paths_->fold(fold);
  }
  void check_fold(int fold) const {
    if (fold < 0 || fold >= static_cast<int>(objects_.size())) throw std::invalid_argument("no such fold");
  }

 private:
  PyProblem& first() const { return nb::cast<PyProblem&>(objects_[0]); }

  std::vector<nb::object> objects_;
  std::vector<Buffer<double>> weights_;
  std::unique_ptr<FoldPaths> paths_;
  bool has_moved_ = false, has_returned_ = false;
};

}  // namespace

void bind_folds(nb::module_& m) {
  nb::class_<PyFoldPaths> binding(m, "FoldPaths", "Folds side by side; see cpp/folds/fold_paths.hpp.");
  binding.def(nb::init<std::vector<nb::object>, std::vector<double>>(), "problems"_a, "f_null"_a)
      .def("start", &PyFoldPaths::start, "fold"_a, "w"_a.noconvert(), "features"_a, "intercept"_a)
      .def("move_to", &PyFoldPaths::move_to, "alpha"_a, "l2"_a, "coming"_a)
      .def("return_to", &PyFoldPaths::return_to, "alpha"_a, "l2"_a)
      .def("step", &PyFoldPaths::step, "share"_a, "seconds"_a = infinity,
           "(largest decrease as a part of f_null, interrupted by Ctrl-C)")
      .def("support",
           [](const PyFoldPaths& self, int fold) {
             std::vector<std::int32_t> features = self.fold(fold).support;
             return give_away(std::move(features));
           })
      .def("intercept", [](const PyFoldPaths& self, int fold) { return self.fold(fold).intercept; })
      .def("objective", [](const PyFoldPaths& self, int fold) { return self.fold(fold).objective; })
      .def("penalty", [](const PyFoldPaths& self, int fold) { return self.fold(fold).penalty; })
      .def("gap",
           [](const PyFoldPaths& self, int fold) {
             self.check_fold(fold);
             return self.paths().gap(fold);
           })
      .def("drift",
           [](const PyFoldPaths& self, int fold) {
             self.check_fold(fold);
             return self.paths().drift(fold);
           })
      .def("predictions",
           [](nb::handle_t<PyFoldPaths> self, int fold) {
             auto& own = nb::cast<PyFoldPaths&>(self);
             own.check_fold(fold);
             return view_of(own.paths().predictions(fold), self);
           })
      .def_prop_ro("out_of_range", [](const PyFoldPaths& self) { return self.paths().out_of_range; })
      .def_prop_ro("n_steps", [](const PyFoldPaths& self) { return self.paths().n_steps; })
      .def_prop_ro("n_cg", [](const PyFoldPaths& self) { return self.paths().cg_iterations; })
      .def_prop_ro("nonzeros_touched", [](const PyFoldPaths& self) { return self.paths().nonzeros_touched; })
      .def_prop_ro("seconds", [](const PyFoldPaths& self) { return self.paths().seconds; });
}

}  // namespace blockgreedy
