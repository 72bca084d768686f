#include "plumb/trouble/spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "plumb/base/error.h"
#include "plumb/trouble/record_fields.h"

namespace plumb {
namespace {

/// Spikes at most this many steps apart belong to one sequence.
constexpr int64_t kGap = 16;

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) throw Error("the median of no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

std::optional<Spike> SpikeSeries::judge(int64_t step, double value) {
  if (last_ && step - last_->step > kGap) last_.reset();
  if (!std::isfinite(value) || !ready() || options_.window == 0) return std::nullopt;
  const double center = plumb::median({values_.begin(), values_.end()});
  // True of most values, and saves computing the second median.
  if (!(value > center) || std::log(value / center) <= options_.threshold * options_.least_spread) return std::nullopt;
  std::vector<double> distances;
  for (const double each : values_) distances.push_back(std::abs(std::log(each / center)));
  const double spread = std::max(plumb::median(std::move(distances)), options_.least_spread);
  const double deviations = std::log(value / center) / spread;
  if (!(deviations > options_.threshold)) return std::nullopt;
  Spike spike{name_, step, value, center, deviations, last_ ? last_->since : step, last_ ? last_->before : center};
  last_ = spike;
  return spike;
}

void SpikeSeries::add(double value) {
  const double rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || rounded <= 0 || options_.window == 0) return;
  values_.push_back(rounded);
  while (static_cast<int64_t>(values_.size()) > options_.window) values_.pop_front();
}

std::optional<double> SpikeSeries::median() const {
  if (!ready() || values_.empty()) return std::nullopt;
  return plumb::median({values_.begin(), values_.end()});
}

std::string SpikeSeries::text() const {
  std::string text;
  for (const double value : values_) text += fmt::format("{}{}", text.empty() ? "" : " ", static_cast<float>(value));
  return text;
}

void SpikeSeries::take(const std::string& text) {
  std::istringstream words(text);
  values_.clear();
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const float value = std::strtof(word.c_str(), &end);
    if (end == nullptr || *end != '\0' || !std::isfinite(value) || value <= 0)
      throw Error(fmt::format("'{}' is no value of the series '{}'", word, name_));
    add(value);
  }
}

void describe(Fields& field, Spike& spike) {
  field("series", spike.series);
  count(field, "step", spike.step);
  field("value", spike.value);
  field("median", spike.median);
  field("deviations", spike.deviations);
  count(field, "since", spike.since);
  field("before", spike.before);
}

void describe(Fields& field, SpikeSeries& series) {
  const std::string now = series.text();
  std::string text = now;
  field("values", text);
  if (text != now) series.take(text);
  field.section("last", series.last_);
}

}  // namespace plumb
