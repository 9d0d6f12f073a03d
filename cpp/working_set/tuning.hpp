// All tuning numbers of the default solver, by the part that uses them. Where a comment says "measured", the number
// was chosen by timing solves of the benchmark sets; the others are safeguards or bounds on rounding errors.
// Widths that a kernel or a word of bits prescribes are not tuning and stay where they are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockgreedy {

struct Tuning {
  // candidates.hpp and screening.hpp: which columns are scanned, and which are proposed for the working set.
  struct Screening {
    // Proposals per iteration: twice the support, so that the working set can grow by a factor of three, and at least
    // 200, so that the first iterations do not crawl.
    static constexpr std::size_t min_proposals = 200, proposals_per_support = 2;
    // The list of proposals is cut back when it holds 4·max + 64: rarely, and without sorting all of them.
    static constexpr std::size_t list_factor = 4, list_extra = 64;
    // A proposal must exceed its threshold by more than rounding: at alpha_max no weight is to move.
    static constexpr double violation_rounding = 1e-13;
    // x_j·θ added up in another order may differ by this part of ‖x_j‖‖θ‖.
    static constexpr double product_rounding = 2e-15;
    // Safety margin of static screening, whose bound is a sum in float64.
    static constexpr double static_margin = 1e-9;
    // Relative error of slack, norms and slopes, which are float32.
    static constexpr double margin = 1e-6;
    static constexpr float float_margin = 1e-6F;
    // Largest slack that is stored; arithmetic with it stays finite in float32.
    static constexpr float max_slack = 1e30F;
    // Relative margin of distance bounds: sums of squares are rounded.
    static constexpr double distance_margin = 1e-12;
    // Limits of the factor s in θ = s·θ' + ρ: beyond them the old products say nothing.
    static constexpr double min_scale = 0.1, max_scale = 10.0;
    // A histogram of distances has one part per 2^17 rows, at most 16: each costs a histogram of its own.
    static constexpr int histogram_part_bits = 17;
    static constexpr std::int64_t max_histogram_parts = 16;
    // Mean squares of a column between which sums of products in float32 neither overflow nor lose digits.
    static constexpr double min_mean_square = 1e-12, max_mean_square = 1e12;
    // Columns whose products are computed in one call of the kernel.
    static constexpr std::int64_t batch = 128;
    // Columns that are sorted by length before their sums are computed, and the length from which on they count as
    // equal: processors mispredict the ends of short columns of mixed length.
    static constexpr std::int64_t sort_window = 1024, sort_longest = 64;
    // The sequential strong rule keeps columns whose slack is at most twice the fall of alpha.
    static constexpr double strong_rule_factor = 2;
    // Reading the slack of eight columns takes about as long as one nonzero.
    static constexpr std::int64_t columns_per_nonzero = 8;
  };

  // repeated_columns.hpp: columns that are multiples of others.
  struct Repeated {
    // Entries of a long column that its hash reads, and columns of equal hash that it is compared with at most.
    static constexpr std::int64_t hashed_entries = 32;
    static constexpr int max_compared = 8;
    // Products from here on have a rounding error that float64 holds: 2^-106 of it is still no denormal number.
    static constexpr double least_product = 0x1p-900;
    // Products of a column and its alias with random numbers, over their sums of magnitudes, differ by rounding
    // alone; of unrelated columns they differ by 1e-11 or less once in 1e11 times. Work of a column pair, in entries.
    static constexpr double confirm_rounding = 1e-11;
    static constexpr std::uint64_t confirm_seed = 0x616c6961;
    static constexpr std::int64_t confirmed_work = 16;
    // Violators kept for each proposal wanted, before aliases are taken out; times the repetition met so far.
    static constexpr std::size_t first_pool = 8, pool = 2, max_pool = 64;
    // Copies are many where 500 columns have been registered and a third of them were aliases: then scans of copies
    // cost more than hashes of all columns.
    static constexpr double min_registered = 500, many = 1.5;
    // Columns between the stages of prefetching, when many are registered.
    static constexpr std::size_t prefetched = 8;
    // Aliases are taken out of the arrays of candidates where a scan finds that they are more than a quarter.
    static constexpr std::int64_t compact_share = 4;
  };

  // scaled_columns.hpp, subproblem*: layout of the quadratic subproblem.
  struct Layout {
    // A column with at least a third of all rows is stored with its zeros.
    static constexpr std::int64_t dense_share = 3;
    // Rows are dropped only if fewer than 3/4 remain: else renumbering costs more than it saves.
    static constexpr std::int64_t kept_rows_numerator = 3, kept_rows_denominator = 4;
    // Share of all curvature that the dropped rows may hold: at most 2 %, and at most 0.3·√(relative decrease of the
    // last step), so that it vanishes at the end. Divided by 10 when more effort did not help.
    static constexpr double max_dropped = 0.02, dropped_per_root_decrease = 0.3, dropped_factor = 0.1;
    // What a part of a parallel product must at least touch, and how many parts there may be.
    static constexpr std::int64_t part_work = 40000, max_parts = 64;
    // Slices of columns for the copy: four for each part of a product, since columns differ in cost.
    static constexpr std::int64_t slices_per_part = 4;
    // Blocks by nonzeros: as many as the threads that such a size is worth; beyond 8, their private residuals cost
    // more than they save.
    static constexpr std::int64_t two_blocks = 60000, four_blocks = 2000000, eight_blocks = 8000000;
    // On tall data a column with more than 1/32 of the nonzeros would be too much of a block.
    static constexpr std::int64_t long_share = 32;
    // Cost of a column beside its nonzeros, when blocks are balanced.
    static constexpr std::int64_t column_cost = 4;
    // Meetings of the blocks per sweep, for two blocks and for more: a meeting costs a few passes over the rows.
    static constexpr std::int64_t max_rounds_of_two = 4, max_rounds = 8;
    // A private sum over all rows must not cost more than a tenth of the part that it is for; at most 16 of them.
    static constexpr std::int64_t rows_per_private_sum = 10, max_private_sums = 16;
    // On tall data products run over slabs of rows where columns have 64 entries in each: then a slab of the vector
    // stays in the cache, and threads need no private sums. Shorter ones are read as they lie: finding their pieces
    // took three times as long as the products (47,500 columns of 770 entries on average, a million rows), and
    // private sums are cheap where rows have 16 entries or more, a quarter of them for each sum.
    static constexpr std::int64_t least_in_slab = 64, rows_without_slabs = 16, rows_per_tall_sum = 4;
    // Buffers grow by a quarter more than needed.
    static constexpr std::int64_t growth_share = 4;
    // Nonzeros that a thread must get of a column shared by slabs of rows, and how many parts there may be.
    static constexpr std::int64_t slab_part_work = 20000, max_slab_parts = 16;
    // Gram matrix of dense columns: at most n/4 columns, or the products are no longer small beside the columns;
    // nanoseconds per entry and pass, in memory and for up to 2^20 entries that caches hold (measured, as in
    // gram.cpp).
    static constexpr std::int64_t gram_rows_per_column = 4, cached_entries = 1 << 20;
    static constexpr double uncached_ns = 0.4, cached_ns = 0.15;
    // Passes over the columns that a Gram matrix is expected to save, per unit of effort. The squared loss keeps the
    // products for the subproblems to come.
    static constexpr double gram_passes = 25, gram_passes_quadratic = 50;
  };

  // column_tiles.hpp: dense columns of which there are fewer than rows.
  struct Tiles {
    // Columns of a tile. Measured: 16 columns of 10,000 rows stay in a second-level cache until their steps are
    // added; the products of 32 cost more than they save.
    static constexpr std::size_t width = 16;
    // Rounds of coordinate descent inside of a tile, while one brings more than 5 % of the first.
    static constexpr int max_rounds = 4;
    static constexpr double worthwhile = 0.05;
    // A dense entry takes an eighth of the time of a nonzero, by which jobs are judged worth sharing.
    static constexpr std::int64_t entries_per_nonzero = 8;
    // Used for up to n/2 columns; with more of them conjugate gradients need fewer passes. Not for matrices so small
    // that fixed costs decide.
    static constexpr std::int64_t rows_per_column = 2, min_entries = 50000;
    // Every other sweep passes over the support alone.
    static constexpr int full_period = 2;
    // Sweeps end when one brings less than this part of all (the model of a loss that is not quadratic is not worth
    // more), or where the points of the squared loss prove the gap asked for: the excess is that before the sweep.
    static constexpr double stop_quadratic = 1e-4, stop = 0.03, share_of_gap = 0.8;
    // With 80 % of all columns a subproblem of the squared loss is solved as far as float32 goes.
    static constexpr double nearly_all = 0.8, finest_stop = 1e-9;
    static constexpr int max_sweeps = 12, max_polish_sweeps = 20;
    // Sweeps that a subproblem is expected to take before any has been seen, and how long one takes in units of the
    // passes that a Gram matrix saves.
    static constexpr double first_sweeps = 6, passes_per_sweep = 0.5;
    // What setting up takes, in sweeps: products within tiles, and a copy of the columns where one is needed.
    static constexpr double set_up = 1, set_up_copy = 4;
  };

  // kept_products.hpp: products of sparse columns along a path of the squared loss.
  struct Products {
    // Bytes per nonzero of the matrix that the products may take, and limits on the number of columns.
    static constexpr std::int64_t bytes_per_nonzero = 2, min_columns = 64, max_columns = 8192;
    // Products of columns that left the working set are dropped when they are more than half of all.
    static constexpr std::int64_t stale_factor = 2, stale_extra = 64;
    // Up to 32 new columns are laid side by side, if 16 of them fit into a cache (2^18 numbers).
    static constexpr std::int64_t few_columns = 32, block_limit = 1 << 18;
    // Parts of the parallel pass over kept columns.
    static constexpr std::int64_t max_parts = 64;
    // Entries of a row are added in groups of 4; the unused ones go to one of 16 dummy sums in turn, since one sum
    // would have to wait for itself.
    static constexpr std::size_t group_size = 4, n_dummies = 16;
    // Used only where columns are sparse (under a third of the rows), rows are many times fewer than nonzeros, and
    // the m² products are few beside the nonzeros that a sweep would touch.
    static constexpr std::int64_t sparse_share = 3, min_nonzeros_per_row = 8, max_products_per_nonzero = 5;
  };

  // subproblem_sweeps.cpp: coordinate descent in blocks.
  struct Sweeps {
    // Joining the blocks: coordinate descent over one step size per block, to 1e-3.
    static constexpr int max_join_rounds = 200;
    static constexpr double join_accuracy = 1e-3;
    // Full steps keep exact zeros, which is worth half of the decrease.
    static constexpr double full_step_share = 0.5;
  };

  // subproblem_support.cpp and curvature_memory.hpp: conjugate gradients with an L-BFGS preconditioner.
  struct ConjugateGradients {
    // Pairs kept at most; pairs with cos²(s, y) below 1e-8 are noise in float32.
    static constexpr std::size_t max_pairs = 48;
    static constexpr double min_squared_cosine = 1e-8;
    // Applying a pair costs about 8 numbers per coordinate: as many pairs as that is small beside the columns, and
    // none where it would be fewer than 8, which do not pay.
    static constexpr std::size_t cost_of_pair = 8, min_pairs = 8;
    // p·Ap below this part of p·diag(A)·p is rounding of float32.
    static constexpr double singular = 1e-6;
    // The recursion's decrease is believed if it agrees with the recomputed one to 10 %.
    static constexpr double agreement = 0.1;
    // Restarts after coordinates were clipped at zero; the result must keep a quarter of the first run's decrease,
    // and a clipped point that is 100 times worse than that is not worth repairing.
    static constexpr int max_clips = 3;
    static constexpr double min_kept_decrease = 0.25, hopeless_increase = 100;
  };

  // pacing.hpp: how well a subproblem is solved, and when a proof is attempted.
  struct Pacing {
    // A subproblem is solved well enough when continuing promises less than this part of the gap asked for. Measured:
    // 1e-2 made more iterations than it saved, smaller numbers save less.
    static constexpr double negligible = 1e-3;
    // Below this tol nothing is negligible: the last digits of a float32 subproblem decide whether the next one gets
    // any further.
    static constexpr double finest_tol = 1e-5;
    // A predicted decrease below this part of the gap asked for means that only the proof may be missing.
    static constexpr double only_proof_share = 0.02;
    // After a failed proof the next waits until the predicted decrease is 0.3 of what it was, or for 3 iterations in
    // which only the proof was missing; then the cost limit of polishing doubles, up to 64.
    static constexpr double retry_share = 0.3;
    static constexpr int max_waits = 2;
    static constexpr std::int64_t max_patience = 64;
    // Every fourth iteration that gained next to nothing tries the dual point at the weights themselves.
    static constexpr int idle_period = 4;
    // Effort (1 to 4) doubles if a full step gains more than half of the one before (the subproblem was solved too
    // coarsely), and is halved if less than 2 % (better than needed).
    static constexpr double slow_decrease = 0.5, fast_decrease = 0.02, max_effort = 4;
    // Cycles of sweeps and conjugate gradients per unit of effort.
    static constexpr int cycles = 1, cycles_quadratic = 2;
    // The cycles touch at least as much as the scan and three passes over the copy: less would waste those.
    static constexpr std::int64_t min_passes = 3;
    // Conjugate gradients stop when an iteration adds less than 3·√(relative decrease) of the decrease, between 5 %
    // and 10 %: the nearer the end, the better the quadratic describes the loss. A small factor costs next to nothing
    // to touch and is solved to 1 %.
    static constexpr double stop_per_root_decrease = 3.0, finest_stop = 0.05, coarsest_stop = 0.1, factor_stop = 0.01;
    static constexpr int cg_iterations = 25, cg_iterations_fine = 50;
    // Cycles end when one adds less than this part of all (with a factor: factor_stop).
    static constexpr double cycle_stop = 0.1;
    // The factor of a squared loss is solved to 1e-6 where that costs less than a pass over the rows: up to n/60
    // columns.
    static constexpr std::int64_t exact_rows = 60;
    static constexpr double exact_stop = 1e-6;
    // Sweeps over a working set that had to be truncated (it will change anyway), and those that replace a direction
    // of conjugate gradients that failed.
    static constexpr int truncated_sweeps = 3, fallback_sweeps = 3;
    // Polishing for a proof: gradients off by at most a quarter of what the gap allows, not below float32; it may
    // take as many iterations as the solution so far, at least 10.
    static constexpr double polish_share = 0.25, finest_polish = 1e-7;
    static constexpr std::int64_t min_polish_iterations = 10;
    // A sweep that brings less than this part of what the subproblem promises moves nothing.
    static constexpr double rounding = 1e-16;
  };

  // line_search.hpp
  struct Search {
    // Armijo's condition with this slope factor; at most 40 halvings.
    static constexpr double armijo = 0.01;
    static constexpr int max_halvings = 40, max_late_halvings = 8;  // when time is up
    // Below 1e-11 of the objective a decrease is lost in its rounding: full steps are then taken if the objective
    // stays within 4e-15, at most 20 in a row.
    static constexpr double rounding_decrease = 1e-11, rounding_increase = 4e-15;
    static constexpr int max_rounding_steps = 20;
    // Extension of full steps by Newton's method along the direction: at most 20 evaluations, each to at most
    // 4·size + 2, as long as one promises 5 % of what the step has gained.
    static constexpr int max_extensions = 20;
    static constexpr double growth = 4, growth_start = 2, max_size = 1 << 20, worthwhile = 0.05;
  };

  // row_state.hpp: safeguards of the curvature that the quadratic uses.
  struct Curvature {
    // Damping where a loss is flat: a tenth up after a shortened step, 0.3 down after a full one, or it would slow
    // the end down.
    static constexpr double first_damping = 0.03, damping_down = 0.3, damping_up = 10, min_damping = 1e-7,
                            max_damping = 0.1;
    // Margin below which the logistic loss uses the majorising parabola, while steps are shortened or still gain more
    // than 1e-3 of the objective.
    static constexpr double majorised_margin = -1.0, large_decrease = 1e-3;
    // Secant curvatures learnt from failed steps fade by 0.3 with each full step.
    static constexpr float secant_fade = 0.3F;
  };

  // folds/: the folds of a cross-validation side by side.
  struct Folds {
    // Cycles of a sweep and conjugate gradients are repeated until they have touched three times the entries of the
    // matrix: where the support is small they are cheap, and new columns enter fastest. Measured: with 1.5 instead of
    // 3 curves were off by up to 1.2e-4 on Reuters and Enron, now by 8e-5, for 2 % more time.
    static constexpr double least_passes = 3;
    // Conjugate gradients end in a lane when an iteration adds less than this part of its decrease; at most so many.
    static constexpr double cg_stop = 0.1;
    static constexpr int max_cg_iterations = 25;
    // Columns whose slack is at most 1.3 times the fall of alpha to come are in the working set; the strong rule's 2
    // gave the same curves. What is missed violates at the next scan.
    static constexpr double strong_rule_factor = 1.3;
    // Clipped steps must keep a quarter of the decrease, as in ConjugateGradients.
    static constexpr double min_kept_decrease = 0.25;
    // Parts of a pass over columns.
    static constexpr std::int64_t n_parts = 32;
    // Rows of a block of lane_system.hpp: its vectors then stay in a cache of 1 MB. No more blocks than threads can
    // use, since short columns would be cut into nothing; but rows are counted in 16 bits.
    static constexpr std::int64_t rows_per_block = 8192, max_blocks = 16, most_rows_per_block = 65536;
  };

  // working_set.cpp and dual_point.hpp: certificates.
  struct Proof {
    // Objective and dual value are sums over the rows: their difference is known to about this part of them.
    static constexpr double rounding_share = 1e-13;
    // A point carried over from the last alpha is worth a proof only if it is 1000 times better than asked for: else
    // path.py takes a step anyway.
    static constexpr double carried_over_share = 1e-3;
    // Repairs of a dual point before it is given up, each of two sweeps of projections onto the constraints that it
    // breaks; none if more than 1000 + support/8 are broken, or if the gap is more than 6 times the one asked for,
    // which repairs do not bring down: the weights are not there yet.
    static constexpr int n_repairs = 3, sweeps_per_repair = 2;
    static constexpr double hopeful_gap = 6;
    // Scaling a point by 1 − v costs about v times the penalty. Violations that cost less than half of the gap asked
    // for are left to it: half of the support breaks its constraints by a little at any time.
    static constexpr double harmless_share = 0.5;
    static constexpr std::int64_t max_broken = 1000, support_per_broken = 8;
    // A look for a proof between steps takes at most this part of the time that is left.
    static constexpr double share_of_time = 0.25;
    // Scaling leaves a bit for its own rounding.
    static constexpr double scale_margin = 1e-15;
    // Equalities (intercept, unpenalised columns) hold to a tenth of what certificate.py allows; projections aim at
    // 2e-15 and repeat for what rounding left; the final check allows 5e-13.
    static constexpr double equality_rounding = 1e-13, equality_goal = 2e-15, equality_final = 5e-13;
    // Up to 64 equalities are projected onto jointly, in 3 rounds; more of them one after the other, in 50.
    static constexpr std::size_t max_joint_equalities = 64;
    static constexpr int joint_rounds = 3, single_rounds = 50;
    // Rounds of projecting and moving rows into the domain; each takes more rows to an end of it, rarely after the
    // third.
    static constexpr int domain_rounds = 20;
    // A row that comes back into the domain by more than this part has moved; less is rounding of its own value.
    static constexpr double row_rounding = 1e-15;
    // A pivot of LDLᵀ below this part of its diagonal is rounding: the column depends on those before it.
    static constexpr double dependent_pivot = 1e-13;
    // The guard's tolerance for the domain of the conjugate and for constraints.
    static constexpr double domain_rounding = 1e-12, constraint_rounding = 1e-12;
    // Columns whose sizes add up to 100 times what is left of them have lost two digits by cancellation: the guard
    // then adds up in twice the precision.
    static constexpr double cancellation = 100;
  };
};

}  // namespace blockgreedy
