// Tasks from made-up files.
#include "plumb/evaluate/own_task.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "plumb/base/files.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

class OwnTasks : public ::testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) { write_file_atomic(scratch_ / name, text); }

  [[nodiscard]] std::string path(const std::string& name) const { return (scratch_ / name).string(); }

  [[nodiscard]] static EvaluationTask load(const std::string& file) { return load_own_task(file); }

  /// Expects loading to fail with a message that contains `part`.
  static void expect_error(const std::string& file, const std::string& part) {
    test::expect_error([&] { load_own_tasks({file}); }, part);
  }

  const test::TemporaryDirectory scratch_;
};

TEST_F(OwnTasks, AChoiceHasANumberAndAnAlternative) {
  const auto refused = [&](const std::string& line, const std::string& part) {
    write("own.jsonl", line);
    expect_error(path("own.jsonl"), part);
  };
  refused(R"({"context": "x", "choices": ["a"], "gold": 0})", "a single choice leaves nothing to choose");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": -1})", "gold = -1 is not the number of a choice");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": 0.9})", "gold = 0.9 is not the number of a choice");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": "0"})", "gold = \"0\" is not the number of a choice");
  refused(R"({"context": "x", "choices": ["a", "b"], "gold": 2})", "the right choice is number 2 of 2");
  refused(R"({"context": "x", "choices": "good", "gold": 0})", "a value of the wrong type: type must be array");
}

TEST_F(OwnTasks, SayWhatIsAsked) {
  write("own.jsonl", R"({"context": "One and", "choices": ["two", "three"], "gold": 1, "id": 7})");
  EXPECT_EQ(load(path("own.jsonl")).name, "own");
  EXPECT_EQ(load(path("own.jsonl")).items[0].gold, 1U);
  EXPECT_EQ(load(path("own.jsonl")).category, "own");
  write("facts.jsonl", R"({"text": "one", "category": "fact checking"})");
  EXPECT_EQ(load(path("facts.jsonl")).category, "fact checking");
  write("facts.jsonl", "{\"text\": \"one\", \"category\": \"facts\"}\n{\"text\": \"two\"}");
  expect_error(path("facts.jsonl"), "line 2: the category is 'own', that of the first line 'facts'");
  write("words.jsonl", R"({"context": "One and", "continuation": " two"})");
  EXPECT_EQ(load(path("words.jsonl")).kind, RequestKind::log_likelihood);
  write("answers.jsonl", R"({"context": "One and", "answer": "two"})");
  EXPECT_EQ(load(path("answers.jsonl")).kind, RequestKind::generate_until);
  EXPECT_EQ(load(path("answers.jsonl")).until, (std::vector<std::string>{"\n"}));
  write("answers.jsonl", R"({"context": "One and", "answer": "two", "until": ["Q:", "."]})");
  EXPECT_EQ(load(path("answers.jsonl")).until, (std::vector<std::string>{"Q:", "."}));
  write("answers.jsonl",
        "{\"context\": \"One\", \"answer\": \"two\"}\n{\"context\": \"One\", \"answer\": \"two\", \"until\": [\"Q\"]}");
  expect_error(path("answers.jsonl"), "line 2: until is not that of the first line");
  write("texts.jsonl", R"({"text": "One and two.\n", "until": ["Q:"]})");
  expect_error(path("texts.jsonl"), "line 1: unknown key 'until'");
  write("texts.jsonl", R"({"text": "One and two.\n"})");
  EXPECT_EQ(load(path("texts.jsonl")).items[0],
            (EvaluationItem{.choices = {"One and two.\n"}, .words = 4, .bytes = 13}));
  write("bad.jsonl", "{\"text\": \"one\"}\n{\"texts\": \"two\"}");
  expect_error(path("bad.jsonl"), "line 2: must have the keys text");
  write("bad.jsonl", R"({"context": "One", "choices": ["two"], "gold": 1})");
  expect_error(path("bad.jsonl"), "line 1: the right choice is number 1 of 1");
  write("bad.jsonl", R"({"context": "One", "choices": "two", "gold": 0})");
  expect_error(path("bad.jsonl"), "line 1: ");
  write("bad.jsonl", R"({"context": "One", "choice": ["two"]})");
  expect_error(path("bad.jsonl"), "line 1: has none of these sets of keys");
  write("bad.jsonl", "[1]");
  expect_error(path("bad.jsonl"), "line 1: is not a JSON object");
  write("bad.jsonl", "\n");
  expect_error(path("bad.jsonl"), "contains no items");
}

TEST_F(OwnTasks, AreFilesOfDifferentNames) {
  expect_error("lambada_openai", "unknown evaluation task 'lambada_openai', which is no file");
  expect_error(path("nothing.jsonl"), "nothing.jsonl");
  write("own.jsonl", R"({"text": "one"})");
  EXPECT_EQ(load_own_tasks({path("own.jsonl")}).size(), 1U);
  test::expect_error([&] { load_own_tasks({path("own.jsonl"), path("own.jsonl")}); }, "'own' is named twice");
}

TEST_F(OwnTasks, WordsOfTextsAreCountedAsPythonSplits) {
  const auto words = [&](const std::string& text) {  // in JSON
    write("text.jsonl", fmt::format(R"({{"text": "{}"}})", text));
    return load(path("text.jsonl")).items[0].words;
  };
  // len(re.split(r"\s+", text))
  EXPECT_EQ(words(""), 1);
  EXPECT_EQ(words("one"), 1);
  EXPECT_EQ(words(R"( one\n two)"), 3);
  EXPECT_EQ(words(R"(one\u00a0two \n)"), 3);
  EXPECT_EQ(words(R"( \n)"), 2);
}

}  // namespace
}  // namespace plumb
