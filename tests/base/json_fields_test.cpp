#include "plumb/base/json_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/errors.h"

namespace plumb {
namespace {

struct Layer {
  std::string name;
  double norm = 0;
};
void describe(Fields& field, Layer& layer) {
  field("name", layer.name);
  field("norm", layer.norm);
}

struct Measured {
  int64_t steps = 0;
  double value = 0;
  bool exhausted = false;
  std::optional<double> error;
  std::optional<int64_t> probes;
  std::vector<double> density;
  Duration every = 50;
  NamedNumbers quantiles;
  Layer worst;
  std::vector<Layer> layers;
};
void describe(Fields& field, Measured& measured) {
  field("steps", measured.steps);
  field("value", measured.value);
  field("exhausted", measured.exhausted);
  field("error", measured.error);
  field("probes", measured.probes);
  field("density", measured.density);
  field("every", measured.every);
  field("quantiles", measured.quantiles);
  field.section("worst", measured.worst);
  field.sections("layers", measured.layers);
}

TEST(JsonFields, AStructIsWrittenAndReadByOneDescription) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Measured measured{40,
                    nan,
                    true,
                    0.25,
                    {},
                    {1, nan, 3},
                    Duration::parse("2e"),
                    {{"0.5", 1.5}, {"0.1", nan}},
                    {"a", 2},
                    {{"b", 3}, {"c", nan}}};
  const Json json = described_json(measured);
  EXPECT_EQ(json.dump(),
            R"({"steps":40,"value":null,"exhausted":true,"error":0.25,"density":[1.0,null,3.0],"every":"2e",)"
            R"("quantiles":{"0.5":1.5,"0.1":null},"worst":{"name":"a","norm":2.0},)"
            R"("layers":[{"name":"b","norm":3.0},{"name":"c","norm":null}]})");
  const auto read = from_described_json<Measured>(Json::parse(json.dump()));
  EXPECT_TRUE(std::isnan(read.value));
  EXPECT_EQ(read.error, 0.25);
  EXPECT_FALSE(read.probes);
  EXPECT_TRUE(std::isnan(read.density[1]));
  EXPECT_EQ(read.quantiles[0], (std::pair<std::string, double>("0.5", 1.5)));
  EXPECT_EQ(read.worst.name, "a");
  ASSERT_EQ(read.layers.size(), 2U);
  EXPECT_EQ(described_json(read), json);
}

TEST(JsonFields, WhatIsMissingOrOfAnotherTypeIsNamed) {
  const auto refusal = [](const char* change) {
    Json json = described_json(Measured{});
    json.merge_patch(Json::parse(change));
    return test::message_of([&] { from_described_json<Measured>(json); });
  };
  EXPECT_EQ(refusal(R"({"more": 1})"), "accepted");
  EXPECT_EQ(refusal(R"({"steps": null})"), "the key 'steps' is missing");
  EXPECT_EQ(refusal(R"({"steps": 1.5})"), "'steps' must be an integer, not number");
  EXPECT_EQ(refusal(R"({"value": "x"})"), "'value' must be a number, not string");
  EXPECT_EQ(refusal(R"({"exhausted": 0})"), "'exhausted' must be true or false, not number");
  EXPECT_EQ(refusal(R"({"density": 1})"), "'density' must be a list, not number");
  EXPECT_EQ(refusal(R"({"layers": {}})"), "'layers' must be a list, not object");
  EXPECT_EQ(refusal(R"({"layers": [1]})"), "an object with the key 'name' is missing");
  EXPECT_EQ(refusal(R"({"worst": {"norm": []}})"), "'norm' must be a number, not array");
}

}  // namespace
}  // namespace plumb
