// What a run leaves in its directory while it trains.
#pragma once

#include <filesystem>
#include <memory>

#include "plumb/train/background_writer.h"
#include "plumb/train/checkpoints.h"
#include "plumb/train/metrics_file.h"

namespace plumb {

/// Writes points and records at once, and checkpoints in the background: a step waits for a copy of the tensors, and
/// for the checkpoint before if that is still being written. A checkpoint counts on metrics.jsonl, which is synced
/// before it, and on best/, which is written before it; older checkpoints are removed after it.
class RunWriter {
 public:
  RunWriter(std::filesystem::path run, const TrainConfig& config, std::unique_ptr<MetricsFile> metrics);

  void add(const TrainPoint& point) { metrics_->add(point); }
  void add(const WatchRecord& record) { metrics_->add(record); }
  void add(const TroubleRecord& record) { metrics_->add(record); }
  /// After a rollback: metrics.jsonl contains what the trainer now has as its history, checkpoints of steps that are
  /// undone are removed, and best/ is not of such a step if another is left.
  void rewrite_metrics(const Trainer& trainer);
  void checkpoint(const Trainer& trainer);
  void best(const Trainer& trainer);
  void one_of_the_best(const Trainer& trainer);

  /// Throws what went wrong in the background.
  void check() { writer_.check(); }
  /// Returns when everything is written.
  void wait() { writer_.wait(); }

  /// The last line of metrics.jsonl and result.json.
  void end(const TrainResult& result);

 private:
  /// A copy of the trainer's state; the same one for all that is written after a step.
  std::shared_ptr<const Snapshot> copy(const Trainer& trainer);
  void submit(const std::shared_ptr<const Snapshot>& snapshot, std::function<void(const Snapshot&)> write);

  std::filesystem::path run_;
  Retention retention_;
  std::unique_ptr<MetricsFile> metrics_;
  std::weak_ptr<const Snapshot> last_;
  BackgroundWriter writer_;  // ends first
};

}  // namespace plumb
