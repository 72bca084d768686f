// Values in TOML notation.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/duration.h"

namespace plumb {

std::string toml_text(int64_t value);
std::string toml_text(double value);  // with a point or an exponent, or inf or nan; never like an integer
std::string toml_text(bool value);
std::string toml_text(const std::string& value);  // in quotes
std::string toml_text(const Duration& value);     // an integer for steps, else in quotes
std::string toml_text(const std::vector<Duration>& values);
std::string toml_text(const std::vector<int64_t>& values);
std::string toml_text(const std::vector<double>& values);
std::string toml_text(const std::vector<std::string>& values);

/// The keys of a TOML text written by Plumb, with their values in TOML notation: "train.adam.beta1",
/// "train.groups.0.pattern". In other text, lines of that form are taken as keys.
std::vector<std::pair<std::string, std::string>> key_values(const std::string& toml);

}  // namespace plumb
