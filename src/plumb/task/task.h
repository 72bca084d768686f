// A task: the examples a model learns from, the loss of a batch, and the metrics. Training, measurements and studies
// depend only on Task and Model, not on their kinds.
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
  std::string name;        // empty: the data's task
  VariantOptions options;  // options of tasks: [task.translation] and so on

  bool operator==(const TaskConfig&) const = default;
};
void describe(Fields& field, TaskConfig& config);

/// A metric that a task reports.
struct MetricInfo {
  std::string name;
  std::string meaning;
  bool larger_is_better = true;
  std::string left_out_by{};  // the setting that leaves it out, such as "task.translation.beam = 0"; empty: reported
};

/// Sums over the labels of batches, for a whole split.
struct Sums {
  double loss = 0;             // Σ weight · label-smoothed loss
  double nll = 0;              // Σ weight · −log p(label)
  double weight = 0;           // Σ weight
  std::vector<double> counts;  // what the task's own metrics are computed from

  /// The sums over the ranks of a group.
  [[nodiscard]] Sums over(const Group& group) const;
};

class Task {
 public:
  virtual ~Task() = default;
  [[nodiscard]] virtual std::string name() const = 0;

  /// The examples of a split. Throws Error, listing the splits, if there is no such split.
  [[nodiscard]] virtual std::unique_ptr<Dataset> dataset(const std::string& split) const = 0;
  [[nodiscard]] const DataDirectory& data() const { return data_; }

  /// The usual kind of model (model.kind) for this task.
  [[nodiscard]] virtual std::string model_kind() const = 0;

  /// The settings of a new run that differ from the keys' defaults, as "section.key=value": those of a small model on
  /// little data. None for translation, which the defaults are made for.
  [[nodiscard]] virtual std::vector<std::string> usual_settings() const { return {}; }

  /// Whether models of this kind can learn this task.
  [[nodiscard]] virtual bool learned_by(const std::string& kind) const { return kind == model_kind(); }

  /// Tells the task which kind of model will learn it, if its batches depend on that.
  virtual void learn_with(const std::string& /*kind*/) {}

  /// Fills in what the configuration leaves to the data: vocabulary sizes, the number of classes. Throws Error if a
  /// model with this configuration cannot learn this task from these data.
  virtual void complete(ModelConfig& config) const = 0;

  /// The loss of a batch: by default the weighted mean cross-entropy of its labels.
  [[nodiscard]] virtual Loss loss(Model& model, const Batch& batch, const LossOptions& options,
                                  ForwardContext& context) const;

  /// Zero sums, with the counts that the task needs.
  [[nodiscard]] virtual Sums zero() const { return {}; }

  /// Adds a batch's contribution to the sums, without a graph: its losses, and the counts of the metrics. `context`
  /// must be one for evaluation.
  virtual void count(Model& model, const Batch& batch, double label_smoothing, ForwardContext& context,
                     Sums& sums) const;

  /// The metrics computed from the sums alone: "loss" and "nll", in nats per label, and the task's own.
  [[nodiscard]] virtual Metrics metrics(const Sums& sums) const;

  /// Metrics that take longer than a pass over the split, such as BLEU, which requires translating it.
  [[nodiscard]] virtual Metrics score(Model& model, const std::string& split) const;

  /// All of the task's metrics, including those of `score` and those that the configuration leaves out.
  [[nodiscard]] virtual std::vector<MetricInfo> metric_infos() const;

 protected:
  explicit Task(DataDirectory data) : data_(std::move(data)) {}

  /// Adds a batch's loss to the sums.
  static void add_loss(const Loss& found, Sums& sums);

  /// Adds the weighted cross-entropy of a batch's labels to the sums, without a graph; returns the logits, (labels,
  /// classes).
  static Tensor add_cross_entropy(Model& model, const Batch& batch, double label_smoothing, ForwardContext& context,
                                  Sums& sums);

  /// Throws Error unless the task is learned_by the configuration's kind.
  void require_kind(const ModelConfig& config) const;

  /// Sets a vocabulary of 0 to that of the data. Throws Error if any other is smaller; `side`: "source" or "target".
  static void fill_vocabulary(const char* side, int64_t& vocabulary, int64_t of_data);

  DataDirectory data_;
};

/// A new task is a file in task/ that registers itself. Options have been checked; the factory throws Error if the data
/// are unsuitable.
using TaskFactory = std::function<std::unique_ptr<Task>(const DataDirectory&, const Options&)>;
Registry<TaskFactory>& tasks();

/// Registers a task that is constructed from the data and its own options.
template <typename Kind, typename OwnOptions>
bool add_task(const std::string& name, std::string summary, std::string reference) {
  const auto make = [](const DataDirectory& data, const Options& options) {
    return std::make_unique<Kind>(data, options.as<OwnOptions>());
  };
  return tasks().add(name, std::move(summary), std::move(reference), make, Options(OwnOptions()));
}

/// The configured task or, if the name is empty, the data's, for a model of this kind: a language model learns the
/// target side of pairs, and an encoder learns masked tokens of text.
std::unique_ptr<Task> make_task(const TaskConfig& config, const DataDirectory& data, const std::string& kind_name);

/// The kind of model that learns the data's task, or the configured one, unless another is asked for: an
/// encoder-decoder for sentence pairs, a decoder for text, an encoder for labels and for masked text.
std::string usual_model_kind(const TaskConfig& config, const DataDirectory& data);

/// The sums over a split, without dropout and without a graph; the processes of the group share the work. A stream is
/// read sequentially, with carried state, by rank 0 alone.
Sums evaluate(const Task& task, Model& model, const Dataset& dataset, int64_t batch_tokens, double label_smoothing,
              const Group& group);

/// The same, with a function that adds a batch's contribution in place of Task::count. If `together`, every process
/// calls it as often as the others, because they exchange something in it: some compute a batch that does not count.
using CountBatch = std::function<void(const Batch&, ForwardContext&, Sums&)>;
Sums evaluate(const Task& task, const Dataset& dataset, int64_t batch_tokens, const Group& group,
              const CountBatch& count, bool together = false);

}  // namespace plumb
