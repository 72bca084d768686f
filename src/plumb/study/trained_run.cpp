#include "plumb/study/trained_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "plumb/analysis/watch/curvature.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/run/directory.h"
#include "plumb/study/changed_keys.h"
#include "plumb/train/progress_line.h"
#include "plumb/train/run_training.h"

namespace plumb {
namespace {

Json run_settings(const StudyContext& context, const RunConfig& config) {
  Json settings = {{"data", context.data_settings},
                   {"model", settings_of(config.model)},
                   {"train", changed_keys(config.train)},
                   {"task", changed_keys(config.task)}};
  if (!config.watch.every.is_zero()) settings["watch"] = changed_keys(config.watch);
  return settings;
}

/// The approximate number of tokens that a run processes in this time.
double tokens_of(const StudyContext& context, const TrainConfig& config, const Duration& duration) {
  const auto amount = static_cast<double>(duration.amount());
  if (duration.unit() == Duration::Unit::tokens) return amount;
  if (duration.unit() == Duration::Unit::steps)
    return amount * static_cast<double>(config.batch_tokens * config.accumulate);
  double epoch = 0;
  for (const ExampleCost& cost : context.task.dataset("train")->costs()) epoch += static_cast<double>(cost.larger());
  return epoch * amount / static_cast<double>(Duration::kParts);
}

/// The products of the Hessian with a vector, about, in each measurement along a run.
int64_t watched_products(const WatchConfig& watch) {
  if (watch.every.is_zero() || !contains(watch.what, "curvature")) return 0;
  const auto own = watch.options.find("curvature");
  const CurvatureWatchOptions options =
      own == watch.options.end() ? CurvatureWatchOptions() : own->second.as<CurvatureWatchOptions>();
  return 2 * (options.products + options.reference_products);  // the Hessian's, and the preconditioned one's
}

/// They are in one unit.
Duration longest_of(const std::vector<Duration>& warm_ups) {
  return *std::max_element(warm_ups.begin(), warm_ups.end(),
                           [](const Duration& a, const Duration& b) { return a.amount() < b.amount(); });
}

/// Passes the points of a run to the study.
class TellsStudy final : public TrainObserver {
 public:
  TellsStudy(const StudyContext& context, const std::filesystem::path& run) : context_(context), run_(run) {}
  void on_point(const TrainPoint& point) override {
    if (context_.on_point) context_.on_point(run_, point);
  }

 private:
  const StudyContext& context_;
  const std::filesystem::path& run_;
};

}  // namespace

double TrainedRun::loss() const {
  return diverged() ? std::numeric_limits<double>::infinity() : result.valid_nll().value_or(std::nan(""));
}

double TrainedRun::fitted_loss() const { return result.failed() ? std::numeric_limits<double>::infinity() : loss(); }

void check_warm_ups(const std::string& what, const std::vector<Duration>& warm_ups, TrainConfig train) {
  std::optional<Duration::Unit> unit;
  for (const Duration& each : warm_ups) {
    if (each.is_zero()) continue;
    if (unit.value_or(each.unit()) != each.unit()) {
      throw Error(what + " mixes units", "give all of them in one unit");
    }
    unit = each.unit();
  }
  train.warm_up = longest_of(warm_ups);
  require_decay_start(train);
}

Quantity::Doubt doubt_of_sweeps(const std::function<Sweep(const std::string& arm)>& sweep_of) {
  return [sweep_of](const std::string& of, const std::string& against, const Region& region, double confidence) {
    if (against.empty()) return sweep_of(of).open_end();
    const Judgment judgment = judge_best(sweep_of(of), sweep_of(against), region, confidence);
    return is_decided(judgment.outcome) ? std::string() : judgment.reason;
  };
}

void check_rates(const std::string& key, const std::vector<double>& rates) {
  std::set<std::string> names;
  for (const double rate : rates) {
    if (!names.insert(fmt::format("{:g}", rate)).second)
      throw Error(fmt::format("{} lists {:g} twice", key, rate), "rates that differ by less are the same run");
  }
}

TrainConfig with_warm_up(TrainConfig train, const Duration& warm_up, const std::vector<Duration>& all) {
  train.warm_up = warm_up;
  if (warm_up_moves_decay(train)) train.decay_start = longest_of(all);
  return train;
}

Json as_cell(const Duration& duration) {
  return duration.unit() == Duration::Unit::steps ? Json(duration.in_steps()) : Json(duration.text());
}

Series TrainedRun::validation_curve(const std::string& name, const std::string& group) const {
  Series series{name, group};
  for (const TrainPoint& point : result.history) {
    if (const std::optional<double> loss = point.metrics.get("valid_nll")) series.point(point.step, *loss);
  }
  if (diverged()) series.point(result.steps, std::nan(""));
  return series;
}

RunRequest RunRequest::with_seed(int64_t seed) const {
  RunRequest request = *this;
  request.config.train.seed += seed;
  request.name += fmt::format("-seed{}", request.config.train.seed);
  return request;
}

RunConfig run_config(const StudyContext& context, const ModelConfig& model, const TrainConfig& train) {
  RunConfig config;
  config.model = model;
  config.train = train;
  config.train.seed = context.config.study.seed;
  config.train.score_every = -1;
  config.task = context.config.task;
  config.data = context.data.path().string();
  return config;
}

std::filesystem::path run_directory(const StudyContext& context, const std::string& name, const Json& settings) {
  return context.out / "runs" / fmt::format("{}-{:08x}", name, stream_of(settings.dump()) & 0xFFFFFFFFU);
}

Json trained(const StudyContext& context, const std::string& label, const RunConfig& config,
             const std::filesystem::path& out) {
  TrainProgress progress(label);
  TellsStudy study(context, out);
  return run_training(config, out, {&progress, &study}).to_json();
}

MeasurementRequest run_measurement(StudyContext& context, const RunRequest& request) {
  const RunConfig& config = request.config;
  MeasurementRequest measurement;
  measurement.name = request.name;
  measurement.label = request.label;
  measurement.settings = run_settings(context, config);
  const double tokens = tokens_of(context, config.train, config.train.steps);
  measurement.work =
      work_of_training(config.model, tokens, static_cast<double>(config.train.batch_tokens * config.train.accumulate));
  if (const int64_t products = watched_products(config.watch); products > 0) {
    constexpr double kGradients = 3;  // that a product costs
    const double measured = tokens / tokens_of(context, config.train, config.watch.every);
    measurement.work += work_of(config.model, kGradients * measured * static_cast<double>(products) *
                                                  measured_tokens(context, config.watch.examples));
  }
  measurement.alone = config.train.processes > 1;
  measurement.measure = [&context, request, settings = measurement.settings] {
    return trained(context, request.label, request.config, run_directory(context, request.name, settings));
  };
  return measurement;
}

MeasurementRequest question_measurement(StudyContext& context, const RunRequest& request, const RunQuestion& question) {
  MeasurementRequest measurement = run_measurement(context, request);
  const Json run = measurement.settings;
  measurement.name = fmt::format("{}-{}", question.name, request.name);
  measurement.settings["question"] = question.settings;
  measurement.measure = [&context, request, question, run] {
    const TrainResult result = TrainResult::from_json(context.measurements.get(run_measurement(context, request)));
    if (result.outcome == RunOutcome::diverged) return Json();
    const std::unique_ptr<Model> model = load_model(run_directory(context, request.name, run));
    return question.ask(*model);
  };
  return measurement;
}

Planned<TrainedRun> planned_run(PartPlan& plan, StudyContext& context, const RunRequest& request) {
  return plan.add<TrainedRun>(run_measurement(context, request), [config = request.config](const Json& result) {
    return TrainedRun{config, TrainResult::from_json(result)};
  });
}

std::vector<Planned<TrainedRun>> planned_runs(PartPlan& plan, StudyContext& context, const RunRequest& request,
                                              int64_t seeds) {
  std::vector<Planned<TrainedRun>> runs;
  for (int64_t seed = 0; seed < seeds; ++seed) runs.push_back(planned_run(plan, context, request.with_seed(seed)));
  return runs;
}

MeasurementRequest initial_loss_request(StudyContext& context, const std::string& name, const ModelConfig& config,
                                        int64_t seeds) {
  double tokens = 0;
  if (context.data.has_split("valid")) {
    for (const ExampleCost& cost : context.task.dataset("valid")->costs()) tokens += static_cast<double>(cost.larger());
  }
  MeasurementRequest request;
  request.name = "initial-loss-" + name;
  request.label = "loss before training, " + name;
  request.settings = {{"data", context.data_settings},
                      {"model", settings_of(config)},
                      {"task", changed_keys(context.config.task)},
                      {"batch_tokens", context.config.train.batch_tokens},
                      {"seeds", seeds},
                      {"first_seed", context.config.study.seed}};
  request.work = work_of(config, 0.3 * static_cast<double>(seeds) * tokens);  // forward passes only
  request.measure = [&context, config, seeds] {
    std::vector<double> all(static_cast<size_t>(seeds), std::nan(""));
    for (int64_t i = 0; i < seeds && context.data.has_split("valid"); ++i) {
      const Metrics found =
          context.task.metrics(evaluate(context.task, *initialized_model(context, config, i),
                                        *context.task.dataset("valid"), context.config.train.batch_tokens, 0, {}));
      all[static_cast<size_t>(i)] = found.get("nll").value_or(std::nan(""));
    }
    return result_json(all);
  };
  return request;
}

std::vector<double> counted_losses(const StudyContext& context, const std::vector<Planned<TrainedRun>>& runs) {
  return numbers_in(runs, [most = label_frequencies(context)](const Planned<TrainedRun>& run) {
    return std::min(run->loss(), most);
  });
}

std::vector<double> fitted_losses(const std::vector<Planned<TrainedRun>>& runs) {
  return numbers_in(runs, [](const Planned<TrainedRun>& run) { return run->fitted_loss(); });
}

}  // namespace plumb
