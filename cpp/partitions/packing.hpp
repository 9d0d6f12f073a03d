// Assigns clusters of columns to blocks so that every block gets about the same work and the same mass (see Load).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace blockgreedy {

// Size of a cluster of columns, as shares of the whole matrix.
struct Load {
  float work = 0;  // nonzeros: what a scan of the columns costs
  float mass = 0;  // Σ |x·y|/‖x‖, the gradient at w = 0 scaled: where nonzero weights are likely

  void add(const Load& other) {
    work += other.work;
    mass += other.mass;
  }
};

class Packing {
 public:
  explicit Packing(std::int64_t n_blocks)
      : work_(n_blocks), mass_(work_.size()), trial_(work_.size()), sixths_(work_.size()) {}

  // The longest-processing-time rule for two loads: clusters by falling size, each to the block where it adds least
  // to Σ load⁶, a smooth stand-in for the largest load. Clusters below 1/128 of a block come last, unsorted.
  std::vector<std::int32_t> place(const std::vector<Load>& clusters) {
    const auto size = [&](std::int32_t k) { return std::max(clusters[k].work, clusters[k].mass); };
    const float small = 1.0F / (128.0F * static_cast<float>(work_.size()));  // too small for their order to matter
    std::vector<std::int32_t> large;
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(clusters.size()); ++k) {
      if (size(k) > small) large.push_back(k);
    }
    std::sort(large.begin(), large.end(),
              [&](auto a, auto b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
    std::vector<std::int32_t> block_of(clusters.size(), -1);
    // Trying all blocks gives the evenest loads, but takes too long for many blocks or millions of clusters: a heap
    // then gives the block whose larger load is smallest.
    const std::size_t n = work_.size();
    use_heap_ = n > most_for_large;
    const auto place_one = [&](std::size_t k) {
      block_of[k] = use_heap_ ? place_by_heap(clusters[k]) : place_exactly(clusters[k]);
    };
    if (use_heap_) start_heap();
    for (std::int32_t k : large) place_one(k);
    if (!use_heap_ && n * clusters.size() > most_trials) {
      use_heap_ = true;
      start_heap();
    }
    for (std::size_t k = 0; k < clusters.size(); ++k) {
      if (block_of[k] < 0) place_one(k);
    }
    return block_of;
  }

 private:
  static constexpr std::size_t most_for_large = 4096, most_trials = 50'000'000;  // blocks; blocks × clusters

  std::int32_t place_exactly(const Load& load) {
    const std::size_t n = work_.size();
    for (std::size_t b = 0; b < n; ++b) {
      trial_[b] = sixth(work_[b] + load.work) + sixth(mass_[b] + load.mass) - sixths_[b];
    }
    const float least = least_trial();
    const auto best = static_cast<std::size_t>(std::find(trial_.begin(), trial_.end(), least) - trial_.begin());
    add(best, load);
    sixths_[best] = sixth(work_[best]) + sixth(mass_[best]);
    return static_cast<std::int32_t>(best);
  }

  // Eight minima side by side, because a single one would wait for the comparison before.
  float least_trial() const {
    constexpr std::size_t lanes = 8;
    float least[lanes];
    std::fill_n(least, lanes, trial_[0]);
    std::size_t b = 0;
    for (; b + lanes <= trial_.size(); b += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) least[lane] = std::min(least[lane], trial_[b + lane]);
    }
    for (; b < trial_.size(); ++b) least[0] = std::min(least[0], trial_[b]);
    return *std::min_element(least, least + lanes);
  }

  float sixth(float load) const {
    const float x = static_cast<float>(work_.size()) * load, square = x * x;  // 1 is a block's share
    return square * square * square;
  }

  // To the block whose larger load is smallest before the cluster is added.
  std::int32_t place_by_heap(const Load& load) {
    const std::int32_t b = heap_.front();
    add(b, load);
    sift_down();
    return b;
  }

  void start_heap() {
    heap_.resize(work_.size());
    std::iota(heap_.begin(), heap_.end(), 0);
    std::sort(heap_.begin(), heap_.end(), [this](auto a, auto b) { return lighter(a, b); });
  }

  float larger(std::int32_t b) const { return std::max(work_[b], mass_[b]); }
  bool lighter(std::int32_t a, std::int32_t b) const {
    return larger(a) != larger(b) ? larger(a) < larger(b) : a < b;
  }

  void add(std::size_t b, const Load& load) {
    work_[b] += load.work;
    mass_[b] += load.mass;
  }

  void sift_down() {
    for (std::size_t at = 0;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) return;
      if (child + 1 < heap_.size() && lighter(heap_[child + 1], heap_[child])) ++child;
      if (!lighter(heap_[child], heap_[at])) return;
      std::swap(heap_[child], heap_[at]);
      at = child;
    }
  }

  std::vector<float> work_, mass_, trial_, sixths_;
  std::vector<std::int32_t> heap_;
  bool use_heap_ = false;
};

}  // namespace blockgreedy
