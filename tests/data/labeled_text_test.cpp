#include "plumb/data/labeled_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/base/utf8.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

using Columns = std::vector<std::vector<std::string>>;  // label, first, second of each example

class LabeledTextFiles : public testing::Test {
 protected:
  [[nodiscard]] LabeledText read(const std::string& content) const {
    write_file_atomic(directory_ / "file", content);
    return read_labeled_text(directory_ / "file", format_);
  }
  [[nodiscard]] Columns columns(const std::string& content) const {
    Columns result;
    for (const LabeledExample& example : read(content).examples) {
      result.push_back({example.label, example.first, example.second});
    }
    return result;
  }
  /// "MESSAGE | HINT", without the temporary directory.
  [[nodiscard]] std::string failure(const std::string& content) const {
    const Error error = test::error_of([&] { (void)read(content); });
    std::string text = error.what() + (" | " + error.hint());
    replace_all(text, directory_.path().string() + "/", "");
    return text;
  }

  test::TemporaryDirectory directory_;
  LabeledTextFormat format_;
};

TEST_F(LabeledTextFiles, LabelThenTextByDefault) {
  EXPECT_EQ(columns("pos\ta good \"film\tno\n\n neg \t a bad one \tmore\r\n"),
            (Columns{{"pos", "a good \"film", ""}, {"neg", "a bad one", ""}}));
  EXPECT_EQ(read("pos\ta\n\nneg\tb\n").examples[1].line, 3);
}

TEST_F(LabeledTextFiles, MayBeAPipe) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(directory_ / "pipe") << "pos\ta\n"; });
  EXPECT_EQ(read_labeled_text(directory_ / "pipe", format_).examples.size(), 1U);
  writer.join();
}

TEST_F(LabeledTextFiles, ColumnsByNumber) {
  format_.label = "2";
  format_.text = {"1"};
  EXPECT_EQ(columns("a film\t1\n"), (Columns{{"1", "a film", ""}}));
  format_.label = "1";
  format_.text = {"3", "2"};
  EXPECT_EQ(columns("x\ty\tz\n"), (Columns{{"x", "z", "y"}}));
}

TEST_F(LabeledTextFiles, ColumnsByName) {
  format_.header = true;
  format_.label = "Quality";
  format_.text = {"#1 String", "#2 String"};
  const std::string content =
      "\xEF\xBB\xBFQuality\t#1 ID\t#1 String\t#2 String\r\n1\t702876\tHe said \"so.\tSo he said.\r\n";
  EXPECT_EQ(columns(content), (Columns{{"1", "He said \"so.", "So he said."}}));
  format_.text = {"3"};  // a number still works if no column has that name
  EXPECT_EQ(columns(content), (Columns{{"1", "He said \"so.", ""}}));
  format_.label = "quality";
  EXPECT_EQ(failure(content), "file: no column 'quality' | available: Quality, #1 ID, #1 String, #2 String");
}

TEST_F(LabeledTextFiles, FirstSpaceAndLabelEnd) {
  format_.separator = ColumnSeparator::space;
  EXPECT_EQ(columns("NUM:date When was it ?\n"), (Columns{{"NUM:date", "When was it ?", ""}}));
  format_.label_end = ":";
  EXPECT_EQ(columns("NUM:date When: now ?\nHUM Who ?\n"), (Columns{{"NUM", "When: now ?", ""}, {"HUM", "Who ?", ""}}));
}

TEST_F(LabeledTextFiles, CommaSeparatedValues) {
  format_.separator = ColumnSeparator::comma;
  format_.text = {"2", "3"};
  EXPECT_EQ(columns("3,\"Wall St., \"\"Bears\"\"\",back\n1,plain \"text\",\"\"\n"),
            (Columns{{"3", "Wall St., \"Bears\"", "back"}, {"1", "plain \"text\"", ""}}));
  format_.text = {"2"};
  EXPECT_EQ(columns("1,a\n2,\"b\"\n"), (Columns{{"1", "a", ""}, {"2", "b", ""}}));
  EXPECT_TRUE(failure("1,\"a\n").starts_with("file:1: a quoted field does not end on its line"));
  EXPECT_TRUE(failure("1,\"a\"b\n").starts_with("file:1: text after a quoted field"));
}

TEST_F(LabeledTextFiles, Latin1WhereTheUserSaysSo) {
  const std::string content = "1\tcaf\xE9 \x96 \x93ol\xE9\x94\n";
  EXPECT_EQ(failure(content), "file:1: not valid UTF-8 | if the file is Latin-1, pass --encoding latin-1");
  format_.encoding = TextEncoding::latin_1;
  EXPECT_EQ(columns(content), (Columns{{"1", "café – “olé”", ""}}));
}

TEST_F(LabeledTextFiles, CompressedFilesAreNeverRead) {
  const std::string content = "\x1F\x8B\x08 1\ttext\n";
  for (const TextEncoding encoding : {TextEncoding::utf_8, TextEncoding::latin_1}) {
    format_.encoding = encoding;
    EXPECT_EQ(failure(content), "file: is compressed by gzip, not text in UTF-8 | decompress it first: gunzip");
  }
}

TEST(Latin1, IsUtf8WhateverTheBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string text = utf8_of_latin1(all);
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(text.substr(0, 128), all.substr(0, 128));
  EXPECT_TRUE(text.ends_with("\xC3\xBE\xC3\xBF"));  // þÿ
  EXPECT_EQ(utf8_of_latin1("\x80\x9F\xA0\x8D"), "€Ÿ\xC2\xA0\xC2\x8D");
}

TEST_F(LabeledTextFiles, BadInputHasOneClearLine) {
  EXPECT_TRUE(failure("").starts_with("file: contains no examples"));
  EXPECT_TRUE(failure("\n \n").starts_with("file: contains no examples"));
  EXPECT_EQ(failure("a\tb\nno label\n"),
            "file:2: 1 column, but column 2 is needed | check --separator, --label and --text");
  EXPECT_TRUE(failure("a\tb\n \tc\n").starts_with("file:2: the label is empty"));
  // A separator within a text is an error.
  EXPECT_TRUE(failure("a\tb\n\na\tb\tc\n").starts_with("file:3: 3 columns, but the first line has 2 | check"));
  EXPECT_TRUE(failure("a\tb\tc\na\tb\n").starts_with("file:2: 2 columns, but the first line has 3"));
  format_.label = "Quality";
  EXPECT_EQ(failure("a\tb\n"), "column 'Quality' is not a number from 1 | to select columns by name, use --header");
  format_.label = "0";
  EXPECT_TRUE(failure("a\tb\n").starts_with("column '0' is not a number from 1"));
  format_.label = "1";
  format_.text = {"1", "2", "3"};
  EXPECT_TRUE(failure("a\tb\tc\n").starts_with("an example cannot have 3 sentences"));
  format_.text = {"2"};
  format_.header = true;
  EXPECT_TRUE(failure("label\ttext\n").starts_with("file: contains no examples"));
}

TEST(LabelSet, IsSortedAndCheckedByLine) {
  const LabeledText train{"train.tsv", {{"NUM", "a", "", 1}, {"DESC", "b", "", 2}, {"NUM", "c", "", 3}}};
  const std::vector<std::string> labels = label_set(train);
  EXPECT_EQ(labels, (std::vector<std::string>{"DESC", "NUM"}));
  EXPECT_NO_THROW(check_labels(train, labels));
  const auto failure = [&](const std::string& label) {
    const Error error = test::error_of([&] {
      check_labels({"valid.tsv", {{"NUM", "a", "", 1}, {label, "b", "", 7}}}, labels);
    });
    return error.what() + (" | " + error.hint());
  };
  EXPECT_EQ(failure("NUMM"), "valid.tsv:7: no training example has the label 'NUMM' | did you mean 'NUM'?");
  EXPECT_EQ(
      failure("a sentence"),
      "valid.tsv:7: no training example has the label 'a sentence' | the labels of the training text are: DESC, NUM");
}

std::map<std::string, int64_t> counts_of(const LabeledText& text) {
  std::map<std::string, int64_t> counts;
  for (const LabeledExample& example : text.examples) ++counts[example.label];
  return counts;
}

// 600 of "many", 300 of "some", 3 of "few", 1 of "one".
LabeledText skewed() {
  LabeledText text;
  const std::vector<std::pair<std::string, int>> labels = {{"many", 600}, {"some", 300}, {"few", 3}, {"one", 1}};
  for (const auto& [label, count] : labels) {
    for (int i = 0; i < count; ++i) text.examples.push_back({label, label + std::to_string(i), "", i});
  }
  return text;
}

TEST(HoldOutLabeled, InProportionAndEveryLabelStays) {
  LabeledText train = skewed();
  const LabeledText held = hold_out(train, 90, 1);
  EXPECT_EQ(held.examples.size(), 90U);
  EXPECT_EQ(train.examples.size(), 814U);
  const auto counts = counts_of(held);
  EXPECT_NEAR(static_cast<double>(counts.at("many")), 60, 1);
  EXPECT_NEAR(static_cast<double>(counts.at("some")), 30, 1);
  EXPECT_EQ(counts_of(train).size(), 4U);
  LabeledText almost_all = skewed();
  (void)hold_out(almost_all, 903, 1);
  EXPECT_EQ(counts_of(almost_all).size(), 4U);
}

TEST(HoldOutLabeled, AFunctionOfTheSeed) {
  const auto held = [](uint64_t seed) {
    LabeledText train = skewed();
    std::set<std::string> texts;
    for (const LabeledExample& example : hold_out(train, 90, seed).examples) texts.insert(example.first);
    return texts;
  };
  EXPECT_EQ(held(1), held(1));
  EXPECT_NE(held(1), held(2));
}

TEST(HoldOutLabeled, EqualTextsGoTheSameWay) {
  LabeledText train;
  for (int i = 0; i < 400; ++i) {
    train.examples.push_back({i % 2 == 0 ? "a" : "b", "text " + std::to_string(i / 4), std::to_string(i % 8 / 4), i});
  }
  const LabeledText held = hold_out(train, 40, 1);
  EXPECT_GT(held.examples.size(), 20U);
  std::set<std::pair<std::string, std::string>> trained;
  for (const LabeledExample& example : train.examples) trained.emplace(example.first, example.second);
  for (const LabeledExample& example : held.examples) {
    EXPECT_EQ(trained.count({example.first, example.second}), 0U) << example.first;
  }
}

TEST(HoldOutLabeled, ThrowsWhereNothingCanBeHeldOut) {
  LabeledText train{"", {{"a", "x", "", 1}, {"b", "y", "", 2}}};
  EXPECT_THROW(hold_out(train, 1, 1), Error);
}

}  // namespace
}  // namespace plumb
