// Writes a run's directory while it trains.
#pragma once

#include <filesystem>
#include <memory>

#include "plumb/run/background_writer.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// Writes points and records immediately, and checkpoints in the background: training waits only while the tensors are
/// copied, and for the previous checkpoint if that is still being written. metrics.jsonl is synced and best/ is written
/// before a checkpoint, which depends on them; older checkpoints are removed after it.
class RunWriter {
 public:
  RunWriter(std::filesystem::path run, const TrainConfig& config, std::unique_ptr<MetricsFile> metrics);

  void add(const TrainPoint& point) { metrics_->add(point); }
  void add(const WatchRecord& record) { metrics_->add(record); }
  void add(const TroubleRecord& record) { metrics_->add(record); }
  /// After a rollback: rewrites metrics.jsonl with the trainer's history, removes the checkpoints of undone steps, and
  /// replaces best/ if it is one of them (return_best).
  void rewrite_metrics(const Trainer& trainer);
  void checkpoint(const Trainer& trainer);
  void best(const Trainer& trainer);
  void one_of_the_best(const Trainer& trainer);

  /// Rethrows an error of the background writer.
  void check() { writer_.check(); }
  /// Waits until everything is written.
  void wait() { writer_.wait(); }

  /// Writes the last line of metrics.jsonl, and result.json.
  void end(const TrainResult& result);

 private:
  /// A copy of the trainer's state; everything written after the same step shares its tensors.
  std::shared_ptr<const Snapshot> copy(const Trainer& trainer);
  void submit(const std::shared_ptr<const Snapshot>& snapshot, std::function<void(const Snapshot&)> write);

  std::filesystem::path run_;
  Retention retention_;
  std::unique_ptr<MetricsFile> metrics_;
  std::weak_ptr<const Snapshot> last_;
  BackgroundWriter writer_;  // last: destroyed first
};

}  // namespace plumb
