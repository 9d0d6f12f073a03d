// What the binding files share: array types, ownership, signals. Included by bindings*.cpp only.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "base/views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace blockgreedy {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Buffer = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Columns = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

// A NumPy array that takes over the vector's memory.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> give_away(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

// A read-only view of memory that `owner` keeps alive.
inline nb::ndarray<nb::numpy, const double, nb::ndim<1>> view_of(const std::vector<double>& values,
                                                                 nb::handle owner) {
  return {values.data(), {values.size()}, owner};
}

// Hears Ctrl-C (any Python signal handler) from inside the core without holding the GIL meanwhile.
class SignalHook {
 public:
  bool poll() {
    nb::gil_scoped_acquire gil;
    if (!interrupted_ && PyErr_CheckSignals() != 0) {
      PyErr_Fetch(&type_, &value_, &traceback_);
      interrupted_ = true;
    }
    return interrupted_;
  }
  // With the GIL matrix: true if it was Ctrl-C; any other exception of a handler is raised here.
  bool take() {
    if (!interrupted_) return false;
    interrupted_ = false;
    const bool is_keyboard = PyErr_GivenExceptionMatches(type_, PyExc_KeyboardInterrupt) != 0;
    PyErr_Restore(type_, value_, traceback_);
    if (!is_keyboard) throw nb::python_error();
    PyErr_Clear();
    return true;
  }

 private:
  bool interrupted_ = false;
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

// A view of a matrix, and the Python arrays that own its memory.
struct PyMatrix {
  Matrix view;
  std::vector<nb::object> arrays;

  std::int64_t n_rows() const {
    return std::visit([](const auto& v) { return v.n_rows; }, view);
  }
  std::int64_t n_cols() const {
    return std::visit([](const auto& v) { return v.n_cols; }, view);
  }
  std::int64_t n_nonzeros() const {
    return std::visit([](const auto& v) { return v.n_nonzeros(); }, view);
  }
};

inline void check_size(const char* name, std::size_t got, std::int64_t wanted) {
  if (static_cast<std::int64_t>(got) != wanted) {
    throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) + ", expected " +
                                std::to_string(wanted));
  }
}

// Runs f(team) without the GIL; Ctrl-C is raised, since what f leaves behind is then incomplete.
template <class F>
void with_team(int n_threads, F&& f) {
  SignalHook hook;
  {
    nb::gil_scoped_release release;
    ThreadTeam team(n_threads, [&] { return hook.poll(); });
    f(team);
  }
  if (hook.take()) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
}

void bind_problem(nb::module_& m);
void bind_block_greedy(nb::module_& m);
void bind_folds(nb::module_& m);
void bind_working_set(nb::module_& m);
void bind_data(nb::module_& m);    // partitions, file formats and generators
void bind_theory(nb::module_& m);  // what the theory asks of a matrix
void bind_rows(nb::module_& m);    // rows → columns
void bind_tiles(nb::module_& m);   // what a rank of the tile solver computes

}  // namespace blockgreedy
