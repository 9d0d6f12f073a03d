// Memory that is used again, also while others are at it and after fork().
#include "base/spare_memory.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "tests/check.hpp"

namespace blockgreedy {

#ifdef __linux__

namespace {

constexpr std::size_t size = 5 * SpareMemory::least;

void use() {
  auto& spare = SpareMemory::shared();
  auto* memory = static_cast<char*>(spare.take(size));
  memory[0] = memory[size - 1] = 1;
  spare.give(memory, size);
}

}  // namespace

TEST("spare memory: a piece given back is used again") {
  auto& spare = SpareMemory::shared();
  void* first = spare.take(size);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(first) % 64, std::uintptr_t{0});
  void* second = spare.take(size);
  CHECK(first != second);
  spare.give(first, size);
  void* third = spare.take(size - 1);
  CHECK(third == first);
  spare.give(second, size);
  spare.give(third, size - 1);
}

TEST("spare memory: of more pieces than may lie there the oldest go") {
  auto& spare = SpareMemory::shared();
  std::vector<void*> pieces;
  for (int k = 0; k < 20; ++k) pieces.push_back(spare.take(size));
  for (void* piece : pieces) spare.give(piece, size);
  void* again = spare.take(size);
  CHECK(again == pieces[12]);
  spare.give(again, size);
}

TEST("spare memory: all of it goes back when asked to") {
  auto& spare = SpareMemory::shared();
  void* piece = spare.take(size);
  static_cast<char*>(piece)[0] = 1;
  spare.give(piece, size);
  spare.clear();
  unsigned char in_memory = 0;
  CHECK(mincore(piece, 4096, &in_memory) != 0);  // no longer mapped
}

TEST("spare memory: a child of fork need not wait for a thread that it does not have") {
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    while (!is_done) use();
  });
  int n_bad = 0;
  for (int k = 0; k < 50; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);  // ends a child that waits
      use();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    n_bad += status != 0;
    if (n_bad > 0) break;
  }
  is_done = true;
  other.join();
  CHECK_EQUAL(n_bad, 0);
}

#endif

}  // namespace blockgreedy
