#include "plumb/trouble/spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The minimum spread, as a fraction of the median.
constexpr double kLeastSpread = 0.02;

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
  if (value <= center) return std::nullopt;  // true of most values; saves computing the second median
  std::vector<double> distances;
  for (const double each : values_) distances.push_back(std::abs(each - center));
  const double spread = std::max(plumb::median(std::move(distances)), kLeastSpread * std::abs(center));
  if (!(value - center > options_.threshold * spread)) return std::nullopt;
  Spike spike{name_,
              step,
              value,
              center,
              (value - center) / spread,
              last_ ? last_->since : step,
              last_ ? last_->before : center};
  last_ = spike;
  return spike;
}

void SpikeSeries::add(double value) {
  const double rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || options_.window == 0) return;
  values_.push_back(rounded);
  while (static_cast<int64_t>(values_.size()) > options_.window) values_.pop_front();
}

std::optional<double> SpikeSeries::median() const {
  if (!ready() || values_.empty()) return std::nullopt;
  return plumb::median({values_.begin(), values_.end()});
}

Json SpikeSeries::state() const {
  std::string text;  // one string, since there are many values
  for (const double value : values_) text += fmt::format("{}{}", text.empty() ? "" : " ", static_cast<float>(value));
  Json json = {{"values", text}};
  if (last_) json["last"] = to_json(*last_);
  return json;
}

void SpikeSeries::load_state(const Json& json) {
  std::istringstream text(json.at("values").get<std::string>());
  values_.clear();
  for (std::string word; text >> word;) {
    char* end = nullptr;
    const float value = std::strtof(word.c_str(), &end);
    if (end == nullptr || *end != '\0' || !std::isfinite(value))
      throw Error(fmt::format("'{}' is no value of the series '{}'", word, name_));
    add(value);
  }
  last_.reset();
  if (json.contains("last")) last_ = spike_from_json(json["last"]);
}

Json to_json(const Spike& spike) {
  return {{"series", spike.series},         {"step", spike.step},   {"value", spike.value},  {"median", spike.median},
          {"deviations", spike.deviations}, {"since", spike.since}, {"before", spike.before}};
}

Spike spike_from_json(const Json& json) {
  Spike spike;
  spike.series = json.at("series");
  spike.step = count_of(json.at("step"));
  spike.value = number_of(json.at("value"));
  spike.median = number_of(json.at("median"));
  spike.deviations = number_of(json.at("deviations"));
  spike.since = count_of(json.at("since"));
  spike.before = number_of(json.at("before"));
  return spike;
}

}  // namespace plumb
