// Dynamic screening: bounds on each column's slack that follow a point θ without computing x_j·θ.
//
// Let θ' be the reference, the point of the last scan. With θ = s·θ' + ρ, x_j·θ differs from s·(x_j·θ') by at most
// ‖x_j‖ times the norm of the largest entries of ρ, as many as the column has nonzeros. So a lower bound on the slack
// is known without a product, and a column is scanned again only where this bound is used up. The bounds are exact:
// no violation is missed. (Safe rules with spheres, e.g. El Ghaoui et al. 2012 and Fercoq et al. 2015, bound the
// optimum; this bounds the next θ, and takes the length of a column into account.)
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/rows.hpp"
#include "kernels/kernels.hpp"
#include "math/penalties.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

// Upper bounds on the norm of the 1, 2, 4, … largest entries of a vector.
using DistanceBounds = std::array<double, 32>;

// Which of the bounds applies to a column with so many nonzeros.
inline std::size_t length_class(std::int64_t count) {
  return count <= 1 ? 0 : 64 - static_cast<std::size_t>(__builtin_clzll(static_cast<unsigned long long>(count - 1)));
}

// A histogram of magnitudes: bins are the leading bits of a float, hence relative.
struct MagnitudeHistogram {
  static constexpr std::size_t n_bins = 1 << 12;
  static constexpr int dropped_bits = 19;
  static std::size_t bin_of(double v) {
    return __builtin_bit_cast(std::uint32_t, static_cast<float>(std::fabs(v))) >> dropped_bits;
  }
  static double upper_end(std::size_t bin) {
    return static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>((bin + 1) << dropped_bits)));
  }
  std::vector<double> squares;  // Σ v² by bin; where there are several parts, the first n_bins are their sums
  std::vector<std::int64_t> counts;
};

// Of the entries of a − scale·b.
inline MagnitudeHistogram magnitudes_of_difference(const double* a, const double* b, double scale, std::int64_t n,
                                                   ThreadTeam& team) {
  constexpr std::size_t n_bins = MagnitudeHistogram::n_bins;
  const std::int64_t n_parts = std::clamp<std::int64_t>(n >> Tuning::Screening::histogram_part_bits, 1,
                                                        Tuning::Screening::max_histogram_parts);
  MagnitudeHistogram all;
  all.squares.resize(n_bins * static_cast<std::size_t>(n_parts));
  all.counts.resize(all.squares.size());
  team.for_work(n_parts, n, [&](std::int64_t part) {
    double* squares = all.squares.data() + n_bins * static_cast<std::size_t>(part);
    std::int64_t* counts = all.counts.data() + n_bins * static_cast<std::size_t>(part);
    for (std::int64_t i = n * part / n_parts; i < n * (part + 1) / n_parts; ++i) {
      const double change = a[i] - scale * b[i];
      const std::size_t bin = MagnitudeHistogram::bin_of(change);
      squares[bin] += change * change;
      ++counts[bin];
    }
  });
  for (std::size_t k = n_bins; k < all.squares.size(); ++k) {
    all.squares[k % n_bins] += all.squares[k];
    all.counts[k % n_bins] += all.counts[k];
  }
  return all;
}

// Bounds for a − scale·b.
inline DistanceBounds distance_between(const double* a, const double* b, double scale, std::int64_t n,
                                       ThreadTeam& team) {
  constexpr double margin = 1 + Tuning::Screening::distance_margin;
  const MagnitudeHistogram all = magnitudes_of_difference(a, b, scale, n, team);
  DistanceBounds bounds{};
  double above = 0;
  std::int64_t taken = 0;
  std::size_t k = 0;
  for (std::size_t bin = MagnitudeHistogram::n_bins; bin-- > 0 && k < bounds.size();) {
    if (all.counts[bin] == 0) continue;
    const double top = MagnitudeHistogram::upper_end(bin);
    for (; k < bounds.size() && (std::int64_t{1} << k) <= taken + all.counts[bin]; ++k) {
      const auto rest = static_cast<double>((std::int64_t{1} << k) - taken);
      bounds[k] = std::sqrt(above + std::min(rest * top * top, all.squares[bin])) * margin;
    }
    above += all.squares[bin];
    taken += all.counts[bin];
  }
  for (; k < bounds.size(); ++k) bounds[k] = std::sqrt(above) * margin;
  return bounds;
}

// The bounds of all columns. Columns have positions, at most n_columns; arrays are filled by add() and otherwise
// never touched, so that dropped columns cost no memory.
class ScreeningBounds {
 public:
  // has_weights: thresholds are alpha·u_j with u_j that differ. are_full: all columns have an entry in every row.
  ScreeningBounds(std::int64_t n_rows, std::int64_t n_columns, bool has_weights, bool are_full, ThreadTeam& team)
      : n_rows_(n_rows),
        are_full_(are_full),
        team_(team),
        rows_(n_rows, team),
        reference_(static_cast<std::size_t>(n_rows)),
        inverse_norms_(new float[n_columns]),
        weighted_slopes_(has_weights ? new float[n_columns] : nullptr),
        slack_(new float[n_columns]),
        estimate_(new float[n_columns]),
        classes_(new std::uint8_t[n_columns]) {}

  // The point and alpha of the scan that follows.
  void set_reference(const std::vector<double>& theta, double alpha) {
    rows_.copy(theta, reference_);
    reference_norm_ = std::sqrt(rows_.product(reference_.data(), reference_.data()));
    reference_alpha_ = alpha;
  }

  // A column with this ‖x_j‖², threshold alpha·weight and number of nonzeros.
  void add(std::int64_t k, double squared_norm, double weight, std::int64_t count) {
    const auto at = static_cast<std::size_t>(k);
    inverse_norms_[at] = static_cast<float>(1 / std::sqrt(squared_norm));
    if (weighted_slopes_) {
      const double slope = weight * static_cast<double>(inverse_norms_[at]);
      weighted_slopes_[at] = static_cast<float>(std::min(slope, double{Tuning::Screening::max_slack}));
    }
    classes_[at] = static_cast<std::uint8_t>(length_class(count));
  }

  // The slack at the reference; −∞: the column is to be scanned each time.
  void store(std::int64_t k, double slack) {
    constexpr double most = double{Tuning::Screening::max_slack};
    const double relative = slack / norm(k) - Tuning::Screening::product_rounding * reference_norm_;
    slack_[k] = estimate_[k] =
        static_cast<float>(std::clamp(relative * (1 - Tuning::Screening::margin), -most, most));
  }
  // A column is at another position from now on.
  void move(std::int64_t from, std::int64_t to) {
    inverse_norms_[to] = inverse_norms_[from];
    if (weighted_slopes_) weighted_slopes_[to] = weighted_slopes_[from];
    slack_[to] = slack_[from];
    estimate_[to] = estimate_[from];
    classes_[to] = classes_[from];
  }
  void scan_each_time(std::int64_t k) { slack_[k] = estimate_[k] = -Tuning::Screening::max_slack; }

  bool is_scanned_each_time(std::int64_t k) const { return slack_[k] <= -Tuning::Screening::max_slack; }

  double norm(std::int64_t k) const { return 1.0 / static_cast<double>(inverse_norms_[k]); }

  // How the move from the reference to a point, and to alpha, shortens the slack. Where x_j·θ becomes s times what it
  // was, threshold − s·|x_j·θ'| = s·slack + threshold − s·(threshold then).
  // strong_width: for_each_reached also visits columns whose estimate is at most strong_width·u_j.
  SlackMove move_to(const std::vector<double>& point, double alpha, double strong_width) const {
    constexpr float margin = Tuning::Screening::float_margin;
    const auto scale = static_cast<float>(scale_to(point));
    const DistanceBounds bounds = distance_to(point, static_cast<double>(scale));
    const double before = static_cast<double>(scale) * reference_alpha_;
    SlackMove move;
    for (std::size_t k = 0; k < bounds.size(); ++k) move.distance[k] = static_cast<float>(bounds[k]) * (1 + margin);
    move.scale = scale;
    move.shift = static_cast<float>(alpha - before - static_cast<double>(margin) * (alpha + before));
    if (!(alpha + before < double{Tuning::Screening::max_slack})) {  // beyond float32: every column is scanned
      move.shift = 0;
      move.distance.fill(std::numeric_limits<float>::infinity());
    }
    move.rounding = margin;
    move.report_below = static_cast<float>(strong_width);
    return move;
  }

  // Calls visit(k, left), with the bound on what is left of the slack, for the columns begin … end where that is ≤ 0
  // or which the strong rule keeps. update: what is left becomes the slack.
  template <class Visit>
  void for_each_reached(std::int64_t begin, std::int64_t end, const SlackMove& move, bool update, Visit visit) {
    std::array<float, 64> lefts, estimates;
    for (std::int64_t first = begin; first < end; first += 64) {
      const std::int64_t count = std::min<std::int64_t>(64, end - first);
      float* left = update ? slack_.get() + first : lefts.data();
      float* estimate = update ? estimate_.get() + first : estimates.data();
      if (!update) std::copy_n(estimate_.get() + first, count, estimate);
      std::uint64_t bits = kernels().shorten(move, slack_.get() + first, estimate, slopes() + first,
                                             classes_.get() + first, count, left);
      for (; bits != 0; bits &= bits - 1) {
        const int at = __builtin_ctzll(bits);
        visit(first + at, left[at]);
      }
    }
  }

  // Whether the sequential strong rule keeps a column that was scanned.
  bool is_strong(std::int64_t k, const SlackMove& move) const { return slack_[k] <= move.report_below * slopes()[k]; }

  // The same bounds in float64, from what the last scan left: for the guard of a result.
  struct FinalMove {
    SlackCheck check;
    DistanceBounds distance;
  };
  FinalMove final_move_to(const std::vector<double>& point, double alpha) const {
    constexpr double margin = Tuning::Screening::margin;
    const double scale = scale_to(point);
    const DistanceBounds bounds = distance_to(point, scale);
    const double shift = alpha - scale * reference_alpha_;
    return {{scale, shift - margin * (alpha + scale * reference_alpha_), margin, (1 + margin) * bounds.back()},
            bounds};
  }
  // Calls visit(k) for the columns begin … end that may violate their threshold.
  template <class Visit>
  void for_each_reached(std::int64_t begin, std::int64_t end, const FinalMove& move, Visit visit) const {
    std::array<double, 64> left;
    for (std::int64_t first = begin; first < end; first += 64) {
      std::uint64_t bits = kernels().near_end(move.check, slack_.get() + first, slopes() + first,
                                              std::min<std::int64_t>(64, end - first), left.data());
      for (; bits != 0; bits &= bits - 1) {
        const int at = __builtin_ctzll(bits);
        const double distance = (1 + Tuning::Screening::margin) * move.distance[classes_[first + at]];
        if (!(left[at] > distance)) visit(first + at);
      }
    }
  }

 private:
  // The factor s that leaves the least ‖θ − s·θ'‖.
  double scale_to(const std::vector<double>& point) const {
    const double square = reference_norm_ * reference_norm_;
    if (!(square > 0)) return 1.0;
    return std::clamp(rows_.product(point.data(), reference_.data()) / square, Tuning::Screening::min_scale,
                      Tuning::Screening::max_scale);
  }
  // Bounds for point − scale·reference. Full columns need the last alone, which is no more than a norm.
  DistanceBounds distance_to(const std::vector<double>& point, double scale) const {
    const double *a = point.data(), *b = reference_.data();
    if (!are_full_) return distance_between(a, b, scale, n_rows_, team_);
    const double squares = rows_.total([=](std::int64_t i) {
      const double change = a[i] - scale * b[i];
      return change * change;
    });
    DistanceBounds bounds{};
    bounds.fill(std::sqrt(squares) * (1 + Tuning::Screening::distance_margin));
    return bounds;
  }
  // By how much a threshold changes with alpha, over the column's norm.
  const float* slopes() const { return weighted_slopes_ ? weighted_slopes_.get() : inverse_norms_.get(); }

  const std::int64_t n_rows_;
  const bool are_full_;
  ThreadTeam& team_;
  Rows rows_;
  std::vector<double> reference_;  // a θ or dual point
  double reference_norm_ = 0, reference_alpha_ = 0;
  std::unique_ptr<float[]> inverse_norms_;
  std::unique_ptr<float[]> weighted_slopes_;  // null: slopes are the inverse norms
  std::unique_ptr<float[]> slack_;            // lower bound on the slack over the norm
  std::unique_ptr<float[]> estimate_;         // about as much: the slack as if ρ were 0
  std::unique_ptr<std::uint8_t[]> classes_;   // of length
};

}  // namespace blockgreedy
