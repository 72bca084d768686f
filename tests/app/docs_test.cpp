// Compares the documentation with the code: commands, keys and their defaults, registered names, and links.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/key_list.h"
#include "plumb/base/text.h"
#include "plumb/model/config.h"
#include "plumb/nn/lora.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/optimizer.h"
#include "plumb/study/config.h"
#include "plumb/trouble/trouble.h"
#include "support/help.h"
#include "support/paths.h"

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

// Every section of a configuration has a table of its keys with defaults, meanings and what values they may have.
TEST(Documentation, HasEveryKeyWithItsDefault) {
  const test::Finished printed = test::succeeded(
      test::run_plumb({"list", "--tables", (test::source_directory() / "docs/configuration.md").string()}));
  EXPECT_EQ(document("docs/configuration.md"), printed.output) << "write it anew with `make variants`";
  std::string heading;
  for (const std::string& line : split(printed.output, '\n')) {
    if (line.starts_with('#')) heading = line;
    EXPECT_FALSE(heading.starts_with("### [") && line.ends_with("` | |")) << heading << ": " << line;
  }
  EXPECT_CONTAINS(section(printed.output, "### [train]"), "\n| `steps` | `10000` | ");
}

// Each table is compared with what the struct's `describe` says, not with the list of sections that the program has.
TEST(Documentation, TablesHaveTheKeysOfTheirStructs) {
  const auto expect_keys = [](const std::string& heading, const std::vector<KeyList::Key>& keys) {
    const std::string table = section(document("docs/configuration.md"), heading);
    for (const KeyList::Key& key : keys) {
      if (key.name.find('.') != std::string::npos) continue;  // of a nested section
      EXPECT_CONTAINS(table, fmt::format("\n| `{}` | `{}` | ", key.name, key.value)) << heading << ": " << key.name;
    }
  };
  expect_keys("### [model]", list_keys(ModelConfig()));
  expect_keys("### [model.lora]", list_keys(LoraOptions()));
  expect_keys("### [train.trouble]", list_keys(TroubleConfig()));
  expect_keys("### [[train.groups]]", list_keys(ParameterGroup()));
  for (const std::string& part : study_part_names()) {
    KeyList keys;
    Options(study_parts().at(part).options).visit(keys);
    expect_keys("### [" + part + "]", keys.keys());
  }
}

TEST(Documentation, AKeyThatHasNoTableIsAnError) {
  const test::TemporaryDirectory folder;
  std::string page = document("docs/configuration.md");
  page.replace(page.find("### [watch]"), 11, "### [wacth]");
  write_file_atomic(folder / "page.md", page);
  const test::Finished printed = test::run_plumb({"list", "--tables", (folder / "page.md").string()});
  EXPECT_EQ(printed.status, 1);
  EXPECT_CONTAINS(printed.errors, "no section of a configuration is called [wacth]");
}

// A table whose rows are wrong is put right, and what stands around it stays.
TEST(Documentation, TablesAreWrittenAnewInPlace) {
  const test::TemporaryDirectory folder;
  const std::string page = document("docs/configuration.md");
  std::string changed = page;
  const size_t row = changed.find("| `learning_rate` | `");
  ASSERT_NE(row, std::string::npos);
  changed.erase(row, changed.find('\n', row) + 1 - row);
  write_file_atomic(folder / "page.md", changed);
  EXPECT_EQ(test::run_plumb({"list", "--tables", (folder / "page.md").string()}).output, page);
}

// So a new part needs no edit of the page.
TEST(Documentation, APartWithoutASectionGetsOne) {
  const test::TemporaryDirectory folder;
  const std::string page = document("docs/configuration.md"), own = section(page, "### [depth]");
  std::string without = page;
  without.erase(without.find(own), own.size() + 1);
  write_file_atomic(folder / "page.md", without);
  EXPECT_EQ(test::run_plumb({"list", "--tables", (folder / "page.md").string()}).output, without + "\n" + own);
}

TEST(Documentation, VariantsAreWhatTheRegistriesSay) {
  EXPECT_EQ(document("docs/variants.md"), test::run_plumb({"list", "--markdown"}).output)
      << "write it anew with `make variants`";
}

// A registry that `plumb list` does not know is one of those that no configuration and no option selects from.
TEST(Documentation, ListsEveryRegistry) {
  const std::set<std::string> others = {"families", "foreign_models", "study_parts", "tokenizer_kinds"};
  const std::string listed = document("apps/plumb/variants.cpp");
  const std::regex declaration(R"(Registry<\w+>& (\w+)\(\);)");
  size_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::source_directory() / "src/plumb")) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), declaration), end; match != end; ++match, ++found) {
      const std::string name = (*match)[1];
      EXPECT_NE(listed.find(", " + name + "())") != std::string::npos, others.contains(name)) << name;
    }
  }
  EXPECT_GT(found, 15U);
}

TEST(Documentation, ListsEveryVariantWithItsOptions) {
  const Json json = Json::parse(test::run_plumb({"list", "--json", "-"}).output);
  EXPECT_GE(json["kinds"].size(), 16U);
  for (const Json& kind : json["kinds"]) {
    EXPECT_FALSE(kind["variants"].empty()) << kind["kind"];
    EXPECT_FALSE(kind["key"].get<std::string>().empty()) << kind["kind"];
    for (const Json& variant : kind["variants"]) {
      for (const Json& option : variant.value("options", Json::array()))
        EXPECT_FALSE(option["meaning"].get<std::string>().empty()) << option["key"];
    }
  }
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
    EXPECT_CONTAINS(table, "\n| `plumb " + verb + "` |") << verb;
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
      EXPECT_CONTAINS(source, code) << page << ":\n" << code;
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
      EXPECT_CONTAINS(page, start) << "docs/building.md has no row" << start;
    }
    EXPECT_GT(found, 3) << file;
  };
  expect_rows("Makefile", "^(?!help)([a-z-]+):.*## ", "\n| `make {}` | ");
  expect_rows("CMakeLists.txt", "^(?:option|set(?=\\(PLUMB_\\w+ \\S+ CACHE))\\((PLUMB_[A-Z_]+)", "\n| `{}` | ");
}

TEST(Documentation, ShowsTheExamplesThatAreTested) {
  std::string examples;
  for (const std::string name : {"CMakeLists.txt", "spectrum.cpp", "plugin/absolute.cpp", "training.cpp"})
    examples += document("examples/" + name);
  examples += document("tests/nn/extending_test.cpp");
  expect_quoted("docs/library.md", examples, {"cpp", "cmake"});
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
  std::vector<fs::path> pages = {root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md",
                                 root / "SECURITY.md"};
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
