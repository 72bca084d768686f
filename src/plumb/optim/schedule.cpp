#include "plumb/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

int64_t decay_start(const ScheduleOptions& options) {
  return options.decay_start > 0 ? options.decay_start : std::max<int64_t>(options.warm_up, 1);
}

/// How much of the way from decay_start to the last step is done, 0 to 1.
double progress(const ScheduleOptions& options, int64_t step) {
  const int64_t begin = decay_start(options);
  if (step <= begin) return 0;
  if (step >= options.steps) return 1;
  return static_cast<double>(step - begin) / static_cast<double>(options.steps - begin);
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

const char* const kTensor2Tensor = "tensor2tensor, utils/learning_rate.py";

Registry<ScheduleFactorFactory> known_factors() {
  Registry<ScheduleFactorFactory> registry("schedule factor");
  registry.add("constant", "`train.learning_rate`", kTensor2Tensor,
               [](const ScheduleOptions& options) -> ScheduleFactor {
                 return [rate = options.learning_rate](int64_t) { return rate; };
               });
  registry.add("linear_warmup", "min(1, step/warm_up); 1 if warm_up is 0", "Vaswani et al. 2017, arXiv 1706.03762",
               [](const ScheduleOptions& options) -> ScheduleFactor {
                 const double length = static_cast<double>(std::max<int64_t>(options.warm_up, 1));
                 return [length](int64_t step) { return std::min(1.0, static_cast<double>(step) / length); };
               });
  registry.add("rsqrt_decay", "√(s/max(step, s)): 1 at the peak", "Vaswani et al. 2017, arXiv 1706.03762",
               [](const ScheduleOptions& options) -> ScheduleFactor {
                 return [begin = decay_start(options)](int64_t step) {
                   return std::sqrt(static_cast<double>(begin) / static_cast<double>(std::max(step, begin)));
                 };
               });
  registry.add("rsqrt_hidden_size", "1/√d_model", kTensor2Tensor, [](const ScheduleOptions& options) -> ScheduleFactor {
    return [value = 1 / std::sqrt(static_cast<double>(options.hidden_size))](int64_t) { return value; };
  });
  registry.add("cosine_decay", "from 1 at s to `train.decay_floor` at step `train.steps`, as half a cosine",
               "Loshchilov & Hutter 2017, arXiv 1608.03983", [](const ScheduleOptions& options) -> ScheduleFactor {
                 return [options](int64_t step) {
                   return options.decay_floor +
                          (1 - options.decay_floor) * (1 + std::cos(std::numbers::pi * progress(options, step))) / 2;
                 };
               });
  registry.add("linear_decay", "from 1 at s to `train.decay_floor` at step `train.steps`, as a line", kTensor2Tensor,
               [](const ScheduleOptions& options) -> ScheduleFactor {
                 return [options](int64_t step) { return 1 - (1 - options.decay_floor) * progress(options, step); };
               });
  registry.add("step_decay", "`train.step_decay_factor` to the number of `train.step_decay_at` that lie behind",
               "Xiong et al. 2020, arXiv 2002.04745", [](const ScheduleOptions& options) -> ScheduleFactor {
                 return [at = options.step_decay_at, factor = options.step_decay_factor](int64_t step) {
                   const auto passed =
                       std::count_if(at.begin(), at.end(), [step](int64_t drop) { return step > drop; });
                   return std::pow(factor, static_cast<double>(passed));
                 };
               });
  return registry;
}

}  // namespace

Registry<ScheduleFactorFactory>& schedule_factors() {
  static Registry<ScheduleFactorFactory> registry = known_factors();
  return registry;
}

Schedule::Schedule(const std::string& text, const ScheduleOptions& options) {
  for (const std::string& word : split(text, '*')) {
    const std::string name = trimmed(word);
    if (name.empty()) {
      throw Error(fmt::format("schedule \"{}\": a factor is missing", text),
                  "for example \"constant * linear_warmup * rsqrt_decay\"");
    }
    factors_.push_back(schedule_factors().at(name).make(options));
  }
}

double Schedule::operator()(int64_t step) const {
  double rate = 1;
  for (const ScheduleFactor& factor : factors_) rate *= factor(step);
  return rate;
}

}  // namespace plumb
