// Measurements against an independent float64 implementation, through the library and through the program.
#include "plumb/analysis/probe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
#include "plumb/model/encoder_decoder.h"
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

TEST_P(Golden, ProgramPrintsThem) {
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
  // What one reads off without the meter: the result of the encoder.
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
  config.encoder_layers = config.decoder_layers = 3;
  config.initialization = "theory";
  config.source_vocabulary = config.target_vocabulary = 11;
  return config;
}

TEST(Document, TheoryStandsBesideWhatWasMeasured) {
  const Case c("post_tiny");
  ProbeOptions options;
  options.seeds = {1, 2, 3, 4};
  options.type = at::kDouble;
  const Json post = probe(small("post-ln"), {}, {c.batch}, options);
  EXPECT_TRUE(post["theory"]["setting"]["holds"]);
  EXPECT_EQ(post["theory"]["placement"], "post-ln");
  EXPECT_EQ(post["feed_forward"].size(), 12u);  // 3 + 3 layers, W1 and W2
  EXPECT_EQ(post["intervals"]["loss"]["count"], 4);
  const Json& theorem = post["theory"]["theorem_1"];
  EXPECT_EQ(theorem["parameter"], "decoder.layers.2.linear2.weight");
  expect_near(theorem["bound"], 16 * std::sqrt(std::log(16.0)), "bound");
  expect_near(theorem["constant"]["mean"], theorem["norm"]["mean"].get<double>() / theorem["bound"].get<double>(),
              "constant");
  int with_theory = 0;
  for (const Json& point : post["signal"]) {
    if (point["theory"].is_null()) continue;
    ++with_theory;
    EXPECT_EQ(point["theory"]["lemma_2"][0], 24.0);
  }
  EXPECT_EQ(with_theory, 6);

  // A slope is that of a line through the norms listed.
  const Json& slope = post["theory"]["layer_slopes"][3];
  EXPECT_EQ(slope["stack"], "decoder");
  EXPECT_EQ(slope["matrix"], "W2");
  expect_near(slope["predicted"], std::log(1.5) / 2, "predicted");
  expect_near(slope["slope"], slope["over_seeds"]["mean"], "pooled slope");

  const Json pre = probe(small("pre-ln"), {}, {c.batch}, options);
  EXPECT_EQ(pre["theory"]["layer_slopes"][0]["predicted"], 0.0);
  expect_near(pre["theory"]["theorem_1"]["bound"], 16 * std::sqrt(std::log(16.0) / 3), "bound");
}

TEST(Document, OneSeedHasNoIntervalAndNoSeedIsAnError) {
  const Case c("post_tiny");
  ProbeOptions options;
  const Json document = probe(small("post-ln"), {}, {c.batch}, options);
  EXPECT_TRUE(document["intervals"]["loss"]["low"].is_null());
  EXPECT_EQ(document["loss"], document["intervals"]["loss"]["mean"]);
  options.seeds.clear();
  EXPECT_THROW(probe(small("post-ln"), {}, {c.batch}, options), Error);
}

TEST(Program, PrintsATableOfLayers) {
  const Case c("post_deep");
  const test::Finished run =
      test::run_plumb({"probe", "--config", c.file(".toml"), "--batch", c.file(".json"), "--seeds", "3"});
  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_NE(run.output.find("3 measurements"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("theory: 0.2027"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("\n      6 "), std::string::npos) << run.output;
}

}  // namespace
}  // namespace plumb
