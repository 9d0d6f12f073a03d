#include "base/threads.hpp"

#include <unistd.h>

#include <chrono>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace blockgreedy {

namespace {

constexpr int part_bits = 20;
constexpr std::uint64_t part_mask = (std::uint64_t{1} << part_bits) - 1;

std::uint64_t next_part(std::uint64_t ticket) { return ticket & part_mask; }
std::uint64_t part_count(std::uint64_t ticket) { return (ticket >> part_bits) & part_mask; }
std::uint64_t generation(std::uint64_t ticket) { return ticket >> (2 * part_bits); }

void pause_briefly() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// About 50-100 us: longer than the serial part of an iteration, short enough not to take the processor from others.
constexpr int spin_limit = 2000;

constexpr double poll_interval = 0.05;

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ThreadTeam::ThreadTeam(int n_threads, std::function<bool()> poll)
    : n_threads_(n_threads < 1 ? 1 : n_threads),
      owner_process_(getpid()),
      poll_(std::move(poll)),
      next_poll_(seconds_now() + poll_interval) {}

bool ThreadTeam::in_owner_process() const { return getpid() == owner_process_; }

ThreadTeam::~ThreadTeam() {
  if (!in_owner_process()) {
    for (auto& worker : workers_) worker.detach();  // they exist in the parent only
    return;
  }
  closing_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
}

// Threads start with the first job that is large enough to share: a small problem never pays for them.
void ThreadTeam::start() {
  workers_.reserve(n_threads_ - 1);
  for (int executor = 1; executor < n_threads_; ++executor) {
    workers_.emplace_back([this, executor] { serve(executor); });
  }
}

bool ThreadTeam::poll() {
  if (!stopped() && poll_) {
    const double now = seconds_now();
    if (now >= next_poll_) {
      next_poll_ = now + poll_interval;
      if (poll_()) stop_.store(true, std::memory_order_relaxed);
    }
  }
  return stopped() || is_late();
}

bool ThreadTeam::claim_and_execute(int executor) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (next_part(ticket) < part_count(ticket)) {
    if (ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) {
      // The claimed part keeps this job open, so body and context cannot change meanwhile.
      if (!(stoppable_.load(std::memory_order_relaxed) && stopped())) {
        body_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed),
                                              static_cast<std::int64_t>(next_part(ticket)), executor);
      }
      n_done_.fetch_add(1, std::memory_order_acq_rel);
      return true;
    }
  }
  return false;
}

void ThreadTeam::serve(int executor) {
  while (!closing_.load(std::memory_order_acquire)) {
    const std::uint32_t seen = epoch_.load(std::memory_order_acquire);
    int spins = 0;
    while (spins < spin_limit && !closing_.load(std::memory_order_relaxed)) {
      if (claim_and_execute(executor)) {
        spins = 0;
      } else {
        pause_briefly();
        ++spins;
      }
    }
    if (!closing_.load(std::memory_order_acquire)) epoch_.wait(seen, std::memory_order_acquire);
  }
}

void ThreadTeam::run(std::int64_t n_parts, Body body, void* context, bool stoppable) {
  if (workers_.empty()) start();
  body_.store(body, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  stoppable_.store(stoppable, std::memory_order_relaxed);
  n_done_.store(0, std::memory_order_relaxed);
  const std::uint64_t next_generation = generation(ticket_.load(std::memory_order_relaxed)) + 1;
  ticket_.store((next_generation << (2 * part_bits)) | (static_cast<std::uint64_t>(n_parts) << part_bits),
                std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  while (claim_and_execute(0)) {
    if (stoppable) poll();
  }
  int spins = 0;
  while (n_done_.load(std::memory_order_acquire) < static_cast<std::uint32_t>(n_parts)) {
    if (++spins < spin_limit) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace blockgreedy
