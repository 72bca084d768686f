// Masked language modeling: an encoder predicts masked tokens from those around them (Devlin et al. 2019, arXiv
// 1810.04805). Metrics: perplexity and accuracy at these tokens.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/ops/index.h"
#include "plumb/task/masked_dataset.h"
#include "plumb/task/task.h"
#include "plumb/task/usual_settings.h"

namespace plumb {
namespace {

struct MaskedLanguageModelingOptions {
  Masking masking;
  int64_t pack = 0;
};
void describe(Fields& field, MaskedLanguageModelingOptions& options) {
  field("share", options.masking.share, "of the tokens that are predicted, or of the words",
        Domain{.smallest = 0, .largest = 1, .above = true});
  field("whole_words", options.masking.whole_words, "whether all tokens of a word are predicted together");
  field("pack", options.pack,
        "tokens of the sequences into which consecutive sentences are joined, for data prepared with --block 0; 0: not "
        "joined",
        at_least(0));
}

class MaskedLanguageModeling final : public Task {
 public:
  MaskedLanguageModeling(const DataDirectory& data, const MaskedLanguageModelingOptions& options)
      : Task(data), pack_(options.pack), masker_(tokenizer_of(data), options.masking) {}

  [[nodiscard]] std::string name() const override { return "masked-language-modeling"; }
  [[nodiscard]] std::string model_kind() const override { return "encoder"; }
  [[nodiscard]] std::vector<std::string> usual_settings() const override {
    std::vector<std::string> settings = usual_passes(10, *dataset("train"));
    settings.insert(settings.end(), {"model.pooling=none", "train.label_smoothing=0"});
    return settings;
  }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    const Specials& specials = data_.target_tokenizer().specials();
    return std::make_unique<MaskedDataset>(TextDataset(data_.split(split), specials, {.tokens = pack_}), specials,
                                           masker_);
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    if (config.pooling != "none") {
      throw Error(fmt::format("the task {} needs model.pooling = \"none\", not \"{}\"", name(), config.pooling),
                  "each token is predicted from its own state");
    }
    fill_vocabulary("source", config.source_vocabulary, data_.target_vocabulary());
  }

  /// One count: the number of labels that are the most probable token.
  [[nodiscard]] Sums zero() const override {
    Sums sums;
    sums.counts = {0};
    return sums;
  }

  void count(Model& model, const Batch& batch, double label_smoothing, ForwardContext& context,
             Sums& sums) const override {
    const Tensor logits = add_cross_entropy(model, batch, label_smoothing, context, sums);
    const Tensor right = logits.argmax(1).eq(ops::index_beside(logits, batch.labels)).sum();
    sums.counts[0] += static_cast<double>(right.item<int64_t>());
  }

  [[nodiscard]] Metrics metrics(const Sums& sums) const override {
    Metrics metrics = Task::metrics(sums);
    metrics.set("perplexity", std::exp(*metrics.get("nll")));
    metrics.set("accuracy", sums.weight > 0 ? sums.counts[0] / sums.weight : 0);
    return metrics;
  }

  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"perplexity", "exp(nll), per masked token", false});
    infos.push_back({"accuracy", "fraction of masked tokens that are the most probable ones"});
    return infos;
  }

 private:
  static const Tokenizer& tokenizer_of(const DataDirectory& data) {
    if (data.joint()) return data.target_tokenizer();
    throw Error(fmt::format("{}: has separate vocabularies for source and target", data.path().string()),
                "masked language modeling needs text in one language, from `plumb data text --mask-token`");
  }

  int64_t pack_;
  Masker masker_;
};

const bool kMaskedLanguageModelingRegistered = add_task<MaskedLanguageModeling, MaskedLanguageModelingOptions>(
    "masked-language-modeling",
    "encoder reads BOS + tokens + EOS, of which some are masked, and predicts what those were",
    "Devlin et al. 2019, arXiv 1810.04805; Liu et al. 2019, arXiv 1907.11692");

}  // namespace
}  // namespace plumb
