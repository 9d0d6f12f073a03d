// Large pieces of memory that were given back, for whoever needs one next.
//
// A page that the system has to find and clear costs more than what is written to it: a third of a fit from rows
// (measured on a virtual machine: 1.2 µs for 4 KB). What lies here is marked MADV_FREE: the system takes it when it
// is short of memory, and until then it is used again as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace blockgreedy {

class SpareMemory {
 public:
  static SpareMemory& shared() {
    static auto* all = new SpareMemory;  // never destroyed: arrays may outlive static objects
    return *all;
  }

  // Pieces below this size are malloc's business.
  static constexpr std::size_t least = std::size_t{1} << 20;

  // `bytes` of memory, aligned to a cache line, with anything in it.
  void* take(std::size_t bytes) {
#ifdef __linux__
    if (bytes >= least) return take_pages(whole_pages(bytes));
#endif
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }

  // What `take` of as many bytes has returned.
  void give(void* memory, std::size_t bytes) noexcept {
#ifdef __linux__
    if (bytes >= least) {
      give_pages({memory, whole_pages(bytes)});
      return;
    }
#endif
    std::free(memory);
  }

 private:
#ifdef __linux__
  static constexpr std::size_t max_pieces = 8, most = std::size_t{1} << 27;  // all together
  // Very large pieces lie in pages of 2 MB, if the system has them: else nearly every access has to look its page up.
  static constexpr std::size_t very_large = std::size_t{1} << 25;

  struct Piece {
    void* memory;
    std::size_t bytes;
  };

  // Rounded up coarsely, so that pieces fit again.
  static std::size_t whole_pages(std::size_t bytes) {
    std::size_t unit = least / 4;
    while (16 * unit < bytes) unit *= 2;
    return (bytes + unit - 1) / unit * unit;
  }

  void* take_pages(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(spare_.begin(), spare_.end(), [&](const Piece& piece) { return piece.bytes == bytes; });
    if (found != spare_.end()) {
      void* memory = found->memory;
      spare_.erase(found);
      return memory;
    }
    make_room(bytes);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (bytes >= very_large) madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
  }

  void give_pages(Piece piece) noexcept {
    const std::lock_guard lock(mutex_);
    if (piece.bytes > most || madvise(piece.memory, piece.bytes, MADV_FREE) != 0) {
      munmap(piece.memory, piece.bytes);
      return;
    }
    make_room(piece.bytes);
    spare_.push_back(piece);
  }

  // Gives the oldest pieces back to the system, until what is left and as many bytes are no more than allowed.
  void make_room(std::size_t bytes) noexcept {
    std::size_t all = bytes;
    for (const Piece& piece : spare_) all += piece.bytes;
    while (!spare_.empty() && (all > most || spare_.size() == max_pieces)) {
      munmap(spare_.front().memory, spare_.front().bytes);
      all -= spare_.front().bytes;
      spare_.erase(spare_.begin());
    }
  }

  SpareMemory() { spare_.reserve(max_pieces); }
  std::mutex mutex_;
  std::vector<Piece> spare_;
#endif
};

}  // namespace blockgreedy
