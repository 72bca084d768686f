// Language modeling: a decoder predicts each token from the previous ones. Running text is read in blocks of equal
// length; sentences, including the target side of pairs, are read one by one or packed, with EOS. Both may also be read
// as one stream by a model that carries state. A backward model reads from end to beginning (ULMFiT: Howard & Ruder
// 2018, arXiv 1801.06146). Metric: perplexity.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/task/datasets.h"
#include "plumb/task/direction.h"
#include "plumb/task/stream_dataset.h"
#include "plumb/task/task.h"
#include "plumb/task/usual_settings.h"

namespace plumb {
namespace {

struct LanguageModelingOptions {
  int64_t pack = 0;
  bool apart = false;
  int64_t stream = 0;
  int64_t evaluation_rows = 10;
  int64_t bptt = 70;
  bool varied_bptt = true;
  std::string direction = "forward";
};
void describe(Fields& field, LanguageModelingOptions& options) {
  field("pack", options.pack,
        "tokens of the sequences into which consecutive sentences are joined, for data prepared with --block 0; 0: not "
        "joined",
        at_least(0));
  field("apart", options.apart,
        "whether lines that were joined, here or in blocks, do not see each other: each begins anew, with BOS and "
        "position 0");
  field("stream", options.stream,
        "number of rows into which the training text is cut; they are read side by side, with a state that is carried "
        "from step to step; 0: each example is read separately. For `awd-lstm`",
        at_least(0));
  field("evaluation_rows", options.evaluation_rows, "rows of a stream in all other splits", at_least(1));
  field("bptt", options.bptt,
        "tokens of each row that a step of a stream reads; gradients reach back to the first of them", at_least(1));
  field("varied_bptt", options.varied_bptt,
        "whether a training step reads max(5, ⌊N(bptt, 5)⌋) tokens of each row, in 5% of steps around bptt/2, at a "
        "learning rate in proportion");
  field("direction", options.direction,
        "`backward`: each token is predicted from those after it, from the end of a sequence to its beginning",
        directions());
}

class LanguageModeling final : public Task {
 public:
  LanguageModeling(const DataDirectory& data, const LanguageModelingOptions& options) : Task(data), options_(options) {
    if (options.stream > 0 && (options.pack > 0 || options.apart)) {
      throw Error("task.language-modeling.stream joins all lines, so it cannot be combined with pack or apart",
                  "leave out pack and apart, or set stream = 0");
    }
  }

  [[nodiscard]] std::string name() const override { return "language-modeling"; }
  [[nodiscard]] std::string model_kind() const override { return "decoder"; }
  [[nodiscard]] std::vector<std::string> usual_settings() const override {
    std::vector<std::string> settings = usual_passes(10, *dataset("train"));
    settings.emplace_back("train.label_smoothing=0");
    return settings;
  }
  [[nodiscard]] bool learned_by(const std::string& kind) const override {
    return plumb::model_kind(kind).models_language();
  }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    if (options_.stream > 0) {
      const bool trains = split == "train";
      const int64_t rows = trains ? options_.stream : options_.evaluation_rows;
      return std::make_unique<StreamDataset>(data_.split(split), data_.target_tokenizer().specials(), rows,
                                             StreamCut{options_.bptt, trains && options_.varied_bptt}, backward());
    }
    return std::make_unique<TextDataset>(data_.split(split), data_.target_tokenizer().specials(),
                                         Packing{options_.pack, options_.apart, backward()});
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    if (options_.stream > 0 && !kind_of(config).recurrent) {
      throw Error(fmt::format("a model of kind \"{}\" carries no state along a stream", config.kind),
                  "set task.language-modeling.stream = 0, or model.kind = \"awd-lstm\"");
    }
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
  [[nodiscard]] bool backward() const { return options_.direction == "backward"; }

  LanguageModelingOptions options_;
};

const bool kLanguageModelingRegistered = add_task<LanguageModeling, LanguageModelingOptions>(
    "language-modeling", "decoder reads BOS + tokens; position i predicts token i + 1",
    "Bengio et al. 2003; Radford et al. 2019");

}  // namespace
}  // namespace plumb
