// Samples from `plumb generate --json`, for a classifier to judge.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/metrics/label_rates.h"

namespace plumb::app {

/// A prompt and the texts generated after it.
struct Continuations {
  std::string prompt;
  std::vector<std::string> samples;
};

/// Reads samples, grouped by prompt in order of first occurrence. Throws Error on a file of another schema, or without
/// samples.
std::vector<Continuations> read_continuations(const std::filesystem::path& file);

/// "mean", TAB, rate, TAB, interval, and so on.
std::string text_of(const LabelRates& rates);

/// {"label", "mean", "mean_low", …}.
Json json_of(const LabelRates& rates, const std::string& label);

}  // namespace plumb::app
