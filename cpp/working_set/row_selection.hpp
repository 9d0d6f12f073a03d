// Rows that are left out of a subproblem because they hold next to none of the curvature: on nearly separable
// problems most rows. The quadratic is not exact anyway, and the diagonal still counts them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "math/core_problem.hpp"
#include "working_set/tuning.hpp"

namespace blockgreedy {

class RowSelection {
 public:
  RowSelection(std::int64_t n_rows, ThreadTeam& team)
      : n_rows_(n_rows), n_kept_(n_rows), slices_(n_rows), team_(team) {}

  // Drops the rows of least curvature, which together hold at most this share of it; none unless that are many.
  void choose(const std::vector<float>& root, double share) {
    new_row_.clear();
    n_kept_ = n_rows_;
    if (!(share > 0)) return;
    const std::uint32_t cut = find_cut(root, share);
    count_kept(root, cut);
    if (Tuning::Layout::kept_rows_denominator * kept_before_.back() < Tuning::Layout::kept_rows_numerator * n_rows_)
      renumber(root, cut);
  }

  bool keeps_all() const { return new_row_.empty(); }
  std::int64_t n_kept() const { return n_kept_; }
  // Unless all are kept: the number of each row among those that are, n_kept() for the others; and a bit for each
  // row.
  const std::int32_t* new_rows() const { return new_row_.data(); }
  const std::uint64_t* bits() const { return kept_bits_.data(); }
  // Kept rows before a slice.
  std::int64_t kept_before(std::int64_t slice) const {
    return keeps_all() ? slices_.begin(slice) : kept_before_[slice];
  }
  const RowSlices& slices() const { return slices_; }

 private:
  // Histograms by exponent and leading bits find the cut without sorting.
  static constexpr std::size_t n_bins = 1 << 11;
  static std::uint32_t bin_of(float root) { return __builtin_bit_cast(std::uint32_t, root) >> 20; }

  template <class F>
  void for_slices(F&& f) {
    team_.for_work(slices_.count(), n_rows_, [&](std::int64_t slice) {
      f(static_cast<std::size_t>(slice), static_cast<std::size_t>(slices_.begin(slice)),
        static_cast<std::size_t>(slices_.end(slice)));
    });
  }

  // The first bin that is kept.
  std::uint32_t find_cut(const std::vector<float>& root, double share) {
    const auto n_slices = static_cast<std::size_t>(slices_.count());
    std::vector<double> masses(n_bins * n_slices);
    for_slices([&](std::size_t slice, std::size_t begin, std::size_t end) {
      double* mass = masses.data() + n_bins * slice;
      for (std::size_t i = begin; i < end; ++i) {
        mass[bin_of(root[i])] += static_cast<double>(root[i]) * static_cast<double>(root[i]);
      }
    });
    double total = 0;
    for (std::size_t bin = 0; bin < n_bins; ++bin) {
      for (std::size_t slice = 1; slice < n_slices; ++slice) masses[bin] += masses[n_bins * slice + bin];
      total += masses[bin];
    }
    std::uint32_t cut = 0;
    for (double below = masses[0]; below <= share * total && cut + 1 < n_bins; below += masses[cut]) ++cut;
    return cut;
  }

  void count_kept(const std::vector<float>& root, std::uint32_t cut) {
    const auto n_slices = static_cast<std::size_t>(slices_.count());
    kept_before_.assign(n_slices + 1, 0);
    for_slices([&](std::size_t slice, std::size_t begin, std::size_t end) {
      std::int64_t count = 0;
      for (std::size_t i = begin; i < end; ++i) count += bin_of(root[i]) >= cut;
      kept_before_[slice + 1] = count;
    });
    for (std::size_t slice = 0; slice < n_slices; ++slice) kept_before_[slice + 1] += kept_before_[slice];
  }

  void renumber(const std::vector<float>& root, std::uint32_t cut) {
    n_kept_ = kept_before_.back();
    kept_bits_.resize(n_rows_ / 64 + 1);
    const RowSlices words(n_rows_ / 64 + 1);
    team_.for_work(words.count(), n_rows_, [&](std::int64_t slice) {
      for (std::int64_t word = words.begin(slice); word < words.end(slice); ++word) {
        std::uint64_t bits = 0;
        for (std::int64_t i = 64 * word; i < std::min(n_rows_, 64 * word + 64); ++i)
          bits |= std::uint64_t{bin_of(root[i]) >= cut} << (i & 63);
        kept_bits_[word] = bits;
      }
    });
    new_row_.resize(n_rows_);
    for_slices([&](std::size_t slice, std::size_t begin, std::size_t end) {
      auto next = static_cast<std::int32_t>(kept_before_[slice]);
      for (std::size_t i = begin; i < end; ++i) {
        const bool keep = bin_of(root[i]) >= cut;
        new_row_[i] = keep ? next : static_cast<std::int32_t>(n_kept_);
        next += keep;
      }
    });
  }

  const std::int64_t n_rows_;
  std::int64_t n_kept_;
  RowSlices slices_;
  ThreadTeam& team_;
  std::vector<std::int32_t> new_row_;  // empty: all are kept
  std::vector<std::uint64_t> kept_bits_;
  std::vector<std::int64_t> kept_before_;  // by slice
};

}  // namespace blockgreedy
