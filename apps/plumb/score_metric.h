// The metrics of `plumb score`: each has a file with its options, which registers itself.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/base/registry.h"
#include "plumb/metrics/corpus_metric.h"

namespace plumb::app {

class ScoreMetric {
 public:
  /// What is said of a system beside its score.
  struct Details {
    Json keys = Json::object();  // in the document
    std::string text{};          // at the end of the line
  };

  virtual ~ScoreMetric() = default;

  /// Declares its options.
  virtual void add_options(CLI::App& verb) = 0;

  /// The metric with the options that were given. `lowercase`: ignore case, as --lowercase says.
  [[nodiscard]] virtual CorpusMetric metric(bool lowercase) const = 0;
  /// The same for single sentences.
  [[nodiscard]] virtual CorpusMetric of_sentences(bool lowercase) const { return metric(lowercase); }

  /// `counts`: summed over the sentences.
  [[nodiscard]] virtual Details details(const std::vector<int64_t>& /*counts*/, size_t /*references*/) const {
    return {};
  }
};
Registry<std::function<std::unique_ptr<ScoreMetric>()>>& score_metrics();

}  // namespace plumb::app
