// plumb score --metrics chrf
#include "checks.h"
#include "plumb/metrics/chrf.h"
#include "score_metric.h"

namespace plumb::app {
namespace {

class ChrfOfScore final : public ScoreMetric {
 public:
  void add_options(CLI::App& verb) override {
    verb.add_option("--chrf-character-order", options_.character_order, "Highest order of character n-grams in chrF")
        ->check(between(1, 100));
    verb.add_option("--chrf-word-order", options_.word_order, "Order of word n-grams in chrF; 2 is chrF++")
        ->check(between(0, 9));
    verb.add_option("--chrf-beta", options_.beta, "Weight of recall against precision in chrF")
        ->check(between(1e-6, 1e6));
    verb.add_flag("--chrf-whitespace", options_.whitespace, "Include white space in chrF's character n-grams");
    verb.add_flag("--chrf-epsilon-smoothing", options_.epsilon_smoothing,
                  "Average chrF over all orders, as chrF++.py, NLTK and Moses do");
  }

  [[nodiscard]] CorpusMetric metric(bool lowercase) const override {
    ChrfOptions options = options_;
    options.lowercase = lowercase;
    return chrf_metric(options);
  }

 private:
  ChrfOptions options_;
};

const bool kChrfRegistered = score_metrics().add("chrf", "chrF", "", [] { return std::make_unique<ChrfOfScore>(); });

}  // namespace
}  // namespace plumb::app
