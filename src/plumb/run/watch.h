// Watches: measurements along a training run, [watch], which do not change it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "plumb/base/duration.h"
#include "plumb/base/options.h"
#include "plumb/base/registry.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/optim/optimizer.h"
#include "plumb/run/point.h"
#include "plumb/task/task.h"

namespace plumb {

struct TrainConfig;

/// [watch]
struct WatchConfig {
  Duration every = 0;
  std::vector<std::string> what = {"activations", "curvature", "gradient_noise", "updates"};
  std::string split = "train";
  int64_t examples = 64;
  VariantOptions options;  // [watch.curvature] and so on

  /// Whether both are written to the same TOML: an absent option equals its default.
  bool operator==(const WatchConfig& other) const;
};
void describe(Fields& field, WatchConfig& config);

/// A struct with its `describe`, of any type.
using Described = Options;

/// A run after some step, as a watch sees it. Measurements must not change the model: no dropout, no training pass.
struct WatchedRun {
  Model& model;
  const Task& task;
  const TrainConfig& config;
  const Optimizer& optimizer;
  const Dataset& train_set;
  const std::vector<Batch>& batches;    // the examples of [watch], in batches of at most train.batch_tokens
  int64_t step = 0;                     // steps taken
  double learning_rate = 0;             // of the last step; before a step, of that one
  std::vector<ParameterStep> settings;  // one per parameter, at that rate
  std::span<const Tensor> gradient{};   // before a step: its unclipped gradient, one per parameter; else empty
};

/// A measurement along a run. It may depend on the run, the step and earlier measurements: an interrupted run measures
/// at the same steps as an uninterrupted one.
class Watch {
 public:
  virtual ~Watch() = default;

  /// Called before a step that is measured; `run` is the state after the previous step.
  virtual void before_step(const WatchedRun& run) { (void)run; }

  /// The measurement: a struct whose member kWatch is the name with which the watch is registered; empty if there is
  /// nothing to measure. If it throws Error, the message is recorded and the run continues.
  [[nodiscard]] virtual Described measure(const WatchedRun& run) = 0;

  /// The state that a resumed run needs to measure the same, stored with every checkpoint; and the reverse, which
  /// ignores tensors with other names.
  [[nodiscard]] virtual NamedTensors state() const { return {}; }
  virtual void load_state(const NamedTensors& tensors) { (void)tensors; }
};

/// Makes a watch from its options.
using WatchFactory = std::function<std::unique_ptr<Watch>(const Options&)>;

/// Of the class W, whose constructor takes WatchOptions, if it has options.
template <typename W, typename WatchOptions = void>
WatchFactory watch_factory() {
  return [](const Options& options) -> std::unique_ptr<Watch> {
    if constexpr (std::is_void_v<WatchOptions>) {
      return std::make_unique<W>();
    } else {
      return std::make_unique<W>(options.as<WatchOptions>());
    }
  };
}

/// Each watch registers itself in its own file.
Registry<WatchFactory>& watches();

/// The watches of a run.
class RunWatches {
 public:
  /// If `config.every` is 0, it has no watches and reads no data. Throws Error on an invalid configuration, if it names
  /// no watch or one twice, and if the split does not exist or is empty.
  RunWatches(const WatchConfig& config, const Task& task, int64_t batch_tokens);

  [[nodiscard]] const Duration& every() const { return config_.every; }
  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }

  void before_step(const WatchedRun& run);

  /// The measurements of all watches.
  [[nodiscard]] WatchRecord measure(const WatchedRun& run);

  /// The tensors of each watch, as WATCH.NAME; empty if they need none.
  [[nodiscard]] NamedTensors state() const;
  void load_state(const NamedTensors& tensors);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Watch> watch;
    bool failed = false;  // a failure was reported
  };

  WatchConfig config_;
  std::vector<Batch> batches_;
  std::vector<Named> watches_;
};

}  // namespace plumb
