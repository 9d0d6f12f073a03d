// The table of hot loops for one instruction set. The *_loops.hpp are one text, compiled once per instruction set:
// each kernels_<isa>.cpp defines BLOCKGREEDY_TABLE, includes this file and is compiled with its own flags. All of the
// text has internal linkage, so that the linker cannot mix the copies.
#pragma once

#include "kernels/array_loops.hpp"
#include "kernels/column_loops.hpp"
#include "kernels/float_loops.hpp"
#include "kernels/gram_loops.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lane_loops.hpp"
#include "kernels/loss_loops.hpp"
#include "kernels/scaling_loops.hpp"
#include "kernels/signature_loops.hpp"
#include "kernels/threshold_loops.hpp"
#include "kernels/tile_loops.hpp"

namespace blockgreedy {
namespace {

template <class T>
constexpr ViewKernels<CscView<T>> csc_kernels{
    .dots = csc_dots<T>,
    .sums = csc_sums<T>,
    .signatures = csc_signatures<T>,
};

template <class T>
constexpr ViewKernels<DenseView<T>> dense_kernels{
    .dots = dense_dots<T>,
    .sums = dense_sums<T>,
    .signatures = dense_signatures<T>,
};

template <class T>
constexpr ValueKernels<T> value_kernels{
    .squared_norm = squared_norm_loop<T>,
    .sum = value_sum_loop<T>,
    .all_finite = all_finite_loop<T>,
    .largest_magnitude = largest_magnitude_loop<T>,
    .block_dot = block_dot_loop<T>,
    .lane_dot = lane_dot_loop<std::int32_t, T>,
    .lane_weighted_dot = lane_weighted_dot_loop<T>,
    .lane_squares = lane_squares_loop<T>,
    .lane_axpy = lane_axpy_loop<std::int32_t, T>,
    .scale = scale_loop<T>,
    .pick = pick_loop<T>,
    .combine = combine_loop<T>,
    .fold = fold_loop<T>,
};

}  // namespace

extern const Kernels BLOCKGREEDY_TABLE;
const Kernels BLOCKGREEDY_TABLE = {
    .name = BLOCKGREEDY_ISA_NAME,
    .csc_f32 = csc_kernels<float>,
    .csc_f64 = csc_kernels<double>,
    .dense_f32 = dense_kernels<float>,
    .dense_f64 = dense_kernels<double>,
    .f32 = value_kernels<float>,
    .f64 = value_kernels<double>,
    .losses = {LossLoops<SquaredLoss>::table, LossLoops<LogisticLoss>::table, LossLoops<SquaredHingeLoss>::table,
               LossLoops<HuberLoss>::table},
    .sum = sum_loop,
    .fingerprint = fingerprint_loop,
    .row_numbers = row_numbers_loop,
    .above = above_loop,
    .shorten = shorten_loop,
    .near_end = near_end_loop,
    .float_dot = float_dot_loop,
    .float_axpy = float_axpy_loop,
    .lane_combine = lane_combine_loop,
    .lane_products = lane_products_loop,
    .float_dense_dot = float_dense_dot_loop,
    .float_dense_axpy = float_dense_axpy_loop,
    .float_subtract = float_subtract_loop,
    .tile_dots = tile_dots_loop,
    .tile_axpy = tile_axpy_loop,
    .tile_gram = tile_gram_loop,
    .float_gram = float_gram_loop,
};

}  // namespace blockgreedy
