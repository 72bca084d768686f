// The inside of Trainer: trainer_run.cpp is the story of a run, trainer_step.cpp a step, trainer_evaluation.cpp what
// follows one, and trainer.cpp how a run is saved, loaded and shared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/optim/groups.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/train/best_metric.h"
#include "plumb/train/evaluated_weights.h"
#include "plumb/train/evaluation_rank.h"
#include "plumb/train/point_recorder.h"
#include "plumb/train/rollback_mark.h"
#include "plumb/train/step_computation.h"
#include "plumb/train/step_reading.h"
#include "plumb/train/step_source.h"
#include "plumb/train/timeline.h"
#include "plumb/train/train_state.h"
#include "plumb/train/trainer.h"
#include "plumb/train/trouble_judge.h"
#include "plumb/train/update_norms.h"

namespace plumb {

struct Trainer::Implementation {
  Implementation(Model& trained, const TrainConfig& given, const Task& learned, const WatchConfig& watch);

  // --- The run: trainer_run.cpp ---

  TrainResult run(Trainer& trainer, const TrainHooks& hooks);

  /// What precedes the first step: a dry pass, the peak rate, and what an interrupted run has left to do.
  void prepare(const Trainer& trainer, const TrainHooks& hooks);

  /// How a step ended: `passed` steps count, without an update; to go back is up to the caller.
  enum class Ended { updated, passed, goes_back, diverged };

  /// A step, whose time counts.
  Ended timed_step(const TrainHooks& hooks);

  /// Makes this the state that a rollback returns to, unless the last update is in doubt.
  void mark(const TrainHooks& hooks);
  /// Returns to the state that was marked, with the counters and records of trouble as they are now. False if it is
  /// lost.
  bool go_back(Trainer& trainer, const TrainHooks& hooks);

  [[nodiscard]] TrainResult result(const std::string& outcome) const;

  // --- A step: trainer_step.cpp ---

  /// Forward and backward pass of one batch, and one step of the optimizer, unless the judge objects: then the
  /// parameters and the optimizer remain as they are.
  Ended step(const TrainHooks& hooks);

  /// A step whose batch a rollback passes over.
  Ended pass_over(int64_t number);

  /// Enters the numbers of a step into the point, and unless it is skipped into the sums of the run.
  void count(const ComputedStep& computed, const StepReading& reading, const StepNumbers& numbers, bool skipped);

  /// The optimizer's step, and what follows from new weights.
  void update(const ComputedStep& computed, const std::vector<Tensor>& clipped, const StepReading& reading,
              const std::vector<ParameterStep>& steps, const StepNumbers& numbers);

  /// Takes the step once more from the same parameters with checks on, if its numbers are not finite. `buffers`: as
  /// they were before it.
  [[nodiscard]] Json inspect(const StepJudgment& judgment, const StepNumbers& numbers,
                             const std::vector<Tensor>& gradient, const std::vector<Tensor>& buffers);

  /// Records what the judge found, and tells it.
  void report_trouble(const StepJudgment& judgment, const StepNumbers& numbers, const Json& findings,
                      const TrainHooks& hooks);

  /// Measures why the run diverged, on its first examples.
  void explain(const StepJudgment& judgment, const StepNumbers& numbers, const std::vector<Tensor>& gradient,
               const std::vector<ParameterStep>& steps);

  /// Hands the last step's updates to the judge, once they are known.
  void see_updates(const std::vector<double>& square_norms);

  /// To the next step's batches, and in the last one to the end. A new epoch of a stream begins without a state.
  void advance();

  // --- What follows a step: trainer_evaluation.cpp ---

  /// When due: validation, slower metrics, a point, a checkpoint. `stopping` may become true.
  void after_step(const Trainer& trainer, const TrainHooks& hooks, bool& stopping);

  void validate_now();
  /// Computes the slow metrics. The processes agree on the one that decides.
  void score_now();
  /// Computes the slow metrics of a step whose point waits for them, and hands it out.
  void finish_pending(const Trainer& trainer, const TrainHooks& hooks);

  /// Ranks this step's value of train.best_metric. Ends the run if there has been no improvement for too long.
  EvaluationRank judge_evaluation();
  /// Tells of a good rank.
  static void report_rank(const Trainer& trainer, const TrainHooks& hooks, const EvaluationRank& rank);

  void close_point() { recorder.close(state, trouble.skipped()); }
  /// Hands the point out, after close_point().
  void publish_point(const TrainHooks& hooks);
  void add_point(const TrainHooks& hooks);

  /// The run in its current state, for the watches; and what is watched, if it is due.
  [[nodiscard]] WatchedRun watched_run();
  void watch_now(const TrainHooks& hooks);

  /// Every process calls this before rank 0 may save: a sharded optimizer's state is collected.
  void before_saving();
  /// Before something is saved: the judge sees the last update, and a rollback may return to here.
  void settle(const TrainHooks& hooks);
  static void save_to(const Trainer& trainer, const TrainHooks& hooks);

  // --- Plan and limits ---

  /// The batches of the next step: train.accumulate of them, or those that are left of the epoch.
  [[nodiscard]] StepSource::Batches window() const { return source.batches(state.batch); }
  [[nodiscard]] int64_t expected_steps() const;
  /// By the schedule; a step on a segment of a stream takes it by its length (StepSource::rate_factor).
  [[nodiscard]] double rate_of(int64_t number) const { return schedule(number) * trouble.rate_factor(); }
  [[nodiscard]] bool due(const Duration& every) { return timeline.due(every, state.step); }
  /// Whether the watches measure before or after a step: before training, after step 1, and when they are due.
  [[nodiscard]] bool is_watched(int64_t step);
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] bool out_of_patience() const;
  /// A loss above this is divergence, not initialization. With few classes, a confident mistake costs more than a
  /// guess. 0: no limit.
  [[nodiscard]] double divergence_limit() const;

  // --- The state as a document: trainer.cpp ---

  /// state.json, and the reverse.
  [[nodiscard]] Json state_document() const;
  void take_state(const Json& json, const std::string& origin);

  Model& model;
  const Task& task;
  Group group;  // this process alone, until it joins others
  std::unique_ptr<Dataset> train_set;
  StepSource source;  // of train_set
  Timeline timeline;
  TrainConfig config;                  // with a schedule in steps
  std::unique_ptr<Dataset> valid_set;  // null without a validation split
  StepComputation computation;
  Schedule schedule;
  std::vector<ParameterSettings> settings;  // one per parameter
  std::unique_ptr<Optimizer> optimizer;
  EvaluatedWeights weights;
  BestMetric best;
  RunWatches watches;
  UpdateNorms update_norms;
  TroubleJudge trouble;
  TrainState state;
  std::vector<TrainPoint> history;
  std::vector<WatchRecord> watched;
  PointRecorder recorder;
  CarriedState carried;  // of a stream: what the next step begins with; steps that are not taken leave it as it is
  RollbackMark marked;
  std::vector<std::string> diagnosis;  // of a run that diverged
  int64_t reported_spikes = 0;         // in this process, after which training went on

  /// What the last step's update came to, until the judge sees it.
  struct Moved {
    int64_t step = 0;
    double learning_rate = 0;
    std::vector<ops::Number> square_norms;
  } moved;
};

}  // namespace plumb
