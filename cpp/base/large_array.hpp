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

struct Uninitialised {};

// Numbers that begin as 0, unless that is not wanted: memory that is never touched then costs nothing. Where the
// table is large it lies in pages of 2 MB, if the system has them: with pages of 4 KB nearly every access would have
// to look its page up first.
template <class T>
class LargeArray {
 public:
  LargeArray() = default;
  explicit LargeArray(std::int64_t size) : LargeArray(size, Uninitialised{}) {
    std::fill_n(values_.get(), size, T{});
  }
  LargeArray(std::int64_t size, Uninitialised) {
    constexpr std::size_t page = std::size_t{1} << 21;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    const std::size_t alignment = bytes < page ? 64 : page;
    const std::size_t taken = (bytes + alignment) / alignment * alignment;
    values_.reset(static_cast<T*>(std::aligned_alloc(alignment, taken)));
    if (!values_) throw std::bad_alloc();
#ifdef __linux__
    if (alignment == page) madvise(values_.get(), taken, MADV_HUGEPAGE);
#endif
  }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }

 private:
  struct Free {
    void operator()(T* values) const { std::free(values); }
  };
  std::unique_ptr<T[], Free> values_;
};

}  // namespace blockgreedy
