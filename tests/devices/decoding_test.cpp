// Decoding on another device.
#include <gtest/gtest.h>

#include "devices.h"
#include "plumb/decode/beam_search.h"
#include "plumb/decode/generate.h"
#include "plumb/model/capabilities.h"

namespace plumb {
namespace {

using test::on;
using test::small_model;

class DecodingOnDevices : public test::OnEachDevice {};
INSTANTIATE_ON_DEVICES(DecodingOnDevices);

TEST_P(DecodingOnDevices, DecodesTheSame) {
  for (const std::string attention : {"softmax", "linear", "delta"}) {
    for (const std::string position : {"sinusoidal", "rotary"}) {
      ModelConfig config = small_model("encoder-decoder", 1);
      config.attention = attention;
      config.positions = position;
      const auto translated = [&] {
        const std::unique_ptr<Model> model = make_model(config, at::kDouble);
        model->initialize(3);
        DecodeOptions options;
        options.beam = 3;
        return beam_search(*model->translates(), {{4, 5, 6}, {9}, {4, 4, 7, 8}}, options);
      };
      EXPECT_EQ(on(GetParam(), translated), translated()) << attention << ", " << position;
      config = small_model("decoder", 1);
      config.attention = attention;
      config.positions = position;
      const auto generated = [&] {
        const std::unique_ptr<Model> model = make_model(config, at::kDouble);
        model->initialize(3);
        GenerateOptions options;
        options.samples = 2;
        options.max_tokens = 6;
        std::vector<std::vector<int32_t>> ids;
        for (const Generated& each : generate(*model->generates(), {{4, 5, 6}, {9}}, options)) ids.push_back(each.ids);
        return ids;
      };
      EXPECT_EQ(on(GetParam(), generated), generated()) << attention << ", " << position;
    }
  }
}

TEST_P(DecodingOnDevices, DecodesInEveryPrecision) {
  ModelConfig config = small_model("encoder-decoder", 1);
  for (const std::string precision : {"float32", "bf16", "int8"}) {
    const auto translated = [&] {
      const std::unique_ptr<Model> model = make_model(config);
      model->initialize(3);
      DecodeOptions options;
      options.beam = 2;
      options.precision = precision;
      return beam_search(*model->translates(), {{4, 5, 6}, {9}}, options);
    };
    EXPECT_EQ(on(GetParam(), translated).size(), 2U) << precision;
  }
}

}  // namespace
}  // namespace plumb
