// The implementation of Trainer: trainer_run.cpp has the training loop, trainer_step.cpp a single step,
// trainer_evaluation.cpp the evaluation after a step, and trainer.cpp saving, loading and joining other processes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/divided/mesh.h"
#include "plumb/divided/parameter_shards.h"
#include "plumb/nn/layer_division.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/run/best_metric.h"
#include "plumb/run/snapshot.h"
#include "plumb/run/train_state.h"
#include "plumb/train/evaluated_weights.h"
#include "plumb/train/evaluation_rank.h"
#include "plumb/train/point_recorder.h"
#include "plumb/train/step_computation.h"
#include "plumb/train/step_reading.h"
#include "plumb/train/step_source.h"
#include "plumb/train/timeline.h"
#include "plumb/train/trainer.h"
#include "plumb/train/update_norms.h"
#include "plumb/trouble/trouble_judge.h"

namespace plumb {

/// The optimizer of a run. `data`: the processes that shard its state (train.shard); `division`: of the model among
/// processes; `shards`: of its gradients; each may be null. Throws Error if the configuration's settings do
/// not go together.
std::unique_ptr<Optimizer> make_train_optimizer(const TrainConfig& config, const Model& model, const Group& data = {},
                                                const LayerDivision* division = nullptr,
                                                const ParameterShards* shards = nullptr);

struct Trainer::Implementation {
  Implementation(Trainer& trainer, Model& trained, const TrainConfig& given, const Task& learned,
                 const WatchConfig& watch);

  // --- The run: trainer_run.cpp ---

  TrainResult run(const TrainOptions& options);

  /// Before the first step: the peak rate, an initial measurement of the watches, the pending point of an interrupted
  /// run, and a state for rollbacks, each if needed.
  void prepare(const std::function<double()>& peak_rate);
  /// Trains to the end.
  RunOutcome take_steps();

  /// How a step ended. `passed`: counted, but without an update; `goes_back`: the caller has to roll back.
  enum class StepOutcome { updated, passed, goes_back, diverged };

  /// Takes a step and measures its time.
  StepOutcome timed_step();

  /// If rollbacks are enabled, makes this the state to return to, unless the last update was a spike.
  void mark();
  /// Returns to the marked state, keeping the current trouble counters and records. False if that state is lost.
  bool roll_back();
  /// The observer that keeps checkpoints; null if no observer does.
  [[nodiscard]] TrainObserver* keeper() const;

  [[nodiscard]] TrainResult result(RunOutcome outcome) const;
  /// Judges the training loss by the frequencies of the labels in the batches of this epoch.
  [[nodiscard]] LearningJudgment learning(RunOutcome outcome) const;

  // --- A step: trainer_step.cpp ---

  /// Forward and backward passes of the step's batches, and one optimizer step unless the judge objects; in that case,
  /// parameters and optimizer remain unchanged.
  StepOutcome step();

  /// Counts a step whose batches are passed over after a rollback.
  StepOutcome pass_over(int64_t number);

  /// Adds a step's numbers to the point and, unless it is skipped, to the sums of the run.
  void count(const ComputedStep& computed, const StepReading& reading, const StepNumbers& numbers, bool skipped);

  /// The optimizer step, the model's constraints, and measurements around them.
  void update(const ComputedStep& computed, const std::vector<Tensor>& clipped, const StepReading& reading,
              const std::vector<ParameterStep>& steps, const StepNumbers& numbers);

  /// Repeats the step from the same parameters with checks if its numbers are not finite. `buffers`: the model's
  /// buffers before the step.
  [[nodiscard]] std::optional<InspectedStep> inspect(const StepJudgment& judgment, const StepNumbers& numbers,
                                                     const std::vector<Tensor>& gradient,
                                                     const std::vector<Tensor>& buffers);

  /// Records and reports what the judge found.
  void report_trouble(const StepJudgment& judgment, const StepNumbers& numbers,
                      const std::optional<InspectedStep>& inspected);

  /// Diagnoses why the run diverged, on the first training examples.
  void explain(const StepJudgment& judgment, const StepNumbers& numbers, const std::vector<Tensor>& gradient,
               const std::vector<ParameterStep>& steps);

  /// Passes the last step's update norms to the judge.
  void see_updates(const std::vector<double>& square_norms);

  /// The epochs that will have been seen by the end of the step that comes next (train/timeline.h).
  [[nodiscard]] double epochs_after_step() const;

  /// Advances to the next step's batches or the end of the run. A new epoch of a stream begins without a carried state.
  void advance();

  // --- After a step: trainer_evaluation.cpp ---

  /// Validation, slow metrics, a point and a checkpoint, each when due. May set `stopping`.
  void after_step(bool& stopping);

  void validate_now();
  /// Computes the slow metrics on rank 0. All processes get the value of train.best_metric if that is slow.
  void score_now();
  /// Computes the slow metrics of the pending point, and publishes it.
  void finish_pending();

  /// Ranks this step's value of train.best_metric. Ends the run when patience runs out.
  EvaluationRank judge_evaluation();
  /// Tells observers of the best evaluation and of one among the best.
  void report_rank(const EvaluationRank& rank);

  void close_point() { recorder.close(state, trouble.skipped()); }
  /// Adds the point to the history and tells observers, after close_point().
  void publish_point();
  void add_point();

  /// The run in its current state, for the watches; and their measurement, if due.
  [[nodiscard]] WatchedRun watched_run();
  void watch_now();

  /// Collects the state of a sharded optimizer or a divided model. Every process calls this before rank 0 may save.
  void before_saving();
  /// Call before saving: passes the last update to the judge and, if a checkpoint is due, marks the state for
  /// rollbacks.
  void settle();
  void save() const { tell(observers, &TrainObserver::on_checkpoint, owner); }
  /// Whether an observer of any process asks to stop.
  [[nodiscard]] bool asks_to_stop() const { return mesh.all.any(any_of(observers, &TrainObserver::stops)); }

  // --- Plan and limits ---

  /// The batches of the next step: train.accumulate of them, or fewer at the end of the epoch.
  [[nodiscard]] StepSource::Batches window() const { return source.batches(state.batch); }
  /// The learning rate by the schedule and earlier rollbacks; for a stream, multiply by StepSource::rate_factor.
  [[nodiscard]] double rate_of(int64_t number) const { return schedule(number) * trouble.rate_factor(); }
  [[nodiscard]] bool due(const Duration& every) { return timeline.due(every, state.step); }
  /// Whether the watches measure at this step: at 0 and 1, and when due.
  [[nodiscard]] bool is_watched(int64_t step);
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] bool out_of_patience() const;
  /// A loss above this counts as divergence: divergence_factor times the loss of a uniform guess, ln(classes), or at
  /// least 2, since with few classes a confident mistake costs more than a guess. 0: no limit.
  [[nodiscard]] double divergence_limit() const;

  // --- The state: trainer.cpp ---

  /// Tensors of the run's state, a file of a checkpoint.
  struct Part {
    const char* file;
    bool own = false;      // of this process alone, and may be absent
    bool sharded = false;  // `values` are this process's shards of what is divided among mesh.data (`shards`)
    bool full = false;     // `values` are those of full parameters, although processes divide the model
    bool moves = false;    // `take` first keeps elsewhere what an earlier part has put in the place of `values`
    std::function<std::vector<StateTensor>()> values;
    /// Of one of them: that of all of mesh.data, on its rank 0. Every process calls it. Empty: all have the same
    /// values.
    std::function<Tensor(const StateTensor&)> unshard{};
    /// `origin` names them in errors.
    std::function<void(const NamedTensors&, const std::string& origin)> take{};
    std::map<std::string, std::string> metadata{};  // of the file
  };
  /// All of them, in the order in which they are taken.
  [[nodiscard]] std::vector<Part> parts();

  /// The whole state, sharing its tensors with the run, and the reverse. restore throws Error, naming `origin`, if a
  /// part is missing or does not fit.
  [[nodiscard]] Snapshot snapshot();
  void restore(const Snapshot& snapshot, const std::string& origin);
  /// Takes rank 0's state, except for what is its own, after dividing the model if processes share its layers. Returns
  /// the stages of the model, if mesh.pipeline has several.
  std::optional<PipelineSplit> distribute_state();
  /// The beginning of that for a model without memory (train/begun_model.h): divides it, then initializes it or reads
  /// the checkpoint, one tensor after another, so that no process holds all of them.
  std::optional<PipelineSplit> begin_sharded();
  /// What this process holds of the parameters: after the division of the model or, if `sharded`, the shards of that
  /// among mesh.data (Part::sharded). The shape of a full one, and what of such a tensor is held (a view).
  [[nodiscard]] const Parameters& held_by(bool sharded) const;
  [[nodiscard]] std::vector<int64_t> full_sizes(size_t parameter) const;
  [[nodiscard]] Tensor shard_of(size_t parameter, const Tensor& full, bool sharded) const;
  /// Of one of a part's values: the full tensor, on rank 0 of mesh.all; anything on the others. Every process calls it;
  /// unless the run is sharded(), those of rank 0 of mesh.data alone.
  [[nodiscard]] Tensor full_of(const Part& part, const StateTensor& own) const;

  /// Divides the model among mesh.tensor and mesh.pipeline, cuts its gradients among mesh.data, each if the run does,
  /// and begins anew with all that holds its parameters.
  std::optional<PipelineSplit> divide();
  /// The number of stages and micro-batches, and how long stages wait for each other.
  [[nodiscard]] std::string pipeline_summary() const;
  [[nodiscard]] const LayerDivision* division_or_null() const { return division ? &*division : nullptr; }
  [[nodiscard]] bool shards_parameters() const { return shards && shards->shards_parameters(); }
  /// Whether processes of mesh.data have different parts of the state.
  [[nodiscard]] bool sharded() const { return mesh.data.size() > 1 && config.shard != "none"; }
  /// Whether the state has to be collected in rank 0 before it can be saved.
  [[nodiscard]] bool collects() const { return division || sharded(); }

  /// state.json, and the reverse.
  [[nodiscard]] Json state_document();
  void take_state(const Json& json, const std::string& origin);

  Trainer& owner;
  TrainObservers observers;  // while it runs
  Model& model;
  const Task& task;
  Mesh mesh;  // this process alone, until it joins others
  std::unique_ptr<Dataset> train_set;
  StepSource source;  // of train_set
  Timeline timeline;
  TrainConfig config;                  // with durations of the schedule in steps
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
  CarriedState carried;                   // of a stream: the initial state of the next step; unchanged by skipped steps
  std::optional<LayerDivision> division;  // of the model among processes; empty: this one has all of it
  std::unique_ptr<ParameterShards> shards;  // of its parameters among mesh.data; null: it has the whole gradient
  std::vector<Snapshot::File> collected;    // if collects(), on rank 0: the whole state, until the next update
  std::filesystem::path spills_to;          // the folder for these; empty: memory
  std::filesystem::path beginning;          // of a model without memory, on rank 0: its checkpoint; empty: a new run
  std::optional<Snapshot> marked;           // the state that a rollback without files returns to
  std::vector<std::string> diagnosis;       // of a run that diverged
  int64_t reported_spikes = 0;              // spikes reported by this process without skip or rollback

  /// The norms of the last update, until the judge sees them.
  struct LastUpdate {
    int64_t step = 0;
    double learning_rate = 0;
    std::vector<ops::DeviceScalar> square_norms;
  } last_update;
};

}  // namespace plumb
