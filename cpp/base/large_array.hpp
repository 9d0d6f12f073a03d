// Memory for tables that are read and written in no order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace blockgreedy {

// Numbers that begin as 0. Where the table is large it lies in pages of 2 MB, if the system has them: with pages of
// 4 KB nearly every access would have to look its page up first.
template <class T>
class LargeArray {
 public:
  LargeArray() = default;
  explicit LargeArray(std::int64_t size) : LargeArray(unset(size)) { std::fill_n(values_.get(), size, T{}); }
  // Numbers that begin as anything.
  static LargeArray unset(std::int64_t size) {
    LargeArray made;
    constexpr std::size_t page = std::size_t{1} << 21;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    const std::size_t alignment = bytes < page ? 64 : page;
    const std::size_t taken = (bytes + alignment) / alignment * alignment;
    made.values_.reset(static_cast<T*>(std::aligned_alloc(alignment, taken)));
    if (!made.values_) throw std::bad_alloc();
#ifdef __linux__
    if (alignment == page) madvise(made.values_.get(), taken, MADV_HUGEPAGE);
#endif
    return made;
  }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }
  // Hands the memory over, which std::free gives back.
  T* release() { return values_.release(); }

 private:
  struct Free {
    void operator()(T* values) const { std::free(values); }
  };
  std::unique_ptr<T[], Free> values_;
};

}  // namespace blockgreedy
