// Hessian-vector products compared with differences of the gradient, and spectra with an independent implementation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/base/error.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/norm/norm.h"
#include "support/batches.h"
#include "support/entries.h"
#include "support/paths.h"

namespace plumb {
namespace {

class Curvature : public ::testing::TestWithParam<std::string> {
 protected:
  Curvature() : golden_(read_json(file(".json"))), model_(config(), at::kDouble) {
    load_parameters(model_.parameters(), load_safetensors(file(".safetensors")), "golden");
  }

  [[nodiscard]] static std::filesystem::path file(const char* extension) {
    return test::source_directory() / "tests" / "golden" / (GetParam() + extension);
  }
  [[nodiscard]] static ModelConfig config() {
    ModelConfig config;
    Config::from_file(file(".toml")).read("model", config);
    return config;
  }
  [[nodiscard]] std::vector<Batch> batches() const { return {batch_from_json(golden_["batch"])}; }

  /// The same pairs in three micro-batches of different sizes.
  [[nodiscard]] std::vector<Batch> split_batches() const {
    std::vector<Json> parts(3, Json{{"source", Json::array()}, {"target", Json::array()}});
    const Json& all = golden_["batch"];
    for (size_t i = 0; i < all["source"].size(); ++i) {
      Json& part = parts[i == 0 ? 0 : i < 3 ? 1 : 2];
      part["source"].push_back(all["source"][i]);
      part["target"].push_back(all["target"][i]);
    }
    return {batch_from_json(parts[0]), batch_from_json(parts[1]), batch_from_json(parts[2])};
  }

  [[nodiscard]] Tensor probe(int64_t index) const {
    return random_probe(model_.parameters().count(), at::kDouble, 4, index);
  }

  Json golden_;
  EncoderDecoder model_;
};

double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST_P(Curvature, ProductIsTheDerivativeOfTheGradient) {
  for (const double smoothing : {0.0, 0.1}) {
    HessianOptions options;
    options.label_smoothing = smoothing;
    HessianOperator hessian(model_, split_batches(), options);
    const Tensor v = probe(0);
    const Tensor product = hessian(v);
    const Tensor& flat = model_.parameters().flat();
    const Tensor at = flat.clone();
    constexpr double kStep = 1e-4;
    const auto gradient_at = [&](double step) {
      flat.copy_(at + step * v);
      return mean_loss(model_, split_batches(), smoothing).gradient;
    };
    // Fourth order: (8·(g(h) − g(−h)) − (g(2h) − g(−2h)))/12h.
    const Tensor numeric =
        (8 * (gradient_at(kStep) - gradient_at(-kStep)) - (gradient_at(2 * kStep) - gradient_at(-2 * kStep))) /
        (12 * kStep);
    flat.copy_(at);
    EXPECT_LT(distance(product, numeric), 1e-9);
    EXPECT_GT(product.norm().item<double>(), 1e-2);
  }
}

TEST_P(Curvature, Symmetric) {
  HessianOperator hessian(model_, batches());
  const Tensor u = probe(1);
  const Tensor v = probe(2);
  EXPECT_NEAR(u.dot(hessian(v)).item<double>(), v.dot(hessian(u)).item<double>(), 1e-14);
}

TEST_P(Curvature, MicroBatchesMakeNoDifference) {
  const MeanLoss whole_loss = mean_loss(model_, batches());
  const MeanLoss split_loss = mean_loss(model_, split_batches());
  EXPECT_NEAR(whole_loss.loss, golden_["loss"].get<double>(), 1e-11);
  EXPECT_NEAR(whole_loss.loss, split_loss.loss, 1e-12);
  EXPECT_LT(distance(whole_loss.gradient, split_loss.gradient), 1e-12);
  EXPECT_NEAR(whole_loss.gradient.norm().item<double>(), golden_["gradient_norm_total"].get<double>(), 1e-11);
  HessianOperator whole(model_, batches());
  HessianOperator parts(model_, split_batches());
  EXPECT_EQ(parts.tokens(), whole.tokens());
  EXPECT_LT(distance(whole(probe(0)), parts(probe(0))), 1e-12);
}

/// The exception: norms over a batch use the statistics of each micro-batch.
TEST_P(Curvature, MicroBatchesMakeADifferenceToNormsOverABatch) {
  for (const std::string& norm : norms().names()) {
    SCOPED_TRACE(norm);
    ModelConfig changed = config();
    changed.norm = norm;
    EncoderDecoder model(changed, at::kDouble);
    model.initialize(1);
    const double difference = std::abs(mean_loss(model, batches()).loss - mean_loss(model, split_batches()).loss);
    if (norm == "batchnorm" || norm == "powernorm") {
      EXPECT_GT(difference, 1e-5);
    } else {
      EXPECT_LT(difference, 1e-10);
    }
  }
}

TEST_P(Curvature, KeptAndRebuiltGraphsAgree) {
  HessianOptions rebuild;
  rebuild.graph_memory = 0;
  HessianOperator kept(model_, split_batches());
  HessianOperator rebuilt(model_, split_batches(), rebuild);
  EXPECT_EQ(kept.kept(), 3U);
  EXPECT_EQ(rebuilt.kept(), 0U);
  const Tensor first = kept(probe(0));
  EXPECT_TRUE(first.equal(rebuilt(probe(0))));
  EXPECT_TRUE(first.equal(kept(probe(0))));  // and again from the same graph
}

/// A block's part of a flat vector of all parameters.
Tensor part_of(const Tensor& flat, const ParameterBlock& block, const Parameters& parameters) {
  const std::vector<Tensor> pieces = parameters.split(flat);
  std::vector<Tensor> part;
  for (const size_t place : block.places) part.push_back(pieces[place]);
  return joined(part);
}

/// The vector of all parameters that equals v in the block and 0 elsewhere.
Tensor embedded(const Tensor& v, const ParameterBlock& block, const Parameters& parameters) {
  Tensor flat = at::zeros({parameters.count()}, at::kDouble);
  const std::vector<Tensor> pieces = parameters.split(flat);
  int64_t begin = 0;
  for (const size_t place : block.places) {
    pieces[place].copy_(v.narrow(0, begin, pieces[place].numel()).view(pieces[place].sizes()));
    begin += pieces[place].numel();
  }
  return flat;
}

TEST_P(Curvature, BlocksAreThoseOfTheWholeMatrix) {
  ModelConfig deep = config();
  deep.encoder_layers = 3;
  deep.decoder_layers = 2;
  EncoderDecoder model(deep, at::kDouble);
  model.initialize(1);
  const Parameters& parameters = model.parameters();
  const std::vector<ParameterBlock> blocks = layer_blocks(parameters);
  std::vector<std::string> names;
  for (const ParameterBlock& block : blocks) names.push_back(to_string(block.id));
  EXPECT_EQ(names, (std::vector<std::string>{"encoder.layers.0", "encoder.layers.1", "encoder.layers.2",
                                             "decoder.layers.0", "decoder.layers.1"}));
  for (const int64_t graph_memory : {int64_t{1} << 30, int64_t{0}}) {
    HessianOptions options;
    options.graph_memory = graph_memory;
    HessianOperator hessian(model, split_batches(), options);
    std::vector<Tensor> vectors;
    for (const ParameterBlock& block : blocks) vectors.push_back(random_probe(block.size, at::kDouble, 4, 0));
    const std::vector<Tensor> found = hessian.multiply_blocks(blocks, vectors);
    for (size_t i = 0; i < blocks.size(); ++i) {
      SCOPED_TRACE(to_string(blocks[i].id));
      const Tensor whole = hessian(embedded(vectors[i], blocks[i], parameters));
      const Tensor expected = part_of(whole, blocks[i], parameters);
      EXPECT_LT(distance(found[i], expected), 1e-12);
      EXPECT_GT(expected.norm().item<double>(), 1e-6);
    }
    EXPECT_THROW(hessian.multiply_blocks({blocks[0]}, {probe(0)}), Error);
  }
}

TEST_P(Curvature, SpectraByLayerAreThoseOfTheBlocks) {
  SpectrumOptions options;
  options.by_layer = true;
  options.steps = 100;
  options.probes = 2;
  const SpectrumReport found = measure_spectrum(model_, batches(), options);
  const std::vector<ParameterBlock> blocks = layer_blocks(model_.parameters());
  ASSERT_EQ(found.blocks.size(), blocks.size());
  EXPECT_FALSE(found.whole.has_value());
  const ParameterBlock& last = blocks.back();
  HessianOperator hessian(model_, batches());
  Tensor matrix = at::zeros({last.size, last.size}, at::kDouble);
  for (int64_t i = 0; i < last.size; ++i) {
    Tensor unit = at::zeros({last.size}, at::kDouble);
    unit[i] = 1;
    matrix[i].copy_(part_of(hessian(embedded(unit, last, model_.parameters())), last, model_.parameters()));
  }
  const Tensor eigenvalues = at::linalg_eigvalsh(matrix);
  const BlockSpectrum& block = found.blocks.back();
  const double largest = eigenvalues[-1].item<double>();
  EXPECT_EQ(block.id, last.id);
  EXPECT_EQ(block.parameters, last.size);
  EXPECT_NEAR(block.spectrum.max.value, largest, 1e-7 * largest);
  EXPECT_NEAR(block.spectrum.min.value, eigenvalues[0].item<double>(), 1e-7 * largest);
  EXPECT_EQ(block.spectrum.probes.size(), 2U);
  options.dense = true;
  EXPECT_THROW(measure_spectrum(model_, batches(), options), Error);
}

TEST_P(Curvature, DenseSpectrumIsTheIndependentOne) {
  SpectrumOptions options;
  options.dense = true;
  const SpectrumReport report = measure_spectrum(model_, batches(), options);
  ASSERT_TRUE(report.whole.has_value());
  const Spectrum& found = *report.whole;
  const Json& expected = golden_["hessian"];
  const double tolerance = 1e-9 * expected["max"].get<double>();
  EXPECT_EQ(report.parameters, expected["size"]);
  EXPECT_NEAR(found.max.value, expected["max"].get<double>(), tolerance);
  EXPECT_NEAR(found.min.value, expected["min"].get<double>(), tolerance);
  EXPECT_NEAR(found.trace.mean, expected["trace"].get<double>(), tolerance);
  EXPECT_NEAR(found.frobenius.mean, expected["frobenius"].get<double>(), tolerance);
  const std::vector<double>& values = found.eigenvalues;
  ASSERT_EQ(values.size(), expected["size"].get<size_t>());
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(values[values.size() - 1 - i], expected["top"][i].get<double>(), tolerance);
    EXPECT_NEAR(values[i], expected["bottom"][i].get<double>(), tolerance);
  }
  // The reference defines quantiles by (i − 1)/(n − 1), Plumb by (i − ½)/n: up to half a step apart.
  ASSERT_EQ(found.quantiles.size(), expected["quantiles"].size());
  for (const auto& [share, value] : found.quantiles) {
    const double there = expected["quantiles"].at(fmt::format("{:g}", share)).get<double>();
    EXPECT_NEAR(value, there, 0.02 * (1e-3 + std::abs(there))) << share;
  }
  EXPECT_LT(found.asymmetry.value(), 1e-14);
}

TEST_P(Curvature, LanczosFindsTheExtremesAndTheTrace) {
  SpectrumOptions options;
  options.steps = 120;
  options.probes = 6;
  const SpectrumReport report = measure_spectrum(model_, batches(), options);
  ASSERT_TRUE(report.whole.has_value());
  const Spectrum& found = *report.whole;
  const Json& expected = golden_["hessian"];
  const double largest = expected["max"];
  EXPECT_NEAR(found.max.value, largest, 1e-8 * largest);
  EXPECT_NEAR(found.min.value, expected["min"].get<double>(), 1e-8 * largest);
  EXPECT_LT(found.max.error, 1e-6 * largest);
  EXPECT_LT(std::abs(found.trace.mean - expected["trace"].get<double>()), 3 * found.trace.error.value());
  // Hutchinson: the standard error is √(2·Σ_{i≠j} H_ij²/probes) at most.
  EXPECT_LT(found.trace.error.value(), 1.8 * expected["frobenius"].get<double>() * std::sqrt(2.0 / 6));
  EXPECT_LT(std::abs(found.frobenius.mean - expected["frobenius"].get<double>()), 3 * found.frobenius.error.value());
  EXPECT_EQ(found.probes.size(), 6U);
  EXPECT_EQ(found.density.low.size(), found.density.x.size());
}

TEST_P(Curvature, ASingleProbeHasNoErrorBar) {
  SpectrumOptions options;
  options.steps = 3;
  const SpectrumReport found = measure_spectrum(model_, batches(), options);
  ASSERT_TRUE(found.whole.has_value());
  EXPECT_FALSE(found.whole->trace.error.has_value());
  EXPECT_TRUE(found.whole->density.low.empty());
  EXPECT_GT(found.whole->max.error, 1e-3);  // three steps are too few
  EXPECT_EQ(found.products, 3);
  EXPECT_EQ(found.tokens, batches()[0].target_layout.tokens());
}

TEST_P(Curvature, ProbesThatAdvanceTogetherFindTheSame) {
  SpectrumOptions options;
  options.probes = 3;
  options.steps = 6;
  options.hessian.graph_memory = 0;
  const SpectrumReport alone = measure_spectrum(model_, batches(), options);
  options.at_once = 2;
  const SpectrumReport together = measure_spectrum(model_, batches(), options);
  ASSERT_EQ(together.whole.value().probes.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(together.whole->probes[i].ritz.values, alone.whole.value().probes[i].ritz.values);
    EXPECT_EQ(together.whole->probes[i].ritz.weights, alone.whole->probes[i].ritz.weights);
  }
  EXPECT_EQ(together.products, 18);
}

TEST_P(Curvature, DocumentHasWhatItsFormatSaysAndIsReadBack) {
  using Keys = std::vector<std::string>;
  SpectrumOptions options;
  options.steps = 4;
  options.seed = 5;
  SpectrumReport report = measure_spectrum(model_, batches(), options);
  const Json json = to_json(report);
  EXPECT_EQ(test::keys_of(json), (Keys{"schema",
                                       "command",
                                       "method",
                                       "dtype",
                                       "parameters",
                                       "tokens",
                                       "label_smoothing",
                                       "loss",
                                       "gradient_norm",
                                       "steps",
                                       "probes",
                                       "seed",
                                       "max",
                                       "max_error",
                                       "min",
                                       "min_error",
                                       "trace",
                                       "trace_error",
                                       "frobenius",
                                       "frobenius_error",
                                       "mass",
                                       "quantiles",
                                       "density",
                                       "ritz",
                                       "micro_batches",
                                       "graphs_kept",
                                       "products",
                                       "threads",
                                       "processes",
                                       "gradient_seconds",
                                       "hvp_seconds",
                                       "seconds"}));
  EXPECT_EQ(json["schema"], "plumb.spectrum/1");
  EXPECT_EQ(json["method"], "lanczos");
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(json["max"], report.whole->max.value);
  EXPECT_TRUE(json["trace_error"].is_null());
  EXPECT_TRUE(json["density"]["high"].is_null());
  EXPECT_EQ(test::keys_of(json["mass"]),
            (Keys{"zero_band", "negative", "negative_error", "positive", "positive_error"}));
  EXPECT_EQ(test::keys_of(json["quantiles"]), (Keys{"0.01", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99"}));
  EXPECT_EQ(test::keys_of(json["ritz"][0]),
            (Keys{"probe", "steps", "exhausted", "rounding", "values", "weights", "residuals"}));
  report.whole->min.error = std::nan("");  // null in a file
  const auto through_a_file = [](const SpectrumReport& written) {
    return Json::parse(to_json(written).dump()).get<SpectrumReport>();
  };
  SpectrumReport read = through_a_file(report);
  EXPECT_TRUE(std::isnan(read.whole.value().min.error));
  read.whole->min.error = report.whole->min.error = 0;
  EXPECT_EQ(to_json(read), to_json(report));

  options.by_layer = true;
  report = measure_spectrum(model_, batches(), options);
  EXPECT_EQ(to_json(report)["blocks"][1]["name"], "decoder.layers.0");
  EXPECT_FALSE(to_json(report).contains("max"));
  EXPECT_EQ(to_json(through_a_file(report)), to_json(report));
  options.by_layer = false;
  options.dense = true;
  report = measure_spectrum(model_, batches(), options);
  EXPECT_EQ(to_json(report)["trace_error"], 0.0);
  EXPECT_FALSE(to_json(report).contains("ritz"));
  EXPECT_EQ(to_json(through_a_file(report)), to_json(report));
}

TEST_P(Curvature, TakesTheLossThatIsGiven) {
  HessianOptions options;
  options.loss = [](Model& model, const Batch& batch, const LossOptions& of_batch, ForwardContext& context) {
    Loss loss = model.loss(batch, of_batch, context);
    loss.value = 3 * loss.value;
    return loss;
  };
  HessianOperator plain(model_, split_batches());
  HessianOperator tripled(model_, split_batches(), options);
  EXPECT_LT(distance(3 * plain(probe(0)), tripled(probe(0))), 1e-12);
}

TEST_P(Curvature, RefusesVectorsAndBatchesThatDoNotFit) {
  HessianOperator hessian(model_, batches());
  EXPECT_THROW(hessian(at::zeros({3}, at::kDouble)), Error);
  EXPECT_THROW(hessian(probe(0).to(at::kFloat)), Error);
  EXPECT_THROW(HessianOperator(model_, {}), Error);
}

TEST(CurvatureMemory, KeepsAsManyGraphsAsFit) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's allocator does not count";
#endif
  ModelConfig config;
  config.source_vocabulary = config.target_vocabulary = 300;
  config.encoder_layers = config.decoder_layers = 1;
  config.d_model = 32;
  EncoderDecoder model(config);
  model.initialize(1);
  Batch batch;
  const std::vector<int32_t> words(30, 7);
  for (int64_t i = 0; i < 10; ++i) append(batch, words, words, i);
  const std::vector<Batch> batches(4, batch);
  HessianOptions options;
  // The kept logits of one micro-batch alone take 310·300·4 bytes.
  options.graph_memory = 370'000;
  EXPECT_EQ(HessianOperator(model, batches, options).kept(), 0U);
  options.graph_memory = int64_t{1} << 30;
  HessianOperator all(model, batches, options);
  EXPECT_EQ(all.kept(), 4U);
  size_t before = 0;
  for (const int64_t megabytes : {0, 2, 4, 8, 12, 16, 24, 100}) {
    options.graph_memory = megabytes << 20;
    HessianOperator some(model, batches, options);
    EXPECT_GE(some.kept(), before);
    before = some.kept();
    const Tensor v = random_probe(all.size(), at::kFloat, 1, 0);
    EXPECT_LT((some(v) - all(v)).abs().max().item<float>(), 1e-6F);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Curvature, ::testing::Values("post_tiny", "pre_tiny"));

}  // namespace
}  // namespace plumb
