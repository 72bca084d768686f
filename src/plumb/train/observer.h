// Observers of a training run: the files of the run, event files, progress lines and whatever else follows it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "plumb/run/point.h"
#include "plumb/run/watch.h"

namespace plumb {

class Trainer;
struct TrainStatus;

/// What a run tells at its moments; an observer overrides those that it needs. It must not change the run, and what it
/// throws ends the run.
class TrainObserver {
 public:
  TrainObserver() = default;
  TrainObserver(const TrainObserver&) = default;
  TrainObserver& operator=(const TrainObserver&) = default;
  virtual ~TrainObserver() = default;

  /// Before anything is measured or trained, also of a run that has nothing left to train.
  virtual void on_begin(const Trainer&) {}
  /// After each step, before `stops` is asked and anything is evaluated; train/progress_line.h.
  virtual void on_step(const Trainer&, const TrainStatus&) {}
  /// A point of the history.
  virtual void on_point(const TrainPoint&) {}
  /// A record of the watches.
  virtual void on_watch(const WatchRecord&) {}
  virtual void on_trouble(const TroubleRecord&) {}
  /// An evaluation that is better than all earlier ones by train.best_metric.
  virtual void on_best(const Trainer&) {}
  /// An evaluation among the best train.keep_best, if that is above 1; before on_best.
  virtual void on_among_best(const Trainer&) {}
  /// A checkpoint is due: as configured, at the end unless the run diverged, and before the last step's slow metrics.
  virtual void on_checkpoint(const Trainer&) {}
  /// After a rollback; the history ends at the checkpoint.
  virtual void on_rollback(const Trainer&) {}
  /// After the last step, unless an error ends the run.
  virtual void on_end(const Trainer&) {}
  /// Of run_training: a path to the run directory that this process may use while it trains, even if the directory is
  /// moved, and at the end the place where it is then.
  virtual void on_place(const std::filesystem::path&) {}

  /// Asked after each step, and again before the slow metrics of the last step; true ends the run as "stopped".
  virtual bool stops() { return false; }
  /// Asked again and again until all processes have joined; true ends the run as "stopped".
  virtual bool gives_up() { return false; }

  /// Whether it needs the run's files to be complete at on_checkpoint, on_best and on_among_best; training waits then.
  [[nodiscard]] virtual bool reads_files() const { return false; }

  /// Whether rollbacks return to checkpoints that this observer keeps, rather than to a copy in memory, which the
  /// trainer makes whenever a checkpoint is due; and, of such an observer: loads the checkpoint of this step into the
  /// trainer, or returns false if it is missing.
  [[nodiscard]] virtual bool keeps_checkpoints() const { return false; }
  virtual bool load_checkpoint(Trainer&, int64_t /*step*/) { return false; }
};

/// The observers of a run, told and asked in this order. They must outlive it.
using TrainObservers = std::vector<TrainObserver*>;

/// Tells all observers of a moment.
template <typename... Parameters, typename... Values>
void tell(const TrainObservers& observers, void (TrainObserver::*moment)(Parameters...), const Values&... values) {
  for (TrainObserver* each : observers) (each->*moment)(values...);
}

/// Asks all observers, until one says yes.
template <typename Question>
bool any_of(const TrainObservers& observers, const Question& question) {
  return std::any_of(observers.begin(), observers.end(), [&](TrainObserver* each) { return (each->*question)(); });
}

}  // namespace plumb
