// Fine-tuning: which parameters are trained at which rate and in which epochs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "plumb/optim/groups.h"
#include "plumb/run/initial_weights.h"
#include "plumb/train/finetune.h"
#include "plumb/train/timeline.h"
#include "support/small_model.h"

namespace plumb {
namespace {

/// Whether a Transformer's parameter belongs to this layer, from 0.
bool in_layer(const std::string& name, int layer) {
  return name.find(fmt::format(".layers.{}.", layer)) != std::string::npos;
}

/// The settings of each parameter by the groups for fine-tuning.
std::vector<ParameterSettings> settings_of(const Model& model, const FinetuneConfig& finetune) {
  return parameter_settings(model.parameters(), finetuning_groups(finetune, model.parameters()), 0.01);
}

TEST(FinetuningGroups, DividesTheRateFromLayerToLayer) {
  for (const std::string kind : {"encoder", "decoder"}) {
    ModelConfig config = test::small_model(kind, 3);
    config.pooling = kind == "encoder" ? "first" : "last";
    config.pooler = kind == "encoder";
    config.labels = 2;
    const auto model = make_model(config);
    const auto settings = settings_of(*model, {.rate_divisor = 2.6});
    for (size_t i = 0; i < settings.size(); ++i) {
      const std::string& name = model->parameters().all()[i].name;
      double expected = 1 / 2.6;  // the norm after the last layer
      if (name.starts_with("output") || name.starts_with("pooler")) expected = 1;
      if (in_layer(name, 2)) expected = 1 / 2.6;
      if (in_layer(name, 1)) expected = 1 / (2.6 * 2.6);
      if (in_layer(name, 0)) expected = 1 / (2.6 * 2.6 * 2.6);
      if (name.find("_embed") != std::string::npos) expected = 1 / (2.6 * 2.6 * 2.6 * 2.6);
      EXPECT_NEAR(settings[i].rate_factor, expected, 1e-15) << name;
      EXPECT_EQ(settings[i].frozen_until, 0) << name;
    }
    EXPECT_TRUE(finetuning_groups({}, model->parameters()).empty());
    const auto frozen = settings_of(*model, {.unfreeze = "last", .rate_divisor = 2.6});
    for (size_t i = 0; i < frozen.size(); ++i)
      EXPECT_EQ(frozen[i].frozen_until, is_of_head(model->parameters().all()[i].name) ? 0 : -1);
  }
}

TEST(FinetuningGroups, FrozenEpochsEndWithThem) {
  // Epochs of 3, 5 and 2 steps, then of 4.
  Timeline timeline([](int64_t epoch) {
    const std::vector<size_t> sizes = {3, 5, 2};
    return std::vector<int64_t>(epoch < 3 ? sizes[static_cast<size_t>(epoch)] : 4, 10);
  });
  TrainConfig config;
  config.groups = {{.pattern = {"a"}, .frozen_until = Duration::parse("1e")},
                   {.pattern = {"b"}, .frozen_until = Duration::parse("2e")},
                   {.pattern = {"c"}, .frozen_until = Duration::parse("35t")},
                   {.pattern = {"d"}, .frozen_until = 7},
                   {.pattern = {"e"}, .frozen_until = -1}};
  const std::vector<ParameterGroup> groups = resolved(config, timeline).groups;
  std::vector<int64_t> steps;
  for (const ParameterGroup& group : groups) steps.push_back(group.frozen_until.in_steps());
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 9, 5, 7, -1}));
}

/// The epochs (of ten steps, from 0) that train a parameter.
std::set<int64_t> epochs_trained(const ParameterSettings& settings, int64_t epochs) {
  std::set<int64_t> trained;
  for (int64_t step = 1; step <= 10 * epochs; ++step) {
    if (!settings.frozen_at(step)) trained.insert((step - 1) / 10);
  }
  return trained;
}

// Felbo et al. 2017: the head, then each layer alone from the first, then everything.
TEST(FinetuningGroups, ChainThawTrainsOneLayerAtATime) {
  for (const std::string kind : {"encoder", "awd-lstm"}) {
    ModelConfig config = test::small_model(kind);
    config.pooling = kind == "encoder" ? "first" : "concat";
    config.labels = 2;
    const auto model = make_model(config);
    TrainConfig train;
    train.groups = finetuning_groups({.unfreeze = "chain-thaw"}, model->parameters());
    Timeline timeline([](int64_t) { return std::vector<int64_t>(10, 100); });
    const auto settings = parameter_settings(model->parameters(), resolved(train, timeline).groups, 0);
    for (size_t i = 0; i < settings.size(); ++i) {
      const std::string& name = model->parameters().all()[i].name;
      int64_t alone = 3;  // the last layer, and the norm after it
      if (is_of_head(name)) alone = 0;
      if (name.find("embed") != std::string::npos) alone = 1;
      if (in_layer(name, 0) || name.starts_with("lstm.0.")) alone = 2;
      EXPECT_EQ(epochs_trained(settings[i], 6), (std::set<int64_t>{alone, 4, 5})) << name;
    }
    EXPECT_EQ(finetuning_defaults({.unfreeze = "chain-thaw"}, config, true).steps, Duration::parse("6e"));
  }
}

// Tied embeddings are trained with the output layer, so there is one group fewer.
TEST(FinetuningGroups, EveryEpochOnTextTrainsSomething) {
  for (const std::string shared : {"none", "all"}) {
    ModelConfig config = test::small_model("decoder");
    config.share_embeddings = shared;
    const auto model = make_model(config);
    const int64_t groups = shared == "none" ? 4 : 3;
    for (const std::string unfreeze : {"chain-thaw", "gradual"}) {
      TrainConfig train = finetuning_defaults({.unfreeze = unfreeze}, config, false);
      const int64_t epochs = groups + (unfreeze == "gradual" ? 1 : 2);
      EXPECT_EQ(train.steps, Duration::parse(fmt::format("{}e", epochs)));
      train.groups = finetuning_groups({.unfreeze = unfreeze}, model->parameters());
      Timeline timeline([](int64_t) { return std::vector<int64_t>(10, 100); });
      std::vector<int64_t> trained(static_cast<size_t>(epochs), 0);  // number of parameters by epoch
      for (const auto& each : parameter_settings(model->parameters(), resolved(train, timeline).groups, 0)) {
        for (const int64_t epoch : epochs_trained(each, epochs)) ++trained[static_cast<size_t>(epoch)];
      }
      for (int64_t epoch = 0; epoch < epochs; ++epoch) EXPECT_GT(trained[static_cast<size_t>(epoch)], 0) << epoch;
      // All are trained in the last two epochs only.
      const auto all = std::ssize(model->parameters().all());
      EXPECT_EQ(std::count(trained.begin(), trained.end(), all), 2) << unfreeze << ", " << shared;
    }
  }
}

TEST(FinetuningGroups, ARecurrentModelHasItsGroupsToo) {
  ModelConfig config = test::small_model("awd-lstm");
  for (const int64_t labels : {0, 3}) {
    config.labels = labels;
    config.pooling = "concat";
    const auto model = make_model(config);
    const auto settings = settings_of(*model, {.rate_divisor = 2.6});
    for (size_t i = 0; i < settings.size(); ++i) {
      const std::string& name = model->parameters().all()[i].name;
      double expected = 1;  // the head; a language model's output layer is tied to the embedding
      if (name.starts_with("lstm.1.")) expected = 1 / 2.6;
      if (name.starts_with("lstm.0.")) expected = 1 / (2.6 * 2.6);
      if (name.starts_with("embedding.") && labels > 0) expected = 1 / (2.6 * 2.6 * 2.6);
      EXPECT_NEAR(settings[i].rate_factor, expected, 1e-15) << name;
    }
  }
}

}  // namespace
}  // namespace plumb
