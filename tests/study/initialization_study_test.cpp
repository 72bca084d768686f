// The parts of a study that measure initialization and first steps, compared with direct measurements.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "plumb/analysis/initialization.h"
#include "plumb/base/error.h"
#include "plumb/optim/optimizer.h"
#include "plumb/study/study.h"
#include "study/parts.h"
#include "support/contains.h"
#include "support/entries.h"
#include "support/paths.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

using test::entry;

class InitializationStudy : public ::testing::Test {
 protected:
  InitializationStudy() {
    test::make_copy_task(folder_ / "data");
    config_.study.schemes = {"post-ln", "pre-ln", "rezero"};
    config_.study.seed = 4;
    config_.data.directory = (folder_ / "data").string();
    config_.model.d_model = 8;
    config_.model.feed_forward = 12;
    config_.model.heads = 2;
    config_.model.dropout = 0;
    config_.train.batch_tokens = 40;
    config_.train.label_smoothing = 0;
  }

  /// The results, which have verdicts with these names only.
  Json run(const std::vector<std::string>& verdicts = {}) {
    Json results = run_study(config_, folder_ / "out");
    std::vector<std::string> found;
    for (const Json& verdict : results["verdicts"]) found.push_back(verdict["id"]);
    EXPECT_EQ(found, verdicts);
    return results;
  }
  [[nodiscard]] ModelConfig model(const std::string& scheme, int64_t layers) const {
    const DataDirectory data = DataDirectory::open(folder_ / "data");
    ModelConfig config = config_.model;
    config.residual = scheme;
    config.encoder_layers = config.decoder_layers = layers;
    config.source_vocabulary = data.source_vocabulary();
    config.target_vocabulary = data.target_vocabulary();
    return config;
  }
  [[nodiscard]] Batch first_pairs(int64_t count) const {
    const DataDirectory data = DataDirectory::open(folder_ / "data");
    std::vector<int64_t> examples;
    for (int64_t i = 0; i < count; ++i) examples.push_back(i);
    return make_task({}, data, "encoder-decoder")->dataset("valid")->batch(examples);
  }

  test::TemporaryDirectory folder_;
  StudyConfig config_;
};

TEST_F(InitializationStudy, BackwardGainsOfEverySeed) {
  config_.parts = test::parts("[backward_gain]\nlayers = 2\nseeds = 2\npairs = 6\n");
  const Json results = run();
  // The gradient at the decoder's input over that at its result, from a plain backward pass.
  std::vector<double> ratios;
  for (const uint64_t seed : {4, 5}) {
    const std::unique_ptr<Model> built = make_model(model("post-ln", 2));
    built->initialize(seed);
    Tensor input;
    ForwardContext context(Pass::measurement);
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      if (to_string(point) == "decoder.input") input = x;
    });
    const Batch batch = first_pairs(6);
    const Tensor states = built->states(batch, context);
    const Tensor loss = loss_of_logits(built->logits(states), batch, {}).value;
    const std::vector<Tensor> gradient = gradients({loss}, {input, states}, {});
    ratios.push_back(gradient[0].norm().item<double>() / gradient[1].norm().item<double>());
  }
  const double expected = std::sqrt(ratios[0] * ratios[1]);
  const Json& rows = entry(results["tables"], "id", "backward_gain")["rows"];
  ASSERT_EQ(rows.size(), 21U);  // of each scheme three for the encoder and four for the decoder
  double of_kinds = 1;
  for (const Json& row : rows) {
    const bool all = row[2] == "all";
    if (row[0] == "post-ln" && row[1] == "decoder") {
      const double gain = row[3];
      if (all) {
        EXPECT_NEAR(row[6].get<double>(), expected, 1e-4 * expected);
        EXPECT_NEAR(std::pow(gain, 6), expected, 1e-4 * expected);  // six sub-layers, no final norm
      } else {
        of_kinds *= gain * gain;  // in two layers
      }
    }
    if (row[0] == "rezero") {
      EXPECT_EQ(row[3].is_null(), row[1] == "encoder");  // no gradient reaches it
    }
    if (row[0] == "rezero" && row[1] == "decoder") {
      EXPECT_NEAR(row[3].get<double>(), 1, 1e-6);
    }
    if (all) {
      EXPECT_LT(row[9].get<double>(), 1e-5);
    }
  }
  EXPECT_NEAR(of_kinds, expected, 1e-4 * expected);
  const Json& figure = entry(results["figures"], "id", "stream_gradient_decoder");
  const Json& line = entry(figure["series"], "name", "Post-LN");
  EXPECT_EQ(line["x"].size(), 7U);
  EXPECT_NEAR(line["y"][0].get<double>(), expected, 1e-4 * expected);
  const Json& by_layer = entry(results["figures"], "id", "backward_gain_decoder");
  EXPECT_EQ(by_layer["series"].size(), 9U);  // three schemes, three kinds of sub-layers
  ASSERT_EQ(results["summary"].size(), 2U);
  EXPECT_CONTAINS(results["summary"][1].get<std::string>(), " on its way back through the decoder");
}

TEST_F(InitializationStudy, BackwardGainsOfParallelSubLayers) {
  config_.model.parallel = true;
  config_.parts = test::parts("[backward_gain]\nlayers = 2\nseeds = 1\npairs = 6\n");
  const Json table = entry(run()["tables"], "id", "cross_attention_gain");
  for (const Json& row : table["rows"]) {
    if (row[0] != "rezero") {
      EXPECT_GT(row[6].get<double>(), 0.1) << row;  // the growth over the second layer
      EXPECT_LT(row[6].get<double>(), 10) << row;
    }
  }
}

TEST_F(InitializationStudy, FirstStepsOfEveryOptimizer) {
  config_.parts = test::parts("[first_step]\nlayers = 1\nseeds = 2\npairs = 6\n");
  const Json results = run();
  const Json& rows = entry(results["tables"], "id", "first_step")["rows"];
  ASSERT_EQ(rows.size(), 6U);
  // A step somewhat below the critical learning rate lowers the loss, one above raises it.
  const Batch batch = first_pairs(6);
  for (const Json& row : rows) {
    if (row[1] != "pre-ln") continue;
    const Json& seeds = results["measurements"]["first_step"][row[0].get<std::string>()]["pre-ln"];
    for (size_t i = 0; i < 2; ++i) {
      const auto loss_after = [&](double rate) {
        const std::unique_ptr<Model> built = make_model(model("pre-ln", 1));
        built->initialize(4 + i);
        const auto loss = [&] {
          ForwardContext context(Pass::measurement);
          return built->loss(batch, {}, context).value;
        };
        const std::unique_ptr<Optimizer> optimizer = make_optimizer(row[0], built->parameters());
        optimizer->step(gradients({loss()}, built->parameters().values(), {}), rate);
        return loss().item<double>();
      };
      const double here = loss_after(0);
      EXPECT_LT(loss_after(0.9 * seeds[i]["critical"]["low"].get<double>()), here);
      EXPECT_GT(loss_after(1.1 * seeds[i]["critical"]["high"].get<double>()), here);
    }
    const double rate = row[2];
    EXPECT_GT(rate, 0);
    EXPECT_NEAR(row[5].get<double>(), 2 / rate, 1e-9 / rate);
    EXPECT_NEAR(row[10].get<double>(), row[0] == "sgd" ? 10 : 1, 1e-12);
  }
  const Json& figure = entry(results["figures"], "id", "first_step_logits_sgd");
  EXPECT_EQ(figure["series"].size(), 6U);
}

TEST_F(InitializationStudy, CurvatureAndItsParts) {
  config_.parts = test::parts(
      "[spectrum]\nlayers = 1\nseeds = 2\npairs = 6\nsteps = 60\nseed_steps = 60\nlayer_steps = 30\nparts = true\n");
  const Json results = run();
  const Json& rows = entry(results["tables"], "id", "curvature_split")["rows"];
  ASSERT_EQ(rows.size(), 3U * 3U * 3U);  // schemes, whole and two layers, matrices
  const auto max_of = [&](const std::string& matrix) {
    for (const Json& row : rows) {
      if (row[0] == "post-ln" && row[1] == "all parameters" && row[2] == matrix) return row[3].get<double>();
    }
    throw std::out_of_range(matrix);
  };
  std::vector<double> expected;
  for (const uint64_t seed : {4, 5}) {
    const std::unique_ptr<Model> built = make_model(model("post-ln", 1));
    built->initialize(seed);
    SpectrumOptions options;
    options.steps = 60;
    options.seed = 9;
    expected.push_back(measure_spectrum(*built, {first_pairs(6)}, options).whole.value().max.value);
  }
  EXPECT_NEAR(max_of("Hessian"), (expected[0] + expected[1]) / 2, 1e-3 * expected[0]);
  EXPECT_LE(max_of("Hessian"), (max_of("Gauss–Newton part") + max_of("rest")) * 1.001);  // Weyl
  EXPECT_EQ(entry(results["figures"], "id", "curvature_by_layer_encoder")["series"].size(), 6U);
  for (const Json& figure : results["figures"]) EXPECT_NE(figure["id"], "hessian_by_layer");  // measured with the parts
  ASSERT_EQ(results["summary"].size(), 2U);
  EXPECT_CONTAINS(results["summary"][0].get<std::string>(), "Largest eigenvalue of the Hessian at initialization: ");
  EXPECT_CONTAINS(results["summary"][1].get<std::string>(),
                  "Largest eigenvalue of the Gauss–Newton part / of the Hessian: Post-LN ");
}

// The interval of the verdict on curvature can be recomputed from the report.
TEST_F(InitializationStudy, SpectrumListsTheLargestEigenvalueOfEverySeed) {
  config_.study.schemes = {"post-ln", "pre-ln"};
  config_.study.claims = test::claims_of("layernorm");
  config_.parts = test::parts("[spectrum]\nlayers = 1\npairs = 6\nsteps = 60\nseeds = 3\nseed_steps = 40\n");
  const Json results = run({"claim1"});  // the others are about what is not measured
  std::map<std::string, std::vector<double>> found;
  for (const Json& row : entry(results["tables"], "id", "hessian_seeds")["rows"]) {
    const auto i = static_cast<int64_t>(found[row[0]].size());
    EXPECT_EQ(row[1], 4 + i);
    EXPECT_EQ(row[2], i == 0 ? 60 : 40);
    const std::unique_ptr<Model> built = make_model(model(row[0], 1));
    built->initialize(static_cast<uint64_t>(4 + i));
    SpectrumOptions options;
    options.steps = 60;
    options.seed = 9;
    const double expected = measure_spectrum(*built, {first_pairs(6)}, options).whole.value().max.value;
    EXPECT_NEAR(row[3].get<double>(), expected, 1e-3 * expected + row[4].get<double>());
    found[row[0]].push_back(row[3]);
  }
  ASSERT_EQ(found["post-ln"].size(), 3U);
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) sum += std::log(found["post-ln"][i] / found["pre-ln"][i]);
  const double mean = results["verdicts"][0]["effect"]["mean"];
  EXPECT_NEAR(mean, std::exp(sum / 3), 1e-9 * mean);
}

TEST_F(InitializationStudy, CoordinatesOverWidthDepthAndBatch) {
  config_.parts = test::parts(R"(
[coordinate_check]
widths = [16, 8]
depths = [2, 3]
batch_tokens = [40, 20]
layers = 1
seeds = 2
steps = 2
learning_rate = 1e-2
pairs = 5
)");
  config_.study.schemes = {"pre-ln", "post-ln"};
  const Json results = run();
  std::set<std::string> ids;
  for (const Json& table : results["tables"]) ids.insert(table["id"]);
  EXPECT_EQ(ids, (std::set<std::string>{"coordinates_width", "coordinates_depth", "coordinates_batch"}));
  const Json& width = results["measurements"]["coordinate_check"]["width"]["pre-ln"];
  // The exponent of the table is the mean slope between the two widths.
  const auto slope = [&](size_t seed) {
    const auto change = [&](const char* scale) { return width[scale][seed].back()["change"].get<double>(); };
    return std::log(change("16") / change("8")) / std::log(2.0);
  };
  const Json& table = entry(results["tables"], "id", "coordinates_width");
  EXPECT_EQ(table["rows"].size(), 2U * 2U * 8U);  // schemes; start and change; 5 sub-layers, 2 results, the logits
  for (const Json& row : table["rows"]) {
    if (row[0] != "pre-ln" || row[1] != "logits" || row[2] != "change") continue;
    EXPECT_NEAR(row[4].get<double>(), (slope(0) + slope(1)) / 2, 0.5e-4 + 1e-9);  // four decimals
    EXPECT_NEAR(row[7].get<double>(), row[4].get<double>(), 1e-9);                // two widths only
  }
  const std::set<std::string> trends = {"grows", "constant", "shrinks", "undecided"};
  for (const Json& each : results["tables"]) {
    for (const Json& row : each["rows"]) EXPECT_EQ(trends.count(row[3]), 1U) << row;
  }
  // Depth compares the first layer and the last; batch sizes differ only in what training changes.
  std::set<std::string> names;
  for (const Json& row : entry(results["tables"], "id", "coordinates_depth")["rows"]) names.insert(row[1]);
  EXPECT_EQ(names.count("last layer, encoder.feed_forward.stream"), 1U);
  EXPECT_EQ(names.count("first layer, decoder.cross_attention.stream"), 1U);
  for (const Json& row : entry(results["tables"], "id", "coordinates_batch")["rows"]) EXPECT_EQ(row[2], "change");
  ASSERT_EQ(results["summary"].size(), 3U);
  EXPECT_CONTAINS(results["summary"][1].get<std::string>(), "change of the logits in 2 steps ");
  EXPECT_CONTAINS(results["summary"][1].get<std::string>(), " over layers 2 to 3; ");
  EXPECT_THROW(read_study(Config::from_string("[coordinate_check]\ndepths = [1, 2]\n", "study.toml")), Error);
}

TEST_F(InitializationStudy, AreReadAgainOnASecondRun) {
  config_.study.schemes = {"pre-ln"};
  config_.parts = test::parts(R"(
[backward_gain]
layers = 1
seeds = 1
pairs = 3
[first_step]
layers = 1
seeds = 1
pairs = 3
optimizers = ["adam"]
[spectrum]
layers = 1
seeds = 1
pairs = 3
steps = 5
seed_steps = 5
layer_steps = 2
parts = true
[coordinate_check]
widths = [4, 8]
depths = []
batch_tokens = []
layers = 1
seeds = 1
steps = 1
pairs = 3
)");
  Json first = run();
  const auto written = [&] {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "out" / "measurements"))
      times[file.path().filename()] = std::filesystem::last_write_time(file);
    return times;
  };
  const auto before = written();
  EXPECT_EQ(before.size(), 6U);
  Json second = run();
  EXPECT_EQ(written(), before);
  first.erase("created");
  second.erase("created");
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace plumb
