#include "plumb/base/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(Json, ADocumentOpensWithItsSchemaAndCommand) {
  const char* const words[] = {"/usr/bin/plumb", "score", "my file", "it's", "$HOME", ""};
  set_command_line(6, words);
  EXPECT_EQ(command_line(), R"(plumb score 'my file' 'it'\''s' '$HOME' '')");
  const Json document = make_document("score", 2);
  EXPECT_EQ(document.begin().key(), "schema");
  EXPECT_EQ(document.at("schema"), "plumb.score/2");
  EXPECT_EQ(document.at("command"), command_line());
}

TEST(Json, IsWrittenInOrderAndReadBack) {
  const test::TemporaryDirectory directory;
  Json value;
  value["z"] = 0.1;
  value["a"] = {1, 2};
  value["umlaut"] = "ü";
  write_json(directory / "value.json", value);
  const std::string text = read_file(directory / "value.json");
  EXPECT_LT(text.find("\"z\""), text.find("\"a\""));
  EXPECT_TRUE(text.ends_with("}\n"));
  EXPECT_EQ(read_json(directory / "value.json"), value);
}

TEST(Json, TextIsWrittenOfWhatJsonCannotSay) {
  EXPECT_EQ(json_text(Json{{"path", "caf\xE9"}, {"loss", std::nan("")}}),
            "{\n  \"path\": \"caf\uFFFD\",\n  \"loss\": null\n}\n");
}

// Such as the names of a vocabulary or of the tensors of a model in many files, of which one may be removed.
TEST(Json, AnObjectOfManyKeysFindsThemWithoutASearchThroughAll) {
  constexpr int kKeys = 200'000;
  const auto begin = std::chrono::steady_clock::now();
  std::string text = "{";
  for (int i = kKeys; i > 0; --i) text += "\"k" + std::to_string(i) + "\": " + std::to_string(i) + ", ";
  Json json = parse_or_discard(text + "\"k7\": -7}");
  ASSERT_EQ(json.size(), size_t{kKeys});
  EXPECT_EQ(json.begin().key(), "k200000");
  EXPECT_EQ(std::prev(json.end()).key(), "k1");
  for (int i = 1; i <= kKeys; ++i) ASSERT_EQ(json.at("k" + std::to_string(i)), i == 7 ? -7 : i);
  EXPECT_FALSE(json.contains("k0"));
  const Json copy = json;
  EXPECT_EQ(json.erase("k200000"), 1U);
  json["new"] = 0;
  EXPECT_FALSE(json.contains("k200000"));
  EXPECT_EQ(json.at("k199999"), 199'999);
  EXPECT_EQ(std::prev(json.end()).key(), "new");
  EXPECT_EQ(copy.at("k200000"), kKeys);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Json, WhatJsonCannotSayBecomesNullOrIsReplaced) {
  const test::TemporaryDirectory directory;
  Json value;
  value["nan"] = std::nan("");
  value["infinity"] = HUGE_VAL;
  value["latin1"] = "sch\xF6n";
  write_json(directory / "value.json", value);
  const Json read = read_json(directory / "value.json");
  EXPECT_TRUE(read.at("nan").is_null());
  EXPECT_TRUE(read.at("infinity").is_null());
  EXPECT_EQ(read.at("latin1"), "sch\xEF\xBF\xBDn");
}

TEST(Json, AMalformedFileIsNamedWithTheByte) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "broken.json";
  write_file_atomic(path, "{\"a\": 1,");
  EXPECT_EQ(test::message_of([&] { read_json(path); }), path.string() + ": not valid JSON at byte 9");
}

TEST(Json, ANumberThatIsTooLargeNamesTheFile) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "large.json";
  write_file_atomic(path, "[1e400]");
  EXPECT_EQ(test::message_of([&] { read_json(path); }),
            path.string() + ": cannot be read: number overflow parsing '1e400'");
}

TEST(Json, AnUnexpectedShapeNamesTheFile) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "list.json";
  write_file_atomic(path, "[]");
  const auto steps = [](const Json& json) { return json.at("steps").get<int64_t>(); };
  test::expect_error([&] { take_json(path, steps); }, path.string() + ": unexpected structure: ");
  write_file_atomic(path, R"({"steps": 3})");
  EXPECT_EQ(take_json(path, steps), 3);
}

TEST(Json, DeepNestingIsRefused) {
  const std::string deep(100'000, '[');
  EXPECT_TRUE(nests_too_deeply(deep));
  EXPECT_TRUE(parse_or_discard(deep).is_discarded());
  const test::TemporaryDirectory directory;
  const auto path = directory / "deep.json";
  write_file_atomic(path, deep);
  EXPECT_EQ(test::message_of([&] { read_json(path); }), path.string() + ": nested too deeply");
  // Brackets in strings and closed brackets do not count.
  EXPECT_FALSE(nests_too_deeply("[\"" + deep + "\\\"[\"]"));
  std::string wide = "[0";
  for (int i = 0; i < 1000; ++i) wide += ", [{}]";
  EXPECT_EQ(parse_or_discard(wide + "]").size(), 1001U);
  EXPECT_TRUE(parse_or_discard("{").is_discarded());
}

TEST(Json, CountsAreWholeNumbersThatEveryReaderKnowsExactly) {
  for (const char* count : {"0", "7", "9007199254740992"}) EXPECT_EQ(to_count(Json::parse(count)), std::stoll(count));
  for (const char* other : {"-1", "9007199254740993", "18446744073709551615", "-9223372036854775808", "1.0", "true",
                            "null", "\"1\"", "[1]"})
    EXPECT_THROW(to_count(Json::parse(other)), Error) << other;
}

TEST(Json, ACommandLineInAnotherEncodingIsWritten) {
  const char* const words[] = {"plumb", "--out", "caf\xE9"};
  set_command_line(3, words);
  EXPECT_EQ(make_document("list", 1).dump(), R"({"schema":"plumb.list/1","command":"plumb --out caf�"})");
}

}  // namespace
}  // namespace plumb
