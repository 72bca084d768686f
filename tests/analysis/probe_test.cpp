// Measurements compared with an independent float64 implementation, through the library and the program.
#include "plumb/analysis/probe_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
#include "plumb/data/sequences.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/ops/cross_entropy.h"
#include "support/entries.h"
#include "support/paths.h"
#include "support/process.h"

namespace plumb {
namespace {

struct Case {
  explicit Case(const std::string& name) : base(test::source_directory() / "tests" / "golden" / name) {
    Config::from_file(file(".toml")).read("model", config);
    golden = read_json(file(".json"));
    batch = batch_from_json(golden["batch"]);
    model = std::make_unique<EncoderDecoder>(config, at::kDouble);
    load_parameters(model->parameters(), load_safetensors(file(".safetensors")), "golden");
  }
  [[nodiscard]] std::string file(const char* extension) const {
    return std::filesystem::path(base).concat(extension).string();
  }

  std::filesystem::path base;
  ModelConfig config;
  Json golden;
  Batch batch;
  std::unique_ptr<EncoderDecoder> model;
};

/// The pairs [begin, end) of a batch given as JSON.
Batch part(const Json& batch, size_t begin, size_t end) {
  Json piece = {{"source", Json::array()}, {"target", Json::array()}};
  for (size_t i = begin; i < end; ++i) {
    piece["source"].push_back(batch["source"][i]);
    piece["target"].push_back(batch["target"][i]);
  }
  return batch_from_json(piece);
}

void expect_near(double value, double expected, const std::string& what) {
  EXPECT_NEAR(value, expected, 1e-10 * std::abs(expected)) << what;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, LibraryMeasuresLossesAndEveryGradientNorm) {
  const Case c(GetParam());
  const GradientProfile profile = measure_gradients(*c.model, {c.batch});
  expect_near(profile.loss, c.golden["loss"], "loss");
  expect_near(profile.loss_label_smoothing, c.golden["loss_label_smoothing_0_1"], "loss_label_smoothing");
  expect_near(profile.total, c.golden["gradient_norm_total"], "total");
  EXPECT_EQ(profile.norm_by_parameter.size(), c.golden["gradient_norm"].size());
  for (const auto& [name, norm] : profile.norm_by_parameter)
    expect_near(norm, c.golden["gradient_norm"].at(name), name);
}

/// The program measures by the same functions.
class ProbedGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(ProbedGolden, ProgramPrintsThem) {
  const Case c(GetParam());
  const test::TemporaryDirectory directory;
  const std::string out = (directory / "probe.json").string();
  const test::Finished run = test::run_plumb({"probe", "--config", c.file(".toml"), "--weights", c.file(".safetensors"),
                                              "--batch", c.file(".json"), "--dtype", "float64", "--json", out});
  ASSERT_EQ(run.status, 0) << run.errors;
  const Json document = read_json(out);
  EXPECT_EQ(document["schema"], "plumb.probe/1");
  expect_near(document["loss"], c.golden["loss"], "loss");
  expect_near(document["loss_label_smoothing"], c.golden["loss_label_smoothing_0_1"], "loss_label_smoothing");
  expect_near(document["gradient_norm_total"], c.golden["gradient_norm_total"], "total");
  ASSERT_EQ(document["gradient_norm"].size(), c.golden["gradient_norm"].size());
  for (const auto& [name, norm] : document["gradient_norm"].items()) {
    expect_near(norm, c.golden["gradient_norm"].at(name), name);
  }
  EXPECT_FALSE(document["theory"]["setting"]["holds"]);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::Values("post_tiny", "pre_tiny", "post_deep", "pre_deep"));
INSTANTIATE_TEST_SUITE_P(Models, ProbedGolden, ::testing::Values("post_tiny", "pre_deep"));

TEST(Gradients, MeanOverTokensDoesNotDependOnTheBatches) {
  const Case c("post_tiny");
  const Json& pairs = c.golden["batch"];
  const size_t count = pairs["source"].size();
  const std::vector<Batch> cut = {part(pairs, 0, 2), part(pairs, 2, count)};
  ASSERT_NE(cut[0].target_layout.tokens(), cut[1].target_layout.tokens());
  const GradientProfile whole = measure_gradients(*c.model, {c.batch}, 0.1);
  const GradientProfile split = measure_gradients(*c.model, cut, 0.1);
  expect_near(split.loss, whole.loss, "loss");
  expect_near(split.loss_label_smoothing, whole.loss_label_smoothing, "loss_label_smoothing");
  expect_near(split.total, whole.total, "total");
  for (const auto& [name, norm] : whole.norm_by_parameter) expect_near(split.norm(name), norm, name);
}

TEST(Gradients, MeanOverMiniBatchesWeighsThemAlike) {
  const Case c("pre_tiny");
  const Json& pairs = c.golden["batch"];
  const std::vector<Batch> cut = {part(pairs, 0, 1), part(pairs, 1, pairs["source"].size())};
  const GradientProfile profile = measure_gradients(*c.model, cut);
  const auto gradient_of = [&](const Batch& batch) {
    ForwardContext context;
    return gradients({c.model->loss(batch, {}, context).value}, c.model->parameters().values(), {});
  };
  const std::vector<Tensor> first = gradient_of(cut[0]);
  const std::vector<Tensor> second = gradient_of(cut[1]);
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string& name = c.model->parameters().all()[i].name;
    expect_near(profile.batch_mean_norm(name), ((first[i] + second[i]) / 2).norm().item<double>(), name);
  }
  EXPECT_THROW((void)profile.norm("decoder.layers.0.linear3.weight"), Error);
  EXPECT_THROW(measure_gradients(*c.model, {}), Error);
}

TEST(Gradients, LabelSmoothingChangesTheGradientAlone) {
  const Case c("post_tiny");
  const GradientProfile plain = measure_gradients(*c.model, {c.batch});
  const GradientProfile smoothed = measure_gradients(*c.model, {c.batch}, 0.1);
  EXPECT_EQ(smoothed.loss, plain.loss);
  EXPECT_EQ(smoothed.loss_label_smoothing, plain.loss_label_smoothing);
  // The slope of the smoothed loss along its own gradient g is ‖g‖².
  const Tensor& flat = c.model->parameters().flat();
  ForwardContext context;
  LossOptions options;
  options.label_smoothing = 0.1;
  const auto loss = [&] { return c.model->loss(c.batch, options, context).value; };
  const Tensor g = joined(gradients({loss()}, c.model->parameters().values(), {}));
  const double step = 1e-6;
  const at::NoGradGuard no_graph;
  flat.add_(g, step);
  const double ahead = loss().item<double>();
  flat.add_(g, -2 * step);
  const double behind = loss().item<double>();
  EXPECT_NEAR((ahead - behind) / (2 * step), smoothed.total * smoothed.total, 1e-6);
  EXPECT_GT(std::abs(smoothed.total - plain.total), 1e-3);
}

/// Three times the model's loss.
Loss tripled(Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) {
  Loss loss = model.loss(batch, options, context);
  return {3 * loss.value, 3 * loss.nll, loss.tokens, loss.weight};
}

TEST(Gradients, TakeTheLossThatIsGiven) {
  const Case c("pre_tiny");
  const GradientProfile plain = measure_gradients(*c.model, {c.batch}, 0.1);
  const GradientProfile found = measure_gradients(*c.model, {c.batch}, 0.1, {}, tripled);
  expect_near(found.loss, 3 * plain.loss, "loss");
  expect_near(found.loss_label_smoothing, 3 * plain.loss_label_smoothing, "loss_label_smoothing");
  for (const auto& [name, norm] : plain.norm_by_parameter) expect_near(found.norm(name), 3 * norm, name);
}

/// The model's cross-entropy, weighted as in the batch.
Loss weighed(Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) {
  const ops::CrossEntropy result = ops::cross_entropy(model.logits(model.states(batch, context)), batch.labels,
                                                      batch.weights, options.label_smoothing, options.scale.value());
  return {result.loss, result.nll, std::ssize(batch.labels)};
}

TEST(Gradients, OfLabelsThatDifferInWeight) {
  const Case c("post_tiny");
  const Json& pairs = c.golden["batch"];
  std::vector<Batch> batches = {part(pairs, 0, 2), part(pairs, 2, pairs["source"].size())};
  double total = 0;
  for (Batch& batch : batches) {
    for (size_t i = 0; i < batch.labels.size(); ++i) batch.weights.push_back(static_cast<double>(i % 3));  // 0, 1, 2
    total += batch.weight();
  }
  // Σ w·(−log p)/Σ w, by log_softmax.
  Tensor loss = at::zeros({}, at::kDouble);
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    const Tensor logarithms = at::log_softmax(c.model->logits(c.model->states(batch, context)), 1);
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      const Tensor nll = -logarithms.select(0, static_cast<int64_t>(i)).select(0, batch.labels[i]);
      loss = loss + batch.weights[i] / total * nll;
    }
  }
  const Tensor gradient = joined(gradients({loss}, c.model->parameters().values(), {}));
  const GradientProfile profile = measure_gradients(*c.model, batches, 0, {}, weighed);
  expect_near(profile.loss, loss.item<double>(), "loss");
  expect_near(profile.total, gradient.norm().item<double>(), "total");
  const MeanLoss mean = mean_loss(*c.model, batches, 0, weighed);
  expect_near(mean.loss, loss.item<double>(), "mean loss");
  EXPECT_LT((mean.gradient - gradient).abs().max().item<double>(), 1e-12);
}

TEST(Signal, EveryPointOfTheStreamOverAllTokensOfAllBatches) {
  const Case c("pre_tiny");
  const Json& pairs = c.golden["batch"];
  const SignalProfile whole = measure_signal(*c.model, {c.batch});
  const SignalProfile split = measure_signal(*c.model, {part(pairs, 0, 2), part(pairs, 2, pairs["source"].size())});
  ASSERT_EQ(whole.points.size(), split.points.size());
  for (const LayerPoint& point : whole.points) {
    expect_near(split.at(point.point).mean_square, point.mean_square, to_string(point.point));
    EXPECT_DOUBLE_EQ(split.at(point.point).delta_at_0_1, point.delta_at_0_1);
  }
  EXPECT_EQ(to_string(whole.points.front().point), "encoder.input");
  EXPECT_EQ(whole.points.front().point.id.number(), 0);
  EXPECT_EQ(whole.at({{StackKind::decoder, 0, SubLayerKind::feed_forward}, Point::sum}).point.id.number(), 1);
  EXPECT_THROW((void)whole.at({{StackKind::encoder}, Point::sum}), Error);
  // The same without the meter: the result of the encoder.
  ForwardContext context;
  const Tensor memory = c.model->encode(c.batch.source, c.batch.source_layout, context);
  expect_near(whole.at({{StackKind::encoder}, Point::result}).mean_square, memory.square().sum(1).mean().item<double>(),
              "encoder.result");
}

ModelConfig small(const std::string& residual) {
  ModelConfig config;
  config.residual = residual;
  config.d_model = config.feed_forward = 16;
  config.heads = 1;
  config.positions = "none";
  config.encoder_layers = config.decoder_layers = 3;
  config.initialization = "theory";
  config.source_vocabulary = config.target_vocabulary = 11;
  return config;
}

TEST(Report, TheoryStandsBesideWhatWasMeasured) {
  const Case c("post_tiny");
  ProbeOptions options;
  options.seeds = {1, 2, 3, 4};
  options.type = at::kDouble;
  const ProbeReport post = probe(small("post-ln"), {}, {c.batch}, options);
  EXPECT_TRUE(post.theory.differs.empty());
  EXPECT_EQ(post.theory.placement, theory::Placement::post_ln);
  EXPECT_EQ(post.feed_forward.size(), 12u);  // 3 + 3 layers, W1 and W2
  EXPECT_EQ(post.loss.count, 4);
  ASSERT_TRUE(post.theory.theorem_1.has_value());
  const TheoryReport::Theorem1& theorem = *post.theory.theorem_1;
  EXPECT_EQ(theorem.parameter, "decoder.layers.2.linear2.weight");
  EXPECT_EQ(to_string(theorem.bounded_point), "decoder.layers.2.feed_forward.sum");
  expect_near(theorem.bound, 16 * std::sqrt(std::log(16.0)), "bound");
  expect_near(theorem.constant.mean, theorem.norm.mean / theorem.bound, "constant");
  int with_theory = 0;
  for (const SignalReport& point : post.signal) {
    if (!point.theory) continue;
    ++with_theory;
    EXPECT_EQ(point.theory->paper.low, 24.0);
  }
  EXPECT_EQ(with_theory, 6);

  // A slope is that of a line through the listed norms.
  const TheoryReport::Slope& slope = post.theory.layer_slopes.at(3);
  EXPECT_EQ(slope.stack, StackKind::decoder);
  EXPECT_EQ(slope.matrix, 2);
  expect_near(slope.predicted.value(), std::log(1.5) / 2, "predicted");
  expect_near(slope.fit.slope, slope.over_seeds.mean, "pooled slope");

  const ProbeReport pre = probe(small("pre-ln"), {}, {c.batch}, options);
  EXPECT_EQ(pre.theory.layer_slopes.at(0).predicted, 0.0);
  expect_near(pre.theory.theorem_1.value().bound, 16 * std::sqrt(std::log(16.0) / 3), "bound");
}

TEST(Report, TheoryIsThatOfEachStacksScheme) {
  const Case c("post_tiny");
  ModelConfig config = small("post-ln");
  config.encoder_residual = "pre-ln";
  const ProbeReport report = probe(config, {}, {c.batch}, {});
  const auto has_theory = [&](StackKind stack, Point point) {
    return report.find(ActivationPoint{{stack, 1, SubLayerKind::feed_forward}, point})->theory.has_value();
  };
  EXPECT_TRUE(has_theory(StackKind::encoder, Point::stream));
  EXPECT_FALSE(has_theory(StackKind::encoder, Point::sum));
  EXPECT_FALSE(has_theory(StackKind::decoder, Point::stream));
  EXPECT_TRUE(has_theory(StackKind::decoder, Point::sum));
  EXPECT_EQ(report.theory.layer_slopes.at(0).predicted, 0.0);
  EXPECT_EQ(report.theory.layer_slopes.at(3).predicted, std::log(1.5) / 2);
}

TEST(Report, TheSettingHoldsOnlyWhereEveryAssumptionDoes) {
  const Case c("post_tiny");
  const auto differs = [&](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = small("post-ln");
    change(config);
    return probe(config, {}, {c.batch}, {}).theory.differs.size();
  };
  EXPECT_EQ(differs([](ModelConfig&) {}), 0U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.positions = "sinusoidal"; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.attention = "linear"; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.qk_norm = "rmsnorm"; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.value_residual = true; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.embedding_norm = true; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.embedding_factor = 2; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.encoder_initialization = "he"; }), 1U);
  EXPECT_EQ(differs([](ModelConfig& config) { config.embedding_factor = 4; }), 0U);  // √16
  EXPECT_EQ(differs([](ModelConfig& config) { config.norm = "rmsnorm"; }), 1U);
}

TEST(Report, OneSeedHasNoIntervalAndNoSeedIsAnError) {
  const Case c("post_tiny");
  ProbeOptions options;
  const ProbeReport report = probe(small("post-ln"), {}, {c.batch}, options);
  EXPECT_TRUE(std::isnan(report.loss.low));
  EXPECT_EQ(report.loss.count, 1);
  EXPECT_EQ(report.find(LayerId{StackKind::encoder, 3}, 1), nullptr);
  options.seeds.clear();
  EXPECT_THROW(probe(small("post-ln"), {}, {c.batch}, options), Error);
}

TEST(Report, AStackByItself) {
  const Case c("post_tiny");
  ModelConfig config = small("pre-ln");
  config.kind = "decoder";
  const ProbeReport report = probe(config, {}, {c.batch}, {});
  EXPECT_EQ(report.feed_forward.size(), 6u);
  EXPECT_EQ(report.find(ActivationPoint{{StackKind::encoder}, Point::input}), nullptr);
  const SignalReport* stream =
      report.find(ActivationPoint{{StackKind::decoder, 1, SubLayerKind::feed_forward}, Point::stream});
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->theory.value().paper.low, 2 * 16.0);   // (1 + l/2)·d at l = 2
  EXPECT_EQ(stream->theory.value().paper.high, 4 * 16.0);  // (1 + 3l/2)·d
}

TEST(Document, HasWhatItsFormatSays) {
  using Keys = std::vector<std::string>;
  const Case c("post_tiny");
  ProbeOptions options;
  options.seeds = {7, 8};
  options.label_smoothing = 0.1;
  const ProbeReport report = probe(small("post-ln"), {}, {c.batch}, options);
  const Json json = to_json(report);
  EXPECT_EQ(test::keys_of(json),
            (Keys{"schema", "command", "loss", "loss_label_smoothing", "gradient_norm_total", "gradient_norm",
                  "intervals", "signal", "branches", "feed_forward", "theory", "seeds", "label_smoothing"}));
  EXPECT_EQ(json["schema"], "plumb.probe/1");
  EXPECT_EQ(json["loss"], report.loss.mean);
  EXPECT_EQ(test::keys_of(json["intervals"]["loss"]), (Keys{"mean", "low", "high", "count"}));
  EXPECT_EQ(json["intervals"]["gradient_norm_total"]["high"], report.gradient_norm_total.high);
  EXPECT_EQ(json["gradient_norm"]["encoder.layers.1.norm2.bias"].is_number(), true);
  const Json& sum = json["signal"][4];  // after the stack's input, and input, output and sum of a sub-layer
  EXPECT_EQ(test::keys_of(sum),
            (Keys{"name", "layer", "mean_square", "delta_at_0_1", "epsilon_at_0_125", "layer_norm_ratio", "theory"}));
  EXPECT_EQ(sum["name"], "encoder.layers.0.self_attention.stream");
  EXPECT_EQ(sum["layer"], 1);
  EXPECT_TRUE(sum["theory"].is_null());
  EXPECT_EQ(json["signal"][7]["theory"]["lemma_2"], Json::array({24.0, 24.0}));
  const Json& branch = json["branches"][1];
  EXPECT_EQ(test::keys_of(branch), (Keys{"name", "layer", "ratio", "similarity_before", "similarity", "predicted"}));
  EXPECT_EQ(branch["name"], "encoder.layers.0.feed_forward");
  EXPECT_EQ(branch["similarity_before"]["mean"], json["branches"][0]["similarity"]["mean"]);
  EXPECT_EQ(test::keys_of(branch["predicted"]), (Keys{"ratio", "similarity"}));
  EXPECT_EQ(json["feed_forward"][3]["parameter"], "encoder.layers.1.linear2.weight");
  EXPECT_EQ(json["feed_forward"][3]["matrix"], "W2");
  EXPECT_EQ(test::keys_of(json["theory"]), (Keys{"placement", "setting", "theorem_1", "layer_slopes"}));
  EXPECT_EQ(json["theory"]["setting"], Json({{"holds", true}, {"differs", Json::array()}}));
  EXPECT_EQ(json["theory"]["placement"], "post-ln");
  EXPECT_EQ(test::keys_of(json["theory"]["theorem_1"]),
            (Keys{"parameter", "bound", "norm", "constant", "bounded_point", "probability"}));
  EXPECT_EQ(test::keys_of(json["theory"]["layer_slopes"][0]),
            (Keys{"stack", "matrix", "predicted", "slope", "slope_error", "intercept", "r_squared", "over_seeds"}));
  EXPECT_EQ(json["seeds"], Json::array({7, 8}));

  options.seeds = {1};
  options.label_smoothing = 0;
  const Json other = to_json(probe(small("keel"), {}, {c.batch}, options));
  EXPECT_TRUE(other["intervals"]["loss"]["low"].is_null());
  EXPECT_TRUE(other["theory"]["theorem_1"].is_null());
  EXPECT_TRUE(other["theory"]["layer_slopes"][0]["predicted"].is_null());
  EXPECT_FALSE(other["theory"]["setting"]["holds"]);
}

TEST(Program, PrintsATableOfLayers) {
  const Case c("post_deep");
  const test::Finished run = test::succeeded(
      test::run_plumb({"probe", "--config", c.file(".toml"), "--batch", c.file(".json"), "--seeds", "3"}));
  EXPECT_CONTAINS(run.output, "3 seeds");
  EXPECT_CONTAINS(run.output, " 0.202733\n");  // the theory's slope
  EXPECT_CONTAINS(run.output, "\nencoder.layers.5  ");
}

}  // namespace
}  // namespace plumb
