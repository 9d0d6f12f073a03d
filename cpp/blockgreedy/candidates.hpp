// The columns that may still enter the model, and how long each may go without being looked at.
//
// A column whose gradient cannot reach its threshold whatever the weights (the losses with bounded derivative have
// such a bound), down to the least alpha of a path, is dropped for good. Of the others, x_j·θ changes by at most
// ‖x_j‖ times the norm of the largest entries of Δθ, as many as the column has; so a column with slack is not looked
// at again before θ has travelled that far. Both are exact: no column is missed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "blockgreedy/kernels.hpp"
#include "blockgreedy/model.hpp"
#include "blockgreedy/penalties.hpp"

namespace blockgreedy {

// A column that was looked at.
struct Looked {
  std::int32_t feature;
  double grad;    // x_j·θ
  double norm;    // ‖x_j‖
  double excess;  // how far the gradient is beyond the threshold at which weight 0 is no longer optimal

  // What a step along this column alone would gain, up to a common factor.
  double score() const { return excess * excess / (norm * norm); }
  static bool better(const Looked& a, const Looked& b) {
    const double sa = a.score(), sb = b.score();
    return sa != sb ? sa > sb : a.feature < b.feature;
  }
};

// What a pass over the columns found.
struct Findings {
  std::vector<Looked> support;    // weight not 0, or unpenalised
  std::vector<Looked> proposals;  // weight 0 is not optimal; only the best `room` of them are kept
  std::int64_t n_violators = 0;   // how many there were
  double worst = 0;               // largest excess, relative to the threshold, of all columns without bounds

  void clear() {
    support.clear();
    proposals.clear();
    n_violators = 0;
    worst = 0;
  }
  void propose(const Looked& entry, std::size_t room) {
    ++n_violators;
    proposals.push_back(entry);
    if (proposals.size() >= 4 * room + 64) keep_best(room);
  }
  void keep_best(std::size_t room) {
    if (proposals.size() <= room) return;
    std::nth_element(proposals.begin(), proposals.begin() + static_cast<std::ptrdiff_t>(room), proposals.end(),
                     Looked::better);
    proposals.resize(room);
  }
  void add(const Findings& other, std::size_t room) {
    support.insert(support.end(), other.support.begin(), other.support.end());
    proposals.insert(proposals.end(), other.proposals.begin(), other.proposals.end());
    if (proposals.size() >= 4 * room + 64) keep_best(room);
    n_violators += other.n_violators;
    worst = std::max(worst, other.worst);
  }
};

// What is left of the threshold before weight 0 is no longer optimal; infinite if it always is.
inline double slack_at_zero(const CoordinatePenalty& c, double grad) {
  const double up = c.upper > 0 ? c.l1 + grad : infinity;
  const double down = c.lower < 0 ? c.l1 - grad : infinity;
  return up < down ? up : down;
}

// Whether the dual constrains x_j·θ on the side of `product`: no bound and no l2 term stop the weight there.
inline bool limits_dual(const CoordinatePenalty& c, double product) {
  return c.l2 == 0 && c.room(-product) == infinity;
}

// How far θ moved, as columns of at most 1, 2, 4, … entries see it.
using Travel = std::array<double, 32>;

inline std::size_t travel_class(std::int64_t count) {
  return count <= 1 ? 0 : 64 - static_cast<std::size_t>(__builtin_clzll(static_cast<unsigned long long>(count - 1)));
}

// Upper bounds on the norm of the 2^k largest entries of a − b, from a histogram of their magnitudes.
inline Travel travel_between(const double* a, const double* b, std::int64_t n, ThreadTeam& team) {
  constexpr std::size_t n_bins = 1 << 12;
  const auto bin_of = [](float v) { return __builtin_bit_cast(std::uint32_t, v) >> 19; };
  const std::int64_t n_parts = std::clamp<std::int64_t>(n >> 17, 1, 16);
  std::vector<double> squares(n_bins * static_cast<std::size_t>(n_parts));
  std::vector<std::int64_t> counts(squares.size());
  team.for_work(n_parts, n, [&](std::int64_t part) {
    double* own_squares = squares.data() + n_bins * static_cast<std::size_t>(part);
    std::int64_t* own_counts = counts.data() + n_bins * static_cast<std::size_t>(part);
    for (std::int64_t i = n * part / n_parts; i < n * (part + 1) / n_parts; ++i) {
      const double change = a[i] - b[i];
      const auto bin = bin_of(static_cast<float>(std::fabs(change)));
      own_squares[bin] += change * change;
      ++own_counts[bin];
    }
  });
  for (std::size_t k = n_bins; k < squares.size(); ++k) {
    squares[k % n_bins] += squares[k];
    counts[k % n_bins] += counts[k];
  }
  Travel travel{};
  double above = 0;
  std::int64_t taken = 0;
  std::size_t k = 0;
  for (std::size_t bin = n_bins; bin-- > 0 && k < travel.size();) {
    if (counts[bin] == 0) continue;
    const auto top = static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>((bin + 1) << 19)));
    for (; k < travel.size() && (std::int64_t{1} << k) <= taken + counts[bin]; ++k) {
      const auto rest = static_cast<double>((std::int64_t{1} << k) - taken);
      travel[k] = std::sqrt(above + std::min(rest * top * top, squares[bin])) * (1 + 1e-12);
    }
    above += squares[bin];
    taken += counts[bin];
  }
  for (; k < travel.size(); ++k) travel[k] = std::sqrt(above) * (1 + 1e-12);
  return travel;
}

template <class View>
class Candidates {
 public:
  Candidates(const View& view, const Target& target, double least_alpha, ThreadTeam& team)
      : view_(view),
        target_(target),
        least_alpha_(least_alpha),
        team_(team),
        cuts_(equal_nonzero_cuts(view, n_column_parts)),
        features_(new std::int32_t[static_cast<std::size_t>(view.n_cols)]),
        norms_(new float[static_cast<std::size_t>(view.n_cols)]),
        expiry_(new float[static_cast<std::size_t>(view.n_cols)]),
        classes_(new std::uint8_t[static_cast<std::size_t>(view.n_cols)]),
        counts_(static_cast<std::size_t>(n_column_parts)),
        parts_(static_cast<std::size_t>(n_column_parts)) {}

  // The first look at every column: norms, static screening, gradients. at_zero: all predictions are 0.
  void begin(const double* theta, const double* w, bool at_zero, std::size_t room, Findings& found) {
    travelled_.fill(0);
    const bool logistic = target_.loss.kind == LossKind::logistic;
    const bool bounded = logistic || target_.loss.kind == LossKind::huber;
    const double uniform = 1.0 / static_cast<double>(view_.n_rows);
    const double* weights = target_.row_weights;
    Penalty least = target_.penalty;
    least.alpha = std::min(least.alpha, least_alpha_);
    std::vector<double> labels;  // ω_i y_i: the part of the bound that the labels decide
    if (logistic && !at_zero) {
      labels.resize(static_cast<std::size_t>(view_.n_rows));
      for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = (weights ? weights[i] : uniform) * target_.y[i];
    }
    team_.for_work(n_column_parts, view_.n_nonzeros(), [&](std::int64_t part) {
      Part& own = parts_[static_cast<std::size_t>(part)];
      own.found.clear();
      std::int64_t at = cuts_[static_cast<std::size_t>(part)];  // kept columns stand from here on
      const std::int64_t end = cuts_[static_cast<std::size_t>(part) + 1];
      std::array<ColumnSums, window> sums;
      std::array<std::int32_t, window> columns;
      for (std::int64_t first = at; first < end; first += window) {
        const std::int64_t count = std::min(window, end - first);
        sort_by_length(first, count, columns);
        column_sums(view_, columns.data(), count, theta, weights, sums.data());
        for (std::int64_t k = 0; k < count; ++k) {
          const std::int64_t j = columns[static_cast<std::size_t>(k)];
          const ColumnSums& sum = sums[static_cast<std::size_t>(k)];
          const CoordinatePenalty penalty = least.at(j);
          if (sum.squares == 0 || (penalty.lower == 0 && penalty.upper == 0)) continue;
          if (bounded && w[j] == 0) {
            const double magnitude = weights ? sum.magnitude : sum.magnitude * uniform;
            double bound = magnitude * (logistic ? 1.0 : target_.loss.delta);
            if (logistic && magnitude > penalty.l1 && 0.5 * magnitude <= penalty.l1) {
              // θ_i lies between 0 and −ω_i y_i: the sum is largest when only one sign of y_i x_ij contributes
              const double label = at_zero ? 2 * sum.product : column_dot(view_, j, labels.data());
              bound = 0.5 * (magnitude + std::fabs(label));
            }
            if (bound * (1 + 1e-9) <= penalty.l1) continue;
          }
          features_[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(j);
          // rounded up: a norm that is too large only makes the column looked at earlier
          norms_[static_cast<std::size_t>(at)] = static_cast<float>(std::sqrt(sum.squares) * (1 + 2e-7));
          classes_[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(travel_class(view_.count(j)));
          note(own.found, at, sum.product, w[j], room);
          ++at;
        }
      }
      counts_[static_cast<std::size_t>(part)] = at - cuts_[static_cast<std::size_t>(part)];
      own.touched = 0;
    });
    collect(room, found);
    size_ = 0;
    for (std::int64_t count : counts_) size_ += count;
    nonzeros_touched = last_touched = view_.n_nonzeros();
    expected_work_ = last_touched;
  }

  // Thresholds fell by fall·u_j, and with them the slack of every column. Travel is counted anew from here.
  void lower_thresholds(double fall) {
    team_.for_work(n_column_parts, size_, [&](std::int64_t part) {
      const std::int64_t begin = cuts_[static_cast<std::size_t>(part)];
      const std::int64_t end = begin + counts_[static_cast<std::size_t>(part)];
      for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
        if (!(expiry_[k] < 3e38F)) continue;
        const double lost = fall * target_.penalty.weight(features_[k]) / static_cast<double>(norms_[k]);
        expiry_[k] =
            static_cast<float>((static_cast<double>(expiry_[k]) - travelled_[classes_[k]] - lost) * (1 - 1e-6));
      }
    });
    travelled_.fill(0);
  }

  // θ moved: looks at the columns whose slack may be used up.
  void look(const double* theta, const double* w, const Travel& moved, std::size_t room, Findings& found) {
    for (std::size_t k = 0; k < moved.size(); ++k) travelled_[k] += moved[k];
    team_.for_work(n_column_parts, expected_work_, [&](std::int64_t part) {
      Part& own = parts_[static_cast<std::size_t>(part)];
      own.found.clear();
      own.touched = 0;
      for_each_due(part, travelled_, theta, own.touched, [&](std::int64_t k, double grad) {
        note(own.found, k, grad, w[features_[static_cast<std::size_t>(k)]], room);
      });
    });
    collect(room, found);
    last_touched = 0;
    for (const Part& part : parts_) last_touched += part.touched;
    nonzeros_touched += last_touched;
    expected_work_ = last_touched + size_ / 8;
  }

  // Calls visit(part, j, ‖x_j‖, x_j·point) for every column that a move of `distance` from the present θ may have
  // carried beyond its threshold; the other columns are within theirs at `point`.
  template <class Visit>
  void visit_within(const double* point, const Travel& moved, Visit visit) {
    Travel reach = travelled_;
    for (std::size_t k = 0; k < moved.size(); ++k) reach[k] += moved[k];
    team_.for_work(n_column_parts, expected_work_, [&](std::int64_t part) {
      std::int64_t touched = 0;
      for_each_due(part, reach, point, touched, [&](std::int64_t k, double product) {
        visit(part, features_[static_cast<std::size_t>(k)], static_cast<double>(norms_[static_cast<std::size_t>(k)]),
              product);
      });
    });
  }

  std::int64_t size() const { return size_; }
  std::int64_t nonzeros_touched = 0, last_touched = 0;

 private:
  static constexpr std::int64_t batch = 128;
  static constexpr std::int64_t window = 1024;  // columns that are sorted by length

  struct Part {
    Findings found;
    std::int64_t touched = 0;
  };

  // The columns first … first + count, those of equal length side by side: what a processor loses on short columns
  // is the guess of where each ends.
  void sort_by_length(std::int64_t first, std::int64_t count, std::array<std::int32_t, window>& columns) const {
    constexpr std::int64_t longest = 64;
    std::array<std::uint8_t, window> lengths;
    std::array<std::int64_t, longest + 2> next{};
    for (std::int64_t k = 0; k < count; ++k) {
      lengths[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(std::min(view_.count(first + k), longest));
      ++next[lengths[static_cast<std::size_t>(k)] + std::size_t{1}];
    }
    for (std::size_t k = 1; k < next.size(); ++k) next[k] += next[k - 1];
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t at = next[lengths[static_cast<std::size_t>(k)]]++;
      columns[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(first + k);
    }
  }

  // Products of the columns that are due, a batch at a time.
  template <class Visit>
  void for_each_due(std::int64_t part, const Travel& travelled, const double* r, std::int64_t& touched, Visit visit) {
    std::array<float, 32> limit;
    for (std::size_t k = 0; k < limit.size(); ++k) limit[k] = static_cast<float>(travelled[k]);
    const float* expiry = expiry_.get();
    const std::uint8_t* classes = classes_.get();
    const std::int64_t begin = cuts_[static_cast<std::size_t>(part)];
    const std::int64_t end = begin + counts_[static_cast<std::size_t>(part)];
    std::array<std::int32_t, batch> due;
    std::array<std::int64_t, batch> position;
    std::array<double, batch> products;
    std::int64_t count = 0;
    const auto flush = [&] {
      column_dots(view_, due.data(), 0, count, r, products.data());
      for (std::int64_t k = 0; k < count; ++k) {
        touched += view_.count(due[static_cast<std::size_t>(k)]);
        visit(position[static_cast<std::size_t>(k)], products[static_cast<std::size_t>(k)]);
      }
      count = 0;
    };
    for (std::int64_t k = begin; k < end; ++k) {
      if (expiry[k] > limit[classes[k]]) continue;
      due[static_cast<std::size_t>(count)] = features_[static_cast<std::size_t>(k)];
      position[static_cast<std::size_t>(count)] = k;
      if (++count == batch) flush();
    }
    flush();
  }

  void note(Findings& found, std::int64_t k, double grad, double weight, std::size_t room) {
    const std::int32_t j = features_[static_cast<std::size_t>(k)];
    const CoordinatePenalty penalty = target_.penalty.at(j);
    const auto norm = static_cast<double>(norms_[static_cast<std::size_t>(k)]);
    const double slack = slack_at_zero(penalty, grad);
    float& expires = expiry_[static_cast<std::size_t>(k)];
    if (slack < 0 && penalty.l1 > 0 && limits_dual(penalty, grad))
      found.worst = std::max(found.worst, -slack / penalty.l1);
    if (weight != 0 || penalty.l1 == 0) {
      found.support.push_back({j, grad, norm, -slack});
      expires = 0;
    } else if (slack < -1e-13 * penalty.l1) {  // beyond rounding: at alpha_max no weight is to move
      found.propose({j, grad, norm, -slack}, room);
      expires = 0;
    } else {
      const double until = travelled_[classes_[static_cast<std::size_t>(k)]] + slack / norm;
      expires = until < 3e38 ? static_cast<float>(until * (1 - 1e-6)) : 3e38F;
    }
  }

  void collect(std::size_t room, Findings& found) {
    found.clear();
    for (const Part& part : parts_) found.add(part.found, room);
    found.keep_best(room);
  }

  View view_;
  const Target& target_;
  const double least_alpha_;
  ThreadTeam& team_;
  std::vector<std::int64_t> cuts_;
  // Of the columns cuts_[part] … those kept stand at cuts_[part] … + counts_[part] of these; the rest of the memory
  // is never touched.
  std::unique_ptr<std::int32_t[]> features_;
  std::unique_ptr<float[]> norms_, expiry_;
  std::unique_ptr<std::uint8_t[]> classes_;  // of Travel
  std::vector<std::int64_t> counts_;
  std::vector<Part> parts_;
  Travel travelled_{};
  std::int64_t expected_work_ = 0, size_ = 0;
};

}  // namespace blockgreedy
