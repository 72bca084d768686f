// plumb score --metrics ter
#include "plumb/metrics/ter.h"
#include "score_metric.h"

namespace plumb::app {
namespace {

class TerOfScore final : public ScoreMetric {
 public:
  void add_options(CLI::App& verb) override {
    verb.add_flag("--ter-normalize", options_.normalize, "Separate punctuation and replace XML entities in TER");
    verb.add_flag("--ter-no-punctuation", options_.remove_punctuation, "Remove punctuation in TER");
    verb.add_flag("--ter-asian", options_.asian,
                  "Let the two options above treat Chinese and Japanese characters and punctuation too");
    verb.add_flag("--ter-case-sensitive", options_.case_sensitive, "Do not ignore case in TER");
  }

  /// --lowercase makes no difference: case is ignored unless --ter-case-sensitive is given.
  [[nodiscard]] CorpusMetric metric(bool /*lowercase*/) const override { return ter_metric(options_); }

  [[nodiscard]] Details details(const std::vector<int64_t>& counts, size_t references) const override {
    const TerScore ter = ter_of_counts(counts, references);
    return {.keys = {{"edits", ter.edits}, {"reference_length", ter.reference_length}}};
  }

 private:
  TerOptions options_;
};

const bool kTerRegistered = score_metrics().add("ter", "TER", "", [] { return std::make_unique<TerOfScore>(); });

}  // namespace
}  // namespace plumb::app
