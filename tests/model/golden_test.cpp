// Loss and gradients against an independent float64 implementation (torch.nn.TransformerEncoder and -Decoder).
#include <gtest/gtest.h>

#include "golden.h"
#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/encoder_decoder.h"
#include "support/batches.h"
#include "support/paths.h"

namespace plumb {
namespace {

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, LossAndEveryGradientNorm) {
  const auto base = test::source_directory() / "tests" / "golden" / GetParam();
  const auto with = [&](const char* extension) { return std::filesystem::path(base).concat(extension); };
  ModelConfig config;
  Config::from_file(with(".toml")).read("model", config);
  const Json golden = read_json(with(".json"));
  EncoderDecoder model(config, at::kDouble);
  load_parameters(model.parameters(), load_safetensors(with(".safetensors")), "golden");
  const Batch batch = batch_from_json(golden["batch"]);

  test::expect_golden_loss_and_gradients(model, batch, golden);
  ForwardContext context;
  LossOptions smoothed;
  smoothed.label_smoothing = 0.1;
  const double expected = golden["loss_label_smoothing_0_1"];
  EXPECT_NEAR(model.loss(batch, smoothed, context).value.item<double>(), expected, 1e-10 * expected);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::Values("post_tiny", "pre_tiny", "post_deep", "pre_deep"));

}  // namespace
}  // namespace plumb
