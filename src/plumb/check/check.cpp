#include "plumb/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/machine.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"
#include "plumb/check/changes.h"
#include "plumb/check/prior.h"
#include "plumb/check/schedule.h"
#include "plumb/check/search.h"
#include "plumb/check/thresholds.h"
#include "plumb/check/trials.h"
#include "plumb/optim/schedule.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

constexpr int64_t kExamples = 32;  // that the measurements before training look at, or those of one step

/// The check of one subject: measurements, then the search.
class Check {
 public:
  Check(const Subject& subject, const CheckOptions& options)
      : subject_(subject),
        options_(options),
        plan_(planned_schedule(subject)),
        trials_(subject, [this] { return stopped() || watch_.seconds() > options_.budget.seconds; }) {
    result_.frequencies = trials_.baselines().frequencies;
  }

  CheckResult run() {
    result_.checked = in_words();
    const Prior prior = measure_before_training();
    const TrainConfig& train = subject_.config.train;
    const bool linear = has_schedule_factor(train.schedule, "linear_warmup");
    const SearchPlan plan{.schedule = plan_,
                          .configured_rate = train.learning_rate,
                          .schedule_with_warm_up = linear ? "" : train.schedule + " * linear_warmup",
                          .resumes = subject_.first_step > 0,
                          .reference = result_.frequencies,
                          .judges_relative_gain = begins_at_random(subject_),
                          .step_length = prior.step_length,
                          .seed = options_.seed,
                          .budget = options_.budget,
                          .seconds = watch_.seconds(),
                          .seconds_per_gradient = first_gradient_seconds_};
    const SearchHooks hooks{
        .attempt = [this](const TrialPlan& trial, int64_t steps) { return trials_.run(trial, steps); },
        .stop = options_.stop,
        .progress = options_.progress};
    search_rates(plan, prior.belief, hooks, result_);
    if (options_.progress) options_.progress("changes that may help", 1);
    try_changes(
        subject_, options_.budget.gradients,
        [this] { return stopped() || watch_.seconds() > 2 * options_.budget.seconds; }, result_);
    result_.peak_memory = static_cast<double>(peak_resident_memory());
    return std::move(result_);
  }

 private:
  /// "decoder, 4 × 128, 0.66M parameters, adamw, 4,096 tokens per step, 1,040 steps".
  [[nodiscard]] std::string in_words() {
    const auto& [model, train] = std::tie(subject_.config.model, subject_.config.train);
    const ModelDepth depth = depth_of(model);
    const std::string layers = depth.encoder_layers > 0 && depth.decoder_layers > 0
                                   ? fmt::format("{}+{}", depth.encoder_layers, depth.decoder_layers)
                                   : fmt::format("{}", depth.encoder_layers + depth.decoder_layers);
    return fmt::format("{}, {} × {}, {:.2f}M parameters, {}, {} tokens per step, {} steps", model.kind, layers,
                       width_of(model), 1e-6 * static_cast<double>(trials_.model().parameters().count()),
                       train.optimizer, with_thousands(train.batch_tokens * train.accumulate),
                       with_thousands(plan_.steps));
  }

  [[nodiscard]] bool stopped() const { return options_.stop && options_.stop(); }

  /// The alarms, and the belief before any trial.
  Prior measure_before_training() {
    if (options_.progress) options_.progress("measurements before training", 0);
    Model& model = trials_.model();
    set_first_weights(subject_, model, options_.seed);
    const auto train = subject_.task->dataset("train");
    const TrainConfig& config = subject_.config.train;
    const int64_t of_step = config.batch_tokens * config.accumulate;
    int64_t examples = 0, tokens = 0;
    while (examples < std::min(kExamples, train->size()) && (examples == 0 || tokens < of_step))
      tokens += train->cost(examples++).larger();
    const std::vector<Batch> batches = evaluation_batches(*train, config.batch_tokens, examples);
    const Stopwatch watch;
    const MeanLoss mean = mean_loss(model, batches, config.label_smoothing, loss_of(*subject_.task));
    const double share = static_cast<double>(tokens) / static_cast<double>(of_step);  // of a step
    first_gradient_seconds_ = watch.seconds() / share;
    Baselines baselines = trials_.baselines();
    baselines.first = mean.nll;
    const PlannedRun planned{.config = config,
                             .task = *subject_.task,
                             .model = model,
                             .train = *train,
                             .batches = batches,
                             .gradient = model.parameters().split(mean.gradient),
                             .baselines = baselines,
                             .peak_rate = plan_.peak,
                             .warm_up = plan_.warm_up,
                             .steps = plan_.steps,
                             .random = begins_at_random(subject_)};
    result_.findings = all_findings(planned, options_.stop);
    const Prior prior = first_belief(planned);
    result_.critical_rate = prior.critical_rate;
    result_.cost.gradients += std::llround(std::ceil(kMeasurements * share));
    return prior;
  }

  const Subject& subject_;
  const CheckOptions& options_;
  const Stopwatch watch_;
  PlannedSchedule plan_;
  Trials trials_;
  CheckResult result_;
  double first_gradient_seconds_ = 0;
};

}  // namespace

CheckResult run_check(const Subject& subject, const CheckOptions& options) { return Check(subject, options).run(); }

}  // namespace plumb::check
