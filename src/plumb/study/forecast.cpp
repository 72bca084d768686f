#include "plumb/study/forecast.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "plumb/analysis/gradient.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/ops/threads.h"

namespace plumb {
namespace {

/// Work (work_of) per second of one of `jobs` measurements that divide the threads; 0 where the study's model and data
/// have no gradient, since an estimate is no reason to end.
double speed(const StudyContext& context, int64_t jobs) {
  constexpr int64_t kPairs = 8, kLayers = 2;
  const int threads = omp_get_max_threads();
  double seconds = 0;
  const ModelConfig config = model_for(context, context.arms.front().name, kLayers);
  try {
    ops::set_threads(std::max<int64_t>(threads / jobs, 1));
    const std::unique_ptr<Model> model = initialized_model(context, config);
    const std::vector<Batch> batches = measured_batches(context, kPairs);
    seconds = median_seconds(1, [&] { (void)measure_gradients(*model, batches); });
  } catch (const Error&) {
  }
  ops::set_threads(threads);
  return seconds > 0 ? work_of(config, measured_tokens(context, kPairs)) / seconds : 0;
}

}  // namespace

std::string rough_time(double seconds) {
  const auto about = [](double number, const char* unit) {
    const double rounded = std::max(std::round(number), 1.0);
    return fmt::format("about {:.0f} {}{}", rounded, unit, rounded == 1 ? "" : "s");
  };
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < kMinute) return "less than a minute";
  return seconds < 1.5 * kHour ? about(seconds / kMinute, "minute") : about(seconds / kHour, "hour");
}

std::string forecast(const StudyContext& context, const PartPlans& plans, int64_t jobs) {
  std::set<std::string> names;
  std::vector<std::string> of_parts;
  int64_t missing = 0;
  double work = 0, alone = 0;
  for (const auto& [part, plan] : plans) {
    int64_t of_part = 0;
    for (const MeasurementRequest& request : plan.requests()) {
      if (!names.insert(request.name).second || context.measurements.has(request)) continue;
      ++of_part;
      (request.alone ? alone : work) += request.work;
    }
    missing += of_part;
    if (of_part > 0) of_parts.push_back(fmt::format("{} of {}", of_part, part));
  }
  if (missing == 0) return "";
  const int64_t together = std::min(jobs, missing);
  const double rate = speed(context, together);
  return fmt::format("{} measurement{} to make: {}{}", with_thousands(missing), missing == 1 ? "" : "s", join(of_parts),
                     rate > 0 ? "; " + rough_time((work / static_cast<double>(together) + alone) / rate) : "");
}

}  // namespace plumb
