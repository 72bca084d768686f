#include "plumb/analysis/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "plumb/analysis/branch_recursion.h"
#include "plumb/analysis/divided_model.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/model/kind.h"

namespace plumb {
namespace {

using theory::Placement;

/// The measurements of one configuration, and their summary.
class Measured {
 public:
  Measured(const ModelConfig& config, const std::vector<Measurement>& all) : config_(config), all_(all) {}

  [[nodiscard]] std::vector<SignalReport> signal() const;
  [[nodiscard]] std::vector<BranchReport> branches() const;
  [[nodiscard]] std::vector<FeedForwardReport> feed_forward() const;
  [[nodiscard]] TheoryReport theory() const;

  /// The interval of one number over the measurements.
  [[nodiscard]] Interval over(const std::function<double(const Measurement&)>& number) const {
    return confidence_interval(numbers_in(all_, number));
  }

 private:
  struct Stack {
    StackKind kind;
    int64_t layers;
    int64_t attentions;  // per layer
  };
  [[nodiscard]] std::vector<Stack> stacks() const {
    if (kind_of(config_).recurrent) return {{StackKind::decoder, 0, 0}};  // no layers that the theory covers
    const auto [encoder, decoder] = depth_of(config_);
    if (encoder == 0) return {{StackKind::decoder, decoder, 1}};
    if (decoder == 0) return {{StackKind::encoder, encoder, 1}};
    return {{StackKind::encoder, encoder, 1}, {StackKind::decoder, decoder, 2}};
  }

  [[nodiscard]] Placement placement(StackKind stack) const { return theory::placement(residual_of(config_, stack)); }
  [[nodiscard]] std::optional<SignalReport::Lemma2> lemma2(const ActivationPoint& point) const;
  [[nodiscard]] std::vector<std::string> differences() const;
  [[nodiscard]] std::optional<TheoryReport::Theorem1> theorem1() const;
  [[nodiscard]] TheoryReport::Slope slope(const Stack& stack, int matrix) const;

  const ModelConfig& config_;
  const std::vector<Measurement>& all_;
};

std::optional<SignalReport::Lemma2> Measured::lemma2(const ActivationPoint& point) const {
  if (point.id.sub_layer != SubLayerKind::feed_forward) return std::nullopt;
  const int64_t d = config_.d_model;
  const StackKind stack = point.id.stack;
  if (placement(stack) == Placement::post_ln && point.point == Point::sum) {
    const double paper = theory::lemma2_post_ln(d);
    const double adapted = theory::lemma2_post_ln(d, config_.feed_forward);
    return SignalReport::Lemma2{{paper, paper}, {adapted, adapted}};
  }
  if (placement(stack) == Placement::pre_ln && point.point == Point::stream) {
    const int64_t attentions = stack == StackKind::decoder ? stacks().back().attentions : 1;
    const auto input_of = [&](const Measurement& m) { return m.signal.at({{stack}, Point::input}).mean_square; };
    const double input = over(input_of).mean;
    const int64_t layer = point.id.number();
    const auto [low, high] = theory::lemma2_pre_ln(layer, d);
    const auto [low_here, high_here] = theory::lemma2_pre_ln(layer, d, config_.feed_forward, attentions, input);
    return SignalReport::Lemma2{{low, high}, {low_here, high_here}};
  }
  return std::nullopt;
}

std::vector<SignalReport> Measured::signal() const {
  std::vector<SignalReport> list;
  for (const LayerPoint& each : all_.front().signal.points) {
    const auto interval = [&](double LayerPoint::*field) {
      return over([&](const Measurement& m) { return m.signal.at(each.point).*field; });
    };
    list.push_back({each.point, interval(&LayerPoint::mean_square), interval(&LayerPoint::delta_at_0_1),
                    interval(&LayerPoint::epsilon_at_0_125), interval(&LayerPoint::layer_norm_ratio),
                    lemma2(each.point)});
  }
  return list;
}

std::vector<BranchReport> Measured::branches() const {
  std::vector<BranchReport> list;
  for (size_t i = 0; i < all_.front().branches.size(); ++i) {
    const auto interval = [&](double BranchPoint::*field) {
      return over([&](const Measurement& m) { return m.branches.at(i).*field; });
    };
    list.push_back({all_.front().branches[i].id, interval(&BranchPoint::ratio),
                    interval(&BranchPoint::similarity_before), interval(&BranchPoint::similarity), std::nullopt});
  }
  return list;
}

std::vector<FeedForwardReport> Measured::feed_forward() const {
  std::vector<FeedForwardReport> list;
  for (const Stack& stack : stacks()) {
    for (int64_t layer = 0; layer < stack.layers; ++layer) {
      const LayerId id{stack.kind, layer};
      for (const int matrix : {1, 2}) {
        const std::string parameter = feed_forward_matrix(id, matrix);
        list.push_back({id, matrix, parameter, over([&](const Measurement& m) { return m.gradient.norm(parameter); }),
                        over([&](const Measurement& m) { return m.gradient.batch_mean_norm(parameter); })});
      }
    }
  }
  return list;
}

std::vector<std::string> Measured::differences() const {
  std::vector<std::string> differs;
  const auto expect = [&](bool holds, const std::string& difference) {
    if (!holds) differs.push_back(difference);
  };
  expect(!kind_of(config_).recurrent, "the layers are recurrent");
  expect(config_.initialization == "theory",
         fmt::format("initialization is '{}', not 'theory'", config_.initialization));
  expect(config_.encoder_initialization == "same" || config_.encoder_initialization == config_.initialization,
         fmt::format("the encoder's initialization is '{}'", config_.encoder_initialization));
  expect(config_.initialization_scale == InitializationScale{}, "matrices are scaled after their initialization");
  expect(config_.heads == 1, fmt::format("{} heads, not one", config_.heads));
  expect(config_.feed_forward == config_.d_model,
         fmt::format("feed_forward is {}, d_model {}", config_.feed_forward, config_.d_model));
  expect(config_.norm == "layernorm", fmt::format("norm is '{}', not 'layernorm'", config_.norm));
  expect(config_.activation == "relu", fmt::format("activation is '{}', not 'relu'", config_.activation));
  expect(config_.positions == "none",
         fmt::format("positions are '{}', which are added to inputs of squared norm d", config_.positions));
  expect(config_.attention == "softmax", fmt::format("attention is '{}', not 'softmax'", config_.attention));
  expect(config_.qk_norm == "none", fmt::format("queries and keys are normalized by '{}'", config_.qk_norm));
  expect(!config_.value_residual, "values have a residual connection to the first layer's");
  expect(!config_.parallel, "attention and feed-forward are parallel");
  expect(!config_.embedding_norm, "embeddings are normalized");
  expect(config_.segments == 0, "segment embeddings are added to the input");
  expect(config_.embedding_factor == 0 || config_.embedding_factor == std::sqrt(static_cast<double>(config_.d_model)),
         fmt::format("embeddings are multiplied by {:g}, not by √d", config_.embedding_factor));
  expect(config_.head_size == 0 || config_.head_size == config_.d_model,
         fmt::format("head_size is {}, d_model {}", config_.head_size, config_.d_model));
  expect(residual_of(config_, StackKind::encoder) == config_.residual,
         fmt::format("the encoder's residual scheme is '{}'", config_.encoder_residual));
  expect(!config_.center_memory, "cross-attention reads centered states");
  expect(theory::placement(config_.residual) != Placement::other,
         fmt::format("residual scheme is '{}', not Post-LN or Pre-LN", config_.residual));
  return differs;
}

std::optional<TheoryReport::Theorem1> Measured::theorem1() const {
  const Stack last = stacks().back();
  const Placement placed = placement(last.kind);
  if (placed == Placement::other || last.layers == 0) return std::nullopt;
  const bool post = placed == Placement::post_ln;
  TheoryReport::Theorem1 theorem;
  theorem.bounded_point = {{last.kind, last.layers - 1, SubLayerKind::feed_forward}, post ? Point::sum : Point::stream};
  if (all_.front().signal.find(theorem.bounded_point) == nullptr) return std::nullopt;
  theorem.parameter = feed_forward_matrix({last.kind, last.layers - 1}, 2);
  theorem.bound =
      post ? theory::theorem1_post_ln(config_.d_model) : theory::theorem1_pre_ln(config_.d_model, last.layers);
  const auto norm = [&](const Measurement& m) { return m.gradient.norm(theorem.parameter); };
  theorem.norm = over(norm);
  theorem.constant = over([&](const Measurement& m) { return norm(m) / theorem.bound; });
  const Interval delta = over([&](const Measurement& m) { return m.signal.at(theorem.bounded_point).delta_at_0_1; });
  theorem.probability = theory::theorem1_probability(0.1, delta.mean);
  return theorem;
}

TheoryReport::Slope Measured::slope(const Stack& stack, int matrix) const {
  std::vector<double> layers;
  std::vector<double> logs;
  std::vector<double> by_measurement;
  for (const Measurement& measurement : all_) {
    std::vector<double> x;
    std::vector<double> y;
    for (int64_t layer = 0; layer < stack.layers; ++layer) {
      const LayerId id{stack.kind, layer};
      x.push_back(static_cast<double>(id.number()));
      y.push_back(std::log(measurement.gradient.batch_mean_norm(feed_forward_matrix(id, matrix))));
    }
    by_measurement.push_back(fit_line(x, y).slope);
    layers.insert(layers.end(), x.begin(), x.end());
    logs.insert(logs.end(), y.begin(), y.end());
  }
  TheoryReport::Slope slope{stack.kind, matrix, std::nullopt, fit_line(layers, logs),
                            confidence_interval(by_measurement)};
  const Placement placed = placement(stack.kind);
  if (placed != Placement::other) slope.predicted = placed == Placement::post_ln ? theory::log_slope() : 0.0;
  return slope;
}

TheoryReport Measured::theory() const {
  TheoryReport report{theory::placement(config_.residual), differences(), theorem1(), {}};
  for (const Stack& stack : stacks()) {
    if (stack.layers < 2) continue;
    for (const int matrix : {1, 2}) report.layer_slopes.push_back(slope(stack, matrix));
  }
  return report;
}

}  // namespace

Measurement measure(Model& model, const std::vector<Batch>& batches, double label_smoothing, const LossFunction& loss,
                    const Group& group, const LayerDivision* division) {
  SignalMeter meter;
  const Observer observer = [&meter](const ActivationPoint& point, const Tensor& x) { meter.see(point, x); };
  Measurement measurement;
  measurement.gradient = measure_gradients(model, batches, label_smoothing, observer, loss, group, division);
  meter.add_all(group);
  measurement.signal = meter.profile();
  measurement.branches = measure_branches(model, batches, group);
  return measurement;
}

const SignalReport* ProbeReport::find(const ActivationPoint& point) const {
  return find_by(signal, &SignalReport::point, point);
}

const FeedForwardReport* ProbeReport::find(const LayerId& layer, int matrix) const {
  const auto found = std::find_if(feed_forward.begin(), feed_forward.end(), [&](const FeedForwardReport& each) {
    return each.layer == layer && each.matrix == matrix;
  });
  return found == feed_forward.end() ? nullptr : &*found;
}

ProbeReport summarize(const ModelConfig& config, const std::vector<Measurement>& measurements) {
  if (measurements.empty()) throw Error("nothing to probe: neither seeds nor weights given");
  const Measured measured(config, measurements);
  const auto gradient = [&](double GradientProfile::*field) {
    return measured.over([&](const Measurement& m) { return m.gradient.*field; });
  };
  ProbeReport report;
  report.loss = gradient(&GradientProfile::loss);
  report.loss_label_smoothing = gradient(&GradientProfile::loss_label_smoothing);
  report.gradient_norm_total = gradient(&GradientProfile::total);
  for (const auto& [name, norm] : measurements.front().gradient.norm_by_parameter) {
    const auto of_parameter = [&, key = name](const Measurement& m) { return m.gradient.norm(key); };
    report.gradient_norm.emplace_back(name, measured.over(of_parameter).mean);
  }
  report.signal = measured.signal();
  report.branches = measured.branches();
  report.feed_forward = measured.feed_forward();
  report.theory = measured.theory();
  return report;
}

ProbeReport probe(const ModelConfig& config, const std::optional<NamedTensors>& weights,
                  const std::vector<Batch>& batches, const ProbeOptions& options) {
  std::vector<Measurement> measurements;
  std::vector<BranchPoint> predicted;
  const auto measure_next = [&](const std::optional<GivenWeights>& given, uint64_t seed) {
    const auto [model, division] = make_divided_model(config, options.type, options.layers, given, seed);
    measurements.push_back(measure(*model, batches, options.label_smoothing, options.loss, options.group,
                                   options.layers.size() > 1 ? &division : nullptr));
    if (!given && predicted.empty() && options.layers.size() == 1 && !batches.empty())
      predicted = predict_branches(*model, batches.front());
  };
  if (weights) {
    measure_next(GivenWeights{*weights, options.weights_origin}, 0);
  } else {
    Progress progress("probe", std::ssize(options.seeds));
    for (const uint64_t seed : options.seeds) {
      measure_next(std::nullopt, seed);
      progress.update(std::ssize(measurements));
    }
  }
  ProbeReport report = summarize(config, measurements);
  for (size_t i = 0; i < predicted.size(); ++i) report.branches.at(i).predicted = predicted[i];
  if (weights) {  // the theory covers only initialization
    report.theory.differs.emplace_back("the weights were loaded from a file");
  } else {
    report.seeds = options.seeds;
  }
  report.label_smoothing = options.label_smoothing;
  return report;
}

}  // namespace plumb
