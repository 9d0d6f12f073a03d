// A team of threads that lives as long as one solve.
//
// Nothing survives the solve, so a forked child can fit after its parent did, and importing starts no thread;
// a child forked while a team is alive (from a callback) finds no workers and does the work itself.
// Work is a numbered list of parts; executors claim parts one by one. Nobody waits for a thread that the
// operating system has not scheduled: the caller then simply does all parts itself. Results must not depend
// on who executes a part (they depend only on the numbering), which keeps them bitwise repeatable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace blockgreedy {

double seconds_now();

// Jobs that touch fewer nonzeros than this are not shared: waking a thread would take longer.
inline constexpr std::int64_t min_parallel_work = 30000;

class ThreadTeam {
 public:
  // `poll` is called by the owning thread between parts at most every 50 ms; returning true asks to stop.
  explicit ThreadTeam(int n_threads, std::function<bool()> poll = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return n_threads_; }
  // What comes now was not asked to stop, and has so many seconds.
  void begin(double seconds = std::numeric_limits<double>::infinity()) {
    stop_.store(false, std::memory_order_relaxed);
    deadline_ = seconds_now() + seconds;
  }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }  // Ctrl-C: parts are left out
  bool is_late() const { return !has_time_for(0); }
  bool has_time_for(double seconds) const {
    return deadline_ == std::numeric_limits<double>::infinity() || seconds_now() + seconds < deadline_;
  }

  // While one of these lives, only a part of the time left counts: for what must not take all of it.
  class PartOfTime {
   public:
    PartOfTime(ThreadTeam& team, double share) : team_(team), deadline_(team.deadline_) {
      if (deadline_ < std::numeric_limits<double>::infinity())
        team_.deadline_ = seconds_now() + share * (deadline_ - seconds_now());
    }
    ~PartOfTime() { team_.deadline_ = deadline_; }
    PartOfTime(const PartOfTime&) = delete;
    PartOfTime& operator=(const PartOfTime&) = delete;

   private:
    ThreadTeam& team_;
    double deadline_;
  };

  // Whether to end soon, because a stop was asked for (the interrupt hook is asked if 50 ms have passed) or because
  // time is up. Every loop that can take longer than a pass over the data asks this, and leaves a whole result.
  bool poll();

  // Calls f(part, executor) for every part in 0..n_parts-1; executor is in 0..size()-1 and is never shared
  // by two parts at the same time. After a stop was asked for, parts not yet begun are left out.
  // f must not throw: an exception that leaves a part which threads share ends the process (std::terminate).
  template <class F>
  void for_each(std::int64_t n_parts, F&& f) {
    run_all(n_parts, f, true);
  }

  // The same without stopping: for work that must not be left half done.
  template <class F>
  void for_all(std::int64_t n_parts, F&& f) {
    run_all(n_parts, f, false);
  }

  // f(part) for every part, by the caller alone where the work of all of them is too little to share.
  template <class F>
  void for_work(std::int64_t n_parts, std::int64_t work, F&& f) {
    if (n_threads_ == 1 || work < min_parallel_work) {
      for (std::int64_t part = 0; part < n_parts; ++part) f(part);
    } else {
      for_all(n_parts, [&](std::int64_t part, int) { f(part); });
    }
  }

 private:
  using Body = void (*)(void*, std::int64_t, int) noexcept;
  static constexpr std::int64_t max_parts = (1 << 20) - 1;  // what the ticket can count

  template <class F>
  void run_all(std::int64_t n_parts, F& f, bool stoppable) {
    if (n_threads_ == 1 || n_parts <= 1 || !in_owner_process()) {
      for (std::int64_t part = 0; part < n_parts && !(stoppable && stopped()); ++part) {
        f(part, 0);
        if (stoppable && n_parts > 1) poll();
      }
      return;
    }
    for (std::int64_t base = 0; base < n_parts; base += max_parts) {
      auto shifted = [&f, base](std::int64_t part, int executor) { f(base + part, executor); };
      run(
          n_parts - base < max_parts ? n_parts - base : max_parts,
          [](void* context, std::int64_t part, int executor) noexcept {
            (*static_cast<decltype(shifted)*>(context))(part, executor);
          },
          &shifted, stoppable);
    }
  }

  bool in_owner_process() const;
  void start();
  void run(std::int64_t n_parts, Body body, void* context, bool stoppable);
  void serve(int executor);
  bool claim_and_execute(int executor);

  const int n_threads_;
  const int owner_process_;
  std::function<bool()> poll_;
  double next_poll_ = 0;
  double deadline_ = std::numeric_limits<double>::infinity();  // written while no job runs
  std::vector<std::thread> workers_;
  std::atomic<bool> stop_{false};

  // One word holds (generation, number of parts, next part), so that a late worker can never claim a part
  // of a later job with an earlier job's body.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> n_done_{0};
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  std::atomic<bool> closing_{false};
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<bool> stoppable_{true};
};

}  // namespace blockgreedy
