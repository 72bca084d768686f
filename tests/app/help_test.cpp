// What the program says of itself: help, lists, its version and the configuration.
#include <gtest/gtest.h>

#include "plumb/run/config.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

TEST(CommandLineHelp, NamesItsVersion) {
  const Finished finished = test::succeeded(run_plumb({"--version"}));
  EXPECT_TRUE(finished.output.starts_with("plumb 0.")) << finished.output;
  EXPECT_EQ(finished.errors, "");
}

TEST(CommandLineHelp, HelpGoesToStandardOutput) {
  const Finished finished = test::succeeded(run_plumb({"--help"}));
  EXPECT_CONTAINS(finished.output, "score");
  EXPECT_EQ(finished.errors, "");
}

TEST(CommandLineHelp, HelpOfAVerbHasAnExample) {
  const Finished finished = test::succeeded(run_plumb({"score", "--help"}));
  EXPECT_CONTAINS(finished.output, "Example:\n  plumb score ");
}

TEST(CommandLineHelp, HelpIsAVerbToo) {
  EXPECT_EQ(run_plumb({"help"}).output, run_plumb({"--help"}).output);
  EXPECT_EQ(run_plumb({"help", "data", "text"}).output, run_plumb({"data", "text", "--help"}).output);
  EXPECT_EQ(run_plumb({"help", "trian"}).errors,
            "plumb: error: unknown command, key or option 'trian'\nhint: did you mean 'train'?\n");
}

TEST(CommandLineHelp, HelpFindsSectionsOptionsAndArguments) {
  const auto help = [](const std::string& word) { return run_plumb({"help", word}).output; };
  EXPECT_EQ(help("axis").find("[[study.axis]]\n# a key of [model] or [train]"), 0U) << help("axis");
  EXPECT_EQ(help("study.axis"), help("axis"));
  EXPECT_EQ(run_plumb({"config", "study.axis"}).output, help("axis"));
  EXPECT_CONTAINS(help("claim"), "\nquantity = ");
  EXPECT_EQ(help("register").find("plumb study --register: Register the study's claims"), 0U) << help("register");
  EXPECT_EQ(help("studies"), "plumb list studies: List the available variants with their equations and papers\n");
  EXPECT_CONTAINS(run_plumb({"help", "learnign_rate"}).errors, "did you mean 'learning_rate'?");
}

TEST(CommandLineHelp, ListsAKindByItsPluralToo) {
  EXPECT_EQ(run_plumb({"list", "alarms"}).output, run_plumb({"list", "alarm"}).output);
}

TEST(CommandLineHelp, HelpExplainsKeysToo) {
  const std::string rate = run_plumb({"help", "train.learning_rate"}).output;
  EXPECT_EQ(rate.find("[train]\n# peak learning rate"), 0U) << rate;
  EXPECT_CONTAINS(rate, "\nlearning_rate = 0.0005\n");
  EXPECT_EQ(run_plumb({"help", "lr"}).output, run_plumb({"help", "learning_rate"}).output);
  EXPECT_CONTAINS(run_plumb({"help", "norm"}).output, "one of batchnorm");
  EXPECT_EQ(run_plumb({"help", "nonsense"}).status, 2);
}

TEST(CommandLineHelp, ConfigPrintsAConfigurationThatIsTheDefault) {
  const test::TemporaryDirectory directory;
  const Finished printed = run_plumb({"config"});
  EXPECT_EQ(printed.status, 0) << printed.errors;
  write_file_atomic(directory / "all.toml", printed.output);
  const Config config = Config::from_file(directory / "all.toml");
  const RunConfig read = read_run_config(config);
  EXPECT_EQ(to_toml(read), to_toml(RunConfig{}));

  const std::string part = run_plumb({"config", "train.trouble"}).output;
  EXPECT_EQ(part.find("[train.trouble]\n"), 0U) << part;
  EXPECT_LACKS(part, "[model]");
  EXPECT_CONTAINS(run_plumb({"config", "study"}).output, "[training]");
  const Finished wrong = run_plumb({"config", "trian"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_CONTAINS(wrong.errors, "did you mean 'train'?");
}

TEST(CommandLineHelp, WithoutWordsItPrintsHelp) {
  const Finished finished = run_plumb({});
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(finished.output, run_plumb({"--help"}).output);
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

TEST(CommandLineHelp, HelpNamesTheExitStatuses) { EXPECT_CONTAINS(run_plumb({"--help"}).output, "Exit status: 0 "); }

}  // namespace
}  // namespace plumb
