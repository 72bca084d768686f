// Classification of a sentence or a pair of sentences: an encoder reads BOS + first + EOS [+ second + EOS], and a label
// is predicted from its pooled states (Devlin et al. 2019, arXiv 1810.04805). Metrics: accuracy and macro F1.
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/task/datasets.h"
#include "plumb/task/task.h"

namespace plumb {
namespace {

class Classification final : public Task {
 public:
  explicit Classification(const DataDirectory& data) : Task(data), classes_(std::ssize(data.labels())) {
    if (classes_ == 0)
      throw Error(fmt::format("{}: has no labels", data.path().string()),
                  "create a data directory for classification with `plumb data labels`");
  }

  [[nodiscard]] std::string name() const override { return "classification"; }
  [[nodiscard]] std::string model_kind() const override { return "encoder"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<LabeledDataset>(data_.split(split), data_.labels_of(split),
                                            data_.source_tokenizer().specials());
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    fill_vocabulary("source", config.source_vocabulary, data_.source_vocabulary());
    if (config.labels == 0) config.labels = classes_;
    if (config.labels != classes_) {
      throw Error(
          fmt::format("model.labels = {}, but the data have {}: {}", config.labels, classes_, join(data_.labels())),
          "set model.labels = 0 to take the number from the data");
    }
  }

  /// The confusion matrix by rows: [label · classes + prediction].
  [[nodiscard]] Sums zero() const override {
    Sums sums;
    sums.counts.assign(static_cast<size_t>(classes_ * classes_), 0);
    return sums;
  }

  void count(Model& model, const Batch& batch, double label_smoothing, ForwardContext& context,
             Sums& sums) const override {
    const at::NoGradGuard no_graph;
    const Tensor logits = model.logits(model.states(batch, context));
    const Loss found = loss_of_logits(logits, batch, {label_smoothing, 1.0, false});
    const std::vector<double> read = ops::read({ops::Number(found.value), found.nll});
    sums.loss += read[0];
    sums.nll += read[1];
    sums.weight += found.weight;
    const Tensor best = logits.argmax(1).cpu();
    for (int64_t i = 0; i < best.size(0); ++i) {
      const int64_t label = batch.labels[static_cast<size_t>(i)];
      sums.counts[static_cast<size_t>(label * classes_ + best.data_ptr<int64_t>()[i])] += 1;
    }
  }

  [[nodiscard]] Metrics metrics(const Sums& sums) const override {
    Metrics metrics = Task::metrics(sums);
    const auto at = [&](int64_t label, int64_t predicted) {
      return sums.counts[static_cast<size_t>(label * classes_ + predicted)];
    };
    double all = 0;
    double right = 0;
    double f1 = 0;
    for (int64_t label = 0; label < classes_; ++label) {
      double predicted = 0;
      double present = 0;
      for (int64_t other = 0; other < classes_; ++other) {
        present += at(label, other);
        predicted += at(other, label);
      }
      all += present;
      right += at(label, label);
      if (present + predicted > 0) f1 += 2 * at(label, label) / (present + predicted);
    }
    metrics.set("accuracy", all > 0 ? right / all : 0);
    metrics.set("f1", f1 / static_cast<double>(classes_));
    return metrics;
  }

  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"accuracy", "fraction of examples whose most probable label is correct"});
    infos.push_back({"f1", "F1 score, averaged over labels"});
    return infos;
  }

 private:
  int64_t classes_;
};

[[maybe_unused]] const bool kClassificationRegistered = tasks().add(
    "classification", "encoder reads BOS + first + EOS [+ second + EOS]; its pooled state predicts the label",
    "Devlin et al. 2019, arXiv 1810.04805",
    [](const DataDirectory& data, const Options&) { return std::make_unique<Classification>(data); });

}  // namespace
}  // namespace plumb
