// Translation: an encoder reads the source, a decoder predicts the target (Sutskever et al. 2014, arXiv 1409.3215;
// Vaswani et al. 2017, arXiv 1706.03762). Metric: corpus BLEU of the split's translation by beam search.
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/decode/translate.h"
#include "plumb/metrics/bleu.h"
#include "plumb/task/datasets.h"
#include "plumb/task/task.h"

namespace plumb {
namespace {

struct TranslationOptions {
  int64_t beam = 5;
};
void describe(Fields& field, TranslationOptions& options) {
  field("beam", options.beam, "beam width of the search for BLEU; 0: no BLEU", within(0, kLargestBeam));
}

class Translation final : public Task {
 public:
  Translation(const DataDirectory& data, const TranslationOptions& options) : Task(data), options_(options) {
    if (data.task() != "translation")
      throw Error(fmt::format("{}: contains no sentence pairs to translate", data.path().string()),
                  "create a data directory of pairs with `plumb data prepare`");
  }

  [[nodiscard]] std::string name() const override { return "translation"; }
  [[nodiscard]] std::string model_kind() const override { return "encoder-decoder"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<PairDataset>(data_.split(split), data_.source_tokenizer().specials(),
                                         data_.target_tokenizer().specials());
  }

  void complete(ModelConfig& config) const override {
    require_kind(config);
    fill_vocabulary("source", config.source_vocabulary, data_.source_vocabulary());
    fill_vocabulary("target", config.target_vocabulary, data_.target_vocabulary());
  }

  [[nodiscard]] Metrics score(Model& model, const std::string& split) const override {
    Metrics metrics;
    if (options_.beam == 0) return metrics;
    DecodeOptions decoding;
    decoding.beam = options_.beam;
    decoding.source = data_.source_tokenizer().specials();
    decoding.target = data_.target_tokenizer().specials();
    const Split& pairs = data_.split(split);
    std::vector<std::vector<int32_t>> sources;
    for (int64_t i = 0; i < pairs.size(); ++i) sources.emplace_back(pairs.source(i).begin(), pairs.source(i).end());
    std::vector<std::string> translations;
    for (const auto& ids : translate(translator_of(model), sources, decoding))
      translations.push_back(data_.target_tokenizer().decode(ids));
    metrics.set("bleu", corpus_bleu(translations, {data_.raw_target(split)}).score);
    return metrics;
  }

  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"bleu", "corpus BLEU in percent, detokenized, cased, sacreBLEU's 13a", true,
                     options_.beam == 0 ? "task.translation.beam = 0" : ""});
    return infos;
  }

 private:
  TranslationOptions options_;
};

const bool kTranslationRegistered = add_task<Translation, TranslationOptions>(
    "translation", "encoder reads source + EOS, decoder reads BOS + target and predicts target + EOS",
    "Vaswani et al. 2017, arXiv 1706.03762");

}  // namespace
}  // namespace plumb
