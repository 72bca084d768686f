// µP in a run: what it multiplies, beside groups, and what it refuses.
#include "plumb/run/parametrization.h"

#include <gtest/gtest.h>

#include <map>

#include "support/errors.h"

namespace plumb {
namespace {

ModelConfig mup_model() {
  ModelConfig model;
  model.kind = "decoder";
  model.d_model = 32;
  model.feed_forward = 64;
  model.heads = 2;
  model.decoder_layers = 1;
  model.target_vocabulary = 20;
  model.share_embeddings = "none";
  model.initialization = "mup";
  return model;
}

TrainConfig mup_training() {
  TrainConfig train;
  train.parametrization = "mup";
  train.base_width = 8;
  return train;
}

TEST(Parametrization, MupMultipliesTheRatesOfGroups) {
  const std::unique_ptr<Model> model = make_model(mup_model());
  TrainConfig train = mup_training();
  train.groups = {{.pattern = {"*linear1.weight", "*norm*"}, .learning_rate_factor = 3}};
  const std::vector<ParameterSettings> settings = parameter_settings(*model, train);
  const std::map<std::string, double> expected = {{"decoder.layers.0.linear1.weight", 3.0 / 4},
                                                  {"decoder.layers.0.linear2.weight", 1.0 / 4},
                                                  {"decoder.layers.0.linear1.bias", 1.0},
                                                  {"decoder.layers.0.norm1.weight", 3.0},
                                                  {"output.weight", 1.0 / 4},
                                                  {"tgt_embed.weight", 1.0 / 2}};
  size_t compared = 0;
  for (size_t i = 0; i < settings.size(); ++i) {
    const auto factor = expected.find(model->parameters().all()[i].name);
    if (factor == expected.end()) continue;
    EXPECT_DOUBLE_EQ(settings[i].rate_factor, factor->second) << factor->first;
    ++compared;
  }
  EXPECT_EQ(compared, expected.size());
  train.parametrization = "standard";
  EXPECT_TRUE(parameter_settings(*model, train) == parameter_settings(model->parameters(), train.groups, 0));
}

TEST(Parametrization, MupRefusesWhatItIsNotMadeFor) {
  const auto message = [](const ModelConfig& model, const TrainConfig& train) {
    return test::message_of([&] { (void)parameter_settings(*make_model(model), train); });
  };
  const std::string begin = "train.parametrization = \"mup\" does not work with ";
  TrainConfig train = mup_training();
  EXPECT_EQ(message(mup_model(), train), "accepted");
  ModelConfig model = mup_model();
  model.share_embeddings = "target";
  EXPECT_EQ(message(model, train), begin + "model.share_embeddings = \"target\"");
  model = mup_model();
  model.embedding_factor = 1;
  EXPECT_EQ(message(model, train), begin + "model.embedding_factor = 1");
  model = mup_model();
  model.initialization = "he";
  EXPECT_EQ(message(model, train), begin + "model.initialization = \"he\"");
  train.optimizer = "sgd";
  EXPECT_EQ(message(mup_model(), train), begin + "train.optimizer = \"sgd\"");
  train = mup_training();
  train.base_width = 0;
  EXPECT_EQ(message(mup_model(), train), begin + "train.base_width = 0");
}

}  // namespace
}  // namespace plumb
