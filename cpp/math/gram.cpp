#include "math/gram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/kernels.hpp"

namespace blockgreedy {

namespace {

// Nanoseconds on one thread of a 2.8 GHz processor with AVX-512; only their ratios matter.
constexpr double per_product = 0.025;
constexpr double per_entry = 1.2;  // reading an entry and copying it into the panel
constexpr double per_factor = 0.045;

// The same where all columns are new and few enough to lie side by side in a cache, as they are.
constexpr double per_product_of_short = 0.03, per_entry_of_short = 0.25;
constexpr std::int64_t most_short = 128, short_run = 1024;

constexpr std::int64_t few = 8;          // new columns that are multiplied one by one
constexpr std::int64_t long_run = 1024;  // rows that are read at a time for them

constexpr std::int64_t rounded_up(std::int64_t count) { return (count + 31) / 32 * 32; }

}  // namespace

double Gram::plan(const std::vector<std::int32_t>& features, std::int64_t n_rows, bool keep) {
  n_rows_ = n_rows;
  if (!keep || features_.size() > 2 * features.size() + 256) {
    features_.clear();
    n_known_ = 0;
  }
  features_.resize(n_known_);  // drops features of an earlier plan whose products were never computed
  std::vector<std::pair<std::int32_t, std::int32_t>> known(features_.size());
  for (std::size_t k = 0; k < features_.size(); ++k) known[k] = {features_[k], static_cast<std::int32_t>(k)};
  std::sort(known.begin(), known.end());
  places_.resize(features.size());
  for (std::size_t k = 0; k < features.size(); ++k) {
    const auto at = std::lower_bound(known.begin(), known.end(), std::pair{features[k], std::int32_t{0}});
    if (at != known.end() && at->first == features[k]) {
      places_[k] = at->second;
    } else {
      places_[k] = static_cast<std::int32_t>(features_.size());
      features_.push_back(features[k]);
    }
  }
  const auto m = static_cast<double>(features.size()), old = static_cast<double>(n_known_);
  const auto all = static_cast<double>(n_columns());
  cost_ = per_factor * m * m * m / 6;
  if (is_short())
    cost_ += static_cast<double>(n_rows) * all * (per_entry_of_short + per_product_of_short * 0.5 * all);
  else if (old < all)
    cost_ += static_cast<double>(n_rows) * (per_entry * all + per_product * 0.5 * (all * all - old * old));
  return cost_;
}

bool Gram::is_short() const { return n_known_ == 0 && n_columns() <= most_short; }

void Gram::factor(const Reader& read, float* out) {
  const std::int64_t m = n_columns();
  if (n_known_ < m) {
    make_space();
    // Every part has its own matrix of sums: so few parts that adding these up costs less than computing them.
    const auto sums = static_cast<double>(m * (m - n_known_));
    const std::int64_t n_parts =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(cost_ / (2e5 + 4 * sums)), 1,
                                 std::clamp<std::int64_t>(n_rows_ / 512, 1, m > 400 ? 4 : 16));
    parts_.resize(n_parts);
    team_.for_work(n_parts, static_cast<std::int64_t>(cost_), [&](std::int64_t at) {
      Part& part = parts_[at];
      part.products.assign(size_ * size_, 0.0F);
      const std::int64_t begin = n_rows_ * at / n_parts, end = n_rows_ * (at + 1) / n_parts;
      if (is_short()) add_short(read, begin, end, part);
      else if (m - n_known_ <= few) add_few(read, begin, end, part);
      else add_rows(read, begin, end, part);
    });
    gather();
  }
  n_known_ = m;
  factorise(out);
}

// All columns side by side, in panels of 32. They are read 16 at a time, in runs long enough to be fetched ahead.
void Gram::add_rows(const Reader& read, std::int64_t begin, std::int64_t end, Part& part) const {
  constexpr std::int64_t height = 128, n_side = 16;
  part.rows.assign(height * size_, 0.0F);
  std::array<float, n_side * height> z;
  for (std::int64_t first = begin; first < end; first += height) {
    const std::int64_t count = std::min(height, end - first);
    for (std::int64_t k = 0; k < n_columns(); k += n_side) {
      const std::int64_t width = std::min(n_side, n_columns() - k);
      for (std::int64_t c = 0; c < width; ++c) read(features_[k + c], first, count, z.data() + c * height);
      for (std::int64_t r = 0; r < count; ++r) {
        float* to = part.rows.data() + k / 32 * 32 * height + r * 32 + k % 32;
        for (std::int64_t c = 0; c < width; ++c) to[c] = z[c * height + r];
      }
    }
    kernels().float_gram(part.rows.data(), count, 32, 32 * height, n_known_, size_, size_, part.products.data());
  }
}

void Gram::add_short(const Reader& read, std::int64_t begin, std::int64_t end, Part& part) const {
  const std::int64_t m = n_columns();
  part.rows.resize(m * short_run);
  std::array<const float*, most_short> z;
  for (std::int64_t k = 0; k < m; ++k) z[k] = part.rows.data() + k * short_run;
  std::vector<double> sums(m * m);
  for (std::int64_t first = begin; first < end; first += short_run) {
    const std::int64_t count = std::min(short_run, end - first);
    for (std::int64_t k = 0; k < m; ++k) read(features_[k], first, count, part.rows.data() + k * short_run);
    kernels().tile_gram(z.data(), m, count, sums.data());
  }
  for (std::int64_t k = 0; k < m; ++k) {
    for (std::int64_t l = 0; l <= k; ++l) part.products[k * size_ + l] = static_cast<float>(sums[k * m + l]);
  }
}

void Gram::add_few(const Reader& read, std::int64_t begin, std::int64_t end, Part& part) const {
  const std::int64_t m = n_columns();
  part.rows.resize(few * long_run);
  std::array<float, long_run> z;
  for (std::int64_t first = begin; first < end; first += long_run) {
    const std::int64_t count = std::min(long_run, end - first);
    for (std::int64_t k = n_known_; k < m; ++k)
      read(features_[k], first, count, part.rows.data() + (k - n_known_) * long_run);
    for (std::int64_t l = 0; l < m; ++l) {
      read(features_[l], first, count, z.data());
      for (std::int64_t k = std::max(l, n_known_); k < m; ++k) {
        const float* own = part.rows.data() + (k - n_known_) * long_run;
        part.products[k * size_ + l] += static_cast<float>(kernels().float_dense_dot(own, z.data(), count));
      }
    }
  }
}

void Gram::make_space() {
  const std::int64_t old_size = size_;
  size_ = rounded_up(n_columns());
  std::vector<float>& next = left_;  // free until factorise()
  next.assign(size_ * size_, 0.0F);
  for (std::int64_t k = 0; k < n_known_; ++k)
    std::copy_n(products_.data() + k * old_size, k + 1, next.data() + k * size_);
  products_.swap(next);
}

// The sum over the parts.
void Gram::gather() {
  const std::int64_t m = n_columns();
  team_.for_work(64, m * (m - n_known_) * static_cast<std::int64_t>(parts_.size()), [&](std::int64_t slice) {
    for (std::int64_t k = n_known_ + slice; k < m; k += 64) {
      for (const Part& part : parts_)
        kernels().float_dense_axpy(part.products.data() + k * size_, 1.0F, products_.data() + k * size_, k + 1);
    }
  });
}

// Blocked Cholesky, 32 columns of L at a time, transposed into `panel`, as the Gram kernel reads them.
void Gram::factorise(float* out) {
  constexpr std::int64_t height = 32;
  constexpr float dependent = 3e-6F;  // relative to the diagonal: the accuracy of float32 sums
  const auto m = static_cast<std::int64_t>(places_.size()), size = rounded_up(m);
  left_.assign(size * size, 0.0F);
  for (std::int64_t k = 0; k < m; ++k) {
    for (std::int64_t l = 0; l <= k; ++l) left_[k * size + l] = -static_cast<float>(product(k, l));
  }
  std::vector<float> panel(height * size);
  for (std::int64_t first = 0; first < m; first += height) {
    const std::int64_t last = std::min(first + height, m);
    std::fill(panel.begin(), panel.end(), 0.0F);
    for (std::int64_t k = first; k < m; ++k) {
      const float* from = left_.data() + k * size;
      for (std::int64_t p = first; p < std::min(last, k + 1); ++p) panel[(p - first) * size + k] = -from[p];
    }
    for (std::int64_t p = first; p < last; ++p) {
      float* own = panel.data() + (p - first) * size;
      for (std::int64_t q = first; q < p; ++q) {
        const float* before = panel.data() + (q - first) * size;
        kernels().float_dense_axpy(before + p, -before[p], own + p, m - p);
      }
      const float rest = own[p], whole = static_cast<float>(product(p, p));
      const float scale = rest > dependent * whole ? 1 / std::sqrt(rest) : 0.0F;
      for (std::int64_t k = p; k < m; ++k) own[k] *= scale;
    }
    for (std::int64_t k = first; k < m; ++k) {
      float* to = out + k * (k + 1) / 2;
      for (std::int64_t p = first; p < std::min(last, k + 1); ++p) to[p] = panel[(p - first) * size + k];
    }
    if (last < m)
      kernels().float_gram(panel.data() + last, height, size, 32, 0, size - last, size,
                           left_.data() + last * size + last);
  }
}

}  // namespace blockgreedy
