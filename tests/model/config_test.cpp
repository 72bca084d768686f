// The [model] section: options of variants in their own sections, renamed keys, and invalid values.
#include "plumb/model/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "plumb/model/model.h"
#include "plumb/nn/attention/dpfp.h"
#include "plumb/nn/attention/favor.h"

namespace plumb {
namespace {

ModelConfig parsed(const std::string& toml) {
  ModelConfig config;
  Config::from_string("[model]\nsource_vocabulary = 9\ntarget_vocabulary = 9\n" + toml, "test").read("model", config);
  return config;
}

std::string text(const ModelConfig& config) { return ConfigWriter().section("model", config).text(); }

TEST(ModelConfig, OptionsOfTheChosenVariantsAreWritten) {
  EXPECT_EQ(text(ModelConfig()).find("[model."), std::string::npos);
  const std::string rotary = text(parsed("positions = \"rotary\""));
  EXPECT_NE(rotary.find("[model.rotary]\ntheta = 10000.0\ninterleaved = true\n"), std::string::npos) << rotary;
  EXPECT_EQ(rotary.find("[model.favor]"), std::string::npos) << rotary;
  const std::string other = text(parsed("[model.favor]\nredraw = 5"));
  EXPECT_NE(other.find("[model.favor]\nfeatures = 0\nredraw = 5\n"), std::string::npos) << other;
}

TEST(ModelConfig, WhatIsWrittenReadsTheSame) {
  const ModelConfig config = parsed(
      "positions = \"rotary\"\nactivation = \"swiglu\"\nfeed_forward_bias = false\n"
      "[model.rotary]\ntheta = 5e5\ninterleaved = false\n[model.dpfp]\nnu = 2");
  ModelConfig again;
  Config::from_string(text(config), "written").read("model", again);
  EXPECT_EQ(again, config);
  EXPECT_EQ(text(again), text(config));
  ModelConfig given;
  given.source_vocabulary = given.target_vocabulary = 9;
  EXPECT_EQ(given, parsed(""));
  EXPECT_FALSE(parsed("[model.rotary]\ntheta = 2.0") == parsed(""));
}

TEST(ModelConfig, KeysThatHaveMovedStillWork) {
  const ModelConfig config = parsed("favor_features = 7\nfavor_redraw = 8\ndpfp_nu = 5");
  const auto& favor = config.options.at("favor").as<FavorOptions>();
  EXPECT_EQ(favor.features, 7);
  EXPECT_EQ(favor.redraw, 8);
  EXPECT_EQ(dpfp_options(config.options).nu, 5);
}

TEST(ModelConfig, OptionsReachTheModel) {
  for (const char* bad : {"attention = \"dpfp\"\n[model.dpfp]\nnu = 0", "attention = \"delta\"\n[model.dpfp]\nnu = 0",
                          "attention = \"favor\"\n[model.favor]\nfeatures = -1",
                          "positions = \"rotary\"\n[model.rotary]\nfeatures = 1"}) {
    EXPECT_THROW(make_model(parsed(bad)), Error) << bad;
  }
}

TEST(ModelConfig, ValuesThatMakeNoModel) {
  for (const char* bad :
       {"dropout = nan", "dropout = 1.0", "norm_eps = nan", "norm_eps = inf", "norm_eps = 0.0", "heads = 3",
        "heads = 0", "d_model = -4", "kind = \"decodr\"", "activation = \"rlu\"", "residual = \"none\""}) {
    EXPECT_THROW(make_model(parsed(bad)), Error) << bad;
  }
  try {
    make_model(parsed("residual = \"none\""));
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("\"plain\""), std::string::npos) << error.hint();
  }
}

// Rejected before anything of that size is allocated.
TEST(ModelConfig, CountsBeyondEveryModelAreRefusedByName) {
  for (const std::string key :
       {"d_model", "feed_forward", "heads", "kv_heads", "head_size", "encoder_layers", "decoder_layers",
        "max_positions", "segments", "labels", "source_vocabulary", "target_vocabulary"}) {
    for (const std::string count : {"2000000000", "9223372036854775807"}) {
      ModelConfig config;
      const char* vocabularies = "[model]\nsource_vocabulary = 9\ntarget_vocabulary = 9\n";
      Config::from_string(vocabularies, "test").read("model", config);
      Config::from_string(fmt::format("[model]\n{} = {}", key, count), "test").read("model", config);
      try {
        make_model(config);
        ADD_FAILURE() << key;
      } catch (const Error& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(fmt::format("model.{} = {} must be at most ", key, count)))
            << error.what();
      }
    }
  }
  for (const char* bad : {"attention = \"favor\"\n[model.favor]\nfeatures = 2000000000",
                          "attention = \"dpfp\"\n[model.dpfp]\nnu = 2000000000"}) {
    EXPECT_THROW(make_model(parsed(bad)), Error) << bad;
  }
}

// The profiling pass also works with a single position.
TEST(ModelConfig, AdminHasModelsOfOnePosition) {
  for (const std::string kind : {"encoder-decoder", "decoder"}) {
    const auto model =
        make_model(parsed("residual = \"admin\"\npositions = \"learned\"\nmax_positions = 1\nd_model = 8\nheads = 2\n"
                          "feed_forward = 8\nencoder_layers = 2\ndecoder_layers = 2\nkind = \"" +
                          kind + "\""));
    model->initialize(1);
    for (const Parameter& parameter : model->parameters().all())
      EXPECT_TRUE(at::isfinite(parameter.value).all().item<bool>()) << kind << ": " << parameter.name;
  }
}

}  // namespace
}  // namespace plumb
