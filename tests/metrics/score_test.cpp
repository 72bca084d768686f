// `plumb score` from the command line.
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
    const std::string command = "'" + test::plumb_program() + "' score " + reference + " < input";
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

// What follows the file of --hypothesis is a reference, not another system.
TEST_F(Score, ReferencesMayFollowAHypothesis) {
  write("first", "a b c d\n");
  write("second", "x y\n");
  write("translation", "a b c d\n");
  const test::Finished finished = score({"--hypothesis", "translation", "first", "second"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_EQ(finished.output, score({"first", "second", "--hypothesis", "translation"}).output);
  EXPECT_CONTAINS(finished.output, "nrefs:2");
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

TEST_F(Score, PutsSeveralSystemsInATable) {
  write("reference", "a b c d e f\n");
  write("base", "a b c d x f\n");
  write("new", "a b c d e f\n");
  const test::Finished finished =
      score({"reference", "--hypothesis", "base", "--hypothesis", "new", "--metrics", "bleu,chrf"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_EQ(finished.output,
            "system   BLEU  chrF2\n"
            "base     53.7   37.8\n"  // n-grams of 1 to 6 letters: (5/6 + 3/5 + 2/4 + 1/3)/6
            "new     100.0  100.0\n"
            "\n"
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:plumb." PLUMB_VERSION
            "\n"
            "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:plumb." PLUMB_VERSION "\n");
}

TEST_F(Score, TestsSystemsAgainstTheFirst) {
  std::string reference;
  std::string base;
  std::string better;
  for (int i = 0; i < 40; ++i) {
    reference += "a b c d e f g h\n";
    base += i % 2 == 0 ? "a b c x e f g h\n" : "a b c d e f g y\n";
    better += i % 4 == 0 ? "a b c x e f g h\n" : "a b c d e f g h\n";
  }
  write("reference", reference);
  write("base", base);
  write("same", base);
  write("better", better);
  for (const std::string test : {"bootstrap", "randomization"}) {
    const test::Finished finished =
        score({"reference", "--hypothesis", "base", "--hypothesis", "same", "--hypothesis", "better", "--paired", test,
               "--metrics", "bleu,chrf", "--samples", "500", "--trials", "600", "--seed", "7", "--json", "-"});
    EXPECT_EQ(finished.status, 0) << finished.errors;
    const Json document = Json::parse(finished.output);
    EXPECT_EQ(document.at("paired"), test);
    EXPECT_EQ(document.at("seed"), 7);
    EXPECT_EQ(document.value("samples", 0), test == "bootstrap" ? 500 : 0);
    EXPECT_EQ(document.value("trials", 0), test == "randomization" ? 600 : 0);
    ASSERT_EQ(document.at("systems").size(), 3U);
    for (const Json& metric : document.at("metrics")) {
      const auto key = metric.at("metric").get<std::string>();
      const auto of_system = [&](size_t i) -> const Json& { return document.at("systems").at(i).at(key); };
      const std::string resampling = test == "bootstrap" ? "nrefs:1|bs:500|seed:7|" : "nrefs:1|ar:600|seed:7|";
      EXPECT_EQ(metric.at("signature").get<std::string>().find(resampling), 0U) << metric;
      EXPECT_FALSE(of_system(0).contains("p_value"));
      EXPECT_EQ(of_system(1).at("difference"), 0.0);
      EXPECT_EQ(of_system(1).at("p_value"), 1.0);
      EXPECT_LT(of_system(2).at("p_value").get<double>(), 0.01);
      EXPECT_GT(of_system(2).at("difference").get<double>(), 0);
      EXPECT_EQ(of_system(2).contains("interval"), test == "bootstrap");
      EXPECT_EQ(of_system(2).contains("difference_interval"), test == "bootstrap");
    }
  }
  const test::Finished finished = score(
      {"reference", "--hypothesis", "base", "--hypothesis", "better", "--paired", "randomization", "--confidence"});
  EXPECT_CONTAINS(finished.output, "|bs:1000|ar:10000|seed:1|");
  EXPECT_CONTAINS(finished.output, "system  score  95% interval  difference  95% interval       p\n");
  EXPECT_CONTAINS(finished.output, "against base, by approximate randomization with 10,000 trials.");
}

TEST_F(Score, GivesTheIntervalOfOneSystem) {
  write("reference", "a b c d e f\na b c d e g\n");
  write("translation", "a b c d x f\na b c d e g\n");
  const test::Finished finished =
      score({"reference", "--hypothesis", "translation", "--confidence", "--samples", "200"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_CONTAINS(finished.output, "|bs:200|seed:1|");
  EXPECT_CONTAINS(finished.output, " (μ = ");
  write("reference", "a\n");
  write("translation", "a\n");
  expect_error(score({"reference", "--hypothesis", "translation", "--confidence"}), "a bootstrap of 1 sentence");
}

TEST_F(Score, GivesTheScoreOfEachSentence) {
  write("reference", "a b c d\na b\nx\n");
  write("translation", "a b c d\na b\na\n");
  const test::Finished finished =
      score({"reference", "--hypothesis", "translation", "--metrics", "bleu,chrf", "--sentences"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  // BLEU of the second sentence is of order 2.
  EXPECT_EQ(finished.output.substr(0, finished.output.find("\n\n")),
            "line\tBLEU\tchrF2\n1\t100.0\t100.0\n2\t100.0\t100.0\n3\t0.0\t0.0");
  const Json document =
      Json::parse(score({"reference", "--hypothesis", "translation", "--sentences", "--json", "-"}).output);
  EXPECT_EQ(document.at("systems").at(0).at("bleu").at("sentences").size(), 3U);
  EXPECT_EQ(document.at("systems").at(0).at("chrf").at("sentences").size(), 3U);
}

TEST_F(Score, TakesTheOptionsOfTheMetrics) {
  write("reference", "小船，a b\n");
  write("translation", "小船，A b \n");
  const test::Finished finished = score({"reference",
                                         "--hypothesis",
                                         "translation",
                                         "--metrics",
                                         "bleu,chrf",
                                         "--tokenize",
                                         "zh",
                                         "--order",
                                         "2",
                                         "--effective-order",
                                         "--smoothing",
                                         "add-k",
                                         "--smoothing-value",
                                         "0.5",
                                         "--chrf-character-order",
                                         "3",
                                         "--chrf-beta",
                                         "1",
                                         "--chrf-whitespace",
                                         "--chrf-epsilon-smoothing"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  // BLEU: 小 船 ， A b, words 4 of 5, bigrams 2.5 of 4.5. White space at the end of a line does not count.
  EXPECT_EQ(finished.output,
            "BLEU|nrefs:1|case:mixed|eff:yes|tok:zh|smooth:add-k[0.50]|order:2|version:plumb." PLUMB_VERSION
            " = 66.7 80.0/55.6 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)\n"
            "chrF1|nrefs:1|case:mixed|eff:no|nc:3|nw:0|space:yes|version:plumb." PLUMB_VERSION " = 56.1\n");
}

TEST_F(Score, NamesTheSystemWithTheWrongNumberOfLines) {
  write("reference", "a\nb\nc\n");
  write("short", "a\nb\n");
  expect_error(score({"reference", "--hypothesis", "reference", "--hypothesis", "short", "--paired", "bootstrap"}),
               "short has 2 lines, but reference reference has 3");
}

TEST_F(Score, KnowsWrongUsage) {
  write("text", "a\n");
  EXPECT_EQ(score({}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--tokenize", "13b"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--smoothing", "expo"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--chrf-word-order", "-1"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--metrics", "bleu,meteor"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--metrics", "bleu,bleu"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--paired", "bootstrap"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--hypothesis", "text", "--paired", "t-test"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "-", "--hypothesis", "-"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--order", "0"}).status, 2);
  EXPECT_EQ(score({"text", "--hypothesis", "text", "--samples", "0"}).status, 2);
}

}  // namespace
}  // namespace plumb
