// Numbers and lines of logs as programs write them.
#include "plumb/judge/log_table.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "plumb/base/files.h"
#include "plumb/judge/log_lines.h"
#include "plumb/judge/log_records.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The cells of a line of JSON as texts.
Row row_of(const std::string& line) {
  LogTable table("log");
  Row row;
  if (!table.add_json(line)) return {{"no", "object"}};
  for (const LogTable::Cell& cell : table.line(0))
    row.emplace_back(table.name_of(cell.column), table.text_at(cell.text));
  return row;
}

TEST(LogTable, NumbersThatAreNotFiniteKeepTheirTexts) {
  const Row row = row_of(R"({"a":NaN, "b":[NaN], "c" : -Infinity,"d":{"e":1e999,"f":-nan},"g":inf})");
  const Row expected = {{"a", "NaN"}, {"c", "-Infinity"}, {"d.e", "1e999"}, {"d.f", "-nan"}, {"g", "inf"}};
  EXPECT_EQ(row, expected);
  EXPECT_TRUE(std::isnan(*number_in("NaN")));
  EXPECT_EQ(number_in("-Infinity"), -kInfinity);
  EXPECT_EQ(number_in("1e999"), kInfinity);
  EXPECT_EQ(number_in("-" + std::string(400, '9')), -kInfinity);
  EXPECT_EQ(number_in("1e-999"), 0);
}

// What stands in quotes is no number, whatever it looks like.
TEST(LogTable, TextsStayAsTheyAre) {
  const Row row = row_of(R"({"loss":2.5,"note":"was: NaN, \\","n\"ote":"\": Infinity","x":NaN})");
  const Row expected = {{"loss", "2.5"}, {"note", "was: NaN, \\"}, {"n\"ote", "\": Infinity"}, {"x", "NaN"}};
  EXPECT_EQ(row, expected);
  for (const char* text :
       {"{\"a\": nothing}", "{\"a\": NaN", "{\"a\": \"", "{\"a\": \"\\", "", "NaN]", "{\"a\": +1}", "{\"a\": 01}",
        "{\"a\": 1.}", "{\"a\": .5}", "{\"a\": 1,}", "{\"a\": 1} 2", "{\"a\": \"\t\"}"}) {
    EXPECT_TRUE(parse_log(text).is_discarded()) << text;
    EXPECT_EQ(row_of(text), (Row{{"no", "object"}})) << text;
  }
}

TEST(LogTable, SpacesBeforeANumber) {
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(row_of("{\"a\":" + spaces + "NaN}"), (Row{{"a", "NaN"}}));
}

// Simple lines are read by one reader, and those with lists, escapes or a key twice by another.
TEST(LogTable, AllObjectsAreReadAlike) {
  for (const std::string value : {"1", "-0", "0.10", "1e-3", "1E5", "5.0", "12345678901234567890", "4.9e-324", "1e-999",
                                  "123456789012345678901234567890", "-Infinity", "1e999", "true", "\"3.5\"", "null"}) {
    const Row row = row_of("{\"a\": " + value + "}");
    EXPECT_EQ(row_of("{\"b\": [1], \"a\": " + value + "}"), row) << value;
    EXPECT_EQ(row_of("{\"a\": 2, \"a\": " + value + "}"), row) << value;
  }
  EXPECT_EQ(row_of("{\"a\": 0.0010, \"b\": {\"c\": {\"d\": 1E2}, \"e\": {}}}"),
            (Row{{"a", "0.001"}, {"b.c.d", "100.0"}}));
}

TEST(LogTable, ColumnsAreThoseOfTheirNames) {
  LogTable table("log");
  for (const char* line :
       {"{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"a\":1}", "{\"b\":2}", "{\"a\":1,\"c\":3,\"d\":4,\"b\":2}"})
    ASSERT_TRUE(table.add_json(line));
  EXPECT_FALSE(table.add_json("{\"a\": 1, \"e\": x}"));
  ASSERT_EQ(table.lines(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    for (const LogTable::Cell& cell : table.line(i))
      EXPECT_EQ(table.name_of(cell.column), std::string(1, static_cast<char>('a' + cell.number - 1))) << i;
  }
  table.keep_lines(1);
  ASSERT_EQ(records_of(table).size(), 1U);
  EXPECT_EQ(records_of(table)[0].series.size(), 3U);
}

// A number's text counts where it may tell runs apart: everywhere until a column counts steps.
TEST(LogTable, TextsOfNumbers) {
  LogTable table("log", {"rate"});
  for (const char* step : {"1", "2"}) {
    for (const auto& [name, text] : {std::pair{"step", step}, {"rate", "0.10"}, {"loss", "2.50"}})
      table.add(table.column(name), text);
    table.end_line();
  }
  const auto text = [&](size_t line, size_t cell) { return table.text_at(table.line(line)[cell].text); };
  EXPECT_EQ(text(0, 2), "2.50");
  EXPECT_EQ(text(1, 2), "");
  EXPECT_EQ(text(1, 1), "0.10");
  EXPECT_EQ(table.line(1)[2].number, 2.5);
  EXPECT_EQ(*records_of(table).at(0).setting("rate"), "0.10");
}

// A program in Python may set a locale whose numbers have a comma.
TEST(LogTable, NumbersDoNotDependOnTheLocale) {
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
  const Row line = row_of("{\"a\":2.5,\"b\":NaN}");
  std::setlocale(LC_NUMERIC, "C");
  ::unsetenv("LOCPATH");
  if (!made || !comma) GTEST_SKIP() << "no locale was made";
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(line, (Row{{"a", "2.5"}, {"b", "NaN"}}));
}

}  // namespace
}  // namespace plumb
