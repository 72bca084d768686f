// Watches: measurements along a training run, [watch]. They see the run and do not change it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plumb/base/duration.h"
#include "plumb/base/json.h"
#include "plumb/base/options.h"
#include "plumb/base/registry.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/optim/optimizer.h"
#include "plumb/task/task.h"
#include "plumb/train/point.h"

namespace plumb {

struct TrainConfig;

/// [watch]
struct WatchConfig {
  /// Between measurements, besides those before training and after the first step; 0: none.
  Duration every = 0;
  std::vector<std::string> what = {"activations", "curvature", "gradient_noise", "updates"};  // names of watches
  std::string split = "train";  // whose first examples are measured, always the same ones
  int64_t examples = 64;        // their number
  VariantOptions options;       // options of watches: [watch.curvature] and so on

  /// Whether both would be written alike: an absent option equals its default.
  bool operator==(const WatchConfig& other) const;
};
void describe(Fields& field, WatchConfig& config);

/// Throws Error on unknown watches and on values out of range.
void validate(const WatchConfig& config);

/// A run after some step, as a watch sees it. Measurements must leave the model as it is: no dropout, no training pass.
struct WatchedRun {
  Model& model;
  const Task& task;
  const TrainConfig& config;
  const Optimizer& optimizer;
  const Dataset& train_set;
  const std::vector<Batch>& batches;    // the examples of [watch], in batches of at most train.batch_tokens
  int64_t step = 0;                     // steps taken
  double learning_rate = 0;             // of the last step; before a step, of that one
  std::vector<ParameterStep> settings;  // of that step, one per parameter
  std::span<const Tensor> gradient{};   // before a step: its gradient before clipping, one per parameter; else empty
};

/// Something that is measured along a run. What it measures may depend on the run, on the step and on what it has
/// measured before: it is asked at the same steps with and without interruptions.
class Watch {
 public:
  virtual ~Watch() = default;

  /// Called before a step that is measured; `run` is the state after the previous one.
  virtual void before_step(const WatchedRun& run) { (void)run; }

  /// The measurement, an object of numbers and of objects of numbers, such as one per layer; null if there is nothing
  /// to measure. An Error becomes part of the record, and the run continues.
  [[nodiscard]] virtual Json measure(const WatchedRun& run) = 0;

  /// What a resumed run needs to measure the same, stored with every checkpoint; and the reverse, which ignores tensors
  /// of other names.
  [[nodiscard]] virtual NamedTensors state() const { return {}; }
  virtual void load_state(const NamedTensors& tensors) { (void)tensors; }
};

/// A new watch is a file that registers itself. The factory throws Error on options out of range.
using WatchFactory = std::function<std::unique_ptr<Watch>(const Options&)>;
Registry<WatchFactory>& watches();

/// The watches of a run.
class RunWatches {
 public:
  /// Without `config.every`, it has none and reads no data. Throws Error on an invalid configuration, and if the split
  /// does not exist or is empty.
  RunWatches(const WatchConfig& config, const Task& task, int64_t batch_tokens);

  [[nodiscard]] const Duration& every() const { return config_.every; }
  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }

  void before_step(const WatchedRun& run);

  /// What all of them measure, by name, each with its time in "seconds".
  [[nodiscard]] WatchRecord measure(const WatchedRun& run);

  /// The tensors of each watch, as WATCH.NAME; empty if they need none.
  [[nodiscard]] NamedTensors state() const;
  void load_state(const NamedTensors& tensors);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Watch> watch;
    bool failed = false;  // once, which has been reported
  };

  WatchConfig config_;
  std::vector<Batch> batches_;
  std::vector<Named> watches_;
};

}  // namespace plumb
