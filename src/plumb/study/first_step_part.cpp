// The first step of an optimizer at initialization: how it changes the logits, and the learning rate above which it
// raises the loss.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/initialization_json.h"
#include "plumb/base/text.h"
#include "plumb/study/optimizer_settings.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

using FirstSteps = std::map<std::string, std::vector<FirstStep>>;  // by scheme: [seed]

/// The change of the logits by the layer that moves.
Figure logit_change_figure(const std::map<std::string, FirstStepReport>& by_scheme, const std::string& optimizer,
                           const FirstStepStudy& part) {
  Figure figure;
  figure.id = "first_step_logits_" + optimizer;
  figure.title = fmt::format("What the first step of {} does to the logits, by layer", optimizer);
  figure.caption = fmt::format(
      "Root mean square of the derivative of the logits with respect to the learning rate, when only the parameters of "
      "one layer take the first step of {}; the logits without their mean over the classes. Solid: decoder; dashed: "
      "encoder. Geometric mean over {} seeds with its 95% interval.",
      optimizer, part.seeds);
  figure.kind = "line";
  figure.x = {"layer"};
  figure.y = {"change of the logits per unit of learning rate", true};
  for (const auto& [scheme, report] : by_scheme) {
    std::map<StackKind, Series> lines;
    for (const LogitChangesReport::Layer& layer : report.logits.by_layer) {
      if (!layer.layer) continue;
      const StackKind stack = layer.layer->stack;
      const auto [line, is_new] =
          lines.try_emplace(stack, Series{fmt::format("{}, {}", display_name(scheme), to_string(stack)), scheme});
      if (is_new) line->second.style = stack == StackKind::decoder ? "solid" : "dashed";
      line->second.point(layer.layer->number(), layer.change.mean, layer.change.low, layer.change.high);
    }
    for (const auto& [stack, line] : lines) figure.series.push_back(line);
  }
  return figure;
}

Figure critical_rate_figure(const std::map<std::string, FirstStepReport>& by_scheme, const std::string& optimizer,
                            const FirstStepStudy& part) {
  Figure figure;
  figure.id = "critical_rate_" + optimizer;
  figure.title = fmt::format("Critical learning rate of the first step of {}", optimizer);
  figure.caption = fmt::format(
      "The learning rate above which the first step of {} raises the loss on the pairs that it was computed from; "
      "located by forward passes to within 5%. Geometric mean over {} seeds with its 95% interval.",
      optimizer, part.seeds);
  figure.kind = "bar";
  figure.x = {""};
  figure.y = {"learning rate"};
  for (const auto& [scheme, report] : by_scheme) {
    Series bar{display_name(scheme), scheme};
    bar.point("critical learning rate", report.critical_rate.mean, report.critical_rate.low, report.critical_rate.high);
    figure.series.push_back(bar);
  }
  return figure;
}

std::string rate_in_words(const Interval& rate) {
  if (!std::isfinite(rate.mean)) return "none found";
  if (!std::isfinite(rate.low)) return fmt::format("{:.2g} (one seed)", rate.mean);
  return fmt::format("{:.2g} ({:.2g} to {:.2g})", rate.mean, rate.low, rate.high);
}

MeasurementRequest first_step_request(StudyContext& context, const std::string& scheme, const std::string& optimizer,
                                      const FirstStepStudy& part) {
  const TrainConfig& train = context.config.train;
  const Json settings = {{"pairs", part.pairs},
                         {"step", "from the weights, in float64, with the scheme's constraints"},
                         {"optimizer", settings_of_optimizer(optimizer, train.options)},
                         {"label_smoothing", train.label_smoothing}};
  return over_seeds(context, fmt::format("first-step-{}-{}", optimizer, file_name(scheme)),
                    fmt::format("first step of {}, {}", optimizer, display_name(scheme)),
                    model_for(context, scheme, part.layers), part.seeds, settings,
                    static_cast<double>(part.pairs * 20 * (4 * part.layers + 5)),
                    [&context, part, optimizer](Model& model) {
                      const TrainConfig& train = context.config.train;
                      return measure_first_step(model, measured_batches(context, part.pairs), optimizer, train.options,
                                                train.label_smoothing);
                    });
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const FirstStepStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& optimizer : part.optimizers) {
    for (const std::string& scheme : context.config.study.schemes)
      list.push_back(first_step_request(context, scheme, optimizer, part));
  }
  return list;
}

PartResult measure(StudyContext& context, const FirstStepStudy& part) {
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
    for (const std::string& scheme : context.config.study.schemes) {
      const std::vector<FirstStep> steps =
          results_over_seeds<FirstStep>(context, first_step_request(context, scheme, optimizer, part));
      by_scheme[scheme] = summarize(steps);
      result.measurements[optimizer][scheme] = list_of(steps);
    }
    result.figures.push_back(logit_change_figure(by_scheme, optimizer, part));
    result.figures.push_back(critical_rate_figure(by_scheme, optimizer, part));
    std::vector<std::string> rates;
    for (const auto& [scheme, report] : by_scheme) {
      const Interval& rate = report.critical_rate;
      const Interval& change = report.logits.total;
      table.rows.push_back({optimizer, scheme, finite_or_null(rate.mean), finite_or_null(rate.low),
                            finite_or_null(rate.high), finite_or_null(2 / rate.mean), finite_or_null(report.passes),
                            finite_or_null(change.mean), finite_or_null(change.low), finite_or_null(change.high),
                            report.momentum_gain});
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

}  // namespace plumb
