// A model computed in parts, as the stages of a pipeline do, and as a whole: with dropout, by every residual scheme.
#include "plumb/divided/pipeline_split.h"
#include "plumb/base/contains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "plumb/nn/position/position.h"
#include "support/batches.h"
#include "support/errors.h"
#include "support/small_model.h"

namespace plumb {
namespace {

using test::small_model;

Batch two_pairs(const ModelConfig& config) {
  Batch batch;
  append(batch, std::vector<int32_t>{4, 5, 6, 7}, std::vector<int32_t>{8, 9, 4}, 0);
  append(batch, std::vector<int32_t>{9, 4}, std::vector<int32_t>{5, 5, 6, 11, 7}, 1);
  if (config.labels > 0) batch.labels = {0, 1};
  return batch;
}

ForwardContext training() { return ForwardContext(0.3, 7, 3); }

/// The loss of the batch from the parts one after another, each with NaN in place of the parameters that its stage does
/// not use.
double loss_in_parts(const ModelConfig& config, int64_t count, int64_t chunks) {
  const std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(1);
  const PipelineSplit stages(*model, count, chunks);
  const Batch batch = two_pairs(config);
  Tensor message;
  for (int64_t part = 0; part < stages.parts(); ++part) {
    const std::unique_ptr<Model> stage = make_model(config, at::kDouble);
    stage->initialize(1);
    const std::vector<Parameter>& all = stage->parameters().all();
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<int64_t>& users = stages.users()[i];
      const bool used = contains(users, part % count);
      if (!used) all[i].value.detach().fill_(std::numeric_limits<double>::quiet_NaN());
    }
    if (part > 0) {
      EXPECT_EQ(stages.count(part, batch), message.numel());
    }
    LayerRange range = part > 0 ? stages.input_of(part, batch, message) : stages.layer_range(part);
    ForwardContext context = training();
    context.run_layers(range, stages.sites(part));
    if (part == stages.parts() - 1) return stage->loss(batch, {}, context).value.item<double>();
    EXPECT_FALSE(stage->states(batch, context).defined());
    std::vector<Tensor> passed;
    for (Tensor* tensor : range.tensors()) passed.push_back(*tensor);
    message = joined(passed);
  }
  return 0;
}

void expect_same_in_parts(const ModelConfig& config, const std::string& what) {
  const std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(1);
  ForwardContext context = training();
  const double whole = model->loss(two_pairs(config), {}, context).value.item<double>();
  for (const auto& [count, chunks] : {std::pair<int64_t, int64_t>{2, 1}, {4, 1}, {3, 1}, {2, 2}})
    EXPECT_EQ(loss_in_parts(config, count, chunks), whole) << what << ", " << count << " stages, " << chunks;
}

TEST(PipelineSplit, ComputeWhatTheModelDoesWithEveryResidualScheme) {
  for (const std::string& residual : residual_schemes().names()) {
    for (ModelConfig config : {small_model("decoder", 4), small_model("encoder-decoder")}) {
      config.residual = residual;
      expect_same_in_parts(config, residual + ", " + config.kind);
    }
  }
}

TEST(PipelineSplit, ComputeWhatTheModelDoesWithEveryPositionEncoding) {
  for (const std::string& name : positions().names()) {
    ModelConfig config = small_model("decoder", 4);
    config.positions = name;
    config.share_embeddings = "none";
    expect_same_in_parts(config, name);
  }
}

TEST(PipelineSplit, ComputeWhatOtherModelsDo) {
  const std::vector<std::pair<std::string, std::function<ModelConfig()>>> all = {
      {"values of the first layer in both stacks",
       [] {
         ModelConfig config = small_model("encoder-decoder", 3);
         config.value_residual = true;
         config.share_embeddings = "all";
         config.center_memory = true;
         return config;
       }},
      {"dropout within layers",
       [] {
         ModelConfig config = small_model("encoder-decoder", 3);
         config.attention_dropout = 0.2;
         config.activation_dropout = 0.25;
         return config;
       }},
      {"classifying encoder",
       [] {
         ModelConfig config = small_model("encoder", 4);
         config.pooler = true;
         config.embedding_norm = true;
         return config;
       }},
      {"classifying decoder",
       [] {
         ModelConfig config = small_model("decoder", 5);
         config.labels = 3;
         config.pooling = "last";
         config.lora.rank = 2;
         return config;
       }},
  };
  for (const auto& [what, make] : all) expect_same_in_parts(make(), what);
}

TEST(PipelineSplit, HaveConsecutiveLayersAndOneMoreAtMost) {
  ModelConfig config = small_model("encoder-decoder", 3);
  config.decoder_layers = 4;
  const std::unique_ptr<Model> model = make_model(config);
  const PipelineSplit stages(*model, 2, 2);
  std::vector<std::pair<int64_t, int64_t>> found;
  for (int64_t part = 0; part < 4; ++part)
    found.emplace_back(stages.layer_range(part).first, stages.layer_range(part).last);
  EXPECT_EQ(found, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 4}, {4, 6}, {6, 7}}));
  const auto users = [&](const std::string& name) {
    const std::vector<Parameter>& all = model->parameters().all();
    const auto place = std::find_if(all.begin(), all.end(), [&](const Parameter& each) { return each.name == name; });
    return stages.users()[static_cast<size_t>(place - all.begin())];
  };
  EXPECT_EQ(users("src_embed.weight"), std::vector<int64_t>{0});
  EXPECT_EQ(users("tgt_embed.weight"), (std::vector<int64_t>{1}));  // layer 3, and the output layer, of the same stage
  EXPECT_EQ(users("encoder.layers.2.linear1.weight"), std::vector<int64_t>{1});
  EXPECT_EQ(users("decoder.layers.2.linear1.weight"), std::vector<int64_t>{0});
}

TEST(PipelineSplit, RefuseMorePartsThanLayersAndNameTheNearest) {
  const ModelConfig config = small_model("decoder", 6);
  EXPECT_NO_THROW(require_stages(config, 6, 1));
  const Error error = test::error_of([&] { require_stages(config, 4, 2); });
  EXPECT_STREQ(
      error.what(),
      "a model of 6 layers cannot be cut into 8 parts: train.pipeline_parallel = 4, train.pipeline_chunks = 2");
  EXPECT_EQ(error.hint(), "the nearest train.pipeline_parallel that fits this model is 3");
  ModelConfig recurrent = config;
  recurrent.kind = "awd-lstm";
  EXPECT_EQ(test::message_of([&] { require_stages(recurrent, 2, 1); }),
            "model.kind = \"awd-lstm\" cannot be combined with train.pipeline_parallel");
}

}  // namespace
}  // namespace plumb
