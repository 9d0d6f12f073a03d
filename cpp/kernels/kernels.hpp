// The hot loops, one function table per instruction set. The table is chosen once, at first use, by what the
// processor offers; BLOCKGREEDY_ISA=baseline|avx2|avx512 in the environment asks for less.
#pragma once

#include <array>
#include <cstdint>

#include "base/views.hpp"
#include "math/losses.hpp"

namespace blockgreedy {

// Input and output of a pass over rows that evaluates the loss and its quadratic model.
struct RowRun {
  const double *y, *weights;  // `weights` null: every row has `weight`
  double weight, delta;
  double curvature_margin, flat;  // see the terms of the losses
  const double *t, *direction;    // predictions are t + step·direction; direction may be null
  double step;
  double* derivs;  // out: weight·loss′
  float* root;     // out: √(weight·loss″)
};

struct ColumnSums {
  double product;    // x·r
  double magnitude;  // Σ weight |x|
  double squares;    // Σ x² over the rows whose weight is not 0
};

// What clustering knows of each column. Two columns with similar sets of rows probably have the same first row in a
// random order of all rows (MinHash); there are two such orders.
struct ColumnSignatures {
  float* correlation;         // |x·r|/‖x‖; 1 without r
  std::int32_t* first_row;    // the column's first row in the first order; -1 if empty, 0 if dense
  std::uint32_t* least_rank;  // the least rank of its rows in the second order
};
struct Salts {
  std::uint32_t first, second;  // define the two orders, see row_rank
};

// The rows of a column that were kept, and Σ z² over these and over all of its rows.
struct KeptRows {
  std::int64_t count;
  double kept, total;
};

// How the slacks of the dual constraints shrink when the dual point θ moves: see candidates.hpp.
struct SlackMove {
  float scale, shift, rounding;
  float report_below;              // columns whose estimated slack is at most report_below·unit are reported too
  std::array<float, 32> distance;  // by class
};

// The same in double, for checks of rounding errors; `farthest` is the largest distance of any class.
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

// Loops over columns of one kind of matrix.
template <class View>
struct ViewKernels {
  // out_k = x_j·r for j = columns[first + k], or j = first + k where `columns` is null.
  void (*dots)(const View&, const std::int32_t* columns, std::int64_t first, std::int64_t count, const double* r,
               double* out);
  // `weights` may be null: 1 for every row.
  void (*sums)(const View&, const std::int32_t* columns, std::int64_t count, const double* r, const double* weights,
               ColumnSums* out);
  // Of columns first, first+1, …
  void (*signatures)(const View&, std::int64_t first, std::int64_t count, const float* r, Salts salts,
                     ColumnSignatures out);
};

// Loops over values of one type.
template <class T>
struct ValueKernels {
  double (*squared_norm)(const T* x, std::int64_t n);
  double (*sum)(const T* x, std::int64_t n);
  bool (*all_finite)(const T* x, std::int64_t n);
  T (*largest_magnitude)(const T* x, std::int64_t n);
  // out_c = Σ x_k·block[16·at_k + c] for 16 columns c, which stand side by side.
  void (*block_dot)(const std::int32_t* at, const T* x, std::int64_t n, const float* block, float* out);
  // Eight vectors side by side, number f of row i at 8·i + f: out_f = Σ x·v_f, Σ x·h_f·v_f and Σ x²·h_f over the
  // column's rows, and v_f += step_f·x.
  void (*lane_dot)(const std::int32_t* at, const T* x, std::int64_t n, const float* v, float* out);
  void (*lane_weighted_dot)(const std::int32_t* at, const T* x, std::int64_t n, const float* h, const float* v,
                            float* out);
  void (*lane_squares)(const std::int32_t* at, const T* x, std::int64_t n, const float* h, float* out);
  void (*lane_axpy)(const std::int32_t* at, const T* x, std::int64_t n, const float* steps, float* v);
  // z = root·x at the column's rows (`at` null: rows 0 … n); returns Σ z².
  double (*scale)(const std::int32_t* at, const T* x, std::int64_t n, const float* root, float* z);
  // The same for the rows whose bit is set in `keep` only; they are renumbered.
  KeptRows (*pick)(const std::int32_t* at, const T* x, std::int64_t n, const float* root, const std::int32_t* place,
                   const std::uint64_t* keep, std::int32_t* at_out, float* z);
  // out += Σ_k coefficients_k·x_k, of dense columns with n entries each.
  void (*combine)(const T* const* x, const double* coefficients, std::int64_t count, std::int64_t n, double* out);
  // sums[i % 256] += signs[i]·x[i]; returns Σ x.
  double (*fold)(const T* x, std::int64_t n, const double* signs, double* sums);
};

inline constexpr std::int64_t n_fingerprint_lanes = 64;

struct Kernels {
  const char* name;

  ViewKernels<CscView<float>> csc_f32;
  ViewKernels<CscView<double>> csc_f64;
  ViewKernels<DenseView<float>> dense_f32;
  ViewKernels<DenseView<double>> dense_f64;
  ValueKernels<float> f32;
  ValueKernels<double> f64;
  std::array<LossKernels, n_losses> losses;

  double (*sum)(const double*, std::int64_t);
  // Words 0, 16, 32, … go into the hash lanes[0], words 1, 17, 33, … into lanes[1], and so on.
  void (*fingerprint)(const std::uint32_t* words, std::int64_t n, std::uint32_t* lanes);
  RowNumbers (*row_numbers)(const std::int32_t* rows, std::int64_t n);

  // Bit k says that |x_k| is above the limit, or NaN; n <= 64.
  std::uint64_t (*above)(const double* x, std::int64_t n, double limit);
  // Lower bounds of the slacks after a move: left_k = scale·slack_k + shift·unit_k − distance of the column's class −
  // rounding·|slack_k|; `left` may be `slack`. Estimates without distance and rounding replace `estimate` in place.
  // Bit k of the result: left_k <= 0 or estimate_k <= report_below·unit_k. n <= 64.
  std::uint64_t (*shorten)(const SlackMove& move, const float* slack, float* estimate, const float* unit,
                           const std::uint8_t* classes, std::int64_t n, float* left);
  // Fills `left` with the slacks after a move, without distances; bit k: left_k is not above check.farthest. n <= 64.
  std::uint64_t (*near_end)(const SlackCheck& check, const float* slack, const float* unit, std::int64_t n,
                            double* left);

  // Columns of the float32 copy in subproblem.hpp: z·v and v += step·z, sparse and dense.
  double (*float_dot)(const std::int32_t* at, const float* z, std::int64_t n, const float* v);
  void (*float_axpy)(const std::int32_t* at, const float* z, std::int64_t n, float step, float* v);
  // m short columns, the entries of number k at starts[k] … starts[k + 1], with eight vectors side by side:
  // v += Σ p_k·x_k, where p_k is not 0; and out_k = x_k·v.
  void (*lane_combine)(const std::uint16_t* at, const float* x, const std::int64_t* starts, std::int64_t m,
                       const float* p, float* v);
  void (*lane_products)(const std::uint16_t* at, const float* x, const std::int64_t* starts, std::int64_t m,
                        const float* v, float* out);
  double (*float_dense_dot)(const float* a, const float* b, std::int64_t n);
  void (*float_dense_axpy)(const float* z, float step, float* v, std::int64_t n);
  void (*float_subtract)(float* a, const float* b, std::int64_t n);
  // Of a few dense columns z_k with n entries: out_k = z_k·v; v += Σ steps_k·z_k; gram += their products, up to the
  // diagonal, in rows of `count` numbers.
  void (*tile_dots)(const float* const* z, std::int64_t count, std::int64_t n, const float* v, double* out);
  void (*tile_axpy)(const float* const* z, const float* steps, std::int64_t count, std::int64_t n, float* v);
  void (*tile_gram)(const float* const* z, std::int64_t count, std::int64_t n, double* gram);
  // gram += rowsᵀ·rows below the diagonal in rows from `first` on; some entries around these are changed as well.
  // There are `width` columns, a multiple of 32, in panels of 32: number (i, c) stands at c/32·panel_stride +
  // i·stride + c%32.
  void (*float_gram)(const float* rows, std::int64_t n_rows, std::int64_t stride, std::int64_t panel_stride,
                     std::int64_t first, std::int64_t width, std::int64_t gram_stride, float* gram);

  // The loops for this kind of matrix, or for values of this type.
  const ViewKernels<CscView<float>>& of(const CscView<float>&) const { return csc_f32; }
  const ViewKernels<CscView<double>>& of(const CscView<double>&) const { return csc_f64; }
  const ViewKernels<DenseView<float>>& of(const DenseView<float>&) const { return dense_f32; }
  const ViewKernels<DenseView<double>>& of(const DenseView<double>&) const { return dense_f64; }
  const ValueKernels<float>& of(const float*) const { return f32; }
  const ValueKernels<double>& of(const double*) const { return f64; }
  const LossKernels& of(const Loss& loss) const { return losses[static_cast<std::size_t>(loss.kind)]; }
};

const Kernels& kernels();

template <class View>
double column_dot(const View& view, std::int64_t j, const double* r) {
  double out;
  kernels().of(view).dots(view, nullptr, j, 1, r, &out);
  return out;
}

template <class View>
double column_squared_norm(const View& view, std::int64_t j) {
  return kernels().of(view.data).squared_norm(view.data + view.start(j), view.count(j));
}

// Short names of single entries.
template <class View>
void column_dots(const View& view, const std::int32_t* columns, std::int64_t first, std::int64_t count,
                 const double* r, double* out) {
  kernels().of(view).dots(view, columns, first, count, r, out);
}
template <class View>
void column_sums(const View& view, const std::int32_t* columns, std::int64_t count, const double* r,
                 const double* weights, ColumnSums* out) {
  kernels().of(view).sums(view, columns, count, r, weights, out);
}
template <class T>
void block_dot(const std::int32_t* at, const T* x, std::int64_t n, const float* block, float* out) {
  kernels().of(x).block_dot(at, x, n, block, out);
}
template <class T>
double scale_column(const std::int32_t* at, const T* x, std::int64_t n, const float* root, float* z) {
  return kernels().of(x).scale(at, x, n, root, z);
}
template <class T>
KeptRows pick_rows(const std::int32_t* at, const T* x, std::int64_t n, const float* root, const std::int32_t* place,
                   const std::uint64_t* keep, std::int32_t* at_out, float* z) {
  return kernels().of(x).pick(at, x, n, root, place, keep, at_out, z);
}
inline const LossKernels& loss_kernels(const Loss& loss) { return kernels().of(loss); }

// A pseudo-random order of the rows: the rank of a row, and the row of a rank.
BLOCKGREEDY_INLINE std::uint32_t row_rank(std::uint32_t row, std::uint32_t salt) {
  const std::uint32_t x = (row + salt) * 0x9e3779b1U;
  return (x ^ (x >> 16)) * 0x85ebca6bU;
}
BLOCKGREEDY_INLINE std::uint32_t row_at_rank(std::uint32_t rank, std::uint32_t salt) {
  const std::uint32_t x = rank * 0xa5cb9243U;  // the inverses of the odd factors, modulo 2³²
  return (x ^ (x >> 16)) * 0x0e8b2f51U - salt;
}

}  // namespace blockgreedy
