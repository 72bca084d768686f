#include "plumb/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> factor_names(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& word : split(text, '*')) names.push_back(trimmed(word));
  return names;
}

}  // namespace

int64_t ScheduleFrame::decay_begin() const { return decay_start > 0 ? decay_start : std::max<int64_t>(warm_up, 1); }

double ScheduleFrame::decay_progress(int64_t step) const {
  const int64_t begin = decay_begin();
  if (step <= begin) return 0;
  if (step >= steps) return 1;
  return static_cast<double>(step - begin) / static_cast<double>(steps - begin);
}

bool has_schedule_factor(const std::string& schedule, const std::string& name) {
  const std::vector<std::string> names = factor_names(schedule);
  return contains(names, name);
}

Registry<ScheduleFactorFactory>& schedule_factors() {
  static Registry<ScheduleFactorFactory> registry(
      "schedule factor",
      {.title = "Schedule factors",
       .key = "train.schedule",
       .before = "The learning rate of a step is the product of the factors, joined by `*`. Steps count from 1. s is "
                 "`train.decay_start` or, if that is 0, `train.warm_up` (at least 1)."});
  return registry;
}

Schedule::Schedule(const std::string& text, const ScheduleFrame& frame, const VariantOptions& options) {
  for (const std::string& name : factor_names(text)) {
    if (name.empty()) {
      throw Error(fmt::format("schedule \"{}\": a factor is missing", text),
                  "for example \"constant * linear_warmup * rsqrt_decay\"");
    }
    factors_.push_back(make_variant(schedule_factors(), "train.", name, options, frame));
  }
  const std::vector<std::string> names = factor_names(text);
  const auto times = std::count(names.begin(), names.end(), "constant");
  if (times == 0) {
    throw Error(fmt::format("schedule \"{}\": without the factor constant, it ignores train.learning_rate", text),
                fmt::format("\"constant * {}\"", text));
  }
  if (times > 1)
    throw Error(fmt::format("schedule \"{}\": multiplies train.learning_rate {} times", text, times),
                "give the factor constant once");
}

double Schedule::operator()(int64_t step) const {
  double rate = 1;
  for (const ScheduleFactor& factor : factors_) rate *= factor(step);
  return rate;
}

void describe_schedule_options(Fields& field, const std::string& text, VariantOptions& options) {
  const std::vector<std::string> chosen = factor_names(text);
  for (const auto& [name, entry] : schedule_factors().entries()) {
    if (!entry.options) continue;
    Options& own = options.try_emplace(name, entry.options).first->second;
    const bool written = !(own == entry.options) || contains(chosen, name);
    field.section(
        name, [&own](Fields& inner) { own.visit(inner); }, written);
  }
}

}  // namespace plumb
