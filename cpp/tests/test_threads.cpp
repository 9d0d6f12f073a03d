#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "base/threads.hpp"
#include "tests/check.hpp"

namespace blockgreedy {
namespace {

constexpr int team_sizes[] = {1, 2, 4};

// How often each part of a job was executed, and whether every executor's number was in range.
struct Tally {
  explicit Tally(std::int64_t n_parts) : n(n_parts), counts(new std::atomic<int>[n_parts > 0 ? n_parts : 1]()) {}

  void add(std::int64_t part) { counts[part].fetch_add(1, std::memory_order_relaxed); }

  bool all_once() const {
    for (std::int64_t part = 0; part < n; ++part) {
      if (counts[part].load() != 1) return false;
    }
    return true;
  }

  std::int64_t n;
  std::unique_ptr<std::atomic<int>[]> counts;
};

TEST("a team executes every part exactly once") {
  for (const int n_threads : team_sizes) {
    ThreadTeam team(n_threads);
    for (const std::int64_t n_parts : {0, 1, 2, 3, 7, 64, 1000}) {
      Tally stoppable(n_parts), complete(n_parts);
      std::atomic<bool> in_range{true};
      const auto counted_by = [&](Tally& tally) {
        return [&](std::int64_t part, int executor) {
          tally.add(part);
          if (executor < 0 || executor >= team.size()) in_range = false;
        };
      };
      team.for_each(n_parts, counted_by(stoppable));
      team.for_all(n_parts, counted_by(complete));
      CHECK(stoppable.all_once());
      CHECK(complete.all_once());
      CHECK(in_range);
    }
  }
}

TEST("a job of more parts than one ticket counts is executed whole") {
  const std::int64_t n_parts = (1 << 20) + 5;
  for (const int n_threads : team_sizes) {
    ThreadTeam team(n_threads);
    Tally tally(n_parts);
    team.for_all(n_parts, [&](std::int64_t part, int) { tally.add(part); });
    CHECK(tally.all_once());
  }
}

TEST("two parts never have the same executor at the same time") {
  ThreadTeam team(4);
  std::atomic<int> busy[4] = {};
  std::atomic<bool> shared{false};
  team.for_all(2000, [&](std::int64_t, int executor) {
    if (busy[executor].fetch_add(1) != 0) shared = true;
    busy[executor].fetch_sub(1);
  });
  CHECK(!shared);
}

TEST("a part may run a job of another team") {
  ThreadTeam outer(2);
  Tally tally(6 * 50);
  outer.for_all(6, [&](std::int64_t part, int) {
    ThreadTeam inner(2);
    inner.for_all(50, [&](std::int64_t other, int) { tally.add(part * 50 + other); });
  });
  CHECK(tally.all_once());
}

TEST("little work stays with the calling thread") {
  ThreadTeam team(4);
  const auto caller = std::this_thread::get_id();
  bool elsewhere = false;
  int n_executed = 0;
  team.for_work(100, min_parallel_work - 1, [&](std::int64_t) {
    elsewhere = elsewhere || std::this_thread::get_id() != caller;
    ++n_executed;
  });
  CHECK(!elsewhere);
  CHECK_EQUAL(n_executed, 100);
  Tally shared(100);
  team.for_work(100, min_parallel_work, [&](std::int64_t part) { shared.add(part); });
  CHECK(shared.all_once());
}

TEST("after a stop only work that must be complete is begun") {
  for (const int n_threads : team_sizes) {
    ThreadTeam team(n_threads, [] { return true; });
    while (!team.poll()) std::this_thread::yield();
    std::atomic<int> n_executed{0};
    const auto count = [&](std::int64_t, int) { n_executed.fetch_add(1); };
    team.for_each(10, count);
    CHECK_EQUAL(n_executed.load(), 0);
    team.for_all(10, count);
    CHECK_EQUAL(n_executed.load(), 10);
    team.begin();
    CHECK(!team.stopped());
  }
}

TEST("time that is up is heard by those who ask, and leaves no work half done") {
  for (const int n_threads : team_sizes) {
    ThreadTeam team(n_threads);
    CHECK(!team.poll());
    CHECK(team.has_time_for(1e300));
    team.begin(1000.0);
    CHECK(!team.poll());
    CHECK(!team.has_time_for(2000.0));
    team.begin(0.0);
    CHECK(team.poll());
    CHECK(!team.stopped());
    std::atomic<int> n_executed{0};
    team.for_each(10, [&](std::int64_t, int) { n_executed.fetch_add(1); });
    CHECK_EQUAL(n_executed.load(), 10);
    team.begin();
    CHECK(!team.is_late());
  }
}

TEST("a part of the time is counted from now, and of no limit there is none") {
  ThreadTeam team(1);
  team.begin(1000.0);
  {
    const ThreadTeam::PartOfTime part(team, 0.25);
    CHECK(team.has_time_for(200.0));
    CHECK(!team.has_time_for(300.0));
  }
  CHECK(team.has_time_for(900.0));
  team.begin();
  const ThreadTeam::PartOfTime part(team, 0.25);
  CHECK(team.has_time_for(1e300));
}

TEST("less than one thread means one") {
  CHECK_EQUAL(ThreadTeam(0).size(), 1);
  CHECK_EQUAL(ThreadTeam(-3).size(), 1);
}

// What a process forked here ends with when it runs `body`.
template <class F>
int status_of_child(const F& body) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    close(STDERR_FILENO);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST("a child forked while the team lives does the work alone") {
  ThreadTeam team(4);
  team.for_all(8, [](std::int64_t, int) {});
  const int status = status_of_child([&] {
    int n_executed = 0;
    team.for_all(8, [&](std::int64_t, int) { ++n_executed; });
    _exit(n_executed == 8 ? 0 : 1);
  });
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST("an exception in a shared part ends the process") {
  const int status = status_of_child([] {
    ThreadTeam team(2);
    try {
      team.for_all(8, [](std::int64_t, int) { throw std::runtime_error("from a part"); });
    } catch (const std::runtime_error&) {
    }
  });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

}  // namespace
}  // namespace blockgreedy
