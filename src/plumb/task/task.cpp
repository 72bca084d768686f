#include "plumb/task/task.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

/// Counts the segments in order, each starting with the state that the previous one left.
void count_stream(const Dataset& dataset, const StreamCut& cut, const CountBatch& count, Sums& sums) {
  CarriedState state;
  for (const std::vector<int64_t>& columns : cut_stream(dataset.size(), cut)) {
    ForwardContext context;
    context.carry(state);
    count(dataset.batch(columns), context, sums);
  }
}

}  // namespace

Sums Sums::over(const Group& group) const {
  std::vector<double> all = {loss, nll, weight};
  all.insert(all.end(), counts.begin(), counts.end());
  all = group.sums(all);
  return {all[0], all[1], all[2], {all.begin() + 3, all.end()}};
}

void describe(Fields& field, TaskConfig& config) {
  field("name", config.name,
        "empty: the task of the data directory; a `decoder` or `awd-lstm` on sentence pairs learns `language-modeling` "
        "on the target side, an `encoder` on text `masked-language-modeling`",
        name_in(tasks()).open_choices());
  describe_options(field, tasks(), config.name, config.options);
}

Registry<TaskFactory>& tasks() {
  static Registry<TaskFactory> registry(
      "task",
      {.title = "Tasks",
       .key = "task.name",
       .before = "What is learned from a data directory; the directory names its task.",
       .after =
           "Every label has a weight in the loss. All tasks report `valid_loss` and `valid_nll` in nats per label; "
           "translation also reports `bleu`, language modeling `perplexity`, masked language modeling `perplexity` and "
           "`accuracy` at the masked tokens, and classification `accuracy`, `f1` and `mcc` (Matthews' correlation "
           "coefficient), each with the ends of its 95% interval, such as `accuracy_low`. With `stream`, all lines or "
           "blocks form one text, which is cut into rows of equal length. A step predicts the next tokens of every "
           "row, each from the token before it in the text, and begins with the state that the previous step left; so "
           "does evaluation, whose perplexity is over all tokens of the split. An epoch begins with a state of zeros. "
           "[training.md](training.md#recurrent-models) says what else changes."});
  return registry;
}

Loss Task::loss(Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) const {
  return model.loss(batch, options, context);
}

void Task::count(Model& model, const Batch& batch, double label_smoothing, ForwardContext& context, Sums& sums) const {
  const at::NoGradGuard no_graph;
  add_loss(loss(model, batch, {label_smoothing, 1.0, false}, context), sums);
}

void Task::add_loss(const Loss& found, Sums& sums) {
  const std::vector<double> read = ops::read({ops::DeviceScalar(found.value), found.nll});
  sums.loss += read[0];
  sums.nll += read[1];
  sums.weight += found.weight;
}

Tensor Task::add_cross_entropy(Model& model, const Batch& batch, double label_smoothing, ForwardContext& context,
                               Sums& sums) {
  const at::NoGradGuard no_graph;
  Tensor logits = model.logits(model.states(batch, context));
  add_loss(loss_of_logits(logits, batch, {label_smoothing, 1.0, false}), sums);
  return logits;
}

Metrics Task::metrics(const Sums& sums) const {
  Metrics metrics;
  const double weight = sums.weight > 0 ? sums.weight : 1;
  metrics.set("loss", sums.loss / weight);
  metrics.set("nll", sums.nll / weight);
  return metrics;
}

Metrics Task::score(Model&, const std::string&) const { return {}; }

std::vector<MetricInfo> Task::metric_infos() const {
  return {{"loss", "mean label-smoothed loss, nats per label", false},
          {"nll", "mean negative log-likelihood, nats per label", false}};
}

void Task::require_kind(const ModelConfig& config) const {
  const std::string kind = model_kind();
  if (learned_by(config.kind)) return;
  throw Error(fmt::format("the task {} needs a model of kind \"{}\", not \"{}\"", name(), kind, config.kind),
              fmt::format("set model.kind = \"{}\", or use data for another task", kind));
}

void Task::fill_vocabulary(const char* side, int64_t& vocabulary, int64_t of_data) {
  if (vocabulary == 0) vocabulary = of_data;
  if (vocabulary >= of_data) return;
  throw Error(fmt::format("the data's {} vocabulary of {} does not match the model's {}", side, of_data, vocabulary),
              "set the model's vocabulary sizes to 0 to take them from the data");
}

std::unique_ptr<Task> make_task(const TaskConfig& config, const DataDirectory& data, const std::string& kind_name) {
  const ModelKind& kind = model_kind(kind_name);
  std::string name = config.name;
  if (name.empty()) {
    name = data.task() == "translation" && kind.models_language() ? "language-modeling" : data.task();
    if (name == "language-modeling" && kind.only_encodes()) name = "masked-language-modeling";
  }
  const auto& entry = tasks().at(name);
  const Options& own = options_of(config.options, name, entry);
  require_valid("task." + name, own);
  std::unique_ptr<Task> task = entry.make(data, own);
  task->learn_with(kind_name);
  return task;
}

std::string usual_model_kind(const TaskConfig& config, const DataDirectory& data) {
  const std::string name = config.name.empty() ? data.task() : config.name;
  const auto& entry = tasks().at(name);
  return entry.make(data, options_of(config.options, name, entry))->model_kind();
}

Sums evaluate(const Task& task, Model& model, const Dataset& dataset, int64_t batch_tokens, double label_smoothing,
              const Group& group) {
  return evaluate(task, dataset, batch_tokens, group, [&](const Batch& batch, ForwardContext& context, Sums& sums) {
    task.count(model, batch, label_smoothing, context, sums);
  });
}

Sums evaluate(const Task& task, const Dataset& dataset, int64_t batch_tokens, const Group& group,
              const CountBatch& count, bool together) {
  Sums sums = task.zero();
  if (const std::optional<StreamCut> cut = dataset.stream()) {
    if (group.rank() == 0) count_stream(dataset, *cut, count, sums);
  } else {
    const auto plan = plan_evaluation_batches(dataset.costs(), batch_tokens);
    const int64_t batches = std::ssize(plan);
    for (int64_t first = 0; first < batches; first += group.size()) {
      const int64_t number = first + group.rank();
      if (number >= batches && !together) break;
      ForwardContext context;
      Sums dropped = task.zero();
      const auto& examples = plan[static_cast<size_t>(number < batches ? number : 0)];
      count(dataset.batch(examples), context, number < batches ? sums : dropped);
    }
  }
  return sums.over(group);
}

}  // namespace plumb
