// Training: batches through the model, gradients through the optimizer, and what is measured on the way.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/data/directory.h"
#include "plumb/model/model.h"
#include "plumb/parallel/group.h"
#include "plumb/train/config.h"

namespace plumb {

/// What is known at one step. Means are over target tokens, in nats; "since the last point" where a span is meant.
struct TrainPoint {
  int64_t step = 0;
  int64_t epoch = 0;  // counts from 0
  double learning_rate = 0;
  double loss = 0;                   // mean label-smoothed training loss since the last point
  double nll = 0;                    // mean negative log-likelihood since the last point
  double gradient_norm = 0;          // global norm of this step's gradient, before clipping
  double tokens_per_second = 0;      // target tokens, since the last point, validation not counted
  std::optional<double> valid_loss;  // of the validation split, label-smoothed
  std::optional<double> valid_nll;
  std::optional<double> bleu;  // in percent
  // Of a run of several processes: means a step since the last point, of what process 0 exchanged with the others.
  std::optional<double> exchange_seconds;
  std::optional<double> exchange_bytes;
};

/// A line of metrics.jsonl; what is not finite becomes null, and is read back as NaN.
Json to_json(const TrainPoint& point);
TrainPoint point_from_json(const Json& json);

struct TrainResult {
  std::string outcome;  // "finished", "diverged" or "stopped"
  int64_t steps = 0;
  std::vector<TrainPoint> history;
  std::optional<double> valid_nll;  // of the last validation
  std::optional<double> bleu;       // the last one
  std::optional<double> best_valid_nll;
  int64_t best_step = 0;
  double seconds = 0;  // of training and evaluation, over all resumptions

  [[nodiscard]] Json to_json() const;
  static TrainResult from_json(const Json& json);
};

class Trainer;

/// What others add to a run; each may be empty.
struct TrainHooks {
  /// Sees each point of the history as it is made.
  std::function<void(const TrainPoint&)> point;
  /// The BLEU of a model on the validation split.
  std::function<double(Model&)> bleu;
  /// Asked after each step; true ends the run as "stopped".
  std::function<bool()> stop;
  /// Called where a checkpoint is due, and at the end.
  std::function<void(const Trainer&)> checkpoint;
  /// Called after a validation better than any before.
  std::function<void(const Trainer&)> best;
  /// Label of the progress display; empty: none.
  std::string progress;
};

/// The mean losses of a split, without dropout and without a graph; the ranks of the group share the work.
struct Evaluation {
  double loss = 0;  // label-smoothed, nats a token
  double nll = 0;
  int64_t tokens = 0;  // target tokens
};
Evaluation evaluate(Model& model, const ParallelSplit& split, int64_t batch_tokens, double label_smoothing,
                    const Group& group = {});

/// One run of training, which can be saved and taken up again at any step with the same result to the last bit.
///
/// Several processes train one model by sharing every batch: each takes every n-th of its pairs, gradients are summed,
/// and all make the same step. Without dropout the result is that of one process, to rounding; dropout draws other
/// masks in every process.
class Trainer {
 public:
  /// Trains the model from its present parameters on the splits "train" and, if there is one, "valid". The model must
  /// outlive the trainer. Throws Error on a configuration or data that make no training.
  Trainer(Model& model, const TrainConfig& config, const DataDirectory& data);
  ~Trainer();

  /// Trains to the end. Divergence is an outcome, not an error.
  TrainResult run(const TrainHooks& hooks = {});

  /// Writes model.safetensors, optimizer.safetensors and state.json into a directory, or reads them.
  void save(const std::filesystem::path& directory) const;
  void load(const std::filesystem::path& directory);

  /// Trains as one rank of the group, all of which call this before they run: takes the parameters, the optimizer's
  /// state and the position in the run from rank 0. Without it the group is this process alone.
  void join(Group group);

  /// What a resumed run has measured before; points after the present step are dropped.
  void set_history(std::vector<TrainPoint> history);

  [[nodiscard]] const std::vector<TrainPoint>& history() const;
  [[nodiscard]] int64_t step() const;
  [[nodiscard]] const Model& model() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Trains in memory, without files.
TrainResult train(Model& model, const TrainConfig& config, const DataDirectory& data, const TrainHooks& hooks = {});

}  // namespace plumb
