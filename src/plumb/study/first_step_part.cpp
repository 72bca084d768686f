// The first step of an optimizer at initialization: how it changes the logits, and the learning rate above which it
// raises the loss.
#include <fmt/format.h>

#include <map>

#include "plumb/analysis/initialization.h"
#include "plumb/optim/optimizer.h"
#include "plumb/report/display_name.h"
#include "plumb/report/measured_figures.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct FirstStepStudy : InitialModels {
  std::vector<std::string> optimizers = {"adam", "sgd"};
};

void describe(Fields& field, FirstStepStudy& part) {
  describe(field, static_cast<InitialModels&>(part));
  field("optimizers", part.optimizers, "the optimizers", name_in(optimizers()).at_least_one());
}

using FirstSteps = std::map<std::string, Planned<std::vector<FirstStep>>>;  // by arm: [seed]

PartResult report_first_steps(const FirstStepStudy& part, const std::map<std::string, FirstSteps>& steps) {
  PartResult result;
  Table table{"first_step",
              "The first step at initialization",
              "Critical learning rate: above it, the step raises the loss on the pairs from which it was computed; "
              "critical sharpness is 2 divided by it. Change of the logits: root mean square per unit of learning "
              "rate. Geometric means with 95% intervals. Momentum: how many times as long as the first step later ones "
              "become while the gradient stays the same.",
              {"optimizer", "arm", "critical learning rate", "low", "high", "critical sharpness", "forward passes",
               "change of the logits", "low", "high", "momentum"}};
  for (const std::string& optimizer : part.optimizers) {
    OfArms<FirstStepReport> reports;
    for (const auto& [arm, of_seeds] : steps.at(optimizer)) reports[arm] = summarize(*of_seeds);
    result.measurements[optimizer] = result_json(steps.at(optimizer));
    result.figures.push_back(logit_change_figure(optimizer, reports, part.seeds));
    Figure& critical =
        result.figures.emplace_back(Figure{"critical_rate_" + optimizer,
                                           fmt::format("Critical learning rate of the first step of {}", optimizer),
                                           fmt::format("Located to within 5%; {}.", seeds_in_words(part.seeds)),
                                           "bar",
                                           {""},
                                           {"learning rate"}});
    for (const auto& [arm, report] : reports) {
      const Interval& rate = report.critical_rate;
      critical.add(display_name(arm), arm).point("critical learning rate", rate);
      table.row(optimizer, arm, rate, 2 / rate.mean, report.passes, report.logits.total, report.momentum_gain);
    }
  }
  result.tables.push_back(table);
  return result;
}

PartPlan plan(StudyContext& context, const FirstStepStudy& part) {
  PartPlan plan(context);
  std::map<std::string, FirstSteps> steps;  // by optimizer
  for (const std::string& optimizer : part.optimizers) {
    steps[optimizer] = by_arm(context, [&](const std::string& arm) {
      const TrainConfig& train = arm_named(context, arm).train;
      SeededMeasurement what = initial_models(context, part, "first-step-" + optimizer, arm);
      what.gradients = static_cast<double>(4 * part.layers + 5);
      what.settings = {{"step", "from the weights, in float64, with the scheme's constraints"},
                       {"optimizer", optimizer},
                       {"options", changed_options(optimizers(), train.options)},
                       {"label_smoothing", train.label_smoothing}};
      return over_seeds(plan, context, what, [train, optimizer](Model& model, const std::vector<Batch>& batches) {
        return measure_first_step(model, batches, optimizer, train.options, train.label_smoothing);
      });
    });
  }
  for (const auto& [optimizer, of_arms] : steps) {
    for (const auto& [arm, of_seeds] : of_arms) {
      Quantity& added = plan.quantity(
          "critical_rate_" + optimizer, fmt::format("critical learning rate of the first step of {}", optimizer),
          Scale::logarithmic, arm, [of_seeds = of_seeds] {
            return numbers_in(
                *of_seeds, [](const FirstStep& step) { return step.critical ? step.critical->rate() : std::nan(""); });
          });
      added.figure = "critical_rate_" + optimizer;
      added.telling = {"learning rate above which the first step of " + optimizer + " raises the loss"};
    }
  }
  plan.report = [part, steps] { return report_first_steps(part, steps); };
  return plan;
}

[[maybe_unused]] const bool kFirstStep = add_part<FirstStepStudy>(
    "first_step", "how an optimizer's first step changes the logits, and above which learning rate it raises the loss",
    "Kalra & Barkeshli 2024, arXiv 2406.09405",
    {.order = 14, .any_depth = true, .plan = plan, .trains = kTrainsAlways});

}  // namespace
}  // namespace plumb
