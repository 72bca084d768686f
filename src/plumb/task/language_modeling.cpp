// Language modeling: a decoder predicts each token from the previous ones. Running text is read in blocks of equal
// length; sentences, including the target side of pairs, are read one by one, with their end. Metric: perplexity.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/task/datasets.h"
#include "plumb/task/task.h"

namespace plumb {
namespace {

struct LanguageModelingOptions {
  int64_t pack = 0;
  bool apart = false;
};
void describe(Fields& field, LanguageModelingOptions& options) {
  field("pack", options.pack,
        "tokens of the sequences that consecutive sentences are joined to, for data prepared with --block 0; 0: not "
        "joined");
  field("apart", options.apart,
        "whether lines that were joined, here or in blocks, do not see each other: each begins anew, with BOS and "
        "position 0");
}

class LanguageModeling final : public Task {
 public:
  LanguageModeling(const DataDirectory& data, const LanguageModelingOptions& options) : Task(data), options_(options) {
    if (options.pack < 0) throw Error(fmt::format("task.language-modeling.pack = {} is negative", options.pack));
  }

  [[nodiscard]] std::string name() const override { return "language-modeling"; }
  [[nodiscard]] std::string model_kind() const override { return "decoder"; }
  [[nodiscard]] bool learned_by(const std::string& kind) const override { return is_language_model(kind); }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<TextDataset>(data_.split(split), data_.target_tokenizer().specials(),
                                         Packing{options_.pack, options_.apart});
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

 private:
  LanguageModelingOptions options_;
};

[[maybe_unused]] const bool kLanguageModelingRegistered = tasks().add(
    "language-modeling", "decoder reads BOS + tokens; position i predicts token i + 1",
    "Bengio et al. 2003; Radford et al. 2019",
    [](const DataDirectory& data, const Options& options) {
      return std::make_unique<LanguageModeling>(data, options.as<LanguageModelingOptions>());
    },
    Options(LanguageModelingOptions{}));

}  // namespace
}  // namespace plumb
