// The module: matrices, problems, solvers and the small parts that tests look at. Only bindings*.cpp know Python.
#include "bindings/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "base/random.hpp"
#include "family/block_greedy.hpp"
#include "math/certificate.hpp"
#include "working_set/working_set.hpp"

namespace blockgreedy {
namespace {

// A read-only view of memory that `owner` keeps alive.
nb::ndarray<nb::numpy, const double, nb::ndim<1>> look_at(const std::vector<double>& values, nb::handle owner) {
  return {values.data(), {values.size()}, owner};
}

template <class T, class Pointer>
HeldMatrix hold_csc(std::int64_t n_rows, Vector<Pointer> indptr, Vector<std::int32_t> indices, Vector<T> data) {
  if (indptr.size() < 1) throw std::invalid_argument("indptr must not be empty");
  const auto n_cols = static_cast<std::int64_t>(indptr.size()) - 1;
  const Pointer last = indptr.data()[n_cols];
  if (last < 0 || static_cast<std::size_t>(last) > indices.size() || static_cast<std::size_t>(last) > data.size()) {
    throw std::invalid_argument("indptr points past the end of indices or data");
  }
  return {CscView<T>{n_rows, n_cols, indptr.data(), sizeof(Pointer) == 8, indices.data(), data.data()},
          {nb::cast(indptr), nb::cast(indices), nb::cast(data)}};
}

template <class T>
HeldMatrix hold_dense(Columns<T> x) {
  return {DenseView<T>{static_cast<std::int64_t>(x.shape(0)), static_cast<std::int64_t>(x.shape(1)), x.data()},
          {nb::cast(x)}};
}

std::string find_fault(const HeldMatrix& held, int n_threads) {
  nb::gil_scoped_release release;
  ThreadTeam team(n_threads);
  return describe_fault(held.matrix, team);
}

using OptionalVector = std::optional<Vector<double>>;

// The objective and its certificate passes, with the threads that run them.
class PyProblem {
 public:
  PyProblem(nb::object held, Vector<double> y, int loss, double delta, double alpha, double l2,
            OptionalVector weights, OptionalVector l2_weights, std::variant<double, Vector<double>> lower,
            std::variant<double, Vector<double>> upper, OptionalVector row_weights, OptionalVector offset,
            bool fit_intercept, int n_threads)
      : held_object(held),
        held(nb::cast<const HeldMatrix&>(held)),
        y_(y),
        weights_(weights),
        l2_weights_(l2_weights),
        row_weights_(row_weights),
        offset_(offset),
        team(n_threads, [this] { return hook.poll(); }) {
    check_size("y", y.size(), this->held.n_rows());
    for (const auto* option : {&row_weights_, &offset_}) {
      if (*option) check_size("row_weights and offset", (*option)->size(), this->held.n_rows());
    }
    if (row_weights_) core.row_weights = row_weights_->data();
    if (offset_) core.offset = offset_->data();
    core.fit_intercept = fit_intercept;
    if (const auto* array = std::get_if<Vector<double>>(&lower)) lower_ = *array;
    else core.penalty.lower_all = std::get<double>(lower);
    if (const auto* array = std::get_if<Vector<double>>(&upper)) upper_ = *array;
    else core.penalty.upper_all = std::get<double>(upper);
    for (const auto* option : {&weights_, &l2_weights_, &lower_, &upper_}) {
      if (*option) check_size("weights, l2_weights, lower and upper", (*option)->size(), this->held.n_cols());
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

  // Runs f without the GIL; Ctrl-C during a pass is raised, since half a pass has no meaning.
  template <class F>
  auto pass(F&& f) {
    team.clear_stop();
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

  double objective_at(Vector<double> w, Vector<double> Xw) {
    check_size("w", w.size(), held.n_cols());
    check_size("Xw", Xw.size(), held.n_rows());
    return pass([&] { return objective(core, held.n_rows(), held.n_cols(), w.data(), Xw.data(), team); });
  }
  nb::ndarray<nb::numpy, double, nb::ndim<1>> predict_at(Vector<double> w) {
    check_size("w", w.size(), held.n_cols());
    std::vector<double> Xw(static_cast<std::size_t>(held.n_rows()));
    pass([&] {
      predict(held.matrix, w.data(), Xw.data());
      return 0;
    });
    return give_away(std::move(Xw));
  }
  void products(Vector<double> r, Buffer<double> out) {
    check_size("r", r.size(), held.n_rows());
    check_size("out", out.size(), held.n_cols());
    pass([&] {
      column_products(held.matrix, r.data(), out.data(), team);
      return 0;
    });
  }
  double alpha_needed_by(Vector<double> theta, bool at_null, double rounding) {
    check_size("theta", theta.size(), held.n_rows());
    return pass([&] { return alpha_needed(held.matrix, core.penalty, theta.data(), at_null, rounding, team); });
  }
  double conjugate_at(Vector<double> theta, double scale, double rounding) {
    check_size("theta", theta.size(), held.n_rows());
    return pass([&] { return penalty_conjugate(held.matrix, core.penalty, theta.data(), scale, rounding, team); });
  }
  double residual_at(Vector<double> w, Vector<double> theta) {
    check_size("w", w.size(), held.n_cols());
    check_size("theta", theta.size(), held.n_rows());
    return pass([&] { return kkt_residual(held.matrix, core.penalty, w.data(), theta.data(), team); });
  }

  nb::object held_object;
  const HeldMatrix& held;

 private:
  Vector<double> y_;
  OptionalVector weights_, l2_weights_, lower_, upper_, row_weights_, offset_;

 public:
  SignalHook hook;
  ThreadTeam team;
  CoreProblem core{};
};

class PyBlockGreedy {
 public:
  PyBlockGreedy(nb::object problem, Vector<std::int32_t> block_of, std::int64_t n_blocks,
                std::int64_t blocks_per_iter, std::int64_t per_block, int update, int greedy_rule, int scan,
                bool atomic, double inner_tol, std::int64_t max_sweeps, std::uint64_t seed)
      : problem_object_(problem), problem_(nb::cast<PyProblem&>(problem)), block_of_(block_of) {
    check_size("block_of", block_of.size(), problem_.held.n_cols());
    if (n_blocks < 1 || blocks_per_iter < 1 || blocks_per_iter > n_blocks || per_block < 1) {
      throw std::invalid_argument("need 1 <= blocks_per_iter <= n_blocks and per_block >= 1");
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
                                     seed};
    nb::gil_scoped_release release;
    solver_ = make_block_greedy(problem_.held.matrix, problem_.core, options, block_of_.data(), problem_.team);
  }

  // (iterations done, interrupted by Ctrl-C)
  std::pair<std::int64_t, bool> run(std::int64_t n_iter, double max_seconds) {
    problem_.team.clear_stop();
    BlockGreedy& current = solver();
    std::int64_t done = 0;
    {
      nb::gil_scoped_release release;
      done = current.run(n_iter, max_seconds);
    }
    const bool interrupted = problem_.hook.take();
    return {done, interrupted};
  }
  void set_weights(Vector<double> w) {
    check_size("w", w.size(), problem_.held.n_cols());
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.set_weights(w.data());
  }
  void set_sparse_weights(Vector<std::int64_t> features, Vector<double> values) {
    check_size("values", values.size(), static_cast<std::int64_t>(features.size()));
    for (std::size_t k = 0; k < features.size(); ++k) check_feature(features.data()[k]);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.set_sparse_weights(features.data(), values.data(), static_cast<std::int64_t>(features.size()));
  }
  // The weights themselves, not a copy: at 10^8 features there should not be two. The solver is done after it.
  nb::ndarray<nb::numpy, double, nb::ndim<1>> release_weights() {
    std::vector<double> w = std::move(solver().state.w);
    solver_.reset();
    return give_away(std::move(w));
  }
  void update_with(const std::vector<std::int32_t>& features) {
    for (std::int32_t j : features) check_feature(j);
    BlockGreedy& current = solver();
    nb::gil_scoped_release release;
    current.update_with(features);
  }
  double current_objective() {
    const State& state = solver().state;
    return problem_.pass([&] {
      return objective(problem_.core, problem_.held.n_rows(), problem_.held.n_cols(), state.w.data(), state.Xw.data(),
                       problem_.team);
    });
  }
  BlockGreedy& solver() const {
    if (!solver_) throw std::runtime_error("the weights of this solver were released");
    return *solver_;
  }

 private:
  void check_feature(std::int64_t j) const {
    if (j < 0 || j >= problem_.held.n_cols()) throw std::invalid_argument("feature out of range");
  }

  nb::object problem_object_;
  PyProblem& problem_;
  Vector<std::int32_t> block_of_;
  std::unique_ptr<BlockGreedy> solver_;
};

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
      check_size("block_of", block_of->size(), problem_.held.n_cols());
      options.block_of = block_of_->data();
    }
    nb::gil_scoped_release release;
    solver_ = make_working_set(problem_.held.matrix, problem_.core, options, problem_.team);
  }
  // True if interrupted by Ctrl-C; w is written to from here on.
  bool start(Buffer<double> w, double intercept) {
    check_size("w", w.size(), problem_.held.n_cols());
    w_ = w;
    problem_.team.clear_stop();
    {
      nb::gil_scoped_release release;
      solver_->start(w_.data(), intercept);
      problem_.team.poll();
    }
    return problem_.hook.take();
  }
  // Goes on to a lower alpha from where the solve stands. True if interrupted by Ctrl-C.
  bool lower_alpha(double alpha, double l2) {
    if (w_.data() == nullptr) throw std::runtime_error("start first");
    Penalty& penalty = problem_.core.penalty;
    const Penalty before = penalty;
    if (!(alpha <= before.alpha && alpha >= least_alpha_)) throw std::invalid_argument("alpha must only fall");
    if (!(l2 <= before.l2 && (l2 > 0) == (before.l2 > 0))) throw std::invalid_argument("l2 must only fall, not to 0");
    penalty.alpha = alpha;
    penalty.l2 = l2;
    problem_.team.clear_stop();
    {
      nb::gil_scoped_release release;
      solver_->alpha_fell(before);
      problem_.team.poll();
    }
    return problem_.hook.take();
  }
  // (did anything improve, interrupted by Ctrl-C)
  std::pair<bool, bool> step() {
    if (w_.data() == nullptr) throw std::runtime_error("start first");
    problem_.team.clear_stop();
    bool improved = false;
    {
      nb::gil_scoped_release release;
      improved = solver_->step();
      problem_.team.poll();
    }
    return {improved, problem_.hook.take()};
  }
  void certify() {
    if (w_.data() == nullptr) throw std::runtime_error("start first");
    nb::gil_scoped_release release;
    solver_->certify_anyway();
  }
  std::tuple<double, double, double> verify(Vector<std::int32_t> features, Vector<double> values, double intercept) {
    check_size("values", values.size(), static_cast<std::int64_t>(features.size()));
    for (std::size_t k = 0; k < features.size(); ++k) {
      if (features.data()[k] < 0 || features.data()[k] >= problem_.held.n_cols())
        throw std::invalid_argument("feature out of range");
    }
    problem_.team.clear_stop();
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

std::vector<double> evaluate_loss(int loss, const std::string& what, Vector<double> y, Vector<double> t,
                                  double delta) {
  if (loss < 0 || loss >= n_losses) throw std::invalid_argument("unknown loss number");
  check_size("t", t.size(), static_cast<std::int64_t>(y.size()));
  const LossKernels& table = kernels().losses[static_cast<std::size_t>(loss)];
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
  if (what == "conjugate") return coordinate.conjugate(a);
  if (what == "subgradient_distance") return coordinate.subgradient_distance(a, b);
  throw std::invalid_argument("what must be value, prox, gain, conjugate or subgradient_distance");
}

void bind_matrix(nb::module_& m) {
  nb::class_<HeldMatrix>(m, "Matrix", "A design matrix the core looks at without copying it.")
      .def_prop_ro("n_rows", &HeldMatrix::n_rows)
      .def_prop_ro("n_cols", &HeldMatrix::n_cols)
      .def_prop_ro("n_nonzeros", &HeldMatrix::n_nonzeros);
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
  m.def("find_fault", &find_fault, "matrix"_a, "n_threads"_a,
        "\"\" for a sound matrix, else one of indptr, range, unsorted, finite.");
}

void bind_solver(nb::module_& m) {
  nb::class_<PyProblem>(m, "CoreProblem", "Objective and certificate passes over one matrix.")
      .def(nb::init<nb::object, Vector<double>, int, double, double, double, OptionalVector, OptionalVector,
                    std::variant<double, Vector<double>>, std::variant<double, Vector<double>>, OptionalVector,
                    OptionalVector, bool, int>(),
           "matrix"_a, "y"_a, "loss"_a, "delta"_a, "alpha"_a, "l2"_a, "weights"_a.none(), "l2_weights"_a.none(),
           "lower"_a, "upper"_a, "row_weights"_a.none(), "offset"_a.none(), "fit_intercept"_a, "n_threads"_a)
      .def("objective", &PyProblem::objective_at, "w"_a, "Xw"_a)
      .def("predict", &PyProblem::predict_at, "w"_a)
      .def("column_products", &PyProblem::products, "r"_a, "out"_a.noconvert(), "out_j = x_j·r")
      .def("alpha_needed", &PyProblem::alpha_needed_by, "theta"_a, "at_null"_a, "rounding"_a)
      .def("penalty_conjugate", &PyProblem::conjugate_at, "theta"_a, "scale"_a, "rounding"_a)
      .def("kkt_residual", &PyProblem::residual_at, "w"_a, "theta"_a);
  nb::class_<PyBlockGreedy>(m, "BlockGreedy", "Algorithm 1; see cpp/blockgreedy/block_greedy.hpp.")
      .def(nb::init<nb::object, Vector<std::int32_t>, std::int64_t, std::int64_t, std::int64_t, int, int, int, bool,
                    double, std::int64_t, std::uint64_t>(),
           "problem"_a, "block_of"_a, "n_blocks"_a, "blocks_per_iter"_a, "per_block"_a, "update"_a, "greedy_rule"_a,
           "scan"_a, "atomic"_a, "inner_tol"_a, "max_sweeps"_a, "seed"_a)
      .def("run", &PyBlockGreedy::run, "n_iter"_a, "max_seconds"_a)
      .def("set_weights", &PyBlockGreedy::set_weights, "w"_a)
      .def("set_sparse_weights", &PyBlockGreedy::set_sparse_weights, "features"_a, "values"_a)
      .def("release_weights", &PyBlockGreedy::release_weights, "Hands the weights over; the solver is done after it.")
      .def("update_with", &PyBlockGreedy::update_with, "features"_a)
      .def("objective", &PyBlockGreedy::current_objective)
      .def_prop_ro("coef",
                   [](nb::handle_t<PyBlockGreedy> self) {
                     return look_at(nb::cast<PyBlockGreedy&>(self).solver().state.w, self);
                   })
      .def_prop_ro("Xw",
                   [](nb::handle_t<PyBlockGreedy> self) {
                     return look_at(nb::cast<PyBlockGreedy&>(self).solver().state.Xw, self);
                   })
      .def_prop_ro("derivs",
                   [](nb::handle_t<PyBlockGreedy> self) {
                     return look_at(nb::cast<PyBlockGreedy&>(self).solver().state.derivs, self);
                   })
      .def_prop_ro("accepted", [](const PyBlockGreedy& self) { return self.solver().accepted; })
      .def_prop_ro("update_order", [](const PyBlockGreedy& self) { return self.solver().update_order(); })
      .def_prop_ro("n_iter", [](const PyBlockGreedy& self) { return self.solver().counters.n_iter; })
      .def_prop_ro("nonzeros_touched",
                   [](const PyBlockGreedy& self) { return self.solver().counters.nonzeros_touched; })
      .def_prop_ro("critical_nonzeros",
                   [](const PyBlockGreedy& self) { return self.solver().counters.critical_nonzeros; });
}

void bind_working_set(nb::module_& m) {
  nb::class_<PyWorkingSet> binding(m, "WorkingSet", "The default solver; see cpp/blockgreedy/working_set.hpp.");
  binding
      .def(nb::init<nb::object, std::int64_t, std::optional<Vector<std::int32_t>>, double, double, double, double>(),
           "problem"_a, "n_blocks"_a, "block_of"_a.none(), "tol"_a, "f_null"_a, "floor"_a, "least_alpha"_a)
      .def("start", &PyWorkingSet::start, "w"_a.noconvert(), "intercept"_a)
      .def("lower_alpha", &PyWorkingSet::lower_alpha, "alpha"_a, "l2"_a)
      .def("step", &PyWorkingSet::step)
      .def("certify", &PyWorkingSet::certify)
      .def("verify", &PyWorkingSet::verify, "features"_a, "values"_a, "intercept"_a,
           "(objective, penalty, dual value) of these weights and the dual point, recomputed.")
      .def("release_dual", &PyWorkingSet::release_dual, "Hands the dual point over; certificates end with it.")
      .def_prop_ro(
          "dual",
          [](nb::handle_t<PyWorkingSet> self) { return look_at(nb::cast<PyWorkingSet&>(self).solver().dual, self); })
      .def_prop_ro("predictions",
                   [](nb::handle_t<PyWorkingSet> self) {
                     return look_at(nb::cast<PyWorkingSet&>(self).solver().predictions(), self);
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
  show("working_set_size", &WorkingSet::working_set_size);
  show("n_cg", &WorkingSet::n_cg);
  show("n_models_by_products", &WorkingSet::n_models_by_products);
  show("nonzeros_touched", &WorkingSet::nonzeros_touched);
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
  blockgreedy::bind_matrix(m);
  blockgreedy::bind_solver(m);
  blockgreedy::bind_working_set(m);
  blockgreedy::bind_data(m);
  blockgreedy::bind_theory(m);
  blockgreedy::bind_parts(m);
}
