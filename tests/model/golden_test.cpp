// Loss and gradients against an independent float64 implementation (torch.nn.TransformerEncoder and -Decoder).
#include <gtest/gtest.h>

#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/encoder_decoder.h"
#include "support/paths.h"

namespace plumb {
namespace {

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, LossAndEveryGradientNorm) {
  const auto base = std::filesystem::path(PLUMB_SOURCE_DIR) / "tests" / "golden" / GetParam();
  const auto with = [&](const char* extension) { return std::filesystem::path(base).concat(extension); };
  ModelConfig config;
  Config::from_file(with(".toml")).read("model", config);
  const Json golden = read_json(with(".json"));
  EncoderDecoder model(config, at::kDouble);
  load_parameters(model.parameters(), load_safetensors(with(".safetensors")), "golden");
  const Batch batch = batch_from_json(golden["batch"]);

  ForwardContext context;
  for (const bool twice : {false, true}) {
    LossOptions options;
    options.twice_differentiable = twice;
    const Loss loss = model.loss(batch, options, context);
    const double expected = golden["loss"];
    EXPECT_NEAR(loss.value.item<double>(), expected, 1e-10 * expected);
    EXPECT_NEAR(loss.nll / static_cast<double>(loss.tokens), expected, 1e-10 * expected);
    const auto gradient = gradients({loss.value}, model.parameters().values(), {});
    for (size_t i = 0; i < gradient.size(); ++i) {
      const std::string& name = model.parameters().all()[i].name;
      const double norm = golden["gradient_norm"].at(name);
      EXPECT_NEAR(gradient[i].norm().item<double>(), norm, 1e-10 * norm) << name;
    }
    EXPECT_EQ(gradient.size(), golden["gradient_norm"].size());
    const double total = golden["gradient_norm_total"];
    EXPECT_NEAR(joined(gradient).norm().item<double>(), total, 1e-10 * total);
  }
  LossOptions smoothed;
  smoothed.label_smoothing = 0.1;
  const double expected = golden["loss_label_smoothing_0_1"];
  EXPECT_NEAR(model.loss(batch, smoothed, context).value.item<double>(), expected, 1e-10 * expected);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::Values("post_tiny", "pre_tiny", "post_deep", "pre_deep"));

}  // namespace
}  // namespace plumb
