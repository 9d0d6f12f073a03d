// The hot loops, one function table per instruction set. The table is chosen once, at first use, by what the
// processor offers; BLOCKGREEDY_ISA=baseline|avx2|avx512 in the environment asks for less.
#pragma once

#include <array>
#include <cstdint>

#include "base/views.hpp"
#include "math/losses.hpp"

namespace blockgreedy {

// `columns` null means the run first, first+1, …; otherwise columns[first], columns[first+1], …
template <class View>
using DotsFunction = void (*)(const View&, const std::int32_t* columns, std::int64_t first, std::int64_t count,
                              const double* r, double* out);

// The rows of a model: y, where it stands, and what each row weighs (`weights` null: `weight` for all).
struct RowRun {
  const double *y, *weights;
  double weight, delta, careful, flat;  // careful, flat: see the terms of the losses
  const double *t, *direction;          // the point is t + step·direction; direction may be null
  double step;
  double* derivs;  // weight·loss′
  float* root;     // √(weight·loss″)
};

// x·r, Σ weight |x|, Σ x²
// Rows of weight 0 do not count in `squares`.
struct ColumnSums {
  double product, magnitude, squares;
};

template <class View>
using SumsFunction = void (*)(const View&, const std::int32_t* columns, std::int64_t count, const double* r,
                              const double* weights, ColumnSums* out);

// What clustering wants to know of a column: |x·r|/‖x‖ (1 without r), the row that comes first in a random order of
// the rows (-1 without rows; 0 for dense columns, which have them all), and the least rank in a second such order.
struct ColumnLooks {
  float* mass;
  std::int32_t* row;
  std::uint32_t* second;
};
struct Salts {
  std::uint32_t first, second;  // of the two orders, see row_rank
};

template <class View>
using LooksFunction = void (*)(const View&, std::int64_t first, std::int64_t count, const float* r, Salts salts,
                               ColumnLooks out);

// How many of a column's rows were kept, and Σ z² over these and over all of its rows.
struct KeptRows {
  std::int64_t count;
  double kept, total;
};

// How what is left of the thresholds shrinks when θ moves: see candidates.hpp.
struct SlackMove {
  float scale, shift, rounding, near;
  std::array<float, 32> distance;  // by class
};

// The same for the guard, in double; `farthest` is the largest distance of any class.
struct SlackCheck {
  double scale, shift, rounding, farthest;
};

// Extremes of a run of row numbers, and how often one is not above the one before.
struct RowNumbers {
  std::int32_t lowest, highest;
  std::int64_t falls;
};

struct LossKernels {
  void (*derivs)(const double* y, const double* t, std::int64_t n, double delta, double* out);
  void (*values)(const double* y, const double* t, std::int64_t n, double delta, double* out);
  void (*curvatures)(const double* y, const double* t, std::int64_t n, double delta, double* out);
  void (*conjugates)(const double* y, const double* u, std::int64_t n, double delta, double* out);
  void (*into_domain)(const double* y, double* u, std::int64_t n, double delta);
  // Fills rows begin … end of the outputs; returns Σ weight·loss.
  double (*advance)(const RowRun& rows, std::int64_t begin, std::int64_t end);
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
  // left_k = scale·slack_k + shift·unit_k − distance of its class, less the rounding, and the same without distance
  // for the guesses, in place; bit k says that left_k is at most 0 or the guess at most near·unit_k; n <= 64. `left`
  // may be slack.
  std::uint64_t (*shorten)(const SlackMove& move, const float* slack, float* guess, const float* unit,
                           const std::uint8_t* classes, std::int64_t n, float* left);
  // Bit k: of column k (of up to 64) no more than check.farthest may be left.
  std::uint64_t (*near_end)(const SlackCheck& check, const float* slack, const float* unit, std::int64_t n,
                            double* left);
  bool (*all_finite_f32)(const float* x, std::int64_t n);
  bool (*all_finite_f64)(const double* x, std::int64_t n);
  RowNumbers (*row_numbers)(const std::int32_t* rows, std::int64_t n);
  std::array<LossKernels, n_losses> losses;

  // Columns of the float32 model in subproblem.hpp: z·v and v += step·z, sparse and dense.
  double (*float_dot)(const std::int32_t* at, const float* z, std::int64_t n, const float* v);
  void (*float_axpy)(const std::int32_t* at, const float* z, std::int64_t n, float step, float* v);
  double (*float_dense_dot)(const float* a, const float* b, std::int64_t n);
  void (*float_dense_axpy)(const float* z, float step, float* v, std::int64_t n);
  void (*float_subtract)(float* a, const float* b, std::int64_t n);
  // out_c = Σ x_k·block[16·at_k + c] for 16 columns c, which stand side by side.
  void (*block_dot_f32)(const std::int32_t* at, const float* x, std::int64_t n, const float* block, float* out);
  void (*block_dot_f64)(const std::int32_t* at, const double* x, std::int64_t n, const float* block, float* out);
  // gram += rowsᵀ·rows below the diagonal in rows from `first` on, and some more around that. There are `width`
  // columns, a multiple of 32, in panels of 32: number (i, c) stands at c/32·panel_stride + i·stride + c%32.
  void (*float_gram)(const float* rows, std::int64_t n_rows, std::int64_t stride, std::int64_t panel_stride,
                     std::int64_t first, std::int64_t width, std::int64_t gram_stride, float* gram);
  // z = root·x at the column's rows (`at` null: rows 0 … n); returns Σ z².
  double (*scale_f32)(const std::int32_t* at, const float* x, std::int64_t n, const float* root, float* z);
  double (*scale_f64)(const std::int32_t* at, const double* x, std::int64_t n, const float* root, float* z);
  // The same for the rows whose bit is set in `keep` only; they are renumbered.
  KeptRows (*pick_f32)(const std::int32_t* at, const float* x, std::int64_t n, const float* root,
                       const std::int32_t* place, const std::uint64_t* keep, std::int32_t* at_out, float* z);
  KeptRows (*pick_f64)(const std::int32_t* at, const double* x, std::int64_t n, const float* root,
                       const std::int32_t* place, const std::uint64_t* keep, std::int32_t* at_out, float* z);
  SumsFunction<CscView<float>> csc_sums_f32;
  SumsFunction<CscView<double>> csc_sums_f64;
  SumsFunction<DenseView<float>> dense_sums_f32;
  SumsFunction<DenseView<double>> dense_sums_f64;
  LooksFunction<CscView<float>> csc_looks_f32;
  LooksFunction<CscView<double>> csc_looks_f64;
  LooksFunction<DenseView<float>> dense_looks_f32;
  LooksFunction<DenseView<double>> dense_looks_f64;
  // sums[i % 256] += signs[i]·x[i]; returns Σ x.
  double (*fold_f32)(const float* x, std::int64_t n, const double* signs, double* sums);
  double (*fold_f64)(const double* x, std::int64_t n, const double* signs, double* sums);
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

inline bool all_finite(const float* x, std::int64_t n) { return kernels().all_finite_f32(x, n); }
inline bool all_finite(const double* x, std::int64_t n) { return kernels().all_finite_f64(x, n); }

template <class View>
double column_squared_norm(const View& view, std::int64_t j) {
  return squared_norm(view.data + view.start(j), view.count(j));
}

inline void block_dot(const std::int32_t* at, const float* x, std::int64_t n, const float* block, float* out) {
  kernels().block_dot_f32(at, x, n, block, out);
}
inline void block_dot(const std::int32_t* at, const double* x, std::int64_t n, const float* block, float* out) {
  kernels().block_dot_f64(at, x, n, block, out);
}
inline double scale_column(const std::int32_t* at, const float* x, std::int64_t n, const float* root, float* z) {
  return kernels().scale_f32(at, x, n, root, z);
}
inline double scale_column(const std::int32_t* at, const double* x, std::int64_t n, const float* root, float* z) {
  return kernels().scale_f64(at, x, n, root, z);
}
inline KeptRows pick_rows(const std::int32_t* at, const float* x, std::int64_t n, const float* root,
                          const std::int32_t* place, const std::uint64_t* keep, std::int32_t* at_out, float* z) {
  return kernels().pick_f32(at, x, n, root, place, keep, at_out, z);
}
inline KeptRows pick_rows(const std::int32_t* at, const double* x, std::int64_t n, const float* root,
                          const std::int32_t* place, const std::uint64_t* keep, std::int32_t* at_out, float* z) {
  return kernels().pick_f64(at, x, n, root, place, keep, at_out, z);
}
inline void column_sums(const CscView<float>& v, const std::int32_t* columns, std::int64_t count, const double* r,
                        const double* weights, ColumnSums* out) {
  kernels().csc_sums_f32(v, columns, count, r, weights, out);
}
inline void column_sums(const CscView<double>& v, const std::int32_t* columns, std::int64_t count, const double* r,
                        const double* weights, ColumnSums* out) {
  kernels().csc_sums_f64(v, columns, count, r, weights, out);
}
inline void column_sums(const DenseView<float>& v, const std::int32_t* columns, std::int64_t count, const double* r,
                        const double* weights, ColumnSums* out) {
  kernels().dense_sums_f32(v, columns, count, r, weights, out);
}
inline void column_sums(const DenseView<double>& v, const std::int32_t* columns, std::int64_t count, const double* r,
                        const double* weights, ColumnSums* out) {
  kernels().dense_sums_f64(v, columns, count, r, weights, out);
}

// A random order of the rows: where a row stands in it, and which row stands there.
BLOCKGREEDY_INLINE std::uint32_t row_rank(std::uint32_t row, std::uint32_t salt) {
  const std::uint32_t x = (row + salt) * 0x9e3779b1U;
  return (x ^ (x >> 16)) * 0x85ebca6bU;
}
BLOCKGREEDY_INLINE std::uint32_t row_at_rank(std::uint32_t rank, std::uint32_t salt) {
  const std::uint32_t x = rank * 0xa5cb9243U;  // the inverses of the odd factors, modulo 2³²
  return (x ^ (x >> 16)) * 0x0e8b2f51U - salt;
}

// For the run of columns first, first+1, …
inline void column_looks(const CscView<float>& v, std::int64_t first, std::int64_t count, const float* r, Salts salts,
                         ColumnLooks out) {
  kernels().csc_looks_f32(v, first, count, r, salts, out);
}
inline void column_looks(const CscView<double>& v, std::int64_t first, std::int64_t count, const float* r,
                         Salts salts, ColumnLooks out) {
  kernels().csc_looks_f64(v, first, count, r, salts, out);
}
inline void column_looks(const DenseView<float>& v, std::int64_t first, std::int64_t count, const float* r,
                         Salts salts, ColumnLooks out) {
  kernels().dense_looks_f32(v, first, count, r, salts, out);
}
inline void column_looks(const DenseView<double>& v, std::int64_t first, std::int64_t count, const float* r,
                         Salts salts, ColumnLooks out) {
  kernels().dense_looks_f64(v, first, count, r, salts, out);
}

inline const LossKernels& loss_kernels(const Loss& loss) {
  return kernels().losses[static_cast<std::size_t>(loss.kind)];
}

inline double fold(const float* x, std::int64_t n, const double* signs, double* sums) {
  return kernels().fold_f32(x, n, signs, sums);
}
inline double fold(const double* x, std::int64_t n, const double* signs, double* sums) {
  return kernels().fold_f64(x, n, signs, sums);
}

}  // namespace blockgreedy
