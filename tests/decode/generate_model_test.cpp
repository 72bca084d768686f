// Generation from real models: incremental decoding compared with rereading the whole sequence for every token.
#include <gtest/gtest.h>

#include "plumb/decode/generate.h"
#include "plumb/model/model.h"
#include "support/gradcheck.h"
#include "support/small_model.h"

namespace plumb {
namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Model> random_model(const std::string& attention, const std::string& positions) {
  ModelConfig config = test::small_model("decoder", 2, 15);
  config.attention = attention;
  config.positions = positions;
  std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->parameters().flat().copy_(testing::random_tensor({model->parameters().count()}, 3, 0.4));
  return model;
}

/// Logits after a sequence that begins with BOS.
std::vector<double> logits_after(Model& model, const Ids& sequence) {
  const at::NoGradGuard no_graph;
  Batch batch;
  batch.target_input.assign(sequence.begin(), sequence.end());
  batch.labels = batch.target_input;
  batch.target_layout = Ragged({std::ssize(sequence)});
  ForwardContext context;
  const Tensor last = model.logits(model.states(batch, context).narrow(0, std::ssize(sequence) - 1, 1)).contiguous();
  return {last.data_ptr<double>(), last.data_ptr<double>() + last.numel()};
}

Ids plain(Model& model, const Ids& prompt, const GenerateOptions& options, int64_t sample) {
  const Specials specials;
  const Sampler sampler(options.sampling, {specials.pad, specials.bos, specials.unknown});
  Ids sequence = prompt;
  sequence.insert(sequence.begin(), specials.bos);
  Ids ids;
  while (std::ssize(ids) < options.max_tokens) {
    const int32_t id = sampler.draw(logits_after(model, sequence), sequence, sample, std::ssize(sequence));
    if (id == specials.eos) break;
    ids.push_back(id);
    sequence.push_back(id);
  }
  return ids;
}

class GenerateModel : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GenerateModel, EqualsReadingTheWholeForEveryToken) {
  const std::unique_ptr<Model> model = random_model(GetParam().first, GetParam().second);
  ASSERT_NE(model->generates(), nullptr);
  const std::vector<Ids> prompts = {{5, 6, 7, 8}, {}, {9}, {4, 4, 4, 10, 11, 12, 13}, {14, 5}};
  GenerateOptions options;
  options.max_tokens = 10;
  options.samples = 2;
  options.batch_rows = 6;
  for (const double temperature : {0.0, 1.0}) {
    options.sampling.temperature = temperature;
    const std::vector<Generated> found = generate(*model->generates(), prompts, options);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].ids, plain(*model, prompts[i / 2], options, static_cast<int64_t>(i % 2))) << i;
    }
  }
}

TEST_P(GenerateModel, PromptsTogetherEqualEachAlone) {
  const std::unique_ptr<Model> exact = random_model(GetParam().first, GetParam().second);
  const std::unique_ptr<Model> model = make_model(exact->config());  // in float32, whose weights are packed
  model->parameters().flat().copy_(exact->parameters().flat());
  const std::vector<Ids> prompts = {{5, 6, 7, 8}, {}, {9}, {4, 4, 4, 10, 11, 12, 13}, {14, 5}};
  GenerateOptions options;
  options.max_tokens = 10;
  options.sampling.temperature = 0;
  const std::vector<Generated> together = generate(*model->generates(), prompts, options);
  for (size_t p = 0; p < prompts.size(); ++p) {
    const Generated alone = generate(*model->generates(), {prompts[p]}, options).front();
    EXPECT_EQ(together[p].ids, alone.ids) << p;
    EXPECT_NEAR(together[p].log_probability, alone.log_probability, 1e-4) << p;
    EXPECT_EQ(alone.ids, plain(*exact, prompts[p], options, 0)) << p;  // in float64
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GenerateModel,
                         ::testing::Values(std::pair("softmax", "sinusoidal"), std::pair("softmax", "learned"),
                                           std::pair("softmax", "rotary"), std::pair("softmax", "alibi"),
                                           std::pair("softmax", "t5"), std::pair("delta", "none"),
                                           std::pair("favor", "sinusoidal")));

}  // namespace
}  // namespace plumb
