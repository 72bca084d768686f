// A corpus score that depends on the text only through sums of counts over its sentences, as BLEU and chrF do: a
// resampled corpus is then scored from the counts, without its text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// The counts of every sentence of one system's output: a matrix of shape (sentences, width).
class SentenceCounts {
 public:
  SentenceCounts(size_t sentences, size_t width) : sentences_(sentences), width_(width), values_(sentences * width) {}

  [[nodiscard]] size_t sentences() const { return sentences_; }
  [[nodiscard]] size_t width() const { return width_; }
  /// Row i, of `width()` counts.
  [[nodiscard]] std::span<int64_t> operator[](size_t i) { return {values_.data() + i * width_, width_}; }
  [[nodiscard]] std::span<const int64_t> operator[](size_t i) const { return {values_.data() + i * width_, width_}; }
  /// The sum of all rows.
  [[nodiscard]] std::vector<int64_t> sum() const;

 private:
  size_t sentences_;
  size_t width_;
  std::vector<int64_t> values_;
};

/// One metric with its options fixed; `bleu_metric` and `chrf_metric` make it. Both functions may be
/// called from several threads at once.
struct CorpusMetric {
  std::string name;      // "BLEU", "chrF2++"
  std::string settings;  // the options in the signature: "case:mixed|eff:no|tok:13a|smooth:exp"
  size_t width = 0;      // counts per sentence

  /// Writes the `width` counts of one sentence; there is at least one reference. Text is detokenized UTF-8.
  std::function<void(std::string_view hypothesis, std::span<const std::string_view> references,
                     std::span<int64_t> counts)>
      count;
  /// The score of summed counts.
  std::function<double(std::span<const int64_t> counts)> score;
};

/// Counts every sentence, in parallel. `references`: one vector per reference file, each as long as `hypotheses`.
/// Throws Error on unequal lengths, no sentences, or no references.
SentenceCounts count_sentences(const CorpusMetric& metric, const std::vector<std::string>& hypotheses,
                               const std::vector<std::vector<std::string>>& references);

/// The score of every sentence by itself. For BLEU, set `BleuOptions::effective_order`.
std::vector<double> sentence_scores(const CorpusMetric& metric, const SentenceCounts& counts);

/// The signature that makes a score reproducible, in sacreBLEU's format (Post 2018, arXiv 1804.08771):
/// `nrefs:1|bs:1000|seed:1|SETTINGS|version:plumb.0.1.0`, where `resampling` is "bs:1000|seed:1" or empty.
std::string metric_signature(const CorpusMetric& metric, size_t reference_count, std::string_view resampling = {});

}  // namespace plumb
