// What the program says of itself: help, lists, its version and the configuration.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/run/config.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

using Words = std::vector<std::string>;

/// What standard output contains; "^" stands for its beginning.
TEST(CommandLineHelp, AnswersOnStandardOutput) {
  const std::vector<std::pair<Words, std::string>> answers = {
      {{"--version"}, "^plumb 0."},
      {{"--help"}, "score"},
      {{"--help"}, "Exit status: 0 "},
      {{"score", "--help"}, "Example:\n  plumb score "},
      {{"help", "version"}, "^plumb --version: Print the version and exit\n"},
      {{"data", "labels", "--help"}, "(default: 2)"},
      {{"help", "axis"}, "^[[study.axis]]\n# a key of [model] or [train]"},
      {{"help", "claim"}, "\nquantity = "},
      {{"help", "register"}, "^plumb study --register: Register the study's claims"},
      {{"help", "studies"}, "^plumb list studies: List the available variants with their equations and papers\n"},
      {{"help", "train.learning_rate"}, "^[train]\n# peak learning rate"},
      {{"help", "train.learning_rate"}, "\nlearning_rate = 0.0005\n"},
      {{"help", "norm"}, "one of batchnorm"},
      {{"config", "train.trouble"}, "^[train.trouble]\n"},
      {{"config", "study"}, "[training]"}};
  for (const auto& [words, text] : answers) {
    const Finished finished = test::succeeded(run_plumb(words));
    EXPECT_CONTAINS('^' + finished.output, text);
    EXPECT_EQ(finished.errors, "");
  }
  EXPECT_LACKS(run_plumb({"config", "train.trouble"}).output, "[model]");
}

TEST(CommandLineHelp, HasSeveralWordsForOneAnswer) {
  const std::vector<std::pair<Words, Words>> equal = {{{}, {"--help"}},
                                                      {{"help"}, {"--help"}},
                                                      {{"help", "help"}, {"--help"}},
                                                      {{"version"}, {"--version"}},
                                                      {{"help", "data", "text"}, {"data", "text", "--help"}},
                                                      {{"help", "study.axis"}, {"help", "axis"}},
                                                      {{"config", "study.axis"}, {"help", "axis"}},
                                                      {{"help", "lr"}, {"help", "learning_rate"}},
                                                      {{"list", "alarms"}, {"list", "alarm"}},
                                                      {{"list", "RMSNorm"}, {"help", "rmsnorm"}},
                                                      {{"list", "Post-Norm"}, {"help", "post-ln"}},
                                                      {{"list", "ResiDual", "--verbose"}, {"help", "residual-dual"}}};
  for (const auto& [words, others] : equal) {
    const Finished finished = test::succeeded(run_plumb(words));
    EXPECT_EQ(finished.output, run_plumb(others).output) << join(words, " ");
    EXPECT_NE(finished.output, "") << join(words, " ");
  }
}

TEST(CommandLineHelp, ConfigPrintsAConfigurationThatIsTheDefault) {
  const test::TemporaryDirectory directory;
  const Finished printed = run_plumb({"config"});
  EXPECT_EQ(printed.status, 0) << printed.errors;
  write_file_atomic(directory / "all.toml", printed.output);
  const Config config = Config::from_file(directory / "all.toml");
  const RunConfig read = read_run_config(config);
  EXPECT_EQ(to_toml(read), to_toml(RunConfig{}));
}

TEST(CommandLineHelp, StudyHelpNamesEveryStudy) {
  const std::string help = run_plumb({"study", "--help"}).output;
  size_t studies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_directory() / "studies")) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_CONTAINS(help, entry.path().stem().string()) << entry.path();
    ++studies;
  }
  EXPECT_GT(studies, 5U);
}

TEST(CommandLineHelp, ListsStudiesWithWhatTheyRead) {
  const std::string text = run_plumb({"list", "studies"}).output;
  const auto reads = [&](const std::string& study) {
    const size_t begin = text.find("Reads ", text.find(study));
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(reads("layernorm "), "Reads text that Plumb makes");
  EXPECT_EQ(reads("xiong_figure3 "), "Reads multi30k, which `plumb data get multi30k --out multi30k` downloads");
  EXPECT_EQ(reads("bert_warmup "), "Reads general.txt, plain text of yours: --set 'data.train=[\"FILE\"]'");
}

}  // namespace
}  // namespace plumb
