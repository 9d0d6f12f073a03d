#include "partitions/partition.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "base/random.hpp"
#include "kernels/kernels.hpp"

namespace blockgreedy {

namespace {

// The seed of the current block: its column scattered over all rows, and one bit per row that says where it
// is nonzero. The bits of 8 million rows fit a core's own cache, the values do not.
template <class Value>
class SeedColumn {
 public:
  explicit SeedColumn(std::int64_t n_rows) : values_(n_rows), bits_(static_cast<std::size_t>(n_rows + 63) / 64) {}

  template <class View>
  void set(const View& view, std::int64_t j, ThreadTeam& team) {
    for_each_slice(view, j, team, [this](std::int32_t row, double x) {
      values_[row] = static_cast<Value>(x);
      bits_[static_cast<std::size_t>(row) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(row) % 64);
    });
    // For denser seeds the branch on a row's bit is mispredicted too often to save time.
    mostly_zero_ = view.count(j) < view.n_rows / 3;
  }

  template <class View>
  void clear(const View& view, std::int64_t j, ThreadTeam& team) {
    for_each_slice(view, j, team, [this](std::int32_t row, double) {
      values_[row] = 0;
      bits_[static_cast<std::size_t>(row) / 64] = 0;
    });
  }

  const Value* values() const { return values_.data(); }
  bool mostly_zero() const { return mostly_zero_; }
  bool contains(std::int32_t row) const {
    const auto at = static_cast<std::uint32_t>(row);  // unsigned, so that / and % are a shift and a mask
    return (bits_[at / 64] >> (at % 64) & 1) != 0;
  }

 private:
  // Slices of rows begin at multiples of 64, so that no two of them share a word of bits.
  template <class View, class F>
  static void for_each_slice(const View& view, std::int64_t j, ThreadTeam& team, F&& f) {
    const std::int64_t n_slices = view.count(j) < min_parallel_work ? 1 : 4 * team.size();
    const std::int64_t height = (view.n_rows / n_slices / 64 + 1) * 64;
    team.for_each(n_slices, [&](std::int64_t slice, int) {
      view.for_each_nonzero(j, slice * height, std::min(view.n_rows, (slice + 1) * height), f);
    });
  }

  std::vector<Value> values_;
  std::vector<std::uint64_t> bits_;
  bool mostly_zero_ = true;
};

// The products below call emit(j, x_j·seed) for those of `columns` (ascending) that may meet the seed. A sparse
// sum runs in row order; rows outside the seed add an exact zero, so skipping them changes no bit of it.

// Neighbouring columns are one run of entries, of which nearly all miss the seed: the column of an entry is looked up
// only after a hit. A loop per column took 16 ns a column at the KDDA shape (2.8 entries each, so the end of the
// loop is unpredictable), this one 9.
template <class T, class F>
void multiply_mostly_zero(const CscView<T>& view, const std::int32_t* columns, std::int64_t n_columns,
                          const SeedColumn<T>& seed, F&& emit) {
  const T* values = seed.values();
  for (std::int64_t k = 0; k < n_columns;) {
    std::int64_t j = columns[k], run_end = j;
    while (k < n_columns && columns[k] == run_end) ++k, ++run_end;
    const std::int64_t last_entry = view.start(run_end);
    for (std::int64_t entry = view.start(j); entry < last_entry;) {
      if (!seed.contains(view.indices[entry])) {
        ++entry;
        continue;
      }
      while (view.start(j + 1) <= entry) ++j;
      double sum = 0;
      for (const std::int64_t end = view.start(j + 1); entry < end; ++entry) {
        const std::int32_t row = view.indices[entry];
        if (seed.contains(row)) sum += static_cast<double>(view.data[entry]) * static_cast<double>(values[row]);
      }
      emit(static_cast<std::int32_t>(j), sum);
    }
  }
}

template <class T, class F>
void multiply(const CscView<T>& view, const std::int32_t* columns, std::int64_t n_columns, const SeedColumn<T>& seed,
              F&& emit) {
  if (seed.mostly_zero()) return multiply_mostly_zero(view, columns, n_columns, seed, emit);
  const T* values = seed.values();
  for (std::int64_t k = 0; k < n_columns; ++k) {
    double sum = 0;
    view.for_each_nonzero(columns[k],
                          [&](std::int32_t row, double x) { sum += x * static_cast<double>(values[row]); });
    emit(columns[k], sum);
  }
}

template <class T, class F>
void multiply(const DenseView<T>& view, const std::int32_t* columns, std::int64_t n_columns,
              const SeedColumn<double>& seed, F&& emit) {
  for (std::int64_t k = 0; k < n_columns; ++k) emit(columns[k], column_dot(view, columns[k], seed.values()));
}

// Sparse seeds keep the matrix's type, which halves the memory that float32 sums jump about in.
template <class View>
struct SeedOf {
  using Type = SeedColumn<typename View::Value>;
};
template <class T>
struct SeedOf<DenseView<T>> {
  using Type = SeedColumn<double>;
};

// How many nonzeros each column has. Zeros may be stored, as they are in every dense matrix: only then are the
// nonzeros counted and the counts kept.
template <class View>
class NonzeroCounts {
 public:
  NonzeroCounts(const View& view, ThreadTeam& team) : view_(view) {
    const std::int64_t n = view.n_nonzeros();
    const std::int64_t n_parts = std::clamp<std::int64_t>(n / min_parallel_work, 1, 1024);
    std::vector<char> holds_zero(n_parts);
    team.for_each(n_parts, [&](std::int64_t part, int) {
      const auto *begin = view.data + n * part / n_parts, *end = view.data + n * (part + 1) / n_parts;
      holds_zero[part] = std::find(begin, end, typename View::Value{0}) != end;
    });
    if (std::find(holds_zero.begin(), holds_zero.end(), 1) == holds_zero.end()) return;
    counts_.resize(view.n_cols);
    const auto cuts = equal_nonzero_cuts(view, n_parts);
    team.for_each(n_parts, [&](std::int64_t part, int) {
      for (std::int64_t j = cuts[part]; j < cuts[part + 1]; ++j) {
        std::int64_t count = 0;
        view.for_each_nonzero(j, [&](std::int32_t, double x) { count += x != 0; });
        counts_[j] = count;
      }
    });
  }

  std::int64_t operator()(std::int64_t j) const { return counts_.empty() ? view_.count(j) : counts_[j]; }

 private:
  const View& view_;
  std::vector<std::int64_t> counts_;
};

// A run of columns that one executor handles at a time. Its unassigned columns are columns_[first] and the
// n_columns - 1 after it, ascending; those of them that meet the seed stand in hit_columns_ and hit_keys_ from
// `first` on.
struct alignas(64) Part {
  std::int64_t first, n_columns;
  std::int64_t n_hits = 0, n_ties = 0;
  std::int64_t densest = -1;  // of the unassigned columns the one with most nonzeros, the lowest if several
};

// A block takes every unassigned column whose correlation lies above the threshold, and the lowest n_ties of
// those that lie on it. Correlations are compared by their bits: non-negative doubles order like integers.
struct Cut {
  std::uint64_t threshold = 0;
  std::int64_t n_ties = 0;
};

template <class View>
class Clustering {
 public:
  Clustering(const View& view, std::int64_t n_blocks, ThreadTeam& team);
  std::vector<std::int32_t> run();

 private:
  static constexpr int digit_bits = 11;
  using Histogram = std::array<std::int64_t, 1 << digit_bits>;

  std::int64_t densest_column() const;
  void correlate();
  Cut find_cut(std::int64_t size);
  const Histogram& count_digits(std::uint64_t prefix, int known_from, int shift);
  void count_ties(std::uint64_t threshold);
  void assign(std::int32_t block, const Cut& cut);
  void assign_part(Part& part, std::int32_t block, std::uint64_t threshold, std::int64_t n_ties);
  void find_densest(Part& part) const;

  template <class F>
  void for_each_part(F&& f) {
    team_.for_each(static_cast<std::int64_t>(parts_.size()),
                   [&](std::int64_t part, int executor) { f(parts_[part], executor); });
  }

  const View& view_;
  const std::int64_t n_blocks_;
  ThreadTeam& team_;
  typename SeedOf<View>::Type seed_;
  const NonzeroCounts<View> n_nonzeros_;
  std::vector<Part> parts_;
  std::vector<Histogram> histograms_;  // one per executor
  std::vector<std::int32_t> block_of_;
  // Left uninitialised: the executors touch them first, and the pages of columns without a hit are never used.
  std::unique_ptr<std::int32_t[]> columns_;
  std::unique_ptr<std::uint64_t[]> hit_keys_;
  std::unique_ptr<std::int32_t[]> hit_columns_;
};

template <class View>
Clustering<View>::Clustering(const View& view, std::int64_t n_blocks, ThreadTeam& team)
    : view_(view),
      n_blocks_(n_blocks),
      team_(team),
      seed_(view.n_rows),
      n_nonzeros_(view, team),
      histograms_(team.size()),
      // Columns that no other block takes stay in the last one.
      block_of_(view.n_cols, static_cast<std::int32_t>(n_blocks - 1)),
      columns_(std::make_unique_for_overwrite<std::int32_t[]>(view.n_cols)),
      hit_keys_(std::make_unique_for_overwrite<std::uint64_t[]>(view.n_cols)),
      hit_columns_(std::make_unique_for_overwrite<std::int32_t[]>(view.n_cols)) {
  // Parts keep their columns to the end while the dense ones leave: many small parts stay balanced enough.
  constexpr std::int64_t max_parts = 1024;
  const std::int64_t work = view.n_nonzeros() + 2 * view.n_cols;
  const auto cuts = equal_nonzero_cuts(view, std::clamp<std::int64_t>(work / min_parallel_work, 1, max_parts));
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    parts_.push_back({.first = cuts[part], .n_columns = cuts[part + 1] - cuts[part]});
  }
  for_each_part([&](Part& part, int) {
    for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k)
      columns_[k] = static_cast<std::int32_t>(k);
    find_densest(part);
  });
}

template <class View>
std::vector<std::int32_t> Clustering<View>::run() {
  for (std::int64_t block = 0; block + 1 < n_blocks_ && !team_.stopped(); ++block) {
    const std::int64_t seed = densest_column();
    seed_.set(view_, seed, team_);
    correlate();
    const Cut cut =
        find_cut(block_start(view_.n_cols, n_blocks_, block + 1) - block_start(view_.n_cols, n_blocks_, block));
    // A stopped team leaves parts out, so the counts are incomplete.
    if (team_.stopped()) break;
    assign(static_cast<std::int32_t>(block), cut);
    seed_.clear(view_, seed, team_);
  }
  return team_.stopped() ? std::vector<std::int32_t>{} : std::move(block_of_);
}

template <class View>
std::int64_t Clustering<View>::densest_column() const {
  std::int64_t best = -1;
  for (const Part& part : parts_) {
    if (part.densest >= 0 && (best < 0 || n_nonzeros_(part.densest) > n_nonzeros_(best))) best = part.densest;
  }
  return best;
}

// Most columns of large sparse data have no row in common with the seed: only those that do are stored.
template <class View>
void Clustering<View>::correlate() {
  for_each_part([&](Part& part, int) {
    std::int64_t hit = part.first;
    multiply(view_, columns_.get() + part.first, part.n_columns, seed_, [&](std::int32_t j, double product) {
      const auto key = std::bit_cast<std::uint64_t>(std::fabs(product));
      hit_keys_[hit] = key;
      hit_columns_[hit] = j;
      hit += key != 0 ? 1 : 0;  // a branch here would be unpredictable
    });
    part.n_hits = hit - part.first;
  });
}

// The size-th largest correlation, digit by digit from the top (radix selection).
template <class View>
Cut Clustering<View>::find_cut(std::int64_t size) {
  std::int64_t n_hits = 0;
  for (const Part& part : parts_) n_hits += part.n_hits;
  if (n_hits <= size) return {.threshold = 0, .n_ties = size - n_hits};
  Cut cut{.threshold = 0, .n_ties = size};
  for (int known_from = 64; known_from > 0;) {  // the bits of the threshold from this one up are known
    const int shift = std::max(0, known_from - digit_bits);
    const Histogram& counts = count_digits(cut.threshold, known_from, shift);
    std::size_t digit = counts.size() - 1;
    while (digit > 0 && counts[digit] < cut.n_ties) cut.n_ties -= counts[digit--];
    cut.threshold |= static_cast<std::uint64_t>(digit) << shift;
    known_from = shift;
  }
  return cut;
}

// How many hits have each value of the digit at `shift`, among those that agree with `prefix` from bit
// `known_from` up (the last digit overlaps the one before it).
template <class View>
auto Clustering<View>::count_digits(std::uint64_t prefix, int known_from, int shift) -> const Histogram& {
  for (Histogram& counts : histograms_) counts.fill(0);
  const std::uint64_t known = known_from < 64 ? ~std::uint64_t{0} << known_from : 0;
  for_each_part([&](Part& part, int executor) {
    Histogram& counts = histograms_[executor];
    for (std::int64_t k = part.first; k < part.first + part.n_hits; ++k) {
      if (((hit_keys_[k] ^ prefix) & known) == 0) ++counts[(hit_keys_[k] >> shift) & (counts.size() - 1)];
    }
  });
  Histogram& total = histograms_.front();
  for (std::size_t executor = 1; executor < histograms_.size(); ++executor) {
    for (std::size_t digit = 0; digit < total.size(); ++digit) total[digit] += histograms_[executor][digit];
  }
  return total;
}

template <class View>
void Clustering<View>::count_ties(std::uint64_t threshold) {
  for_each_part([&](Part& part, int) {
    if (threshold == 0) {
      part.n_ties = part.n_columns - part.n_hits;
    } else {
      const std::uint64_t* keys = hit_keys_.get() + part.first;
      part.n_ties = std::count(keys, keys + part.n_hits, threshold);
    }
  });
}

template <class View>
void Clustering<View>::assign(std::int32_t block, const Cut& cut) {
  count_ties(cut.threshold);
  // Parts follow the order of the columns: the first ones may take their ties until none is left to take.
  std::int64_t left = cut.n_ties;
  for (Part& part : parts_) {
    part.n_ties = std::min(part.n_ties, left);
    left -= part.n_ties;
  }
  for_each_part([&](Part& part, int) { assign_part(part, block, cut.threshold, part.n_ties); });
}

template <class View>
void Clustering<View>::assign_part(Part& part, std::int32_t block, std::uint64_t threshold, std::int64_t n_ties) {
  std::int64_t kept = part.first, hit = part.first;
  const std::int64_t hit_end = part.first + part.n_hits;
  for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k) {
    const std::int32_t j = columns_[k];
    const std::uint64_t key = hit < hit_end && hit_columns_[hit] == j ? hit_keys_[hit++] : 0;
    if (key > threshold || (key == threshold && n_ties-- > 0)) {
      block_of_[j] = block;
    } else {
      columns_[kept++] = j;
    }
  }
  part.n_columns = kept - part.first;
  if (part.densest >= 0 && block_of_[part.densest] == block) find_densest(part);
}

template <class View>
void Clustering<View>::find_densest(Part& part) const {
  std::int64_t most = -1;
  part.densest = -1;
  for (std::int64_t k = part.first; k < part.first + part.n_columns; ++k) {
    const std::int64_t count = n_nonzeros_(columns_[k]);
    if (count > most) {
      most = count;
      part.densest = columns_[k];
    }
  }
}

}  // namespace

std::vector<std::int32_t> random_blocks(std::int64_t n_features, std::int64_t n_blocks, std::uint64_t seed) {
  const std::vector<std::int32_t> order = random_permutation(n_features, seed);
  std::vector<std::int32_t> block_of(order.size());
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    for (std::int64_t at = block_start(n_features, n_blocks, b); at < block_start(n_features, n_blocks, b + 1);
         ++at) {
      block_of[order[at]] = static_cast<std::int32_t>(b);
    }
  }
  return block_of;
}

std::vector<std::int64_t> block_sizes(const std::int32_t* block_of, std::int64_t n_features, std::int64_t n_blocks) {
  std::vector<std::int64_t> sizes(n_blocks);
  const auto n = static_cast<std::uint32_t>(n_blocks);
  for (std::int64_t j = 0; j < n_features; ++j) {
    const auto b = static_cast<std::uint32_t>(block_of[j]);  // negative ones become large
    if (b < n) ++sizes[b];
  }
  return sizes;
}

std::vector<std::int32_t> random_permutation(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int32_t> order(n);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  Random random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::vector<std::int32_t> cluster_features(const Matrix& matrix, std::int64_t n_blocks, ThreadTeam& team) {
  return std::visit([&](const auto& view) { return Clustering(view, n_blocks, team).run(); }, matrix);
}

}  // namespace blockgreedy
