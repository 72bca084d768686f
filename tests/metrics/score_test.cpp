// `plumb score` as a user meets it.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/paths.h"
#include "support/process.h"

namespace plumb {
namespace {

class Score : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) { write_file_atomic(folder_ / name, content); }
  test::Finished score(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "score");
    return test::run_plumb(arguments, folder_.path());
  }
  // With `input` as standard input.
  test::Finished score_input(const std::string& input, const std::string& reference) {
    write("input", input);
    const std::string command = "'" PLUMB_BINARY "' score " + reference + " < input";
    return test::Process("/bin/sh", {"-c", command}, folder_.path()).wait();
  }
  void expect_error(const test::Finished& finished, const std::string& message) {
    EXPECT_EQ(finished.status, 1);
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(finished.errors.substr(0, finished.errors.find('\n')), "plumb: error: " + message);
  }

  test::TemporaryDirectory folder_;
};

TEST_F(Score, PrintsTheTwoLinesOfSacrebleu) {
  write("reference", "a b c d e f\n");
  const test::Finished finished = score_input("a b c d x f\n", "reference");
  EXPECT_EQ(finished.status, 0) << finished.errors;
  // BLEU (5/6 · 3/5 · 2/4 · 1/3)^¼ = 53.7; chrF: precision and recall (5/6 + 3/5 + 2/4 + 1/3 + 0 + 0) / 6 = 37.8.
  EXPECT_EQ(finished.output,
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:plumb." PLUMB_VERSION
            " = 53.7 83.3/60.0/50.0/33.3 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)\n"
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:plumb." PLUMB_VERSION " = 37.8\n");
}

TEST_F(Score, WritesADocument) {
  write("first", "a b c d\n");
  write("second", "x y\n");
  write("translation", "A B C D\n");
  const test::Finished finished =
      score({"first", "second", "--hypothesis", "translation", "--lowercase", "--tokenize", "none", "--smoothing",
             "floor", "--chrf-word-order", "2", "--json", "score.json"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_EQ(finished.output, "");
  const Json document = read_json(folder_ / "score.json");
  EXPECT_EQ(document.at("schema"), "plumb.score/1");
  EXPECT_NEAR(document.at("bleu").get<double>(), 100, 1e-12);
  EXPECT_NEAR(document.at("chrf").get<double>(), 100, 1e-12);
  EXPECT_EQ(document.at("precisions"), (Json{100.0, 100.0, 100.0, 100.0}));
  EXPECT_EQ(document.at("brevity_penalty"), 1.0);
  EXPECT_EQ(document.at("system_length"), 4);
  EXPECT_EQ(document.at("reference_length"), 4);
  EXPECT_EQ(document.at("signature"),
            "nrefs:2|case:lc|eff:no|tok:none|smooth:floor[0.10]|version:plumb." PLUMB_VERSION);
  EXPECT_EQ(document.at("chrf_name"), "chrF2++");
  EXPECT_EQ(document.at("chrf_signature"), "nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:plumb." PLUMB_VERSION);
}

TEST_F(Score, AcceptsWindowsLineEndsAndAMissingLastOne) {
  write("reference", "a b c d\nä");
  const test::Finished finished = score_input(
      "\xEF\xBB\xBF"
      "a b c d\r\nä\r\n",
      "reference --json -");
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_NEAR(Json::parse(finished.output).at("bleu").get<double>(), 100, 1e-12);
}

TEST_F(Score, NamesFilesAndCountsThatDisagree) {
  write("reference", "a\nb\nc\n");
  write("translation", "a\nb\n");
  expect_error(score({"reference", "--hypothesis", "translation"}),
               "translation has 2 lines, but reference reference has 3");
  expect_error(score_input("a\n", "reference"), "standard input has 1 line, but reference reference has 3");
}

TEST_F(Score, NamesTheLineThatIsNotText) {
  write("good", "a\nb\n");
  write("bad", "a\n\xFF\n");
  expect_error(score({"bad", "--hypothesis", "good"}), "bad:2: not valid UTF-8");
  expect_error(score({"good", "--hypothesis", "bad"}), "bad:2: not valid UTF-8");
  expect_error(score_input("a\n\xFF\n", "good"), "standard input:2: not valid UTF-8");
}

TEST_F(Score, RejectsEmptyAndMissingInput) {
  write("reference", "a\n");
  write("empty", "");
  expect_error(score_input("", "reference"), "standard input is empty: there is nothing to score");
  expect_error(score({"reference", "--hypothesis", "empty"}), "empty is empty: there is nothing to score");
  expect_error(score({"absent", "--hypothesis", "reference"}), "absent: cannot be read: No such file or directory");
  expect_error(score({"reference", "--hypothesis", "absent"}), "absent: cannot be read: No such file or directory");
}

TEST_F(Score, KnowsWrongUsage) {
  write("text", "a\n");
  EXPECT_EQ(score({}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--tokenize", "13b"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--smoothing", "expo"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--chrf-word-order", "-1"}).status, 2);
}

}  // namespace
}  // namespace plumb
