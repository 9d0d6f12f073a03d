// The columns that may still enter the model, and how long each may go without being looked at.
//
// A column whose gradient cannot reach its threshold whatever the weights (the losses with bounded derivative have
// such a bound), down to the least alpha of a path, is dropped for good. Of the others, with θ = s·θ' + ρ and θ' the
// place of the last look, x_j·θ differs from s·(x_j·θ') by at most ‖x_j‖ times the norm of the largest entries of ρ,
// as many as the column has; so what is left of a column's threshold is known without looking, at least. Both are
// exact: no column is missed.
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
#include "math/core_problem.hpp"
#include "math/penalties.hpp"

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

// Part of ‖x_j‖‖θ‖ by which x_j·θ may differ when it is added up in another order.
inline constexpr double product_rounding = 2e-15;

// How far a point is from scale·(another), as columns of at most 1, 2, 4, … entries see it.
using Travel = std::array<double, 32>;

inline std::size_t travel_class(std::int64_t count) {
  return count <= 1 ? 0 : 64 - static_cast<std::size_t>(__builtin_clzll(static_cast<unsigned long long>(count - 1)));
}

// Upper bounds on the norm of the 2^k largest entries of a − scale·b, from a histogram of their magnitudes.
inline Travel travel_between(const double* a, const double* b, double scale, std::int64_t n, ThreadTeam& team) {
  constexpr std::size_t n_bins = 1 << 12;
  const auto bin_of = [](float v) { return __builtin_bit_cast(std::uint32_t, v) >> 19; };
  const std::int64_t n_parts = std::clamp<std::int64_t>(n >> 17, 1, 16);
  std::vector<double> squares(n_bins * static_cast<std::size_t>(n_parts));
  std::vector<std::int64_t> counts(squares.size());
  team.for_work(n_parts, n, [&](std::int64_t part) {
    double* own_squares = squares.data() + n_bins * static_cast<std::size_t>(part);
    std::int64_t* own_counts = counts.data() + n_bins * static_cast<std::size_t>(part);
    for (std::int64_t i = n * part / n_parts; i < n * (part + 1) / n_parts; ++i) {
      const double change = a[i] - scale * b[i];
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

// Whether a column has nothing to say in rows that count.
template <class View>
bool is_empty(const View& view, std::int64_t j, const double* row_weights) {
  bool empty = true;
  view.for_each_nonzero(
      j, [&](std::int32_t i, double x) { empty = empty && (x == 0 || (row_weights && row_weights[i] == 0)); });
  return empty;
}

template <class View>
class Candidates {
 public:
  Candidates(const View& view, const CoreProblem& problem, double least_alpha, ThreadTeam& team)
      : view_(view),
        problem_(problem),
        least_alpha_(least_alpha),
        team_(team),
        rows_(view.n_rows, team),
        place_(static_cast<std::size_t>(view.n_rows)),
        cuts_(equal_nonzero_cuts(view, n_column_parts)),
        features_(new std::int32_t[static_cast<std::size_t>(view.n_cols)]),
        inverse_norms_(new float[static_cast<std::size_t>(view.n_cols)]),
        units_(problem.penalty.weights ? new float[static_cast<std::size_t>(view.n_cols)] : nullptr),
        slack_(new float[static_cast<std::size_t>(view.n_cols)]),
        guess_(new float[static_cast<std::size_t>(view.n_cols)]),
        classes_(new std::uint8_t[static_cast<std::size_t>(view.n_cols)]),
        counts_(static_cast<std::size_t>(n_column_parts)),
        parts_(static_cast<std::size_t>(n_column_parts)) {}

  // The first look at every column: norms, static screening, gradients. at_zero: all predictions are 0.
  void begin(const std::vector<double>& theta, const double* w, bool at_zero, std::size_t room, Findings& found) {
    stand_at(theta);
    const LossTraits traits = problem_.loss.traits();
    const bool bounded = std::isfinite(traits.derivative_bound), by_label = traits.sign_of_derivative_is_the_labels;
    const double uniform = 1.0 / static_cast<double>(view_.n_rows);
    const double* weights = problem_.row_weights;
    Penalty least = problem_.penalty;
    least.alpha = std::min(least.alpha, least_alpha_);
    std::vector<double> labels;  // ω_i y_i: the part of the bound that the labels decide
    if (by_label && !at_zero) {
      labels.resize(static_cast<std::size_t>(view_.n_rows));
      for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = (weights ? weights[i] : uniform) * problem_.y[i];
    }
    team_.for_work(n_column_parts, view_.n_nonzeros(), [&](std::int64_t part) {
      Part& own = parts_[static_cast<std::size_t>(part)];
      own.found.clear();
      own.out_of_range = false;
      std::int64_t at = cuts_[static_cast<std::size_t>(part)];  // kept columns stand from here on
      const std::int64_t end = cuts_[static_cast<std::size_t>(part) + 1];
      std::array<ColumnSums, window> sums;
      std::array<std::int32_t, window> columns;
      for (std::int64_t first = at; first < end; first += window) {
        const std::int64_t count = std::min(window, end - first);
        sort_by_length(first, count, columns);
        column_sums(view_, columns.data(), count, theta.data(), weights, sums.data());
        for (std::int64_t k = 0; k < count; ++k) {
          const std::int64_t j = columns[static_cast<std::size_t>(k)];
          const ColumnSums& sum = sums[static_cast<std::size_t>(k)];
          const CoordinatePenalty penalty = least.at(j);
          const auto stored = static_cast<double>(view_.count(j));
          const bool fits = sum.squares > least_square * stored && sum.squares < greatest_square * stored;
          if (!fits && !(sum.squares == 0 && is_empty(view_, j, problem_.row_weights))) own.out_of_range = true;
          if (!fits || (penalty.lower == 0 && penalty.upper == 0)) continue;
          if (bounded && w[j] == 0) {
            const double magnitude = weights ? sum.magnitude : sum.magnitude * uniform;
            double bound = magnitude * traits.derivative_bound;
            if (by_label && magnitude > penalty.l1 && 0.5 * magnitude <= penalty.l1) {
              // θ_i lies between 0 and −ω_i y_i: the sum is largest when only one sign of y_i x_ij contributes
              const double label = at_zero ? 2 * sum.product : column_dot(view_, j, labels.data());
              bound = 0.5 * (magnitude + std::fabs(label));
            }
            if (bound * (1 + 1e-9) <= penalty.l1) continue;
          }
          features_[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(j);
          inverse_norms_[static_cast<std::size_t>(at)] = static_cast<float>(1 / std::sqrt(sum.squares));
          if (units_) {
            const double unit =
                problem_.penalty.weight(j) * static_cast<double>(inverse_norms_[static_cast<std::size_t>(at)]);
            units_[static_cast<std::size_t>(at)] = static_cast<float>(std::min(unit, double{most_slack}));
          }
          classes_[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(travel_class(view_.count(j)));
          note(own.found, at, sum.product, w[j], room);
          ++at;
        }
      }
      counts_[static_cast<std::size_t>(part)] = at - cuts_[static_cast<std::size_t>(part)];
      own.touched = 0;
    });
    collect(room, found);
    out_of_range = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.out_of_range; });
    size_ = 0;
    for (std::int64_t count : counts_) size_ += count;
    nonzeros_touched = last_touched = view_.n_nonzeros();
    expected_work_ = last_touched;
  }

  // θ or alpha has moved since the last look: looks at the columns that may have come to the end of their threshold,
  // and calls visit(part, j, ‖x_j‖, x_j·θ) for each.
  template <class Visit>
  void look(const std::vector<double>& theta, const double* w, std::size_t room, Findings& found, Visit visit) {
    const SlackMove move = move_to(theta, near_);
    stand_at(theta);
    find(room, found, [&](std::int64_t part, Part& own) {
      own.near.clear();
      Products products(*this, theta, [&](std::int64_t k, double grad) {
        const std::int32_t j = features_[static_cast<std::size_t>(k)];
        note(own.found, k, grad, w[j], room);
        if (slack_[static_cast<std::size_t>(k)] <= move.near * units()[k]) own.near.push_back(k);
        visit(part, j, norm(k), grad);
      });
      for_each_near(part, move, true, [&](std::int64_t k, float left) {
        if (left <= 0) products.add(k);
        else own.near.push_back(k);
      });
      return products.finish();
    });
  }

  // Thresholds fell by fall·u_j. Finds what comes into question at θ if no gradient moves faster than alpha: a guess,
  // and no look, unless the last one was not prepared for such a fall.
  void guess(const std::vector<double>& theta, const double* w, double fall, std::size_t room, Findings& found) {
    const bool prepared = 2 * fall <= near_;
    near_ = 2 * fall;
    if (!prepared) {
      look(theta, w, room, found, [](std::int64_t, std::int32_t, double, double) {});
      return;
    }
    find(room, found, [&](std::int64_t, Part& own) {
      Products products(*this, theta, [&](std::int64_t k, double grad) {
        const double left = sort_out(own.found, k, grad, w[features_[static_cast<std::size_t>(k)]], room);
        if (left < 0)  // it may get a weight
          slack_[static_cast<std::size_t>(k)] = guess_[static_cast<std::size_t>(k)] = -most_slack;
      });
      for (std::int64_t k : own.near) products.add(k);
      return products.finish();
    });
  }

  // Calls visit(part, j, ‖x_j‖, x_j·point) for every column that may be beyond its threshold at `point`; the others
  // are within theirs.
  template <class Visit>
  void visit_beyond(const std::vector<double>& point, Visit visit) {
    const SlackMove move = move_to(point, 0);
    nonzeros_touched += for_each_part([&](std::int64_t part, Part&) {
      Products products(*this, point, [&](std::int64_t k, double product) {
        visit(part, features_[static_cast<std::size_t>(k)], norm(k), product);
      });
      for_each_near(part, move, false, [&](std::int64_t k, float left) {
        if (left <= 0) products.add(k);
      });
      return products.finish();
    });
  }

  // The same in float64 from what the last look left, for the guard of a result.
  template <class Visit>
  void visit_beyond_again(const std::vector<double>& point, Visit visit) {
    const double scale = scale_to(point);
    const Travel travel = travel_between(point.data(), place_.data(), scale, view_.n_rows, team_);
    const double alpha = problem_.penalty.alpha, shift = alpha - scale * alpha_;
    constexpr double rounding = 1e-6;  // slack, norms and units are float32
    const SlackCheck check{scale, shift - rounding * (alpha + scale * alpha_), rounding,
                           (1 + rounding) * travel.back()};
    nonzeros_touched += for_each_part([&](std::int64_t part, Part&) {
      Products products(*this, point, [&](std::int64_t k, double product) {
        visit(part, features_[static_cast<std::size_t>(k)], norm(k), product);
      });
      const std::int64_t begin = cuts_[static_cast<std::size_t>(part)];
      const std::int64_t end = begin + counts_[static_cast<std::size_t>(part)];
      std::array<double, 64> left;
      for (std::int64_t first = begin; first < end; first += 64) {
        std::uint64_t bits = kernels().near_end(check, slack_.get() + first, units() + first,
                                                std::min<std::int64_t>(64, end - first), left.data());
        for (; bits != 0; bits &= bits - 1) {
          const int at = __builtin_ctzll(bits);
          const double travelled = (1 + rounding) * travel[classes_[static_cast<std::size_t>(first + at)]];
          if (!(left[static_cast<std::size_t>(at)] > travelled)) products.add(first + at);
        }
      }
      return products.finish();
    });
  }

  std::int64_t size() const { return size_; }
  std::int64_t nonzeros_touched = 0, last_touched = 0;
  bool out_of_range = false;  // begin found a column whose norm float32 cannot work with

 private:
  static constexpr std::int64_t batch = 128;
  static constexpr std::int64_t window = 1024;  // columns that are sorted by length
  static constexpr float margin = 1e-6F;        // for rounding in float32, relative
  static constexpr float most_slack = 1e30F;
  // Mean squares of a column between which sums of products in float32 are far from its ends.
  static constexpr double least_square = 1e-12, greatest_square = 1e12;

  struct Part {
    Findings found;
    bool out_of_range = false;
    std::vector<std::int64_t> near;  // what the next alpha may bring into question, in order
    std::int64_t touched = 0;
  };

  // The place of the look that follows.
  void stand_at(const std::vector<double>& theta) {
    rows_.copy(theta, place_);
    length_ = std::sqrt(rows_.product(place_.data(), place_.data()));
    alpha_ = problem_.penalty.alpha;
  }

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

  // How a move from the place of the last look shortens what is left of the thresholds. Where x_j·θ becomes s times
  // what it was, threshold − s·|x_j·θ| = s·(what was left) + threshold − s·(threshold then); s is chosen to leave the
  // least distance.
  double scale_to(const std::vector<double>& point) const {
    const double square = length_ * length_;
    return square > 0 ? std::clamp(rows_.product(point.data(), place_.data()) / square, 0.1, 10.0) : 1.0;
  }
  SlackMove move_to(const std::vector<double>& point, double near) const {
    const auto scale = static_cast<float>(scale_to(point));
    const Travel travel =
        travel_between(point.data(), place_.data(), static_cast<double>(scale), view_.n_rows, team_);
    const double alpha = problem_.penalty.alpha, before = static_cast<double>(scale) * alpha_;
    SlackMove move;
    for (std::size_t k = 0; k < travel.size(); ++k) move.distance[k] = static_cast<float>(travel[k]) * (1 + margin);
    move.scale = scale;
    move.shift = static_cast<float>(alpha - before - static_cast<double>(margin) * (alpha + before));
    if (!(alpha + before < double{most_slack})) {  // float32 ends here: every column is looked at
      move.shift = 0;
      move.distance.fill(std::numeric_limits<float>::infinity());
    }
    move.rounding = margin;
    move.near = static_cast<float>(near);
    return move;
  }

  // Calls visit(k, left) for the columns of one part that may be beyond their threshold, or of which no more is left,
  // as a guess, than what `near` says. k is a column's place. keep: what is left becomes the slack.
  template <class Visit>
  void for_each_near(std::int64_t part, const SlackMove& move, bool keep, Visit visit) {
    std::array<float, 64> lefts, guesses;
    const std::int64_t begin = cuts_[static_cast<std::size_t>(part)];
    const std::int64_t end = begin + counts_[static_cast<std::size_t>(part)];
    for (std::int64_t first = begin; first < end; first += 64) {
      const std::int64_t count = std::min<std::int64_t>(64, end - first);
      float* left = keep ? slack_.get() + first : lefts.data();
      float* guess = keep ? guess_.get() + first : guesses.data();
      if (!keep) std::copy_n(guess_.get() + first, count, guess);
      std::uint64_t bits =
          kernels().shorten(move, slack_.get() + first, guess, units() + first, classes_.get() + first, count, left);
      for (; bits != 0; bits &= bits - 1) {
        const int at = __builtin_ctzll(bits);
        visit(first + at, left[at]);
      }
    }
  }
  const float* units() const { return units_ ? units_.get() : inverse_norms_.get(); }
  double norm(std::int64_t k) const { return 1.0 / static_cast<double>(inverse_norms_[static_cast<std::size_t>(k)]); }

  // Calls f(part, its Part), which returns how many nonzeros it touched; returns the sum.
  template <class F>
  std::int64_t for_each_part(F&& f) {
    team_.for_work(n_column_parts, expected_work_, [&](std::int64_t part) {
      Part& own = parts_[static_cast<std::size_t>(part)];
      own.touched = f(part, own);
    });
    std::int64_t touched = 0;
    for (const Part& part : parts_) touched += part.touched;
    return touched;
  }

  template <class F>
  void find(std::size_t room, Findings& found, F&& f) {
    for (Part& part : parts_) part.found.clear();
    last_touched = for_each_part(f);
    collect(room, found);
    nonzeros_touched += last_touched;
    expected_work_ = last_touched + size_ / 8;
  }

  // Calls visit(k, product) with the products of columns and r, computed a batch at a time.
  template <class Visit>
  class Products {
   public:
    Products(const Candidates& all, const std::vector<double>& r, Visit visit) : all_(all), r_(r), visit_(visit) {}
    void add(std::int64_t k) {
      features_[static_cast<std::size_t>(count_)] = all_.features_[static_cast<std::size_t>(k)];
      places_[static_cast<std::size_t>(count_)] = k;
      if (++count_ == batch) flush();
    }
    // Returns the nonzeros of all columns.
    std::int64_t finish() {
      flush();
      return touched_;
    }

   private:
    void flush() {
      column_dots(all_.view_, features_.data(), 0, count_, r_.data(), products_.data());
      for (std::int64_t k = 0; k < count_; ++k) {
        touched_ += all_.view_.count(features_[static_cast<std::size_t>(k)]);
        visit_(places_[static_cast<std::size_t>(k)], products_[static_cast<std::size_t>(k)]);
      }
      count_ = 0;
    }
    const Candidates& all_;
    const std::vector<double>& r_;
    Visit visit_;
    std::array<std::int32_t, batch> features_;
    std::array<std::int64_t, batch> places_;
    std::array<double, batch> products_;
    std::int64_t count_ = 0, touched_ = 0;
  };

  // Support, proposal or neither: returns what is left of the threshold, −∞ for the first two.
  double sort_out(Findings& found, std::int64_t k, double grad, double weight, std::size_t room) const {
    const std::int32_t j = features_[static_cast<std::size_t>(k)];
    const CoordinatePenalty penalty = problem_.penalty.at(j);
    const double slack = slack_at_zero(penalty, grad);
    if (slack < 0 && penalty.l1 > 0 && limits_dual(penalty, grad))
      found.worst = std::max(found.worst, -slack / penalty.l1);
    if (weight != 0 || penalty.l1 == 0) {
      found.support.push_back({j, grad, norm(k), -slack});
      return -infinity;
    }
    if (slack < -1e-13 * penalty.l1) {  // beyond rounding: at alpha_max no weight is to move
      found.propose({j, grad, norm(k), -slack}, room);
      return -infinity;
    }
    return slack;
  }

  // The same, and keeps what is left.
  void note(Findings& found, std::int64_t k, double grad, double weight, std::size_t room) {
    const double slack = sort_out(found, k, grad, weight, room) / norm(k) - product_rounding * length_;
    slack_[static_cast<std::size_t>(k)] = guess_[static_cast<std::size_t>(k)] =
        static_cast<float>(std::clamp(slack * (1 - 1e-6), -double{most_slack}, double{most_slack}));
  }

  void collect(std::size_t room, Findings& found) {
    found.clear();
    for (const Part& part : parts_) found.add(part.found, room);
    found.keep_best(room);
  }

  View view_;
  const CoreProblem& problem_;
  const double least_alpha_;
  ThreadTeam& team_;
  Rows rows_;
  std::vector<double> place_;  // of the last look: a θ or dual point
  double length_ = 0;          // its norm
  double alpha_ = 0;           // then
  double near_ = 0;            // how much of alpha the next fall may take, twice
  std::vector<std::int64_t> cuts_;
  // Of the columns cuts_[part] … those kept stand at cuts_[part] … + counts_[part] of these; the rest of the memory
  // is never touched.
  std::unique_ptr<std::int32_t[]> features_;
  std::unique_ptr<float[]> inverse_norms_;
  std::unique_ptr<float[]> units_;  // u_j/‖x_j‖, where penalties have weights
  std::unique_ptr<float[]> slack_;  // at least what was left of the threshold at the last look, over the norm
  std::unique_ptr<float[]> guess_;  // about as much
  std::unique_ptr<std::uint8_t[]> classes_;  // of Travel
  std::vector<std::int64_t> counts_;
  std::vector<Part> parts_;
  std::int64_t expected_work_ = 0, size_ = 0;
};

}  // namespace blockgreedy
