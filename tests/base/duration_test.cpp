// Durations as people write them, and as configurations read and write them.
#include "plumb/base/duration.h"

#include <gtest/gtest.h>

#include "plumb/base/config.h"
#include "plumb/base/error.h"
#include "plumb/base/key_list.h"
#include "support/errors.h"

namespace plumb {

struct Lasting {
  Duration length = 4000;
  Duration every = -1;
};
static void describe(Fields& field, Lasting& lasting) {
  field("length", lasting.length);
  field("every", lasting.every, "how often");
}

namespace {

constexpr auto kSteps = Duration::Unit::steps;
constexpr auto kTokens = Duration::Unit::tokens;
constexpr auto kEpochs = Duration::Unit::epochs;
constexpr auto kRuns = Duration::Unit::runs;

void expect_parsed(const std::string& text, Duration::Unit unit, int64_t amount, const std::string& written) {
  SCOPED_TRACE(text);
  const Duration found = Duration::parse(text);
  EXPECT_EQ(found.unit(), unit);
  EXPECT_EQ(found.amount(), amount);
  EXPECT_EQ(found.text(), written);
  EXPECT_EQ(Duration::parse(written), found);
}

std::string duration_error(const std::string& text) {
  return test::message_of([&] { Duration::parse(text); });
}

TEST(Duration, HasFourUnits) {
  expect_parsed("4000", kSteps, 4000, "4000");
  expect_parsed("4000u", kSteps, 4000, "4000");
  expect_parsed("007u", kSteps, 7, "7");
  expect_parsed("999t", kTokens, 999, "999t");
  expect_parsed("1000t", kTokens, 1000, "1kt");
  expect_parsed("12kt", kTokens, 12'000, "12kt");
  expect_parsed("10Mt", kTokens, 10'000'000, "10Mt");
  expect_parsed("10000kt", kTokens, 10'000'000, "10Mt");
  expect_parsed("300Gt", kTokens, 300'000'000'000, "300Gt");
  expect_parsed("300Bt", kTokens, 300'000'000'000, "300Gt");
  expect_parsed("2e", kEpochs, 2'000'000, "2e");
  expect_parsed("10%", kRuns, 100'000, "10%");
  expect_parsed("100%", kRuns, 1'000'000, "100%");
}

TEST(Duration, AllButStepsMayHaveAFraction) {
  expect_parsed("1.5kt", kTokens, 1500, "1.5kt");
  expect_parsed("1.234567Mt", kTokens, 1'234'567, "1.234567Mt");
  expect_parsed("1.050Mt", kTokens, 1'050'000, "1.05Mt");
  expect_parsed("0.001kt", kTokens, 1, "1t");
  expect_parsed("0.5e", kEpochs, 500'000, "0.5e");
  expect_parsed("2.000001e", kEpochs, 2'000'001, "2.000001e");
  expect_parsed("10.250e", kEpochs, 10'250'000, "10.25e");
  expect_parsed("0.0001%", kRuns, 1, "0.0001%");
  expect_parsed("12.50%", kRuns, 125'000, "12.5%");
  expect_parsed("3.0u", kSteps, 3, "3");
  EXPECT_EQ(duration_error("1.5u"), "'1.5u' is not a whole number of steps");
  EXPECT_EQ(duration_error("1.5"), "'1.5' is not a whole number of steps");
  EXPECT_EQ(duration_error("0.5t"), "'0.5t' is not a whole number of tokens");
  EXPECT_EQ(duration_error("1.2345kt"), "'1.2345kt' is not a whole number of tokens");
  EXPECT_EQ(duration_error("0.3333333e"), "'0.3333333e' is not a number of epochs with at most six decimals");
  EXPECT_EQ(duration_error("0.00001%"), "'0.00001%' is not a share of the run with at most four decimals");
}

TEST(Duration, OfZeroIsZeroSteps) {
  for (const char* zero : {"0", "0u", "0t", "0Mt", "0.0e", "0%"}) EXPECT_EQ(Duration::parse(zero), Duration(0)) << zero;
  EXPECT_TRUE(Duration().is_zero());
  EXPECT_NE(Duration(2), Duration::parse("2t"));
}

TEST(Duration, AnythingElseIsAnError) {
  for (const std::string text :
       {"",    "u",  "t",  "Mt", "e",   ".5e", "1.e", "1.2.3e", "-1",     "-2e", "+2e",  " 2e", "2e ",
        "2 e", "2E", "2T", "2M", "2mt", "2ku", "2ke", "2Tt",    "1,000t", "1e3", "0x10", "two"}) {
    EXPECT_EQ(duration_error(text), "'" + text + "' is not a duration");
  }
  EXPECT_EQ(Duration::parse("999999999999999t").text(), "999999.999999999Gt");
  EXPECT_EQ(duration_error("1000000000000000t"), "'1000000000000000t' is too long");
  EXPECT_EQ(duration_error("1000000Gt"), "'1000000Gt' is too long");
  EXPECT_EQ(duration_error("1000000000e"), "'1000000000e' is too long");
  EXPECT_EQ(duration_error("99999999999999999999999999"), "'99999999999999999999999999' is too long");
}

TEST(Duration, OnlyStepsAreSteps) {
  EXPECT_EQ(Duration(-1).in_steps(), -1);
  EXPECT_EQ(Duration::parse("12u").in_steps(), 12);
  EXPECT_THROW((void)Duration::parse("12t").in_steps(), Error);
  EXPECT_THROW((void)Duration::parse("12e").in_steps(), Error);
  EXPECT_THROW((void)Duration::parse("12%").in_steps(), Error);
}

Lasting read_lasting(const Config& config) {
  Lasting lasting;
  config.read("run", lasting);
  return lasting;
}
Lasting read_lasting(const std::string& toml) { return read_lasting(Config::from_string(toml, "run.toml")); }

std::string lasting_error(const std::string& toml) {
  return test::message_of([&] { read_lasting(toml); });
}

TEST(Duration, ConfigurationsHaveIntegersForSteps) {
  EXPECT_EQ(ConfigWriter().section("run", Lasting()).text(), "[run]\nlength = 4000\nevery = -1\n");
  const Lasting found = read_lasting("[run]\nlength = \"2000kt\"\nevery = \"0.5e\"\n");
  EXPECT_EQ(found.length, Duration::parse("2Mt"));
  const std::string written = ConfigWriter().section("run", found).text();
  EXPECT_EQ(written, "[run]\nlength = \"2Mt\"\nevery = \"0.5e\"\n");
  EXPECT_EQ(read_lasting(written).every, found.every);
  EXPECT_EQ(read_lasting("[run]\nlength = 7\n").length, Duration(7));
  EXPECT_EQ(read_lasting("[run]\nlength = \"7u\"\n").length, Duration(7));
  EXPECT_EQ(read_lasting("[run]\nevery = \"7u\"\n").length, Duration(4000));
  EXPECT_EQ(list_keys(found)[0].value, "\"2Mt\"");
  EXPECT_EQ(list_keys(Lasting())[1].value, "-1");
  EXPECT_EQ(list_keys(Lasting())[1].meaning, "how often");
}

TEST(Duration, OverridesNeedNoQuotes) {
  for (const char* text : {"4000u", "10Mt", "2e", "0.5e", "1.5Bt", "10%", "2.5%"}) {
    Config config;
    config.set(std::string("run.length=") + text);
    EXPECT_EQ(read_lasting(config).length, Duration::parse(text)) << text;
  }
}

TEST(Duration, MistakesInConfigurationsHaveAPlace) {
  EXPECT_EQ(lasting_error("[run]\nlength = \"10M\"\n"), "run.toml:2:10: 'length': '10M' is not a duration");
  EXPECT_EQ(lasting_error("[run]\nlength = 1.5\n"), "run.toml:2:10: 'length' must be a whole number, not 1.5");
  EXPECT_EQ(lasting_error("[run]\nlength = true\n"), "run.toml:2:10: 'length' must be a whole number, not true");
}

}  // namespace
}  // namespace plumb
