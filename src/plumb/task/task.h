// A task: which examples a model learns from, what its loss on a batch of them is, and how well it does by which
// metrics. Training, measurement and studies know a Task and a Model, and neither of their kinds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/options.h"
#include "plumb/base/registry.h"
#include "plumb/data/directory.h"
#include "plumb/model/model.h"
#include "plumb/parallel/group.h"
#include "plumb/task/dataset.h"
#include "plumb/task/metrics.h"

namespace plumb {

/// [task]
struct TaskConfig {
  std::string name;        // empty: that of the data
  VariantOptions options;  // [task.translation] and so on

  bool operator==(const TaskConfig&) const = default;
};
void describe(Fields& field, TaskConfig& config);

/// A metric that a task reports.
struct MetricInfo {
  std::string name;
  std::string meaning;
  bool larger_is_better = true;
};

/// Sums over the labels of batches, for a whole split.
struct Sums {
  double loss = 0;             // Σ weight · label-smoothed loss
  double nll = 0;              // Σ weight · −log p(label)
  double weight = 0;           // Σ weight
  std::vector<double> counts;  // what the task's own metrics are made of
};

class Task {
 public:
  virtual ~Task() = default;
  [[nodiscard]] virtual std::string name() const = 0;

  /// The examples of a split. Throws Error that names the splits there are.
  [[nodiscard]] virtual std::unique_ptr<Dataset> dataset(const std::string& split) const = 0;
  [[nodiscard]] const DataDirectory& data() const { return data_; }

  /// The kind of model that learns it: model.kind.
  [[nodiscard]] virtual std::string model_kind() const = 0;

  /// Fills in what a configuration leaves to the data: vocabularies, the number of classes. Throws Error if a model of
  /// this configuration cannot learn this task from these data.
  virtual void complete(ModelConfig& config) const = 0;

  /// The loss of a batch: by default the mean cross-entropy of its labels by their weights.
  [[nodiscard]] virtual Loss loss(Model& model, const Batch& batch, const LossOptions& options,
                                  ForwardContext& context) const;

  /// Sums over nothing, with as many counts as the task keeps.
  [[nodiscard]] virtual Sums zero() const { return {}; }

  /// Adds what a batch contributes to the sums, without a graph: its losses, and what the metrics count.
  virtual void count(Model& model, const Batch& batch, double label_smoothing, Sums& sums) const;

  /// The metrics that follow from the sums alone: "loss" and "nll", nats per label, and the task's own.
  [[nodiscard]] virtual Metrics metrics(const Sums& sums) const;

  /// Metrics that take longer than a pass over the split, such as BLEU, which has to translate it.
  [[nodiscard]] virtual Metrics score(Model& model, const std::string& split) const;

  /// All of the task's metrics, those of `score` among them.
  [[nodiscard]] virtual std::vector<MetricInfo> metric_infos() const;

 protected:
  explicit Task(DataDirectory data) : data_(std::move(data)) {}

  /// Throws Error unless the configuration is of model_kind().
  void require_kind(const ModelConfig& config) const;

  /// Sets a vocabulary that is 0 to that of the data. Throws Error if it is smaller; `side`: "source" or "target".
  static void fill_vocabulary(const char* side, int64_t& vocabulary, int64_t of_data);

  DataDirectory data_;
};

/// A new task is a file in task/ that registers itself. The factory throws Error where the data are not for it.
using TaskFactory = std::function<std::unique_ptr<Task>(const DataDirectory&, const Options&)>;
Registry<TaskFactory>& tasks();

/// The task of the configuration, or if it names none that of the data, for a model of this kind: a decoder learns to
/// model the target side of pairs.
std::unique_ptr<Task> make_task(const TaskConfig& config, const DataDirectory& data, const std::string& model_kind);

/// The sums of a split without dropout and without a graph; the processes of the group share the work.
Sums evaluate(const Task& task, Model& model, const Dataset& dataset, int64_t batch_tokens, double label_smoothing,
              const Group& group);

}  // namespace plumb
