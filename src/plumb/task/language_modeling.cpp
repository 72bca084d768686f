// Language modeling: a decoder predicts each token from those before it. Of running text, blocks of equal length are
// read; of sentences, or of the target side of pairs, each by itself, with its end. Metric: perplexity.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/task/datasets.h"
#include "plumb/task/task.h"

namespace plumb {
namespace {

class LanguageModeling final : public Task {
 public:
  explicit LanguageModeling(const DataDirectory& data) : Task(data) {}

  [[nodiscard]] std::string name() const override { return "language-modeling"; }
  [[nodiscard]] std::string model_kind() const override { return "decoder"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<TextDataset>(data_.split(split), data_.target_tokenizer().specials());
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    fill_vocabulary("target", config.target_vocabulary, data_.target_vocabulary());
  }

  [[nodiscard]] Metrics metrics(const Sums& sums) const override {
    Metrics metrics = Task::metrics(sums);
    metrics.set("perplexity", std::exp(*metrics.get("nll")));
    return metrics;
  }

  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"perplexity", "exp(nll), per vocabulary token", false});
    return infos;
  }
};

[[maybe_unused]] const bool kLanguageModelingRegistered =
    tasks().add("language-modeling", "decoder reads BOS + tokens; position i predicts token i + 1",
                "Bengio et al. 2003; Radford et al. 2019",
                [](const DataDirectory& data, const Options&) { return std::make_unique<LanguageModeling>(data); });

}  // namespace
}  // namespace plumb
