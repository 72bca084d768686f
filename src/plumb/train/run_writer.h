// Writes a run's directory while it trains.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "plumb/base/job_queue.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// Writes points and records immediately, and checkpoints in the background: training waits only for the previous
/// checkpoint, if that is still being written, and while the tensors are copied. metrics.jsonl is synced and best/ is
/// written before a checkpoint, which depends on them; older checkpoints are removed after it.
class RunWriter final : public TrainObserver {
 public:
  /// `completes`: whether training waits until the files of a checkpoint are complete (TrainObserver::reads_files).
  /// `run` must outlive it.
  RunWriter(const OpenRun& run, const TrainConfig& config, std::unique_ptr<MetricsFile> metrics, bool completes);

  void on_point(const TrainPoint& point) override { metrics_->add(point); }
  void on_watch(const WatchRecord& record) override { metrics_->add(record); }
  void on_trouble(const TroubleRecord& record) override { metrics_->add(record); }
  void on_best(const Trainer& trainer) override;
  void on_among_best(const Trainer& trainer) override;
  void on_checkpoint(const Trainer& trainer) override;
  /// Rewrites metrics.jsonl with the trainer's history, removes the checkpoints of undone steps, and replaces best/ if
  /// it is one of them (return_best).
  void on_rollback(const Trainer& trainer) override;
  /// Never asks to stop, but rethrows an error of writing in the background, and throws Error if the directory is gone.
  bool stops() override;
  [[nodiscard]] bool keeps_checkpoints() const override { return true; }
  bool load_checkpoint(Trainer& trainer, int64_t step) override;

  /// Writes the last line of metrics.jsonl, and result.json.
  void end(const TrainResult& result);

 private:
  /// A copy of the trainer's state; everything written after the same step shares its tensors.
  std::shared_ptr<const Snapshot> copy(const Trainer& trainer);
  void submit(const std::shared_ptr<const Snapshot>& snapshot, std::function<void(const Snapshot&)> write);

  const OpenRun& open_;
  std::filesystem::path run_;
  Retention retention_;
  std::unique_ptr<MetricsFile> metrics_;
  bool completes_;
  std::weak_ptr<const Snapshot> last_;
  JobQueue writer_;  // last: destroyed first
};

}  // namespace plumb
