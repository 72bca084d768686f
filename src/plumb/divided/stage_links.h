// Messages between neighboring stages of a pipeline, sent while the stage computes on.
#pragma once

#include <array>
#include <memory>

#include "plumb/base/job_queue.h"
#include "plumb/divided/pipeline_schedule.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// The ranks of a group are the stages. Forward messages go to the next stage, backward ones to the previous one; if
/// stages have several chunks, also between the last stage and the first. Each direction between two stages has its own
/// connection and, where it sends, its own thread, so that neither waits for the other.
class StageLinks {
 public:
  using Pass = StageTask::Pass;

  /// Every rank calls it. `ring`: whether the last stage and the first are neighbors.
  StageLinks(const Group& stages, bool ring);
  StageLinks(const StageLinks&) = delete;
  StageLinks& operator=(const StageLinks&) = delete;

  /// Puts x, which must not change any more, into the line of messages to the next (forward) or the previous stage.
  void send(const Tensor& x, Pass direction);

  /// Receives the next message from the previous (forward) or the next stage.
  void receive(const Tensor& x, Pass direction);

  /// Returns when at most this many messages are left in each line. Throws Error if another process is lost.
  void wait_for_lines(size_t longest = 0);

  /// See Group::cost; the seconds are those that this process has waited for messages.
  [[nodiscard]] ExchangeCost cost() const;

 private:
  struct Direction {
    Group from, to;  // each with one neighbor, or a single process
    std::unique_ptr<JobQueue> line;
  };
  [[nodiscard]] Direction& of(Pass direction) { return directions_[direction == Pass::forward ? 0 : 1]; }

  std::array<Direction, 2> directions_;
};

}  // namespace plumb
