// Language modeling: a decoder predicts each token from the previous ones. Running text is read in blocks of equal
// length; sentences, including the target side of pairs, are read one by one, with their end. A backward model reads
// them from the end (ULMFiT: Howard & Ruder 2018, arXiv 1801.06146). Metric: perplexity.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/task/datasets.h"
#include "plumb/task/direction.h"
#include "plumb/task/task.h"

namespace plumb {
namespace {

struct LanguageModelingOptions {
  int64_t pack = 0;
  bool apart = false;
  std::string direction = "forward";
};
void describe(Fields& field, LanguageModelingOptions& options) {
  field("pack", options.pack,
        "tokens of the sequences that consecutive sentences are joined to, for data prepared with --block 0; 0: not "
        "joined");
  field("apart", options.apart,
        "whether lines that were joined, here or in blocks, do not see each other: each begins anew, with BOS and "
        "position 0");
  field("direction", options.direction,
        "forward, or backward: each token is predicted from those behind it, from the end of a sequence to its "
        "beginning");
}

class LanguageModeling final : public Task {
 public:
  LanguageModeling(const DataDirectory& data, const LanguageModelingOptions& options) : Task(data), options_(options) {
    if (options.pack < 0) throw Error(fmt::format("task.language-modeling.pack = {} is negative", options.pack));
    if (options.direction != "forward" && options.direction != "backward")
      throw Error(fmt::format("task.language-modeling.direction = \"{}\" is unknown", options.direction),
                  "known: forward, backward");
  }

  [[nodiscard]] std::string name() const override { return "language-modeling"; }
  [[nodiscard]] std::string model_kind() const override { return "decoder"; }
  [[nodiscard]] bool learned_by(const std::string& kind) const override { return is_language_model(kind); }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<TextDataset>(data_.split(split), data_.target_tokenizer().specials(),
                                         Packing{options_.pack, options_.apart, options_.direction == "backward"});
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    if (config.labels > 0) {
      throw Error(fmt::format("a decoder with {} labels classifies", config.labels),
                  "set model.labels = 0 for a language model");
    }
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

bool reads_backward(const TaskConfig& config) {
  const auto& entry = tasks().at("language-modeling");
  return config.name == "language-modeling" &&
         options_of(config.options, config.name, entry).as<LanguageModelingOptions>().direction == "backward";
}

}  // namespace plumb
