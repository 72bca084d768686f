#include "plumb/analysis/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"

namespace plumb {
namespace {

using theory::Placement;

/// Measurements of one configuration, and what they say together.
class Measured {
 public:
  Measured(const ModelConfig& config, const std::vector<Measurement>& all)
      : config_(config), all_(all), placement_(theory::placement(config.residual)) {}

  [[nodiscard]] Json signal() const;
  [[nodiscard]] Json feed_forward() const;
  [[nodiscard]] Json theory() const;

  /// The interval over the measurements of one number of each.
  [[nodiscard]] Interval over(const std::function<double(const Measurement&)>& number) const {
    std::vector<double> values;
    for (const Measurement& measurement : all_) values.push_back(number(measurement));
    return confidence_interval(values);
  }

 private:
  struct Stack {
    StackKind kind;
    int64_t layers;
    int64_t attentions;  // a layer
  };
  [[nodiscard]] std::vector<Stack> stacks() const {
    if (config_.kind == "decoder") return {{StackKind::decoder, config_.decoder_layers, 1}};
    return {{StackKind::encoder, config_.encoder_layers, 1}, {StackKind::decoder, config_.decoder_layers, 2}};
  }

  static std::string weight(const Stack& stack, int64_t layer, int matrix) {  // layer from 1, matrix 1 or 2
    return fmt::format("{}.linear{}.weight", to_string(LayerId{stack.kind, layer - 1}), matrix);
  }

  [[nodiscard]] Json lemma2(const LayerPoint& point) const;
  [[nodiscard]] Json setting() const;
  [[nodiscard]] Json theorem1() const;
  [[nodiscard]] Json slope(const Stack& stack, int matrix) const;

  const ModelConfig& config_;
  const std::vector<Measurement>& all_;
  Placement placement_;
};

Json pair_of(double low, double high) { return Json::array({low, high}); }

Json Measured::lemma2(const LayerPoint& point) const {
  if (!point.point.id.layer) return nullptr;
  const int64_t d = config_.d_model;
  Json lemma;
  const bool behind_feed_forward = point.point.id.sub_layer == SubLayerKind::feed_forward;
  if (placement_ == Placement::post_ln && behind_feed_forward && point.point.point == Point::sum) {
    const double here = theory::lemma2_post_ln(d, config_.feed_forward);
    lemma["lemma_2"] = pair_of(theory::lemma2_post_ln(d), theory::lemma2_post_ln(d));
    lemma["adapted"] = pair_of(here, here);
  } else if (placement_ == Placement::pre_ln && behind_feed_forward && point.point.point == Point::stream) {
    const StackKind stack = point.point.id.stack;
    const int64_t attentions = stack == StackKind::decoder ? stacks().back().attentions : 1;
    const auto input_of = [&](const Measurement& m) { return m.signal.at({{stack}, Point::input}).mean_square; };
    const double input = over(input_of).mean;
    const auto [low, high] = theory::lemma2_pre_ln(point.point.id.number(), d);
    const auto [low_here, high_here] =
        theory::lemma2_pre_ln(point.point.id.number(), d, config_.feed_forward, attentions, input);
    lemma["lemma_2"] = pair_of(low, high);
    lemma["adapted"] = pair_of(low_here, high_here);
  } else {
    return nullptr;
  }
  return lemma;
}

Json Measured::signal() const {
  Json list = Json::array();
  for (const LayerPoint& point : all_.front().signal.points) {
    const auto interval = [&](double LayerPoint::*field) {
      return to_json(over([&](const Measurement& m) { return m.signal.at(point.point).*field; }));
    };
    Json entry;
    entry["name"] = to_string(point.point);
    entry["layer"] = point.point.id.number();
    entry["mean_square"] = interval(&LayerPoint::mean_square);
    entry["delta_at_0_1"] = interval(&LayerPoint::delta_at_0_1);
    entry["epsilon_at_0_125"] = interval(&LayerPoint::epsilon_at_0_125);
    entry["layer_norm_ratio"] = interval(&LayerPoint::layer_norm_ratio);
    entry["theory"] = lemma2(point);
    list.push_back(entry);
  }
  return list;
}

Json Measured::feed_forward() const {
  Json list = Json::array();
  for (const Stack& stack : stacks()) {
    for (int64_t layer = 1; layer <= stack.layers; ++layer) {
      for (const int matrix : {1, 2}) {
        const std::string parameter = weight(stack, layer, matrix);
        Json entry;
        entry["stack"] = to_string(stack.kind);
        entry["layer"] = layer;
        entry["matrix"] = fmt::format("W{}", matrix);
        entry["parameter"] = parameter;
        entry["gradient_norm"] = to_json(over([&](const Measurement& m) { return m.gradient.norm(parameter); }));
        entry["batch_mean_gradient_norm"] =
            to_json(over([&](const Measurement& m) { return m.gradient.batch_mean_norm(parameter); }));
        list.push_back(entry);
      }
    }
  }
  return list;
}

Json Measured::setting() const {
  std::vector<std::string> differs;
  const auto expect = [&](bool holds, const std::string& difference) {
    if (!holds) differs.push_back(difference);
  };
  expect(config_.initialization == "theory",
         fmt::format("initialization is '{}', not 'theory'", config_.initialization));
  expect(config_.heads == 1, fmt::format("{} heads, not one", config_.heads));
  expect(config_.feed_forward == config_.d_model,
         fmt::format("feed_forward is {}, d_model {}", config_.feed_forward, config_.d_model));
  expect(config_.norm == "layernorm", fmt::format("norm is '{}', not 'layernorm'", config_.norm));
  expect(config_.activation == "relu", fmt::format("activation is '{}', not 'relu'", config_.activation));
  expect(placement_ != Placement::other,
         fmt::format("residual scheme is '{}', not Post-LN or Pre-LN", config_.residual));
  Json json;
  json["holds"] = differs.empty();
  json["differs"] = differs;
  return json;
}

Json Measured::theorem1() const {
  const Stack last = stacks().back();
  if (placement_ == Placement::other || last.layers == 0) return nullptr;
  const bool post = placement_ == Placement::post_ln;
  const double bound =
      post ? theory::theorem1_post_ln(config_.d_model) : theory::theorem1_pre_ln(config_.d_model, last.layers);
  const std::string parameter = weight(last, last.layers, 2);
  const ActivationPoint point{{last.kind, last.layers - 1, SubLayerKind::feed_forward},
                              post ? Point::sum : Point::stream};
  const Interval delta = over([&](const Measurement& m) { return m.signal.at(point).delta_at_0_1; });
  Json json;
  json["parameter"] = parameter;
  json["bound"] = bound;
  json["norm"] = to_json(over([&](const Measurement& m) { return m.gradient.norm(parameter); }));
  json["constant"] = to_json(over([&](const Measurement& m) { return m.gradient.norm(parameter) / bound; }));
  json["bounded_point"] = to_string(point);
  json["probability"] = theory::theorem1_probability(0.1, delta.mean);
  return json;
}

Json Measured::slope(const Stack& stack, int matrix) const {
  std::vector<double> layers;
  std::vector<double> logs;
  std::vector<double> by_measurement;
  for (const Measurement& measurement : all_) {
    std::vector<double> x;
    std::vector<double> y;
    for (int64_t layer = 1; layer <= stack.layers; ++layer) {
      x.push_back(static_cast<double>(layer));
      y.push_back(std::log(measurement.gradient.batch_mean_norm(weight(stack, layer, matrix))));
    }
    by_measurement.push_back(fit_line(x, y).slope);
    layers.insert(layers.end(), x.begin(), x.end());
    logs.insert(logs.end(), y.begin(), y.end());
  }
  const LineFit fit = fit_line(layers, logs);
  Json json;
  json["stack"] = to_string(stack.kind);
  json["matrix"] = fmt::format("W{}", matrix);
  json["predicted"] =
      placement_ == Placement::other ? Json() : Json(placement_ == Placement::post_ln ? theory::log_slope() : 0.0);
  json["slope"] = fit.slope;
  json["slope_error"] = fit.slope_error;
  json["intercept"] = fit.intercept;
  json["r_squared"] = fit.r_squared;
  json["over_seeds"] = to_json(confidence_interval(by_measurement));
  return json;
}

Json Measured::theory() const {
  Json json;
  json["placement"] = placement_ == Placement::post_ln  ? "post-ln"
                      : placement_ == Placement::pre_ln ? "pre-ln"
                                                        : "other";
  json["setting"] = setting();
  json["theorem_1"] = theorem1();
  json["layer_slopes"] = Json::array();
  for (const Stack& stack : stacks()) {
    if (stack.layers < 2) continue;
    for (const int matrix : {1, 2}) json["layer_slopes"].push_back(slope(stack, matrix));
  }
  return json;
}

}  // namespace

Json to_json(const Interval& interval) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json json;
  json["mean"] = number(interval.mean);
  json["low"] = number(interval.low);
  json["high"] = number(interval.high);
  json["count"] = interval.count;
  return json;
}

Measurement measure(Model& model, const std::vector<Batch>& batches, double label_smoothing) {
  SignalMeter meter;
  Measurement measurement;
  measurement.gradient = measure_gradients(
      model, batches, label_smoothing,
      [&meter](const ActivationPoint& point, const Tensor& activation) { meter.see(point, activation); });
  measurement.signal = meter.profile();
  return measurement;
}

Json probe_document(const ModelConfig& config, const std::vector<Measurement>& measurements) {
  if (measurements.empty()) throw Error("there is nothing to probe: no seed and no weights");
  const Measured measured(config, measurements);
  const auto gradient = [&](double GradientProfile::*field) {
    return measured.over([&](const Measurement& m) { return m.gradient.*field; });
  };
  Json document = make_document("probe", 1);
  document["loss"] = gradient(&GradientProfile::loss).mean;
  document["loss_label_smoothing"] = gradient(&GradientProfile::loss_label_smoothing).mean;
  document["gradient_norm_total"] = gradient(&GradientProfile::total).mean;
  document["gradient_norm"] = Json::object();
  for (const auto& [name, norm] : measurements.front().gradient.norm_by_parameter) {
    document["gradient_norm"][name] =
        measured.over([&, key = name](const Measurement& m) { return m.gradient.norm(key); }).mean;
  }
  document["intervals"]["loss"] = to_json(gradient(&GradientProfile::loss));
  document["intervals"]["loss_label_smoothing"] = to_json(gradient(&GradientProfile::loss_label_smoothing));
  document["intervals"]["gradient_norm_total"] = to_json(gradient(&GradientProfile::total));
  document["signal"] = measured.signal();
  document["feed_forward"] = measured.feed_forward();
  document["theory"] = measured.theory();
  return document;
}

Json probe(const ModelConfig& config, const std::optional<NamedTensors>& weights, const std::vector<Batch>& batches,
           const ProbeOptions& options) {
  const std::unique_ptr<Model> built = make_model(config, options.type);
  Model& model = *built;
  std::vector<Measurement> measurements;
  if (weights) {
    load_parameters(model.parameters(), *weights, options.weights_origin);
    measurements.push_back(measure(model, batches, options.label_smoothing));
  } else {
    Progress progress("probe", static_cast<int64_t>(options.seeds.size()));
    for (const uint64_t seed : options.seeds) {
      model.initialize(seed);
      measurements.push_back(measure(model, batches, options.label_smoothing));
      progress.update(static_cast<int64_t>(measurements.size()));
    }
  }
  Json document = probe_document(config, measurements);
  if (weights) {  // the theory speaks of initialization alone
    Json& setting = document["theory"]["setting"];
    setting["holds"] = false;
    setting["differs"].push_back("the weights come from a file");
  }
  document["seeds"] = weights ? std::vector<uint64_t>() : options.seeds;
  document["label_smoothing"] = options.label_smoothing;
  return document;
}

}  // namespace plumb
