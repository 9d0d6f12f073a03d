#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/views.hpp"
#include "data/generate.hpp"
#include "data/generate_parts.hpp"

namespace blockgreedy {

using namespace generating;

namespace {

double harmonic(double k) { return k < 1 ? 0 : std::log(k) + 0.5772156649015329 + 1 / (2 * k) - 1 / (12 * k * k); }

// Real-valued count of the column of a rank (1, 2, ...): A / rank, between 1 and the ceiling.
struct CountLaw {
  double ceiling, scale = 0;

  explicit CountLaw(const KddaShape& shape) : ceiling(0.95 * static_cast<double>(shape.n_samples)) {
    const auto p = static_cast<double>(shape.n_features);
    scale = solve_increasing([&](double a) { return total(a, p); }, static_cast<double>(shape.n_nonzeros), 1.0,
                             ceiling * p);
  }

  double operator()(std::int64_t rank) const { return std::clamp(scale / static_cast<double>(rank), 1.0, ceiling); }

 private:
  double total(double a, double p) const {
    const double full = std::min(p, std::floor(a / ceiling)), above_one = std::min(p, std::floor(a));
    return ceiling * full + a * (harmonic(above_one) - harmonic(full)) + (p - above_one);
  }
};

// `count` distinct ascending numbers below `size`, added to `base`. The order statistics of uniform numbers are
// drawn one after another (the rest of the interval shrinks by u^(1/left)), so nothing is stored or sorted.
std::int32_t* ascending_rows(Random& random, std::int64_t base, std::int64_t size, std::int64_t count,
                             std::int32_t* out) {
  const std::int64_t span = size - count + 1;
  double rest = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    rest *= std::exp(std::log(random.uniform()) / static_cast<double>(count - i));
    const auto place = static_cast<std::int64_t>((1 - rest) * static_cast<double>(span));
    *out++ = static_cast<std::int32_t>(base + std::min(place, span - 1) + i);
  }
  return out;
}

constexpr double share_in_group = 0.8;

// [0, 1), where Random::uniform is (0, 1]: a value of exactly zero must never be rounded up.
std::int64_t random_round(Random& random, double value) {
  return static_cast<std::int64_t>(value + (1 - random.uniform()));
}

// Most rows lie in one aligned run of about `length` rows, the others on both sides of it.
void rows_of_a_run(Random& random, std::int64_t n, std::int64_t count, std::int64_t length, std::int32_t* out) {
  const std::int64_t n_runs = n / length;
  const auto run = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n_runs)));
  const std::int64_t first = run * length, last = run == n_runs - 1 ? n : first + length;
  const std::int64_t inside = random_round(random, share_in_group * static_cast<double>(count));
  const double left_share = static_cast<double>(first) / static_cast<double>(n - (last - first));
  const std::int64_t before = random_round(random, left_share * static_cast<double>(count - inside));
  out = ascending_rows(random, 0, first, before, out);
  out = ascending_rows(random, first, last - first, inside, out);
  ascending_rows(random, last, n - last, count - inside - before, out);
}

// Most rows are congruent modulo `period`. At most one row per period keeps them distinct and ascending.
void rows_of_a_period(Random& random, std::int64_t n, std::int64_t count, std::int64_t period, std::int32_t* out) {
  const std::int64_t n_slots = (n + period - 1) / period, last_width = n - (n_slots - 1) * period;
  const auto width = static_cast<std::uint64_t>(period);
  const auto phase = static_cast<std::int64_t>(random.below(width));
  ascending_rows(random, 0, n_slots, count, out);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t slot = out[k];
    std::int64_t offset = random.uniform() <= share_in_group ? phase : static_cast<std::int64_t>(random.below(width));
    if (slot == n_slots - 1) offset %= last_width;
    out[k] = static_cast<std::int32_t>(slot * period + offset);
  }
}

// A group is about four times as long as the column's count, so that columns of one group overlap much.
void draw_rows(Random& random, std::int64_t n, std::int64_t count, std::int32_t* out) {
  const auto length = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(4 * count)));
  if (2 * length > n) {
    ascending_rows(random, 0, n, count, out);
  } else if (random.next() & 1) {
    rows_of_a_run(random, n, count, length, out);
  } else {
    const auto period = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n / (4 * count))));
    rows_of_a_period(random, n, count, period, out);
  }
}

// One column in four holds small counts, the others are indicators.
void draw_values(Random& random, std::int64_t count, float* values) {
  if ((random.next() & 3) != 0) {
    std::fill_n(values, count, 1.0F);
  } else {
    for (std::int64_t k = 0; k < count; ++k) values[k] = static_cast<float>(1 + (random.next() >> 62));
  }
}

// Values are still integers here, so the rows' sums of squares are exact and the order in which threads add to
// them does not matter. Locked additions do not overlap their cache misses: prefetching saves a fifth of the whole.
void add_squares(const std::int32_t* rows, const float* values, std::int64_t count, Counters& squares) {
  constexpr std::int64_t ahead = 16;
  for (std::int64_t k = 0; k < count; ++k) {
    if (k + ahead < count) __builtin_prefetch(&squares[rows[k + ahead]], 1);
    squares[rows[k]].fetch_add(static_cast<std::uint32_t>(values[k] * values[k]), std::memory_order_relaxed);
  }
}

std::vector<float> inverse_norms(const Counters& squares, ThreadTeam& team) {
  std::vector<float> inverse(squares.size());
  for_ranges(team, static_cast<std::int64_t>(squares.size()), 16384, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint32_t square = squares[i].load(std::memory_order_relaxed);
      inverse[i] = square ? static_cast<float>(1 / std::sqrt(static_cast<double>(square))) : 0.0F;
    }
  });
  return inverse;
}

// Each range of rows adds up its own part of every true column, so the order of summation does not depend on threads.
std::vector<double> kdda_scores(const KddaShape& shape, const CscView<float>& X, ThreadTeam& team) {
  Random random(derive(shape.seed, true_model));
  const double scale = std::clamp(static_cast<double>(shape.n_features) / 40, 5.0, 250.0);
  auto model = draw_true_model(random, 0, shape.n_features, scale,
                               [&](std::int64_t) { return random.next() & 1 ? 1.0 : -1.0; });
  const Shuffle column_of_rank(shape.n_features, derive(shape.seed, shuffle_columns));
  for (auto& entry : model) entry.index = column_of_rank(entry.index);
  std::vector<double> scores(shape.n_samples);
  for_ranges(team, shape.n_samples, 16384, [&](std::int64_t first, std::int64_t last) {
    for (const auto& entry : model) {
      X.for_each_nonzero(entry.index, first, last,
                         [&](std::int32_t i, double value) { scores[i] += entry.weight * value; });
    }
  });
  return scores;
}

// Positive with probability 1 / (1 + exp(-(1 + 4 z))) for the standardised score z: three labels of five are +1
// and the best possible error is about one in eight.
void draw_labels(const std::vector<double>& scores, std::uint64_t seed, std::int8_t* labels, ThreadTeam& team) {
  const auto n = static_cast<std::int64_t>(scores.size());
  double sum = 0, squares = 0;
  for (const double score : scores) {
    sum += score;
    squares += score * score;
  }
  const double mean = sum / static_cast<double>(n);
  const double deviation = std::sqrt(std::max(squares / static_cast<double>(n) - mean * mean, 1e-12));
  for_ranges(team, n, 16384, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const double margin = 1 + 4 * (scores[i] - mean) / deviation;
      const double positive = 1 / (1 + std::exp(-margin));
      labels[i] = stream(seed, static_cast<std::uint64_t>(i)).uniform() <= positive ? 1 : -1;
    }
  });
}

}  // namespace

void kdda_pointers(const KddaShape& shape, std::int64_t* indptr, ThreadTeam& team) {
  const CountLaw law(shape);
  const Shuffle column_of_rank(shape.n_features, derive(shape.seed, shuffle_columns));
  for_ranges(team, shape.n_features, 16384, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t rank = first; rank < last; ++rank) {
      indptr[column_of_rank(rank) + 1] = spread_round(law(rank + 1), rank);
    }
  });
  if (!team.stopped()) accumulate_counts(indptr, shape.n_features);
}

void kdda_fill(const KddaShape& shape, const std::int64_t* indptr, std::int32_t* indices, float* data,
               std::int8_t* labels, ThreadTeam& team) {
  const CscView<float> X{shape.n_samples, shape.n_features, indptr, true, indices, data};
  const std::int64_t n_parts = X.n_nonzeros() < min_parallel_work ? 1 : 1024;
  const auto cuts = equal_nonzero_cuts(X, n_parts);
  const std::uint64_t seed = derive(shape.seed, contents);
  Counters squares(shape.n_samples);
  team.for_each(n_parts, [&](std::int64_t part, int) {
    const std::int64_t first = cuts[part], last = cuts[part + 1];
    for (std::int64_t j = first; j < last; ++j) {
      Random random = stream(seed, static_cast<std::uint64_t>(j));
      const std::int64_t start = indptr[j], count = indptr[j + 1] - start;
      draw_rows(random, shape.n_samples, count, indices + start);
      draw_values(random, count, data + start);
    }
    add_squares(indices + indptr[first], data + indptr[first], indptr[last] - indptr[first], squares);
  });
  const auto inverse = inverse_norms(squares, team);
  for_ranges(team, X.n_nonzeros(), min_parallel_work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) data[k] *= inverse[indices[k]];
  });
  if (!team.stopped()) draw_labels(kdda_scores(shape, X, team), derive(shape.seed, noise), labels, team);
}

}  // namespace blockgreedy
