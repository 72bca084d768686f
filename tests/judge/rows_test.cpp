// Numbers and lines of logs as programs write them.
#include "plumb/judge/rows.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "plumb/base/files.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LogRows, NumbersThatAreNotFiniteAreTexts) {
  const Row row = row_of(parse_log(R"({"a":NaN, "b":[NaN], "c" : -Infinity,"d":{"e":1e999,"f":-nan},"g":inf})"));
  const Row expected = {{"a", "NaN"}, {"c", "-Infinity"}, {"d.e", "1e999"}, {"d.f", "-nan"}, {"g", "inf"}};
  EXPECT_EQ(row, expected);
  EXPECT_TRUE(std::isnan(*number_in("NaN")));
  EXPECT_EQ(number_in("-Infinity"), -kInfinity);
  EXPECT_EQ(number_in("1e999"), kInfinity);
  EXPECT_EQ(number_in("-" + std::string(400, '9')), -kInfinity);
  EXPECT_EQ(number_in("1e-999"), 0);
}

// What stands in quotes is no number, whatever it looks like.
TEST(LogRows, TextsStayAsTheyAre) {
  const Row row = row_of(parse_log(R"({"loss":2.5,"note":"was: NaN, \\","n\"ote":"\": Infinity","x":NaN})"));
  const Row expected = {{"loss", "2.5"}, {"note", "was: NaN, \\"}, {"n\"ote", "\": Infinity"}, {"x", "NaN"}};
  EXPECT_EQ(row, expected);
  for (const char* text : {"{\"a\": nothing}", "{\"a\": NaN", "{\"a\": \"", "{\"a\": \"\\", "", "NaN]", "{\"a\": +1}"})
    EXPECT_TRUE(parse_log(text).is_discarded()) << text;
}

TEST(LogRows, SpacesBeforeANumber) {
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(row_of(parse_log("{\"a\":" + spaces + "NaN}")), (Row{{"a", "NaN"}}));
}

TEST(LogRows, TablesAreReadOnceUnlessTheyAreLarge) {
  int reads = 0;
  const std::vector<RunRecord> records = records_of(read_once([&](const TakeRow& take) {
                                                      ++reads;
                                                      for (const char* step : {"1", "2", "3"})
                                                        take({{"step", step}, {"loss", "0.5"}});
                                                    }),
                                                    "t", {});
  EXPECT_EQ(reads, 1);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].series.at("loss").size(), 3U);
  const Row wide(60'000, {"a", "1"});
  const Rows large = read_once([&](const TakeRow& take) {
    ++reads;
    for (int i = 0; i < 20; ++i) take(wide);
  });
  int rows = 0;
  for (int call = 0; call < 2; ++call) large([&](const Row&) { ++rows; });
  EXPECT_EQ(reads, 1 + 2);
  EXPECT_EQ(rows, 2 * 20);
}

// A program in Python may set a locale whose numbers have a comma.
TEST(LogRows, NumbersDoNotDependOnTheLocale) {
  const test::TemporaryDirectory folder;
  const std::string source = (folder / "source").string();
  write_file_atomic(source, "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n");
  // A warning, since it has no more than this, is the status 1.
  const std::string make =
      "localedef -c -f UTF-8 -i " + source + " " + (folder / "comma").string() + " > /dev/null 2>&1";
  const bool made = std::system(make.c_str()) != -1 && ::setenv("LOCPATH", folder.path().c_str(), 1) == 0 &&
                    std::setlocale(LC_NUMERIC, "comma") != nullptr;
  const bool comma = std::strtod("2,5", nullptr) == 2.5;
  const std::optional<double> number = number_in("2.5");
  const Json line = parse_log("{\"a\":2.5,\"b\":NaN}");
  std::setlocale(LC_NUMERIC, "C");
  ::unsetenv("LOCPATH");
  if (!made || !comma) GTEST_SKIP() << "no locale was made";
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(row_of(line), (Row{{"a", "2.5"}, {"b", "NaN"}}));
}

}  // namespace
}  // namespace plumb
