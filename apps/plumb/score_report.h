// The results of `plumb score`, as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/metrics/resampling.h"

namespace plumb::app {

/// One system against the first.
struct ScoreComparison {
  double difference = 0;                   // positive if this system's score is higher
  std::optional<SampleInterval> interval;  // of the difference
  double p_value = 1;
};

/// What BLEU says of a system beside its score.
struct ScoreDetails {
  Json keys = Json::object();  // in the document
  std::string text{};          // at the end of the line
};

/// One system under one metric.
struct SystemScore {
  double score = 0;
  ScoreDetails details;
  std::optional<SampleInterval> interval;
  std::optional<ScoreComparison> comparison;  // absent for the first system
  std::vector<double> sentences;              // one score per sentence; empty if not requested
};

/// All systems under one metric.
struct MetricScores {
  std::string key;   // "bleu", "chrf"
  std::string name;  // "BLEU", "chrF2++"
  std::string signature;
  std::vector<SystemScore> systems;
};

struct ScoreReport {
  std::vector<std::string> systems;  // file names
  std::vector<MetricScores> metrics;
  std::string paired;              // "bootstrap", "randomization"; empty: no test
  std::optional<int64_t> samples;  // bootstrap samples, if any were drawn
  std::optional<int64_t> trials;   // trials of approximate randomization, if any
  uint64_t seed = 0;
};

/// Lines as sacreBLEU prints them for a single system, tables for several.
std::string text_of(const ScoreReport& report);

/// A document with the schema plumb.score/1.
Json document(const ScoreReport& report);

}  // namespace plumb::app
