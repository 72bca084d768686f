// The coordinate check: how activations and their updates scale with width, depth and batch size.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "plumb/analysis/coordinate_check.h"
#include "plumb/base/text.h"
#include "plumb/data/batches.h"
#include "plumb/study/optimizer_settings.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

/// The sizes of one activation in one model.
struct NamedSize {
  std::string name;
  double before = 0, change = 0;
};
using NamedSizes = std::vector<NamedSize>;

/// The activations of one model, with the logits last.
struct CoordinateList {
  NamedSizes sizes;
};
Json to_json(const CoordinateList& list) {
  Json json = Json::array();
  for (const NamedSize& size : list.sizes)
    json.push_back({{"name", size.name}, {"before", size.before}, {"change", size.change}});
  return json;
}
void from_json(const Json& json, CoordinateList& list) {
  for (const Json& each : json)
    list.sizes.push_back({each.at("name"), number_of(each.at("before")), number_of(each.at("change"))});
}

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

/// The axes of a check that have more than one scale, with their scales in growing order.
std::vector<std::pair<ScaleAxis, std::vector<int64_t>>> axes_of(const CoordinateCheckStudy& part) {
  std::vector<std::pair<ScaleAxis, std::vector<int64_t>>> axes;
  for (auto [axis, scales] :
       {std::pair{kWidthAxis, part.widths}, {kDepthAxis, part.depths}, {kBatchAxis, part.batch_tokens}}) {
    if (scales.size() < 2) continue;
    std::sort(scales.begin(), scales.end());
    axes.emplace_back(axis, scales);
  }
  return axes;
}

MeasurementRequest coordinates_request(StudyContext& context, const std::string& scheme, const ScaleAxis& axis,
                                       int64_t scale, const CoordinateCheckStudy& part) {
  const TrainConfig& train = context.config.train;
  const ModelConfig& base = context.config.model;
  ModelConfig config = model_for(context, scheme, axis.measure == ScaleAxis::depth ? scale : part.layers);
  int64_t batch_tokens = train.batch_tokens;
  if (axis.measure == ScaleAxis::batch) batch_tokens = scale;
  if (axis.measure == ScaleAxis::width) {
    config.d_model = scale;
    config.feed_forward = std::max<int64_t>(base.feed_forward * scale / base.d_model, 1);
  }
  const Json settings = {{"pairs", part.pairs},
                         {"steps", part.steps},
                         {"learning_rate", part.learning_rate},
                         {"batch_tokens", batch_tokens},
                         {"optimizer", settings_of_optimizer(train.optimizer, train.options)},
                         {"label_smoothing", train.label_smoothing},
                         {"clip_norm", train.clip_norm}};
  CoordinateOptions options;
  options.optimizer = train.optimizer;
  options.optimizer_options = train.options;
  options.learning_rate = part.learning_rate;
  options.label_smoothing = train.label_smoothing;
  options.clip_norm = train.clip_norm;
  const int64_t layers = config.decoder_layers;
  return over_seeds(
      context, fmt::format("coordinates-{}-{}-{}", axis.name, scale, file_name(scheme)),
      fmt::format("coordinates, {} {}, {}", axis.name, scale, display_name(scheme)), config, part.seeds, settings,
      static_cast<double>(part.steps * batch_tokens + part.pairs * 40),
      [&context, part, options, axis, batch_tokens, layers](Model& model) {
        const std::vector<Batch> steps = first_training_batches(context, batch_tokens, part.steps);
        const Batch measured = measured_batches(context, part.pairs, std::numeric_limits<int32_t>::max()).at(0);
        const CoordinateSizes sizes = measure_coordinates(model, steps, measured, options);
        CoordinateList list;
        for (const CoordinateSize& each : sizes.activations) {
          const std::string name = axis.by_place ? name_by_place(each.point, layers) : to_string(each.point);
          if (!name.empty()) list.sizes.push_back({name, each.before, each.change});
        }
        list.sizes.push_back({"logits", sizes.logits.before, sizes.logits.change});
        return list;
      });
}

/// [scale][seed]
using Coordinates = std::vector<std::vector<CoordinateList>>;

/// [seed][scale] of one number of one activation.
std::vector<std::vector<double>> sizes_of_activation(const Coordinates& all, size_t activation,
                                                     double NamedSize::*number) {
  std::vector<std::vector<double>> sizes(all.front().size());
  for (const std::vector<CoordinateList>& seeds : all) {
    for (size_t i = 0; i < seeds.size(); ++i) sizes[i].push_back(seeds[i].sizes.at(activation).*number);
  }
  return sizes;
}

Series coordinate_line(const Coordinates& all, const std::vector<int64_t>& scales, size_t activation,
                       const std::string& scheme, const std::string& name) {
  Series line{fmt::format("{}, {}", display_name(scheme), name), scheme};
  const std::vector<std::vector<double>> sizes = sizes_of_activation(all, activation, &NamedSize::change);
  for (size_t k = 0; k < scales.size(); ++k) {
    std::vector<double> at_scale;
    for (const std::vector<double>& of_seed : sizes) at_scale.push_back(of_seed[k]);
    const Interval size = geometric_interval(at_scale);
    line.point(scales[k], size.mean, size.low, size.high);
  }
  return line;
}

/// To four decimals: an exponent that is exactly 0, as after a norm, differs from 0 only by rounding errors.
Json rounded_exponent(double value) {
  const double rounded = std::round(value * 1e4) / 1e4;
  return finite_or_null(rounded == 0 ? 0.0 : rounded);
}

/// One axis of the check, for all schemes.
void check_axis(StudyContext& context, const CoordinateCheckStudy& part, const ScaleAxis& axis,
                const std::vector<int64_t>& scales, PartResult& result) {
  const std::string how = fmt::format("{} steps of {} at a constant learning rate of {:g}", part.steps,
                                      context.config.train.optimizer, part.learning_rate);
  Figure figure;
  figure.id = fmt::format("coordinates_{}", axis.name);
  figure.title = fmt::format("Coordinate check over {}", axis.words);
  figure.caption = fmt::format(
      "How much {} change activations: root mean square of the difference, geometric mean over {} seeds with its 95% "
      "interval. Solid: logits, without their mean over the classes; dashed: the result of the last stack.",
      how, part.seeds);
  figure.kind = "line";
  figure.x = {axis.words, true};
  figure.y = {"root mean square of the change", true};
  Table table{
      fmt::format("coordinates_{}", axis.name),
      fmt::format("Exponents over {}", axis.words),
      fmt::format("Size proportional to scale^exponent: the slope of log(size) against log(scale), mean over {} "
                  "seeds with its 95% interval; at the end: between the two largest scales. Constant: the "
                  "interval lies within ±{:g}, fixed beforehand; grows, shrinks: it lies beyond; otherwise "
                  "undecided. Start: the activation at initialization; change: what {} do to it.",
                  part.seeds, part.margin, how),
      {"scheme", "activation", "of", "trend", "exponent", "low", "high", "at the end"}};
  const std::vector<double> x(scales.begin(), scales.end());
  std::vector<std::string> sentences;
  for (const std::string& scheme : context.config.study.schemes) {
    Coordinates all;
    for (const int64_t scale : scales) {
      all.push_back(
          results_over_seeds<CoordinateList>(context, coordinates_request(context, scheme, axis, scale, part)));
    }
    const NamedSizes& names = all.front().front().sizes;
    for (size_t i = 0; i < names.size(); ++i) {
      for (const auto& [word, number] : {std::pair{"start", &NamedSize::before}, {"change", &NamedSize::change}}) {
        if (axis.same_start && number == &NamedSize::before) continue;
        const ScalingExponent found = scaling_exponent(x, sizes_of_activation(all, i, number), part.margin);
        const Interval& exponent = found.exponent;
        table.rows.push_back({scheme, names[i].name, word, to_string(found.trend), rounded_exponent(exponent.mean),
                              rounded_exponent(exponent.low), rounded_exponent(exponent.high),
                              rounded_exponent(found.at_the_end)});
        if (i + 1 < names.size() || number != &NamedSize::change) continue;
        sentences.push_back(found.trend == Trend::diverged
                                ? fmt::format("{}: diverged", display_name(scheme))
                                : fmt::format("{}: {:.2f} ({:.2f} to {:.2f}), {}", display_name(scheme), exponent.mean,
                                              exponent.low, exponent.high, to_string(found.trend)));
      }
    }
    const size_t logits = names.size() - 1;
    figure.series.push_back(coordinate_line(all, scales, logits, scheme, "logits"));
    figure.series.push_back(coordinate_line(all, scales, logits - 1, scheme, "last stack"));
    figure.series.back().style = "dashed";
    Json& kept = result.measurements[axis.name][scheme];
    kept = Json::object();
    for (size_t k = 0; k < scales.size(); ++k) kept[std::to_string(scales[k])] = list_of(all[k]);
  }
  result.figures.push_back(figure);
  result.tables.push_back(table);
  result.summary.push_back(
      fmt::format("Exponent of the change of the logits over {}, after {}: {} (95% intervals over "
                  "{} seeds; margin {:g}).",
                  axis.words, how, join(sentences, "; "), part.seeds, part.margin));
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const CoordinateCheckStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const auto& [axis, scales] : axes_of(part)) {
    for (const std::string& scheme : context.config.study.schemes) {
      for (const int64_t scale : scales) list.push_back(coordinates_request(context, scheme, axis, scale, part));
    }
  }
  return list;
}

PartResult measure(StudyContext& context, const CoordinateCheckStudy& part) {
  PartResult result;
  for (const auto& [axis, scales] : axes_of(part)) check_axis(context, part, axis, scales, result);
  return result;
}

}  // namespace plumb
