// Large pieces of memory that were given back, for whoever needs one next.
//
// A page that the system has to find and clear costs more than what is written to it: a third of a fit from rows
// (measured on a virtual machine: 1.2 µs for 4 KB). What lies here is marked MADV_FREE: the system takes it when it
// is short of memory, and until then it is used again as it is.
//
// Nobody waits here. A child of fork() has only the thread that called it: if another one was in here at that moment,
// it never leaves in the child, and waiting for it would take for ever (Python forks, under joblib and
// multiprocessing, whatever its threads are doing). Whoever finds somebody in here gets fresh memory from the system.
// For the same reason nothing is made at the first call, which would have to be waited for as well.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace blockgreedy {

class SpareMemory {
 public:
  static SpareMemory& shared() {
    static constinit SpareMemory all;  // without a destructor: arrays may outlive static objects
    return all;
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

  // Gives everything that lies here back to the system, for those who need much and have done with tables.
  void clear() noexcept {
#ifdef __linux__
    if (const Visit visit(is_taken_); visit) make_room(most + 1);
#endif
  }

 private:
#ifdef __linux__
  static constexpr std::size_t max_pieces = 8, most = std::size_t{1} << 27;  // all together
  // Larger pieces lie in pages of 2 MB, if the system has them: there are fewer to find, and with pages of 4 KB
  // nearly every access would have to look its page up. A first fit on text of 3.5 million entries took a tenth
  // longer where this began at 32 MB only (measured).
  static constexpr std::size_t large = std::size_t{1} << 22;

  struct Piece {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  // Rounded up coarsely, so that pieces fit again.
  static std::size_t whole_pages(std::size_t bytes) {
    std::size_t unit = least / 4;
    while (16 * unit < bytes) unit *= 2;
    return (bytes + unit - 1) / unit * unit;
  }

  // True until it ends, unless somebody else is in here.
  class Visit {
   public:
    explicit Visit(std::atomic<bool>& is_taken)
        : is_taken_(is_taken), is_alone_(!is_taken.exchange(true, std::memory_order_acquire)) {}
    ~Visit() {
      if (is_alone_) is_taken_.store(false, std::memory_order_release);
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const { return is_alone_; }

   private:
    std::atomic<bool>& is_taken_;
    const bool is_alone_;
  };

  void* take_pages(std::size_t bytes) {
    if (const Visit visit(is_taken_); visit) {
      for (std::size_t k = 0; k < n_spare_; ++k) {
        if (spare_[k].bytes == bytes) return remove(k).memory;
      }
      make_room(bytes);
    }
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (bytes >= large) madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
  }

  void give_pages(Piece piece) noexcept {
    const Visit visit(is_taken_);
    if (!visit || piece.bytes > most || madvise(piece.memory, piece.bytes, MADV_FREE) != 0) {
      munmap(piece.memory, piece.bytes);
      return;
    }
    make_room(piece.bytes);
    spare_[n_spare_++] = piece;
  }

  // Gives the oldest pieces back to the system, until what is left and as many bytes are no more than allowed.
  void make_room(std::size_t bytes) noexcept {
    std::size_t all = bytes;
    for (std::size_t k = 0; k < n_spare_; ++k) all += spare_[k].bytes;
    while (n_spare_ > 0 && (all > most || n_spare_ == max_pieces)) {
      const Piece oldest = remove(0);
      munmap(oldest.memory, oldest.bytes);
      all -= oldest.bytes;
    }
  }

  Piece remove(std::size_t k) noexcept {
    const Piece removed = spare_[k];
    std::copy(spare_.begin() + k + 1, spare_.begin() + n_spare_, spare_.begin() + k);
    --n_spare_;
    return removed;
  }

  std::atomic<bool> is_taken_{false};
  std::size_t n_spare_ = 0;
  std::array<Piece, max_pieces> spare_{};  // the oldest first
#endif
};

}  // namespace blockgreedy
