// One pass over the columns each: what objective, duality gap and optimality residual need of X.
#pragma once

#include "math/core_problem.hpp"

namespace blockgreedy {

// out_j = x_j·r: the plain gradient pass, which every other scan is measured against.
void column_products(const Matrix& matrix, const double* r, double* out, ThreadTeam& team);

// Xw for the nonzero entries of w.
void predict(const Matrix& matrix, const double* w, double* Xw);

// (1/n) Σ loss + Σ penalty, summed in fixed runs.
double objective(const CoreProblem& problem, std::int64_t n_rows, std::int64_t n_cols, const double* w,
                 const double* Xw, ThreadTeam& team);

// The smallest alpha for which theta satisfies every inequality of the dual; with at_null, for which weights
// of 0 are optimal (features that can move up to a bound count too). Features with u_j = 0 are left out. Products
// count as larger by rounding·‖x_j‖.
double alpha_needed(const Matrix& matrix, const Penalty& penalty, const double* theta, bool at_null, double rounding,
                    ThreadTeam& team);

// Σ_j penalty_j*(-scale x_j·theta), features with an equality constraint left out; penalties of at most `most` count.
double penalty_conjugate(const Matrix& matrix, const Penalty& penalty, const double* theta, double scale,
                         double rounding, double most, ThreadTeam& team);

// Largest distance of -gradient to the subdifferential, gradient = x_j·theta.
double kkt_residual(const Matrix& matrix, const Penalty& penalty, const double* w, const double* theta,
                    ThreadTeam& team);

// An unpenalised feature without bound on at least one side: it makes an equality or a sign constraint in the
// dual, which certificate.py takes care of.
inline bool is_free(const CoordinatePenalty& c) { return c.l1 == 0 && (c.is_unbounded(-1) || c.is_unbounded(1)); }

}  // namespace blockgreedy
