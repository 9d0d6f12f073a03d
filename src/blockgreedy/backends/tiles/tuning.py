"""Every number of the tile solver that was measured or chosen."""

# The working set: the support, and the best of the others up to so many columns in all.
LEAST_SET, SET_GROWTH, SET_MARGIN = 500, 2, 1.1
BINS, BINS_PER_OCTAVE = 256, 4  # of scores: a working set is cut where a bin ends, so that one round decides

LEAST_DISTINCT = 0.1  # where nearly all columns repeat others, a set of ten times the size is looked at

# The quadratic model. A cycle is some proximal steps, which find the signs, and conjugate gradients on the support.
PROX_STEPS = 2
CG_SHARE = 0.1  # conjugate gradients end with a step that gains less than this part of all steps before
CG_MOST, CG_MOST_TRUNCATED = 15, 8  # products; fewer while columns still wait to enter
CG_MOST_ENDGAME = 60
CLIPPED_KEEPS = 0.25  # of what conjugate gradients gain; below, weights that change their sign are frozen at zero
MOST_FREEZES = 2
CYCLES, MOST_EFFORT = 2, 4
# Where the objective fell by more than SLOW_SHARE of the fall before, iterations converge slowly: the next model is
# solved until a cycle gains less than CYCLE_SHARE of all. Dorothea at alpha_max/1000: 12-15 iterations become 10-12.
SLOW_SHARE, CYCLE_SHARE, SLOW_CYCLES = 0.3, 0.07, 6
ENDGAME, ENDGAME_CYCLES = 0.3, 24  # a promise below this part of the gap asked for: the model is solved to prove it
FIRST_KAPPA, KAPPA_MARGIN, KAPPA_FADE = 2.0, 1.1, 0.7  # proximal steps: curvature over the diagonal

# The step: all sizes are tried in one round.
STEPS = (2.0, 1.5, 1.0, 0.5, 0.25, 0.125, 1 / 32, 1 / 256)
SHORT_STEPS = tuple(2.0**-k for k in range(10, 26, 2))
ARMIJO = 0.01
# Steps in a row after which neither objective nor dual value is better: rounding decides then where they lead. None in
# 360 fits of every loss and option, asked for 1e-6 to 1e-16. Where targets differ in their last digits only, the gap
# was still better by up to a half after 5 to 53 of them, and never as small as was asked for.
MOST_IDLE = 5
LARGE_DECREASE = 1e-3  # of the objective: the next model majorises badly classified rows
MAJORISED_MARGIN = -1.0
FIRST_DAMPING, DAMPING_DOWN, DAMPING_UP, LEAST_DAMPING, MOST_DAMPING = 0.03, 0.3, 10.0, 1e-7, 0.1

# Proofs.
PROOF_NEAR = 3.0  # gaps asked for that a step may promise when a proof is worth an attempt
PRODUCT_ROUNDING = 2e-15  # part of ‖x_j‖‖θ‖ that a product may differ by, added up in another order
# What a dual point leaves between products and thresholds: whoever checks it finds products that are larger by that
# much, and adds as much again.
PROOF_ROUNDING = 2 * PRODUCT_ROUNDING
ROUNDING = 1e-13  # part of the objective that sums over rows are known to

# Columns of earlier working sets are kept until they have so many times the entries of the current one and more.
KEPT_ENTRIES, KEPT_AT_LEAST = 2.0, 100_000

# Bytes that a fit with a limit of memory takes beside its working set: the interpreter, and so many numbers of each
# row and column that a rank has.
BASE_BYTES, NUMBERS_PER_ROW, NUMBERS_PER_COLUMN = 80 << 20, 12, 14
# And of each feature of the problem, whether it can have a weight or not: alpha_max of a store of 1.5 million columns
# took 65 bytes of each at its peak, a fit 50.
NUMBERS_PER_FEATURE = 9
# Bytes for each entry of a working set, at most: private sums of 4 and of 8 bytes, one for every four entries
# (working_columns.hpp).
BYTES_OF_SUMS = 3
