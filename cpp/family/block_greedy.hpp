// The paper's Algorithm 1, block-greedy coordinate descent: select → propose → accept → update.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "family/intercept.hpp"

namespace blockgreedy {

enum class UpdateRule : int { add, line_search, sweep, joint };
enum class GreedyRule : int { gain, step };
enum class ScanMode : int { slices, blocks };

struct BlockGreedyOptions {
  std::int64_t n_blocks = 1;
  std::int64_t blocks_per_iter = 1;
  std::int64_t per_block = 1;
  UpdateRule update = UpdateRule::joint;
  GreedyRule greedy_rule = GreedyRule::gain;
  ScanMode scan = ScanMode::slices;
  bool atomic = false;      // additions by concurrent atomics, as the paper did; not bitwise repeatable
  double inner_tol = 1e-3;  // refinement ends when a change is below this part of the first
  std::int64_t max_sweeps = 10;
  std::uint64_t seed = 0;
  double step_scale = 1;      // of UpdateRule::add: curvatures are divided by it
  bool asynchronous = false;  // threads do not wait for each other (asynchronous.hpp); only added steps
};

// A proposed move of one feature: from w to `target`. `grad` and `curvature` are those of the smooth part.
struct Proposal {
  double score = 0, target = 0, grad = 0, curvature = 0;
  std::int32_t feature = -1;

  // Ties go to the lowest index.
  bool beats(const Proposal& other) const {
    return score > other.score || (score == other.score && feature < other.feature);
  }
};

struct Counters {
  std::int64_t n_iter = 0;
  std::int64_t nonzeros_touched = 0;   // scanned by propose
  std::int64_t critical_nonzeros = 0;  // the heaviest selected block of each iteration: what P threads wait for
  // Of the asynchronous mode: block updates that moved a weight, and by how many of other threads they were overtaken
  // between their scan and their step.
  std::int64_t moves = 0, staleness = 0, most_stale = 0;
};

// What iterations did, end to end: of each iteration its number, how many blocks it selected and which, how many
// features it accepted and which, and of each feature the step and the gain that its proposal guaranteed.
struct IterationRecord {
  std::vector<std::int64_t> iterations, selected, selected_counts, accepted, accepted_counts;
  std::vector<double> steps, gains;
};

class BlockGreedy {
 public:
  virtual ~BlockGreedy() = default;

  // Up to n_iter iterations, ending early after max_seconds or when the team is asked to stop. Returns the
  // number done; the state is that of a whole number of iterations.
  virtual std::int64_t run(std::int64_t n_iter, double max_seconds) = 0;
  // Starts from these weights: Xw and derivs are computed anew, and the intercept is fitted, starting from this one.
  virtual void set_weights(const double* w, double intercept) = 0;
  // The same for weights that are zero outside of `features`.
  virtual void set_sparse_weights(const std::int64_t* features, const double* values, std::int64_t count,
                                  double intercept) = 0;
  // The best intercept for these weights, where the problem has one and weights have moved since it was fitted. The
  // solver does so by itself at every start and after every ⌈B/P⌉ iterations (asynchronous: when the threads meet).
  virtual void fit_intercept() = 0;
  // One update with a given accepted set (ascending blocks): how a reference replays a step on tied data.
  virtual void update_with(const std::vector<std::int32_t>& features) = 0;
  // An iteration made elsewhere: these features move to these weights, none of them twice.
  virtual void move_to(const std::vector<std::int32_t>& features, const double* targets) = 0;

  // The accepted set of the last iteration in the order its update took, which ties may decide by a rounding.
  virtual std::vector<std::int32_t> update_order() const = 0;

  State state;
  Counters counters;
  std::vector<std::int32_t> accepted;  // of the last iteration, in block order
  bool is_recording = false;           // whether run() adds to `record`; not for asynchronous threads
  IterationRecord record;
};

// block_of must outlive the solver. `range` says where the intercept is looked for.
std::unique_ptr<BlockGreedy> make_block_greedy(const Matrix& matrix, const CoreProblem& problem,
                                               const BlockGreedyOptions& options, const InterceptRange& range,
                                               const std::int32_t* block_of, ThreadTeam& team);

}  // namespace blockgreedy
