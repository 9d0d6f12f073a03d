// Inner products of the model's columns, kept from one outer iteration to the next.
//
// Worth it where the scaled columns do not change (squared loss) and are few compared with their nonzeros: a sweep or
// a conjugate gradient step then costs m² instead of twice the nonzeros. Products are found by rows: for each new
// column, the rows that it touches are walked, and what they hold of earlier columns is added up.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "blockgreedy/threads.hpp"

namespace blockgreedy {

struct ModelColumn;

class Gram {
 public:
  explicit Gram(ThreadTeam& team) : team_(team) {}

  // Brings the products up to date for these columns; false if they would cost more than they save.
  bool update(const std::vector<ModelColumn>& columns, const float* values, std::int64_t n_rows,
              std::int64_t n_nonzeros);

  std::int64_t size() const { return n_slots_; }
  std::int32_t slot(std::size_t k) const { return slots_[k]; }  // of the k-th column
  const float* row(std::int32_t slot) const { return products_.data() + slot * capacity_; }

 private:
  void reserve(std::int64_t n_slots);

  ThreadTeam& team_;
  std::unordered_map<std::int32_t, std::int32_t> slot_of_;  // by feature
  std::vector<std::int32_t> slots_;
  std::vector<float> products_;
  std::int64_t capacity_ = 0, n_slots_ = 0;
  bool given_up_ = false;
};

}  // namespace blockgreedy
