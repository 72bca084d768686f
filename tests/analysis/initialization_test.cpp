// The measurements at initialization together: their documents, and the options of `plumb probe`.
#include "plumb/analysis/initialization_json.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/data/sequences.h"
#include "plumb/io/safetensors.h"
#include "support/paths.h"
#include "support/process.h"

namespace plumb {
namespace {

std::filesystem::path golden_file(const char* extension) {
  return test::source_directory() / "tests" / "golden" / (std::string("post_tiny") + extension);
}

/// The golden model with its weights, and its batch.
struct GoldenModel {
  GoldenModel() : batch(batch_from_json(read_json(golden_file(".json"))["batch"])) {
    ModelConfig config;
    Config::from_file(golden_file(".toml").string()).read("model", config);
    model = make_model(config, at::kDouble);
    load_parameters(model->parameters(), load_safetensors(golden_file(".safetensors")), "golden");
  }
  std::unique_ptr<Model> model;
  Batch batch;
};

TEST(Initialization, MeasurementsSurviveTheirDocuments) {
  const GoldenModel golden;
  InitializationOptions options;
  options.gains = true;
  options.first_steps = {"adam"};
  options.curvature_steps = 10;
  options.layer_curvature_steps = 4;
  const InitializationMeasurement found = measure_initialization(*golden.model, {golden.batch}, options);
  const Json gains = described_json(found.gains.value());
  const auto read = from_described_json<BackwardGains>(gains);
  EXPECT_EQ(described_json(read), gains);
  EXPECT_EQ(read.stacks[1].parts[1].point, found.gains->stacks[1].parts[1].point);
  EXPECT_EQ(read.stacks[1].parts[1].memory_gain, found.gains->stacks[1].parts[1].memory_gain);
  EXPECT_FALSE(read.stacks[1].parts[0].memory_gain);
  const Json step = described_json(found.first_steps.at(0));
  EXPECT_EQ(described_json(from_described_json<FirstStep>(step)), step);
  EXPECT_EQ(from_described_json<FirstStep>(step).logits.by_layer[0].layer,
            found.first_steps[0].logits.by_layer[0].layer);
  const Json curvature = described_json(found.curvature.value());
  EXPECT_EQ(described_json(from_described_json<CurvatureSplit>(curvature)), curvature);
  FirstStep without = found.first_steps[0];
  without.critical.reset();
  EXPECT_FALSE(from_described_json<FirstStep>(described_json(without)).critical.has_value());
  Json elsewhere = gains;
  elsewhere["stacks"][0]["stack"] = "attic";
  EXPECT_THROW((void)from_described_json<BackwardGains>(elsewhere), Error);

  const FirstStepReport report = summarize({found.first_steps[0], without});
  EXPECT_EQ(report.without_rate, 1);
  EXPECT_EQ(report.critical_rate.count, 1);
  EXPECT_NEAR(report.critical_rate.mean, found.first_steps[0].critical->rate(), 1e-12);
  EXPECT_EQ(summarize({without}).critical_rate.count, 0);
  EXPECT_TRUE(to_json(summarize(std::vector<InitializationMeasurement>{{}})).empty());
  EXPECT_THROW(summarize(std::vector<InitializationMeasurement>{}), Error);
  EXPECT_THROW(summarize(std::vector<FirstStep>{}), Error);
}

TEST(Initialization, ProbeMeasuresWhatItsOptionsSay) {
  const test::TemporaryDirectory directory;
  const std::string out = (directory / "probe.json").string();
  const std::vector<std::string> command = {"probe",
                                            "--config",
                                            golden_file(".toml").string(),
                                            "--weights",
                                            golden_file(".safetensors").string(),
                                            "--batch",
                                            golden_file(".json").string(),
                                            "--dtype",
                                            "float64",
                                            "--gains",
                                            "--first-step",
                                            "--curvature",
                                            "20",
                                            "--layer-curvature",
                                            "5"};
  std::vector<std::string> with_json = command;
  with_json.insert(with_json.end(), {"--json", out});
  ASSERT_EQ(test::run_plumb(with_json).status, 0);
  const Json document = read_json(out);
  EXPECT_EQ(document["schema"], "plumb.probe/1");

  const GoldenModel golden;
  const BackwardGains gains = measure_backward_gains(*golden.model, {golden.batch});
  EXPECT_LT(document["backward_gain"]["error"].get<double>(), 1e-12);
  const Json& part = document["backward_gain"]["stacks"][1]["parts"][1];
  EXPECT_EQ(part["name"], "decoder.layers.0.cross_attention.stream");
  EXPECT_EQ(part["layer"], 1);
  EXPECT_NEAR(part["gain"]["mean"].get<double>(), gains.stacks[1].parts[1].gain, 1e-10);
  EXPECT_NEAR(part["memory_gain"]["mean"].get<double>(), gains.stacks[1].parts[1].memory_gain.value(), 1e-10);
  EXPECT_TRUE(document["backward_gain"]["stacks"][0]["parts"][0]["memory_gain"].is_null());
  ASSERT_EQ(document["first_step"].size(), 2U);
  const FirstStep sgd = measure_first_step(*golden.model, {golden.batch}, "sgd", {}, 0);
  EXPECT_EQ(document["first_step"][1]["optimizer"], "sgd");
  EXPECT_NEAR(document["first_step"][1]["logit_change"]["mean"].get<double>(), sgd.logits.total, 1e-10);
  EXPECT_NEAR(document["first_step"][1]["critical_rate"]["mean"].get<double>(), sgd.critical.value().rate(), 1e-10);
  EXPECT_NEAR(document["first_step"][1]["momentum_gain"].get<double>(), 10, 1e-12);  // 1/(1 − 0.9)
  EXPECT_EQ(document["first_step"][0]["momentum_gain"].get<double>(), 1);
  EXPECT_TRUE(document["first_step"][0]["logit_change_by_layer"].back()["name"].is_null());
  for (const char* matrix : {"hessian", "gauss_newton", "rest"}) {
    EXPECT_GT(document["curvature"][matrix]["max"]["mean"].get<double>(), 0) << matrix;
    EXPECT_TRUE(document["curvature"]["layers"][0][matrix]["min"].contains("error")) << matrix;
  }

  const test::Finished text = test::succeeded(test::run_plumb(command));
  for (const char* expected :
       {"\nWhat each part passes back.", "decoder.layers.0.cross_attention.stream", "multiply out", "\nThe first step.",
        "critical learning rate", "\nWhat the first step does to the logits.", "\nadam       outside the layers",
        "\nCurvature."})
    EXPECT_CONTAINS(text.output, expected);
  const test::Finished alone = test::run_plumb({"probe", "--config", golden_file(".toml").string(), "--batch",
                                                golden_file(".json").string(), "--layer-curvature", "5"});
  EXPECT_EQ(alone.status, 2) << alone.errors;
}

}  // namespace
}  // namespace plumb
