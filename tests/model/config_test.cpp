// The [model] section: options of variants in their own sections, and invalid values.
#include "plumb/model/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>

#include "plumb/base/error.h"
#include "plumb/base/key_list.h"
#include "plumb/model/kind.h"
#include "plumb/model/model.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/attention/dpfp.h"
#include "support/errors.h"

namespace plumb {
namespace {

ModelConfig parsed(const std::string& toml) {
  ModelConfig config;
  Config::from_string("[model]\nsource_vocabulary = 9\ntarget_vocabulary = 9\n" + toml, "test").read("model", config);
  return config;
}

std::string text(const ModelConfig& config) { return ConfigWriter().section("model", config).text(); }

TEST(ModelConfig, OptionsOfTheChosenVariantsAreWritten) {
  EXPECT_LACKS(text(ModelConfig()), "[model.");
  const std::string rotary = text(parsed("positions = \"rotary\""));
  EXPECT_CONTAINS(rotary, "[model.rotary]\ntheta = 10000.0\ninterleaved = true\n");
  EXPECT_LACKS(rotary, "[model.favor]");
  const std::string other = text(parsed("[model.favor]\nredraw = 5"));
  EXPECT_CONTAINS(other, "[model.favor]\nfeatures = 0\nredraw = 5\n");
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

TEST(ModelConfig, OptionsReachTheModel) {
  const auto work = [](const std::string& attention, const std::string& options) {
    Parameters parameters(at::kFloat);
    return make_attention(attention, parameters, {"attention", 8, {2, 2, 4}, parsed(options).options, nullptr})
        ->work()
        .per_query;
  };
  for (const std::string attention : {"dpfp", "delta"})
    EXPECT_GT(work(attention, "[model.dpfp]\nnu = 4"), work(attention, "[model.dpfp]\nnu = 2")) << attention;
  EXPECT_GT(work("favor", "[model.favor]\nfeatures = 64"), work("favor", "[model.favor]\nfeatures = 8"));
  EXPECT_THROW(make_model(parsed("positions = \"rotary\"\n[model.rotary]\nfeatures = 1")), Error);
}

TEST(ModelConfig, ValuesThatMakeNoModel) {
  for (const char* bad : {"dropout = nan", "dropout = 1.0", "norm_eps = nan", "norm_eps = inf", "norm_eps = 0.0",
                          "heads = 3", "heads = 0", "d_model = -4", "kind = \"decodr\"", "activation = \"rlu\"",
                          "residual = \"none\"", "[model.dpfp]\nnu = 0", "[model.favor]\nfeatures = -1"}) {
    EXPECT_THROW(make_model(parsed(bad)), Error) << bad;
  }
}

TEST(ModelConfig, ValuesSetByAProgramAreCheckedAsThoseOfAFileAre) {
  const auto complaint = [](const std::function<void(ModelConfig&)>& change) -> std::string {
    ModelConfig config = parsed("");
    change(config);
    return test::message_of([&] { make_model(config); });
  };
  EXPECT_EQ(complaint([](ModelConfig& config) { config.d_model = 0; }), "model.d_model = 0 must lie in [1, 1,048,576]");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.dropout = 1; }), "model.dropout = 1 must lie in [0, 1)");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.norm = "layernrm"; }), "unknown norm 'layernrm'");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.kind = "decodr"; }), "unknown kind of model 'decodr'");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.attention_bias = "some"; }),
            "model.attention_bias = \"some\" must be \"all\", \"qkv\" or \"none\"");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.lora.rank = -1; }),
            "model.lora.rank = -1 must lie in [0, 1,048,576]");
  EXPECT_EQ(complaint([](ModelConfig& config) {
              config.lora = {2, 8, {"gate"}};
            }),
            "model.lora.matrices has \"gate\", and the attentions have no gate");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.options["dpfp"] = Options(DpfpOptions{0}); }),
            "model.dpfp.nu = 0 must lie in [1, 10,000]");
  EXPECT_EQ(complaint([](ModelConfig& config) { config.encoder_layers = 0; }),
            "model.encoder_layers = 0 must be at least 1");
  EXPECT_EQ(complaint([](ModelConfig& config) {
              config.kind = "decoder";
              config.encoder_layers = 0;
            }),
            "accepted");
}

TEST(ModelConfig, KindsSayWhatTheyRead) {
  for (const auto& [name, reads_source, reads_target] :
       {std::tuple("encoder-decoder", true, true), std::tuple("decoder", false, true),
        std::tuple("encoder", true, false), std::tuple("awd-lstm", false, true)}) {
    const ModelKind& kind = model_kind(name);
    EXPECT_EQ(kind.reads_source, reads_source) << name;
    EXPECT_EQ(kind.reads_target, reads_target) << name;
    EXPECT_EQ(kind.translates(), reads_source && reads_target) << name;
    EXPECT_EQ(kind.classifies(), !kind.translates()) << name;
    EXPECT_EQ(kind.recurrent, std::string(name) == "awd-lstm");
  }
  EXPECT_THROW(model_kind("mlp"), Error);
}

// `make variants` and error messages name every key.
TEST(ModelConfig, EveryKeyHasAMeaning) {
  for (const KeyList::Key& key : list_keys(ModelConfig())) EXPECT_FALSE(key.meaning.empty()) << key.name;
}

// Rejected before anything of that size is allocated.
TEST(ModelConfig, CountsBeyondEveryModelAreRefusedByName) {
  for (const std::string key :
       {"d_model", "feed_forward", "heads", "kv_heads", "head_size", "encoder_layers", "decoder_layers",
        "max_positions", "segments", "labels", "source_vocabulary", "target_vocabulary"}) {
    for (const std::string count : {"2000000000", "9223372036854775807"}) {
      ModelConfig config;
      test::expect_error(
          [&] { Config::from_string(fmt::format("[model]\n{} = {}", key, count), "test").read("model", config); },
          fmt::format(": model.{} = {} must lie in [", key, count));
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
