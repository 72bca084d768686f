// Compares the documentation with the code: commands, keys and their defaults, registered names, and links.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/key_list.h"
#include "plumb/base/text.h"
#include "plumb/evaluate/metrics.h"
#include "plumb/evaluate/task.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/run/watch.h"
#include "plumb/study/config.h"
#include "plumb/train/finetune.h"
#include "support/help.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::string document(const std::string& name) { return read_file(test::source_directory() / name); }

/// The part of a document from a heading to the next one of any level.
std::string section(const std::string& text, const std::string& heading) {
  const size_t begin = text.find(heading + '\n');
  EXPECT_NE(begin, std::string::npos) << "no heading '" << heading << "'";
  if (begin == std::string::npos) return {};
  const size_t end = text.find("\n#", begin + 1);
  return text.substr(begin, end - begin);
}

/// Every key of a section is in the table under `heading`, with its default; keys of nested sections are skipped.
template <typename T>
void expect_keys(const std::string& heading, const T& defaults) {
  const std::string table = section(document("docs/configuration.md"), heading);
  int keys = 0;
  for (const KeyList::Key& key : list_keys(defaults)) {
    if (key.name.find('.') != std::string::npos) continue;
    const std::string row = fmt::format("\n| `{}` | `{}` |", key.name, key.value);
    EXPECT_NE(table.find(row), std::string::npos) << "under '" << heading << "' there is no row" << row;
    ++keys;
  }
  EXPECT_GT(keys, 0) << heading;
  int rows = -1;  // do not count the table's header
  for (const std::string& line : split(table, '\n')) rows += line.starts_with("| ") && !line.starts_with("| ---");
  EXPECT_EQ(rows, keys) << "rows under '" << heading << "', and keys";
}

/// Every name of a registry has a row in the section under `heading`, and every option is listed with its meaning.
template <typename Factory>
void expect_names(const std::string& heading, const Registry<Factory>& registry) {
  const std::string table = section(document("docs/variants.md"), heading);
  EXPECT_FALSE(registry.names().empty()) << registry.kind();
  for (const std::string& name : registry.names()) {
    EXPECT_NE(table.find("\n| `" + name + "` |"), std::string::npos) << registry.kind() << " '" << name << "'";
    KeyList options;
    Options(registry.at(name).options).visit(options);
    for (const KeyList::Key& option : options.keys()) {
      EXPECT_FALSE(option.meaning.empty()) << name << '.' << option.name;
      const std::string row = fmt::format(".{}.{}` | `{}` | {} |\n", name, option.name, option.value, option.meaning);
      EXPECT_NE(table.find(row), std::string::npos) << "under '" << heading << "' there is no row " << row;
    }
  }
}

TEST(Documentation, HasEveryKeyWithItsDefault) {
  expect_keys("### [model]", ModelConfig());
  expect_keys("### [model.lora]", LoraOptions());
  expect_keys("### [train]", TrainConfig());
  expect_keys("### [train.trouble]", TroubleConfig());
  expect_keys("### [[train.groups]]", ParameterGroup());
  expect_keys("### [[train.corpora]]", CorpusWeight());
  expect_keys("### [task]", TaskConfig());
  expect_keys("### [watch]", WatchConfig());
  expect_keys("### [finetune]", FinetuneConfig());
  expect_keys("### [study]", StudyHead());
  expect_keys("### [data] of a study", StudyData());
  expect_keys("### [[training.arm]]", TrainingArm());
  expect_keys("### [[transfer.model]]", TransferModel());
  StudyConfig study;
  for_each_part(study, [](const std::string& name, const auto& part) {
    expect_keys("### [" + name + "]", typename std::decay_t<decltype(part)>::value_type());
  });
}

TEST(Documentation, VariantsAreWhatTheRegistriesSay) {
  const std::string printed = test::run_plumb({"list", "--markdown"}).output;
  EXPECT_EQ(document("docs/variants.md"), printed) << "write it anew with `make variants`";
  expect_names("## Residual schemes: `model.residual`", residual_schemes());
  expect_names("## Norms: `model.norm`", norms());
  expect_names("## Positions: `model.positions`", positions());
  expect_names("## Attention: `model.attention`", attentions());
  expect_names("## Feed-forward sub-layers: `model.activation`", feed_forwards());
  expect_names("## Initializations: `model.initialization`", initializations());
  expect_names("## Pooling: `model.pooling`", poolings());
  expect_names("## Optimizers: `train.optimizer`", optimizers());
  expect_names("## Schedule factors: `train.schedule`", schedule_factors());
  expect_names("## Tasks: `task.name`", tasks());
  expect_names("## Watches: `watch.what`", watches());
  expect_names("## BLEU tokenizers: `plumb score --tokenize`", bleu_tokenizers());
  expect_names("## BLEU smoothings: `plumb score --smoothing`", bleu_smoothings());
  expect_names("## Evaluation tasks: `plumb evaluate --tasks`", evaluation_tasks());
  expect_names("## Evaluation metrics: `plumb evaluate`", evaluation_metrics());
}

TEST(Documentation, ListsOptionsAsJson) {
  const Json json = Json::parse(test::run_plumb({"list", "optimizer", "--json", "-"}).output);
  for (const Json& variant : json["kinds"][0]["variants"]) {
    KeyList options;
    Options(optimizers().at(variant["name"].get<std::string>()).options).visit(options);
    ASSERT_EQ(variant.value("options", Json::array()).size(), options.keys().size());
    for (size_t i = 0; i < options.keys().size(); ++i) {
      EXPECT_EQ(variant["options"][i]["key"],
                "train." + variant["name"].get<std::string>() + "." + options.keys()[i].name);
      EXPECT_EQ(variant["options"][i]["default"], options.keys()[i].value);
      EXPECT_EQ(variant["options"][i]["meaning"], options.keys()[i].meaning);
    }
  }
}

TEST(Documentation, ListsAsJson) {
  const Json json = Json::parse(test::run_plumb({"list", "norm", "--json", "-"}).output);
  ASSERT_EQ(json["kinds"].size(), 1U);
  const Json& kind = json["kinds"][0];
  EXPECT_EQ(kind["key"].get<std::string>(), "model.norm");
  EXPECT_EQ(kind["variants"].size(), norms().names().size());
  for (const Json& variant : kind["variants"]) {
    EXPECT_EQ(variant["equation"].get<std::string>(), norms().at(variant["name"].get<std::string>()).summary);
  }
}

TEST(Documentation, HasEveryVerb) {
  const std::string table = section(document("docs/command-line.md"), "## Commands");
  EXPECT_GE(test::all_help().size(), 20U);
  for (const auto& [verb, help] : test::all_help()) {
    if (!help.verbs.empty()) continue;  // a group of verbs
    EXPECT_NE(table.find("\n| `plumb " + verb + "` |"), std::string::npos) << verb;
  }
}

/// Every fenced block of these languages in a page occurs verbatim in `source`.
void expect_quoted(const std::string& page, const std::string& source, const std::vector<std::string>& languages) {
  const std::string text = document(page);
  for (const std::string& language : languages) {
    const std::string fence = "```" + language + '\n';
    size_t blocks = 0;
    for (size_t begin = text.find(fence); begin != std::string::npos; begin = text.find(fence, begin + 1), ++blocks) {
      const size_t end = text.find("```", begin + fence.size());
      const std::string code = text.substr(begin + fence.size(), end - begin - fence.size());
      EXPECT_NE(source.find(code), std::string::npos) << page << ":\n" << code;
    }
    EXPECT_GT(blocks, 0U) << page << ", " << language;
  }
}

TEST(Documentation, HasEveryTargetOfMakeAndEveryOptionOfTheBuild) {
  const std::string page = document("docs/building.md");
  const auto expect_rows = [&](const std::string& file, const char* pattern, const char* row) {
    const std::string text = document(file);
    const std::regex names(pattern, std::regex::multiline);
    int found = 0;
    for (std::sregex_iterator name(text.begin(), text.end(), names), end; name != end; ++name, ++found) {
      const std::string start = fmt::format(fmt::runtime(row), (*name)[1].str());
      EXPECT_NE(page.find(start), std::string::npos) << "docs/building.md has no row" << start;
    }
    EXPECT_GT(found, 3) << file;
  };
  expect_rows("Makefile", "^(?!help)([a-z-]+):.*## ", "\n| `make {}` | ");
  expect_rows("CMakeLists.txt", "^(?:option|set(?=\\(PLUMB_\\w+ \\S+ CACHE))\\((PLUMB_[A-Z_]+)", "\n| `{}` | ");
}

TEST(Documentation, ShowsTheExamplesThatAreTested) {
  std::string examples;
  for (const std::string name : {"CMakeLists.txt", "spectrum.cpp", "norm.cpp", "training.cpp"})
    examples += document("examples/" + name);
  expect_quoted("docs/library.md", examples, {"cpp", "cmake"});
  expect_quoted("docs/extending.md", document("tests/nn/extending_test.cpp"), {"cpp"});
}

/// A page without its fenced blocks, in which lambdas would look like links.
std::string prose(const std::string& text) {
  std::string kept;
  bool code = false;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("```")) code = !code;
    if (!code) kept += line + '\n';
  }
  return kept;
}

TEST(Documentation, LinksToWhatExists) {
  const fs::path root = test::source_directory();
  std::vector<fs::path> pages = {root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  const std::regex link(R"((?:^|[^!])\[[^\]]*\]\(([^)#:]+)(?:#[^)]*)?\))");  // not images
  size_t links = 0;
  for (const fs::path& page : pages) {
    const std::string text = prose(read_file(page));
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match, ++links) {
      EXPECT_TRUE(fs::exists(page.parent_path() / (*match)[1].str())) << page << " links to " << (*match)[1];
    }
  }
  EXPECT_GT(links, 10U);
}

}  // namespace
}  // namespace plumb
