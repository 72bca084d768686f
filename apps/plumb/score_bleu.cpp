// plumb score --metrics bleu
#include <fmt/format.h>

#include "checks.h"
#include "plumb/base/text.h"
#include "plumb/metrics/bleu.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "score_metric.h"

namespace plumb::app {
namespace {

class BleuOfScore final : public ScoreMetric {
 public:
  void add_options(CLI::App& verb) override {
    verb.add_option("--tokenize", options_.tokenizer, "BLEU tokenizer")
        ->check(CLI::IsMember(bleu_tokenizers().names()));
    verb.add_option("--smoothing", options_.smoothing, "BLEU smoothing")
        ->check(CLI::IsMember(bleu_smoothings().names()));
    verb.add_option("--smoothing-value", options_.smoothing_value,
                    "Value for --smoothing floor (default: 0.1) and add-k (default: 1)")
        ->check(not_negative());
    verb.add_option("--order", options_.order, "Highest order of n-grams in BLEU")->check(between(1, 100));
    verb.add_flag("--effective-order", options_.effective_order,
                  "Leave out of BLEU the orders for which the translations have no n-gram; --sentences always does so");
  }

  [[nodiscard]] CorpusMetric metric(bool lowercase) const override {
    BleuOptions options = options_;
    options.lowercase = lowercase;
    return bleu_metric(options);
  }

  /// Leaves out orders without n-grams.
  [[nodiscard]] CorpusMetric of_sentences(bool lowercase) const override {
    BleuOptions options = options_;
    options.lowercase = lowercase;
    options.effective_order = true;
    return bleu_metric(options);
  }

  [[nodiscard]] Details details(const std::vector<int64_t>& counts, size_t /*references*/) const override {
    const BleuScore bleu = bleu_of_counts(counts, options_);
    std::vector<std::string> precisions;
    for (const double precision : bleu.precisions) precisions.push_back(fmt::format("{:.1f}", precision));
    const auto words = static_cast<double>(bleu.system_length), wanted = static_cast<double>(bleu.reference_length);
    return {{{"precisions", bleu.precisions},
             {"brevity_penalty", bleu.brevity_penalty},
             {"system_length", bleu.system_length},
             {"reference_length", bleu.reference_length}},
            fmt::format(" {} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", join(precisions, "/"),
                        bleu.brevity_penalty, wanted == 0 ? 0.0 : words / wanted, bleu.system_length,
                        bleu.reference_length)};
  }

 private:
  BleuOptions options_;
};

const bool kBleuRegistered = score_metrics().add("bleu", "BLEU", "", [] { return std::make_unique<BleuOfScore>(); });

}  // namespace
}  // namespace plumb::app
