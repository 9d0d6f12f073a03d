// Memory for tables that are read and written in no order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/spare_memory.hpp"

namespace blockgreedy {

// Numbers that begin as 0.
template <class T>
class LargeArray {
 public:
  LargeArray() = default;
  explicit LargeArray(std::int64_t size) : LargeArray(unset(size)) { std::fill_n(values_.get(), size, T{}); }
  // Numbers that begin as anything.
  static LargeArray unset(std::int64_t size) {
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    LargeArray made;
    made.values_ = {static_cast<T*>(SpareMemory::shared().take(bytes)), Give{bytes}};
    return made;
  }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }

 private:
  struct Give {
    std::size_t bytes = 0;
    void operator()(T* values) const { SpareMemory::shared().give(values, bytes); }
  };
  std::unique_ptr<T[], Give> values_;
};

}  // namespace blockgreedy
