// The block-greedy family: Algorithm 1 of the paper.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/bindings_problem.hpp"
#include "family/block_greedy.hpp"
#include "math/certificate.hpp"

namespace blockgreedy {
namespace {

using ConstantRange = std::tuple<double, double, int>;  // InterceptRange, where it is not of targets

class PyBlockGreedy {
 public:
  PyBlockGreedy(nb::object problem, Vector<std::int32_t> block_of, std::int64_t n_blocks,
                std::int64_t blocks_per_iter, std::int64_t per_block, int update, int greedy_rule, int scan,
                bool atomic, double inner_tol, std::int64_t max_sweeps, std::uint64_t seed, double step_scale,
                bool asynchronous, std::optional<ConstantRange> constants, double seconds)
      : problem_object_(problem), problem_(nb::cast<PyProblem&>(problem)), block_of_(block_of) {
    check_size("block_of", block_of.size(), problem_.matrix.n_cols());
    if (n_blocks < 1 || blocks_per_iter < 1 || blocks_per_iter > n_blocks || per_block < 1) {
      throw std::invalid_argument("need 1 <= blocks_per_iter <= n_blocks and per_block >= 1");
    }
    if (!(step_scale > 0) || (step_scale != 1 && static_cast<UpdateRule>(update) != UpdateRule::add)) {
      throw std::invalid_argument("need step_scale > 0, and 1 unless steps are added");
    }
    if (asynchronous && static_cast<UpdateRule>(update) != UpdateRule::add &&
        static_cast<UpdateRule>(update) != UpdateRule::line_search) {
      throw std::invalid_argument("asynchronous threads can only add their steps");
    }
    for (std::size_t j = 0; j < block_of.size(); ++j) {
      if (block_of.data()[j] < 0 || block_of.data()[j] >= n_blocks)
        throw std::invalid_argument("block_of out of range");
    }
    const BlockGreedyOptions options{n_blocks,
                                     blocks_per_iter,
                                     per_block,
                                     static_cast<UpdateRule>(update),
                                     static_cast<GreedyRule>(greedy_rule),
                                     static_cast<ScanMode>(scan),
                                     atomic,
                                     inner_tol,
                                     max_sweeps,
                                     seed,
                                     step_scale,
                                     asynchronous};
    InterceptRange range;
    if (constants) std::tie(range.low, range.high, range.only_class) = *constants;
    range.is_of_targets = !constants;
    problem_.team.begin(seconds);
    nb::gil_scoped_release release;
    solver_ = make_block_greedy(problem_.matrix.view, problem_.core, options, range, block_of_.data(), problem_.team);
  }

  // (iterations done, interrupted by Ctrl-C). max_seconds: no iteration begins after that; seconds, here and below:
  // when to hurry to an end, inside of an iteration too.
  std::pair<std::int64_t, bool> run(std::int64_t n_iter, double max_seconds, double seconds) {
    problem_.team.begin(seconds);
    BlockGreedy& current = solver();
    std::int64_t done = 0;
    {
      nb::gil_scoped_release release;
      done = current.run(n_iter, max_seconds);
    }
    const bool interrupted = problem_.hook.take();
    return {done, interrupted};
  }
  void set_weights(Vector<double> w, double intercept, double seconds) {
    check_size("w", w.size(), problem_.matrix.n_cols());
    problem_.team.begin(seconds);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.set_weights(w.data(), intercept);
  }
  void set_sparse_weights(Vector<std::int64_t> features, Vector<double> values, double intercept, double seconds) {
    problem_.team.begin(seconds);
    check_size("values", values.size(), static_cast<std::int64_t>(features.size()));
    for (std::size_t k = 0; k < features.size(); ++k) check_feature(features.data()[k]);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.set_sparse_weights(features.data(), values.data(), static_cast<std::int64_t>(features.size()), intercept);
  }
  // Leaves an empty record for the iterations to come.
  auto take_record() {
    IterationRecord found;
    std::swap(found, solver().record);
    return std::make_tuple(give_away(std::move(found.iterations)), give_away(std::move(found.selected)),
                           give_away(std::move(found.selected_counts)), give_away(std::move(found.accepted)),
                           give_away(std::move(found.accepted_counts)), give_away(std::move(found.steps)),
                           give_away(std::move(found.gains)));
  }
  void fit_intercept(double seconds) {
    problem_.team.begin(seconds);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.fit_intercept();
  }
  // The weights themselves, not a copy: at 10^8 features there should not be two. The solver is done after it.
  nb::ndarray<nb::numpy, double, nb::ndim<1>> release_weights() {
    std::vector<double> w = std::move(solver().state.w);
    solver_.reset();
    return give_away(std::move(w));
  }
  void update_with(const std::vector<std::int32_t>& features, double seconds) {
    problem_.team.begin(seconds);
    for (std::int32_t j : features) check_feature(j);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.update_with(features);
  }
  void move_to(const std::vector<std::int32_t>& features, Vector<double> targets, double seconds) {
    problem_.team.begin(seconds);
    check_size("targets", targets.size(), static_cast<std::int64_t>(features.size()));
    for (std::int32_t j : features) check_feature(j);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.move_to(features, targets.data());
  }
  double current_objective() {
    const State& state = solver().state;
    CoreProblem problem = problem_.core;
    problem.offset = nullptr;  // it is part of Xw
    return problem_.pass([&] {
      return objective(problem, problem_.matrix.n_rows(), problem_.matrix.n_cols(), state.w.data(), state.Xw.data(),
                       problem_.team);
    });
  }
  BlockGreedy& solver() const {
    if (!solver_) throw std::runtime_error("the weights of this solver were released");
    return *solver_;
  }

 private:
  void check_feature(std::int64_t j) const {
    if (j < 0 || j >= problem_.matrix.n_cols()) throw std::invalid_argument("feature out of range");
  }

  nb::object problem_object_;
  PyProblem& problem_;
  Vector<std::int32_t> block_of_;
  std::unique_ptr<BlockGreedy> solver_;
};

}  // namespace

void bind_block_greedy(nb::module_& m) {
  nb::class_<PyBlockGreedy>(m, "BlockGreedy", "Algorithm 1; see cpp/family/block_greedy.hpp.")
      .def(nb::init<nb::object, Vector<std::int32_t>, std::int64_t, std::int64_t, std::int64_t, int, int, int, bool,
                    double, std::int64_t, std::uint64_t, double, bool, std::optional<ConstantRange>, double>(),
           "problem"_a, "block_of"_a, "n_blocks"_a, "blocks_per_iter"_a, "per_block"_a, "update"_a, "greedy_rule"_a,
           "scan"_a, "atomic"_a, "inner_tol"_a, "max_sweeps"_a, "seed"_a, "step_scale"_a, "asynchronous"_a,
           "constants"_a.none(), "seconds"_a = infinity)
      .def("run", &PyBlockGreedy::run, "n_iter"_a, "max_seconds"_a, "seconds"_a = infinity)
      .def("set_weights", &PyBlockGreedy::set_weights, "w"_a, "intercept"_a = 0.0, "seconds"_a = infinity)
      .def("set_sparse_weights", &PyBlockGreedy::set_sparse_weights, "features"_a, "values"_a, "intercept"_a = 0.0,
           "seconds"_a = infinity)
      .def("fit_intercept", &PyBlockGreedy::fit_intercept, "seconds"_a = infinity,
           "Where weights have moved since; runs do so after every ⌈B/P⌉ iterations.")
      .def("release_weights", &PyBlockGreedy::release_weights, "Hands the weights over; the solver is done after it.")
      .def("update_with", &PyBlockGreedy::update_with, "features"_a, "seconds"_a = infinity)
      .def("move_to", &PyBlockGreedy::move_to, "features"_a, "targets"_a, "seconds"_a = infinity)
      .def("objective", &PyBlockGreedy::current_objective)
      .def_prop_ro("coef",
                   [](nb::handle_t<PyBlockGreedy> self) {
                     return view_of(nb::cast<PyBlockGreedy&>(self).solver().state.w, self);
                   })
      .def_prop_ro("Xw",
                   [](nb::handle_t<PyBlockGreedy> self) {
                     return view_of(nb::cast<PyBlockGreedy&>(self).solver().state.Xw, self);
                   })
      .def_prop_ro("derivs",
                   [](nb::handle_t<PyBlockGreedy> self) {
                     return view_of(nb::cast<PyBlockGreedy&>(self).solver().state.derivs, self);
                   })
      .def(
          "record", [](PyBlockGreedy& self) { self.solver().is_recording = true; },
          "From now on runs keep what each iteration did, for take_record.")
      .def("take_record", &PyBlockGreedy::take_record,
           "Iterations, selected blocks and their counts, accepted features and their counts, steps, gains.")
      .def_prop_ro("intercept", [](const PyBlockGreedy& self) { return self.solver().state.intercept; })
      .def_prop_ro("accepted", [](const PyBlockGreedy& self) { return self.solver().accepted; })
      .def_prop_ro("update_order", [](const PyBlockGreedy& self) { return self.solver().update_order(); })
      .def_prop_ro("n_iter", [](const PyBlockGreedy& self) { return self.solver().counters.n_iter; })
      .def_prop_ro("nonzeros_touched",
                   [](const PyBlockGreedy& self) { return self.solver().counters.nonzeros_touched; })
      .def_prop_ro("critical_nonzeros",
                   [](const PyBlockGreedy& self) { return self.solver().counters.critical_nonzeros; })
      .def_prop_ro("moves", [](const PyBlockGreedy& self) { return self.solver().counters.moves; })
      .def_prop_ro("staleness", [](const PyBlockGreedy& self) { return self.solver().counters.staleness; })
      .def_prop_ro("most_stale", [](const PyBlockGreedy& self) { return self.solver().counters.most_stale; });
}

}  // namespace blockgreedy
