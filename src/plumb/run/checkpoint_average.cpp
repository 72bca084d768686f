#include "plumb/run/checkpoint_average.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/data/directory.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/run/best_metric.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/task/task.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// All checkpoints that a run still has, by step.
std::map<int64_t, fs::path> all_checkpoints(const fs::path& run) {
  require_directory(run, "run");
  std::map<int64_t, fs::path> found = checkpoints_of(run);
  found.merge(best_checkpoints_of(run));
  return found;
}

void require_count(const fs::path& run, size_t found, int64_t wanted, const std::string& what) {
  if (wanted < 1) throw Error(fmt::format("cannot average {} checkpoints", wanted), "average at least one");
  if (static_cast<int64_t>(found) >= wanted) return;
  throw Error(fmt::format("{}: has {} {}, not {}", run.string(), found, what, wanted),
              "average fewer, or train with a larger train.keep_checkpoints");
}

BestMetric best_metric_of(const fs::path& run) {
  const RunConfig config = load_run_config(run);
  // Every task has these two, so the data are not needed.
  for (const char* name : {"valid_nll", "valid_loss"}) {
    if (config.train.best_metric == name) return {.name = name};
  }
  return plumb::best_metric_of(config.train,
                               *make_task(config.task, DataDirectory::open(config.data), config.model.kind));
}

}  // namespace

std::vector<fs::path> last_checkpoints(const fs::path& run, int64_t count) {
  const auto all = all_checkpoints(run);
  require_count(run, all.size(), count, "checkpoints");
  std::vector<fs::path> chosen;
  for (const auto& [step, path] : all) chosen.push_back(path);
  chosen.erase(chosen.begin(), chosen.end() - count);
  return chosen;
}

std::vector<fs::path> best_checkpoints(const fs::path& run, int64_t count) {
  const auto all = all_checkpoints(run);
  const BestMetric metric = best_metric_of(run);
  std::vector<std::pair<double, fs::path>> validated;
  for (const TrainPoint& point : read_metrics(run / "metrics.jsonl")) {
    const std::optional<double> value = point.metrics.get(metric.name);
    const auto found = all.find(point.step);
    if (value && std::isfinite(*value) && found != all.end()) validated.emplace_back(*value, found->second);
  }
  require_count(run, validated.size(), count, fmt::format("checkpoints with a value of {} at their step", metric.name));
  std::stable_sort(validated.begin(), validated.end(),
                   [&](const auto& a, const auto& b) { return metric.is_better(a.first, b.first); });
  std::vector<fs::path> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(validated[static_cast<size_t>(i)].second);
  return chosen;
}

void average_checkpoints(const fs::path& run, const std::vector<fs::path>& checkpoints, const fs::path& out) {
  require_replaceable(out, RunOutcome::averaged);
  const RunConfig config = load_run_config(run);
  const std::unique_ptr<Model> model = make_model(config.model);
  const NamedTensors values = named_values(model->parameters());
  std::vector<Tensor> sums;
  for (const fs::path& checkpoint : checkpoints) {
    const fs::path file = checkpoint / "model.safetensors";
    load_parameters(model->parameters(), load_safetensors(file), file.string());
    for (size_t i = 0; i < values.size(); ++i) {
      const Tensor wide = values[i].second.to(at::kDouble);
      if (checkpoint == checkpoints.front()) {
        sums.push_back(wide.clone());
      } else {
        sums[i].add_(wide);
      }
    }
  }
  const at::NoGradGuard no_graph;
  for (size_t i = 0; i < values.size(); ++i)
    values[i].second.copy_(sums[i].div_(static_cast<double>(checkpoints.size())));
  model->constrain();
  TrainResult result{.outcome = RunOutcome::averaged};
  std::vector<int64_t> steps;
  for (const fs::path& checkpoint : checkpoints) steps.push_back(step_of(checkpoint).value());
  result.steps = *std::max_element(steps.begin(), steps.end());
  Json document = result.to_json();
  document["averaged"] = steps;
  write_directory_atomic(
      out, "run",
      [&](const fs::path& directory) {
        claim_output_directory(directory, "run");
        write_file_atomic(directory / "config.toml", to_toml(config));
        save_safetensors(directory / "model.safetensors", named_values(model->parameters()));
        write_json(directory / "result.json", document);
        copy_recorded_data(run, directory);
      },
      Links::followed);
}

}  // namespace plumb
