// Classification of a sentence or a pair of sentences: an encoder reads BOS + first + EOS [+ second + EOS], and a label
// is predicted from its pooled states (Devlin et al. 2019, arXiv 1810.04805). Other models: a decoder, pooled at its
// last token (Radford et al. 2018), and a recurrent model with concat pooling (Howard & Ruder 2018, arXiv 1801.06146).
// Metrics: accuracy, macro F1, and Matthews' correlation coefficient, each with the bounds of its 95% interval:
// Wilson's for accuracy, the bootstrap's for the others.
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/model/kind.h"
#include "plumb/task/classification_metrics.h"
#include "plumb/task/datasets.h"
#include "plumb/task/direction.h"
#include "plumb/task/task.h"
#include "plumb/task/usual_settings.h"

namespace plumb {
namespace {

struct ClassificationOptions {
  std::string direction = "forward";
};
void describe(Fields& field, ClassificationOptions& options) {
  field("direction", options.direction, "`backward`: each sentence is read from its end to its beginning",
        directions());
}

class Classification final : public Task {
 public:
  Classification(const DataDirectory& data, const ClassificationOptions& options)
      : Task(data), classes_(std::ssize(data.labels())) {
    reading_.backward = options.direction == "backward";
    if (classes_ == 0) {
      throw Error(fmt::format("{}: has no labels", data.path().string()),
                  "create a data directory for classification with `plumb data labels`");
    }
    if (classes_ == 1) {
      throw Error(fmt::format("{}: every example has the label '{}'", data.path().string(), data.labels().front()),
                  "a classifier needs at least two labels");
    }
  }

  [[nodiscard]] std::string name() const override { return "classification"; }
  [[nodiscard]] std::string model_kind() const override { return "encoder"; }
  [[nodiscard]] std::vector<std::string> usual_settings() const override { return usual_passes(20, *dataset("train")); }
  [[nodiscard]] bool learned_by(const std::string& kind) const override { return plumb::model_kind(kind).classifies(); }
  void learn_with(const std::string& kind) override {
    reading_.side = plumb::model_kind(kind).models_language() ? Side::target : Side::source;
  }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<LabeledDataset>(data_.split(split), data_.labels_of(split),
                                            data_.source_tokenizer().specials(), reading_);
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    if (kind_of(config).models_language()) {
      if (config.pooling == "first" || config.pooling == "none") {
        throw Error(fmt::format("a model of kind \"{}\" cannot classify with model.pooling = \"{}\"", config.kind,
                                config.pooling),
                    fmt::format("each token sees only those before it: set model.pooling to \"{}\" or \"mean\"",
                                kind_of(config).pooling));
      }
      fill_vocabulary("target", config.target_vocabulary, data_.source_vocabulary());
    } else {
      fill_vocabulary("source", config.source_vocabulary, data_.source_vocabulary());
    }
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
    const Tensor logits = add_cross_entropy(model, batch, label_smoothing, context, sums);
    const Tensor best = logits.argmax(1).cpu();
    for (int64_t i = 0; i < best.size(0); ++i) {
      const int64_t label = batch.labels[static_cast<size_t>(i)];
      sums.counts[static_cast<size_t>(label * classes_ + best.data_ptr<int64_t>()[i])] += 1;
    }
  }

  [[nodiscard]] Metrics metrics(const Sums& sums) const override {
    Metrics metrics = Task::metrics(sums);
    metrics.set(classification_metrics({classes_, sums.counts}));
    return metrics;
  }

  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"accuracy", "fraction of examples whose most probable label is correct"});
    infos.push_back({"f1", "F1 score, averaged over labels"});
    infos.push_back({"mcc", "Matthews' correlation coefficient"});
    return infos;
  }

 private:
  int64_t classes_;
  Reading reading_;
};

const bool kClassificationRegistered = add_task<Classification, ClassificationOptions>(
    "classification", "encoder reads BOS + first + EOS [+ second + EOS]; its pooled state predicts the label",
    "Devlin et al. 2019, arXiv 1810.04805");

}  // namespace
}  // namespace plumb
