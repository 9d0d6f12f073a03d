// The hot loops, one function table per instruction set. The table is chosen once, at first use, by what the
// processor offers; BLOCKGREEDY_ISA=baseline|avx2|avx512 in the environment asks for less.
#pragma once

#include <array>
#include <cstdint>

#include "blockgreedy/losses.hpp"
#include "blockgreedy/views.hpp"

namespace blockgreedy {

// `columns` null means the run first, first+1, …; otherwise columns[first], columns[first+1], …
template <class View>
using DotsFunction = void (*)(const View&, const std::int32_t* columns, std::int64_t first, std::int64_t count,
                              const double* r, double* out);

struct LossKernels {
  void (*derivs)(const double* y, const double* t, std::int64_t n, double delta, double* out);
  void (*values)(const double* y, const double* t, std::int64_t n, double delta, double* out);
  void (*curvatures)(const double* y, const double* t, std::int64_t n, double delta, double* out);
  void (*conjugates)(const double* y, const double* u, std::int64_t n, double delta, double* out);
};

struct Kernels {
  const char* name;
  DotsFunction<CscView<float>> csc_dots_f32;
  DotsFunction<CscView<double>> csc_dots_f64;
  DotsFunction<DenseView<float>> dense_dots_f32;
  DotsFunction<DenseView<double>> dense_dots_f64;
  double (*squared_norm_f32)(const float*, std::int64_t);
  double (*squared_norm_f64)(const double*, std::int64_t);
  double (*sum)(const double*, std::int64_t);
  double (*largest_magnitude)(const double*, std::int64_t);
  // Bit k says that |x_k| is above the limit, or NaN; n <= 64.
  std::uint64_t (*above)(const double* x, std::int64_t n, double limit);
  std::array<LossKernels, n_losses> losses;
};

const Kernels& kernels();

// x_j·r for `count` columns.
inline void column_dots(const CscView<float>& v, const std::int32_t* c, std::int64_t first, std::int64_t count,
                        const double* r, double* out) {
  kernels().csc_dots_f32(v, c, first, count, r, out);
}
inline void column_dots(const CscView<double>& v, const std::int32_t* c, std::int64_t first, std::int64_t count,
                        const double* r, double* out) {
  kernels().csc_dots_f64(v, c, first, count, r, out);
}
inline void column_dots(const DenseView<float>& v, const std::int32_t* c, std::int64_t first, std::int64_t count,
                        const double* r, double* out) {
  kernels().dense_dots_f32(v, c, first, count, r, out);
}
inline void column_dots(const DenseView<double>& v, const std::int32_t* c, std::int64_t first, std::int64_t count,
                        const double* r, double* out) {
  kernels().dense_dots_f64(v, c, first, count, r, out);
}

template <class View>
double column_dot(const View& view, std::int64_t j, const double* r) {
  double out;
  column_dots(view, nullptr, j, 1, r, &out);
  return out;
}

inline double squared_norm(const float* x, std::int64_t n) { return kernels().squared_norm_f32(x, n); }
inline double squared_norm(const double* x, std::int64_t n) { return kernels().squared_norm_f64(x, n); }

template <class View>
double column_squared_norm(const View& view, std::int64_t j) {
  return squared_norm(view.data + view.start(j), view.count(j));
}

inline const LossKernels& loss_kernels(const Loss& loss) {
  return kernels().losses[static_cast<std::size_t>(loss.kind)];
}

}  // namespace blockgreedy
