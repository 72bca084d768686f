// The coordinate check: how activations and their updates scale with width, depth and batch size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "plumb/analysis/coordinate_check.h"
#include "plumb/data/batches.h"
#include "plumb/optim/optimizer.h"
#include "plumb/report/display_name.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct CoordinateCheckStudy {
  std::vector<int64_t> widths = {32, 64, 128};
  std::vector<int64_t> depths = {2, 4, 8};
  std::vector<int64_t> batch_tokens = {256, 512, 1024};
  int64_t layers = 2;
  int64_t seeds = 5;
  int64_t steps = 3;
  double learning_rate = 1e-3;
  double margin = 0.1;
  int64_t pairs = 50;
};

void describe(Fields& field, CoordinateCheckStudy& part) {
  field("widths", part.widths, "values of `d_model`; fewer than two: not varied", count_from(1).no_two_equal());
  // The first layer is compared with the last.
  field("depths", part.depths, "layers in each of encoder and decoder; fewer than two: not varied",
        count_from(2).no_two_equal());
  field("batch_tokens", part.batch_tokens, "tokens per batch of the steps; fewer than two: not varied",
        count_from(1).no_two_equal());
  field("layers", part.layers, "layers where depth is not varied", count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("steps", part.steps, "steps that are taken", count_from(1));
  field("learning_rate", part.learning_rate, "their constant learning rate", above(0));
  field("margin", part.margin, "the largest exponent that counts as constant", at_least(0));
  field("pairs", part.pairs, "pairs on which activations are measured; 0: all", count_from(0));
}

/// The sizes of one activation in one model.
struct NamedSize {
  std::string name;
  double before = 0, change = 0;
};
void describe(Fields& field, NamedSize& size) {
  field("name", size.name);
  field("before", size.before);
  field("change", size.change);
}

/// The activations of one model, with the logits last.
using NamedSizes = std::vector<NamedSize>;

/// What a check varies.
struct ScaleAxis {
  enum Measure { width, depth, batch };
  Measure measure;
  const char* name;         // in ids
  const char* words;        // in figures
  bool by_place = false;    // only activations of the first and the last layer
  bool same_start = false;  // the model before training does not depend on it
};
constexpr ScaleAxis kWidthAxis{ScaleAxis::width, "width", "width d_model"};
constexpr ScaleAxis kDepthAxis{ScaleAxis::depth, "depth", "layers", true};
constexpr ScaleAxis kBatchAxis{ScaleAxis::batch, "batch", "tokens per batch", false, true};

/// "encoder, first layer, feed_forward": comparable between depths; empty for the layers between.
std::string name_by_place(const ActivationPoint& point, int64_t layers) {
  if (!point.id.layer) return to_string(point);
  const bool last = *point.id.layer == layers - 1;
  if (!last && *point.id.layer != 0) return {};
  LayerId within = point.id;
  within.layer.reset();
  return fmt::format("{} layer, {}", last ? "last" : "first", to_string(ActivationPoint{within, point.point}));
}

/// The first batches of the first epoch.
std::vector<Batch> first_training_batches(const StudyContext& context, int64_t tokens, int64_t count) {
  const std::unique_ptr<Dataset> dataset = context.task.dataset("train");
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& examples :
       plan_batches(dataset->costs(), tokens, static_cast<uint64_t>(context.config.study.seed), 0)) {
    if (std::ssize(batches) == count) break;
    batches.push_back(dataset->batch(examples));
  }
  return batches;
}

using Coordinates = std::vector<NamedSizes>;  // [seed]

Planned<Coordinates> planned_coordinates(PartPlan& plan, StudyContext& context, const std::string& arm,
                                         const ScaleAxis& axis, int64_t scale, const CoordinateCheckStudy& part) {
  const TrainConfig& train = arm_named(context, arm).train;
  const ModelConfig& base = context.config.model;
  ModelConfig config = model_for(context, arm, axis.measure == ScaleAxis::depth ? scale : part.layers);
  const int64_t batch_tokens = axis.measure == ScaleAxis::batch ? scale : train.batch_tokens;
  if (axis.measure == ScaleAxis::width) {
    config.d_model = scale;
    config.feed_forward = std::max<int64_t>(base.feed_forward * scale / base.d_model, 1);
  }
  CoordinateOptions options;
  options.optimizer = train.optimizer;
  options.optimizer_options = train.options;
  options.learning_rate = part.learning_rate;
  options.label_smoothing = train.label_smoothing;
  options.clip_norm = train.clip_norm;
  return over_seeds(
      plan, context,
      {.name = fmt::format("coordinates-{}-{}-{}", axis.name, scale, file_name(arm)),
       .label = fmt::format("coordinates, {} {}, {}", axis.name, scale, display_name(arm)),
       .model = config,
       .seeds = part.seeds,
       .pairs = part.pairs,
       .gradients =
           2 + static_cast<double>(part.steps * batch_tokens) / std::max(measured_tokens(context, part.pairs), 1.0),
       .settings = {{"steps", part.steps},
                    {"learning_rate", part.learning_rate},
                    {"batch_tokens", batch_tokens},
                    {"optimizer", train.optimizer},
                    {"options", changed_options(optimizers(), train.options)},
                    {"label_smoothing", train.label_smoothing},
                    {"clip_norm", train.clip_norm}},
       .batch_tokens = std::numeric_limits<int32_t>::max()},
      [&context, steps = part.steps, options, axis, batch_tokens, layers = config.decoder_layers](
          Model& model, const std::vector<Batch>& measured) {
        const CoordinateSizes sizes =
            measure_coordinates(model, first_training_batches(context, batch_tokens, steps), measured.at(0), options);
        NamedSizes named;
        for (const CoordinateSize& each : sizes.activations) {
          const std::string name = axis.by_place ? name_by_place(each.point, layers) : to_string(each.point);
          if (!name.empty()) named.push_back({name, each.before, each.change});
        }
        named.push_back({"logits", sizes.logits.before, sizes.logits.change});
        return named;
      });
}

/// One axis of the check, with its scales in growing order.
struct AxisPlan {
  ScaleAxis axis;
  std::vector<int64_t> scales;
  std::map<std::string, std::vector<Planned<Coordinates>>> by_arm;  // [scale]
};

/// [seed][scale] of one number of one activation.
std::vector<std::vector<double>> sizes_of_activation(const std::vector<Planned<Coordinates>>& all, size_t activation,
                                                     double NamedSize::*number) {
  std::vector<std::vector<double>> sizes(all.front()->size());
  for (const Planned<Coordinates>& seeds : all) {
    for (size_t i = 0; i < seeds->size(); ++i) sizes[i].push_back((*seeds)[i].at(activation).*number);
  }
  return sizes;
}

/// To four decimals: an exponent that is exactly 0, as after a norm, differs from 0 only by rounding errors.
Json rounded_exponent(double value) {
  const double rounded = std::round(value * 1e4) / 1e4;
  return finite_or_null(rounded == 0 ? 0.0 : rounded);
}

/// One axis of the check, for all arms.
void report_axis(const StudyContext& context, const CoordinateCheckStudy& part, const AxisPlan& checked,
                 PartResult& result) {
  const ScaleAxis& axis = checked.axis;
  const std::vector<int64_t>& scales = checked.scales;
  const std::string how = fmt::format("{} steps of {} at a constant learning rate of {:g}", part.steps,
                                      context.config.train.optimizer, part.learning_rate);
  Figure figure{fmt::format("coordinates_{}", axis.name),
                fmt::format("Coordinate check over {}", axis.words),
                fmt::format("How much {} change activations; geometric mean ({}). Solid: logits, without their mean "
                            "over the classes; dashed: the result of the last stack.",
                            how, seeds_in_words(part.seeds)),
                "line",
                {axis.words, true},
                {"root mean square of the change", true}};
  Table table{
      fmt::format("coordinates_{}", axis.name),
      fmt::format("Exponents over {}", axis.words),
      fmt::format("Size ~ scale^exponent, at initialization (start) and of what {} do to it (change); {}. At the "
                  "end: between the two largest scales. Constant: the interval lies within ±{:g}; grows, "
                  "shrinks: beyond.",
                  how, seeds_in_words(part.seeds), part.margin),
      {"arm", "activation", "of", "trend", "exponent", "low", "high", "at the end"}};
  const std::vector<double> x(scales.begin(), scales.end());
  std::vector<std::pair<std::string, Interval>> growth;  // of the change of the logits, from first to last scale
  for (const std::string& arm : arm_names(context)) {
    const std::vector<Planned<Coordinates>>& all = checked.by_arm.at(arm);
    const NamedSizes& names = all.front()->front();
    for (size_t i = 0; i < names.size(); ++i) {
      for (const auto& [word, number] : {std::pair{"start", &NamedSize::before}, {"change", &NamedSize::change}}) {
        if (axis.same_start && number == &NamedSize::before) continue;
        const ScalingExponent found = scaling_exponent(x, sizes_of_activation(all, i, number), part.margin);
        const Interval& exponent = found.exponent;
        table.row(arm, names[i].name, word, to_string(found.trend), rounded_exponent(exponent.mean),
                  rounded_exponent(exponent.low), rounded_exponent(exponent.high), rounded_exponent(found.at_the_end));
        if (i + 1 < names.size() || number != &NamedSize::change) continue;
        const auto factor = [&](double power) { return std::pow(x.back() / x.front(), power); };
        growth.emplace_back(display_name(arm), Interval{factor(exponent.mean), factor(exponent.low),
                                                        factor(exponent.high), exponent.count});
      }
    }
    const size_t logits = names.size() - 1;
    for (const auto& [name, activation] : {std::pair{"logits", logits}, {"last stack", logits - 1}}) {
      Series& line =
          figure.add(fmt::format("{}, {}", display_name(arm), name), arm, activation == logits ? "solid" : "dashed");
      for (size_t k = 0; k < scales.size(); ++k) {
        line.point(scales[k], geometric_interval(numbers_in(
                                  *all[k], [i = activation](const NamedSizes& sizes) { return sizes.at(i).change; })));
      }
    }
    Json& kept = result.measurements[axis.name][arm];
    kept = Json::object();
    for (size_t k = 0; k < scales.size(); ++k) kept[std::to_string(scales[k])] = result_json(all[k]);
  }
  result.figures.push_back(figure);
  result.tables.push_back(table);
  result.summary.push_back(told({fmt::format("change of the logits in {} steps", part.steps),
                                 fmt::format("over {} {} to {}", axis.words, scales.front(), scales.back())},
                                growth));
}

PartPlan plan(StudyContext& context, const CoordinateCheckStudy& part) {
  PartPlan plan(context);
  std::vector<AxisPlan> axes;
  for (const auto& [axis, scales] :
       {std::pair{kWidthAxis, part.widths}, {kDepthAxis, part.depths}, {kBatchAxis, part.batch_tokens}}) {
    if (scales.size() < 2) continue;
    AxisPlan& planned = axes.emplace_back(AxisPlan{axis, sorted(scales), {}});
    for (const std::string& arm : arm_names(context)) {
      for (const int64_t scale : planned.scales)
        planned.by_arm[arm].push_back(planned_coordinates(plan, context, arm, axis, scale, part));
    }
  }
  plan.report = [&context, part, axes] {
    PartResult result;
    for (const AxisPlan& axis : axes) report_axis(context, part, axis, result);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kCoordinateCheck = add_part<CoordinateCheckStudy>(
    "coordinate_check", "how activations and their updates scale with width, depth and batch size",
    "Yang et al. 2022, arXiv 2203.03466, appendix D.1", {.order = 16, .plan = plan, .trains = kTrainsAlways});

}  // namespace
}  // namespace plumb
