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

// Probability proportional to 1 / (rank + offset), as a log-uniform number: one exp per draw and no table.
struct ZipfLaw {
  double offset, log_ratio;
  std::int64_t size;

  ZipfLaw(std::int64_t n, double shift)
      : offset(shift), log_ratio(std::log((static_cast<double>(n) + shift) / shift)), size(n) {}

  std::int64_t operator()(Random& random) const {
    const double x = offset * (std::exp(random.uniform() * log_ratio) - 1);
    return std::min(static_cast<std::int64_t>(x), size - 1);
  }
};

// Ranks below `head` belong to no topic; after them topic k owns the ranks head + k, head + k + n_topics, ...
struct Vocabulary {
  std::int64_t n_topics, head;
  ZipfLaw background, topic;
  Shuffle term_of_rank, term_to_place;

  explicit Vocabulary(const TextShape& shape)
      : n_topics(shape.n_topics),
        head(std::min<std::int64_t>(100, shape.n_features / 10)),
        background(shape.n_features, 5),
        topic((shape.n_features - head) / shape.n_topics, 10),
        term_of_rank(shape.n_features, derive(shape.seed, shuffle_columns)),
        term_to_place(shape.n_features, derive(shape.seed, placement)) {}
};

// The distinct terms of one document with their frequencies, in open addressing. Sized for the longest
// document before the parallel region; a row uses (and clears) only the part of the table it needs.
class Document {
 public:
  explicit Document(std::int64_t longest) : table_(table_size(longest)), entries_(longest) {}

  void clear(std::int64_t length) {
    mask_ = table_size(length) - 1;
    std::fill_n(table_.begin(), mask_ + 1, -1);
    size_ = 0;
  }

  void add(std::int64_t term) {
    std::size_t slot = (static_cast<std::uint32_t>(term) * 0x9e3779b9U >> 7) & mask_;
    for (; table_[slot] >= 0; slot = (slot + 1) & mask_) {
      auto& entry = entries_[table_[slot]];
      if (static_cast<std::int64_t>(entry >> 32) == term) {
        ++entry;
        return;
      }
    }
    table_[slot] = static_cast<std::int32_t>(size_);
    entries_[size_++] = (static_cast<std::uint64_t>(term) << 32) | 1;
  }

  std::int64_t size() const { return size_; }

  // Ascending terms; the values are 1 + log tf until the document frequencies are known.
  void write(std::int32_t* terms, float* values) {
    std::sort(entries_.begin(), entries_.begin() + size_);
    for (std::int64_t k = 0; k < size_; ++k) {
      const std::uint64_t entry = entries_[k];
      terms[k] = static_cast<std::int32_t>(entry >> 32);
      values[k] = static_cast<float>(1 + std::log(static_cast<double>(entry & 0xffffffffU)));
    }
  }

 private:
  static std::size_t table_size(std::int64_t length) { return std::bit_ceil(static_cast<std::size_t>(2 * length)); }

  std::vector<std::int32_t> table_;     // position in entries_, or -1
  std::vector<std::uint64_t> entries_;  // term in the upper half (sorts by it), frequency in the lower
  std::size_t mask_ = 0;
  std::int64_t size_ = 0;
};

// Draws tokens until the document has `length` distinct terms. Half come from the background; the first topic
// has 70 % of the rest. Long documents over a small vocabulary stop repeating themselves after a while.
void draw_tokens(Random& random, const Vocabulary& words, std::int64_t length, Document& document) {
  const auto n_topics = static_cast<std::uint64_t>(words.n_topics);
  const auto main_topic = static_cast<std::int64_t>(random.below(n_topics));
  const auto side_topic = random.next() & 1 ? main_topic : static_cast<std::int64_t>(random.below(n_topics));
  for (std::int64_t token = 0; document.size() < length; ++token) {
    const double choice = random.uniform();
    std::int64_t rank;
    if (token > 8 * length + 64) {
      rank = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(words.background.size)));
    } else if (choice <= 0.5) {
      rank = words.background(random);
    } else {
      rank = words.head + (choice <= 0.85 ? main_topic : side_topic) + words.n_topics * words.topic(random);
    }
    document.add(words.term_of_rank(rank));
  }
}

// Every term gets one place among the nonzeros, spread evenly (place = term * nnz / n_features), so that no
// column is empty; news20 has 6.7 nonzeros a column and would otherwise lose a third of its columns.
void add_placed_terms(const TextShape& shape, const Vocabulary& words, const std::int64_t* indptr, std::int64_t row,
                      Document& document) {
  const double terms_per_nonzero =
      static_cast<double>(shape.n_features) / static_cast<double>(indptr[shape.n_samples]);
  if (terms_per_nonzero > 0.5) return;
  const auto first = static_cast<std::int64_t>(static_cast<double>(indptr[row]) * terms_per_nonzero);
  const auto last = row == shape.n_samples - 1
                        ? shape.n_features
                        : static_cast<std::int64_t>(static_cast<double>(indptr[row + 1]) * terms_per_nonzero);
  for (std::int64_t place = first; place < last && document.size() < indptr[row + 1] - indptr[row]; ++place) {
    document.add(words.term_to_place(place));
  }
}

void draw_documents(const TextShape& shape, const Vocabulary& words, const std::int64_t* indptr,
                    std::int32_t* indices, float* data, Counters& frequencies, ThreadTeam& team) {
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < shape.n_samples; ++i) longest = std::max(longest, indptr[i + 1] - indptr[i]);
  std::vector<Document> documents(team.size(), Document(longest));
  const std::uint64_t seed = derive(shape.seed, contents);
  const std::int64_t n = shape.n_samples;
  const std::int64_t n_parts = indptr[n] < min_parallel_work ? 1 : std::min<std::int64_t>(n, 1024);
  team.for_each(n_parts, [&](std::int64_t part, int executor) {
    Document& document = documents[executor];
    for (std::int64_t i = n * part / n_parts; i < n * (part + 1) / n_parts; ++i) {
      Random random = stream(seed, static_cast<std::uint64_t>(i));
      const std::int64_t start = indptr[i], length = indptr[i + 1] - start;
      document.clear(length);
      add_placed_terms(shape, words, indptr, i, document);
      draw_tokens(random, words, length, document);
      document.write(indices + start, data + start);
      for (std::int64_t k = 0; k < length; ++k) {
        frequencies[indices[start + k]].fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
}

// A topic leans to one side, and with it most of its true terms: labels then follow from many weak terms.
std::vector<float> text_model(const TextShape& shape, const Vocabulary& words) {
  Random random(derive(shape.seed, true_model));
  const std::int64_t last = words.head + std::max<std::int64_t>(words.n_topics, shape.n_features / 10);
  const double scale = std::clamp(static_cast<double>(shape.n_features) / 40, 5.0, 250.0);
  const auto model = draw_true_model(random, words.head, last, scale, [&](std::int64_t rank) {
    const bool leans_up = ((rank - words.head) % words.n_topics) % 2 == 0;
    return (random.uniform() <= 0.85) == leans_up ? 1.0 : -1.0;
  });
  std::vector<float> weights(shape.n_features);
  for (const auto& entry : model) weights[words.term_of_rank(entry.index)] = static_cast<float>(entry.weight);
  return weights;
}

// Makes the values of one row tf-idf of unit norm and returns the row's score under the true model.
double finish_row(const std::int32_t* terms, std::int64_t count, const std::vector<float>& idf,
                  const std::vector<float>& weights, float* values) {
  double square = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    values[k] *= idf[terms[k]];
    square += static_cast<double>(values[k]) * static_cast<double>(values[k]);
  }
  const double inverse = 1 / std::sqrt(square);
  double score = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    values[k] = static_cast<float>(static_cast<double>(values[k]) * inverse);
    score += static_cast<double>(values[k]) * static_cast<double>(weights[terms[k]]);
  }
  return score;
}

}  // namespace

void text_pointers(const TextShape& shape, std::int64_t* indptr, ThreadTeam&) {
  constexpr double spread = 0.7;  // standard deviation of log length; lengths then vary by a factor of about 2
  const std::uint64_t seed = derive(shape.seed, lengths);
  const double ceiling = static_cast<double>(shape.n_features) / 4;
  std::vector<double> raw(shape.n_samples);
  for (std::int64_t i = 0; i < shape.n_samples; ++i) {
    Random random = stream(seed, static_cast<std::uint64_t>(i));
    raw[i] = std::exp(spread * normal(random));
  }
  const auto length = [&](double scale, double x) { return std::clamp(scale * x, 1.0, ceiling); };
  const auto total = [&](double scale) {
    return std::accumulate(raw.begin(), raw.end(), 0.0, [&](double sum, double x) { return sum + length(scale, x); });
  };
  const double target = shape.mean_nonzeros * static_cast<double>(shape.n_samples);
  const double scale = solve_increasing(total, target, 0.0, 8 * shape.mean_nonzeros);
  for (std::int64_t i = 0; i < shape.n_samples; ++i) indptr[i + 1] = spread_round(length(scale, raw[i]), i);
  accumulate_counts(indptr, shape.n_samples);
}

void text_fill(const TextShape& shape, const std::int64_t* indptr, std::int32_t* indices, float* data,
               std::int8_t* labels, ThreadTeam& team) {
  const Vocabulary words(shape);
  Counters frequencies(shape.n_features);
  draw_documents(shape, words, indptr, indices, data, frequencies, team);
  if (team.stopped()) return;
  std::vector<float> idf(shape.n_features);
  for (std::int64_t j = 0; j < shape.n_features; ++j) {
    const std::uint32_t frequency = std::max(1U, frequencies[j].load(std::memory_order_relaxed));
    idf[j] = static_cast<float>(std::log((1.0 + static_cast<double>(shape.n_samples)) / frequency));
  }
  const auto weights = text_model(shape, words);
  std::vector<double> scores(shape.n_samples);
  const std::int64_t shortest = 1 + shape.n_samples * min_parallel_work / indptr[shape.n_samples];
  for_ranges(team, shape.n_samples, shortest, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      scores[i] = finish_row(indices + indptr[i], indptr[i + 1] - indptr[i], idf, weights, data + indptr[i]);
    }
  });
  const double middle = std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(shape.n_samples);
  const std::uint64_t seed = derive(shape.seed, noise);
  for (std::int64_t i = 0; i < shape.n_samples; ++i) {
    const bool flipped = stream(seed, static_cast<std::uint64_t>(i)).uniform() <= 0.05;
    labels[i] = (scores[i] > middle) != flipped ? 1 : -1;
  }
}

}  // namespace blockgreedy
