// The first step of an optimizer at initialization: how it changes the logits, and the learning rate above which it
// raises the loss.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/initialization_json.h"
#include "plumb/base/text.h"
#include "plumb/optim/optimizer.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct FirstStepStudy {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 100;
  std::vector<std::string> optimizers = {"adam", "sgd"};
};

void describe(Fields& field, FirstStepStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
  field("optimizers", part.optimizers, "the optimizers", name_in(optimizers()).at_least_one());
}

using FirstSteps = std::map<std::string, Planned<std::vector<FirstStep>>>;  // by scheme: [seed]

/// The change of the logits by the layer that moves.
Figure logit_change_figure(const std::map<std::string, FirstStepReport>& by_scheme, const std::string& optimizer,
                           const FirstStepStudy& part) {
  Figure figure{"first_step_logits_" + optimizer,
                fmt::format("What the first step of {} does to the logits, by layer", optimizer),
                fmt::format("Root mean square of the derivative of the logits with respect to the learning rate, when "
                            "only the parameters of one layer take the first step of {}; the logits without their mean "
                            "over the classes. Solid: decoder; dashed: encoder. Geometric mean over {} seeds with its "
                            "95% interval.",
                            optimizer, part.seeds),
                "line",
                {"layer"},
                {"change of the logits per unit of learning rate", true}};
  for (const auto& [scheme, report] : by_scheme) {
    std::map<StackKind, Series> lines;
    for (const LogitChangesReport::Layer& layer : report.logits.by_layer) {
      if (!layer.layer) continue;
      const StackKind stack = layer.layer->stack;
      const auto [line, is_new] =
          lines.try_emplace(stack, Series{fmt::format("{}, {}", display_name(scheme), to_string(stack)), scheme});
      if (is_new) line->second.style = stack == StackKind::decoder ? "solid" : "dashed";
      line->second.point(layer.layer->number(), layer.change);
    }
    for (const auto& [stack, line] : lines) figure.series.push_back(line);
  }
  return figure;
}

Figure critical_rate_figure(const std::map<std::string, FirstStepReport>& by_scheme, const std::string& optimizer,
                            const FirstStepStudy& part) {
  Figure figure{"critical_rate_" + optimizer,
                fmt::format("Critical learning rate of the first step of {}", optimizer),
                fmt::format("The learning rate above which the first step of {} raises the loss on the pairs that it "
                            "was computed from; located by forward passes to within 5%. Geometric mean over {} seeds "
                            "with its 95% interval.",
                            optimizer, part.seeds),
                "bar",
                {""},
                {"learning rate"}};
  for (const auto& [scheme, report] : by_scheme) {
    Series bar{display_name(scheme), scheme};
    bar.point("critical learning rate", report.critical_rate);
    figure.series.push_back(bar);
  }
  return figure;
}

std::string rate_in_words(const Interval& rate) {
  if (!std::isfinite(rate.mean)) return "none found";
  if (!std::isfinite(rate.low)) return fmt::format("{:.2g} (one seed)", rate.mean);
  return fmt::format("{:.2g} ({:.2g} to {:.2g})", rate.mean, rate.low, rate.high);
}

PartResult report_first_steps(const FirstStepStudy& part, const std::map<std::string, FirstSteps>& steps) {
  PartResult result;
  Table table{"first_step",
              "The first step at initialization",
              "Critical learning rate: above it, the step raises the loss on the pairs from which it was computed; "
              "critical sharpness is 2 divided by it. Change of the logits: root mean square per unit of learning "
              "rate, all parameters moving. Geometric means over the seeds with their 95% intervals. Momentum: how "
              "many times as long as the first step later ones become while the gradient stays the same, by which "
              "the critical learning rate is to be divided for them.",
              {"optimizer", "scheme", "critical learning rate", "low", "high", "critical sharpness", "forward passes",
               "change of the logits", "low", "high", "momentum"}};
  for (const std::string& optimizer : part.optimizers) {
    std::map<std::string, FirstStepReport> by_scheme;
    for (const auto& [scheme, of_seeds] : steps.at(optimizer)) by_scheme[scheme] = summarize(*of_seeds);
    result.measurements[optimizer] = result_json(steps.at(optimizer));
    result.figures.push_back(logit_change_figure(by_scheme, optimizer, part));
    result.figures.push_back(critical_rate_figure(by_scheme, optimizer, part));
    std::vector<std::string> rates;
    for (const auto& [scheme, report] : by_scheme) {
      const Interval& rate = report.critical_rate;
      table.row(optimizer, scheme, rate, 2 / rate.mean, report.passes, report.logits.total, report.momentum_gain);
      rates.push_back(fmt::format("{} with {}", rate_in_words(rate), display_name(scheme)));
    }
    const double gain = by_scheme.begin()->second.momentum_gain;
    result.summary.push_back(fmt::format(
        "The learning rate above which the first step of {} raises the loss is {} ({} layers, {} pairs; {} seeds, 95% "
        "intervals).{}",
        optimizer, join(rates, ", "), part.layers, part.pairs, part.seeds,
        gain == 1 ? ""
                  : fmt::format(" While the gradient stays the same, momentum makes later steps {:.3g} times as long.",
                                gain)));
  }
  result.tables.push_back(table);
  return result;
}

PartPlan plan(StudyContext& context, const FirstStepStudy& part) {
  PartPlan plan(context);
  const TrainConfig& train = context.config.train;
  std::map<std::string, FirstSteps> steps;  // by optimizer
  for (const std::string& optimizer : part.optimizers) {
    for (const std::string& scheme : context.config.study.schemes) {
      steps[optimizer].emplace(
          scheme, over_seeds(plan, context,
                             {.name = fmt::format("first-step-{}-{}", optimizer, file_name(scheme)),
                              .label = fmt::format("first step of {}, {}", optimizer, display_name(scheme)),
                              .model = model_for(context, scheme, part.layers),
                              .seeds = part.seeds,
                              .pairs = part.pairs,
                              .tokens = static_cast<double>(20 * (4 * part.layers + 5)),
                              .settings = {{"step", "from the weights, in float64, with the scheme's constraints"},
                                           {"optimizer", optimizer},
                                           {"options", changed_options(optimizers(), train.options)},
                                           {"label_smoothing", train.label_smoothing}}},
                             [&train, optimizer](Model& model, const std::vector<Batch>& batches) {
                               return measure_first_step(model, batches, optimizer, train.options,
                                                         train.label_smoothing);
                             }));
    }
  }
  plan.report = [part, steps] { return report_first_steps(part, steps); };
  return plan;
}

[[maybe_unused]] const bool kFirstStep = add_part<FirstStepStudy>(
    "first_step", "how an optimizer's first step changes the logits, and above which learning rate it raises the loss",
    "Kalra & Barkeshli 2024, arXiv 2406.09405", {.place = 13, .plan = plan, .trains = kAlways});

}  // namespace
}  // namespace plumb
