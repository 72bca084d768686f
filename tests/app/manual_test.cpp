// Checks the man pages and the shell completions against `--help`: all contain every verb and every option.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <utility>

#include "plumb/base/config.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/key_list.h"
#include "plumb/model/config.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/run/config.h"
#include "plumb/study/config.h"
#include "support/errors.h"
#include "support/help.h"
#include "support/paths.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;
using WordSet = std::set<std::string>;

bool is_installed(const std::string& program) { return test::Process(program, {"--version"}).wait().status != 127; }

/// All matches of the first group.
WordSet matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  WordSet found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part)) text.erase(at, part.size());
  return text;
}

std::string replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

TEST(Help, SaysWhatEveryVerbAndOptionIsFor) {
  EXPECT_GE(test::all_help().size(), 20U);
  for (const auto& [verb, help] : test::all_help()) {
    EXPECT_EQ(help.options.count("--help"), 1U) << verb;
    EXPECT_EQ(help.options.contains("--device"), help.verbs.empty()) << verb;
    EXPECT_CONTAINS(help.text, "Usage: plumb" + (verb.empty() ? "" : ' ' + verb));
    EXPECT_EQ(help.headings.back(), help.verbs.empty() ? "Example" : "Options") << verb;
    const std::vector<std::string> lines = split(help.text, '\n');
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].starts_with("  plumb ") || lines[i].starts_with("  source ")) continue;  // an example
      size_t characters = 0;
      for (const char c : lines[i]) characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
      EXPECT_LE(characters, 100U) << lines[i];
      // The text of an entry starts in the text column, on the entry's line or the next.
      if (!lines[i].starts_with("  -")) continue;
      const bool beside = lines[i].size() > 28 && lines[i][27] == ' ' && lines[i][28] != ' ';
      const bool below = i + 1 < lines.size() && lines[i + 1].starts_with(std::string(28, ' '));
      EXPECT_TRUE(beside || below) << verb << ": " << lines[i];
    }
  }
}

class ManPages : public test::SharedFolder<ManPages> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    ASSERT_EQ(test::run_plumb({"man", "--out", (*folder_ / "man1").string()}).status, 0);
  }
  static fs::path page(const std::string& verb) {
    return *folder_ / "man1" / ("plumb" + (verb.empty() ? "" : '-' + replaced(verb, ' ', '-')) + ".1");
  }
};

TEST_F(ManPages, HaveEveryVerbAndEveryOption) {
  for (const auto& [verb, help] : test::all_help()) {
    const std::string text = read_file(page(verb));
    const size_t begin = text.find("\n.SH DESCRIPTION");
    ASSERT_NE(begin, std::string::npos) << verb;
    WordSet options;
    for (const std::string& line : split(text.substr(begin), '\n')) {
      if (!line.starts_with("\\fB\\-")) continue;
      for (const std::string& name : matches(line, R"((?:\\fB|, )((?:\\-)+[a-z](?:[a-z]|\\-)*))"))
        options.insert(without(name, "\\"));
    }
    EXPECT_EQ(options, help.options) << verb;
    for (const std::string& inner : help.verbs) {
      const std::string name = page(verb.empty() ? inner : verb + ' ' + inner).stem().string();
      EXPECT_CONTAINS(without(text, "\\"), "fB" + name + "fR(1)") << verb << ": " << name;
    }
  }
  size_t pages = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(*folder_ / "man1")) ++pages;
  EXPECT_EQ(pages, test::all_help().size());
}

TEST_F(ManPages, AreRoffWithoutAWarning) {
  if (!is_installed("groff")) GTEST_SKIP() << "groff is not installed";
  for (const auto& entry : fs::directory_iterator(*folder_ / "man1")) {
    const std::vector<std::string> words = {"-k", "-ww", "-man", "-P-cbou", "-Tutf8", entry.path().string()};
    const test::Finished groff = test::succeeded(test::Process("groff", words).wait());
    EXPECT_EQ(groff.errors, "") << entry.path();
    EXPECT_CONTAINS(groff.output, "EXIT STATUS") << entry.path();
  }
}

TEST_F(ManPages, ArePrintedOneByOne) {
  EXPECT_EQ(test::run_plumb({"man", "data", "prepare"}).output, read_file(page("data prepare")));
  EXPECT_EQ(test::run_plumb({"man"}).output, read_file(page("")));
  EXPECT_EQ(test::run_plumb({"man", "nonsense"}).status, 2);
}

// One declaration is read by people, in --help and the manual page, and by programs.
TEST_F(ManPages, HaveTheExitStatusesOfEveryVerb) {
  const Json program = Json::parse(test::run_plumb({"man", "--json", "-"}).output).at("program");
  std::map<std::string, std::set<int>> own;
  for (const Json& status : program.at("exit_statuses")) own[""].insert(status.at("status").get<int>());
  for (const Json& verb : program.at("verbs")) {
    const std::string name = verb.at("path").at(0).get<std::string>();
    for (const Json& status : verb.at("exit_statuses")) {
      const int number = status.at("status").get<int>();
      const std::string meaning = status.at("meaning").get<std::string>();
      own[name].insert(number);
      EXPECT_CONTAINS(test::all_help().at(name).text, fmt::format("  {:<26}{}\n", number, meaning));
      EXPECT_CONTAINS(without(read_file(page(name)), "\\"), fmt::format("; {} {}", number, meaning));
      EXPECT_CONTAINS(without(read_file(page("")), "\\"), fmt::format("{}: {}", name, meaning));
    }
  }
  const std::map<std::string, std::set<int>> expected = {{"", {0, 1, 2, 129, 130, 143}},
                                                         {"check", {3, 4}},
                                                         {"diff", {3}},
                                                         {"finetune", {3}},
                                                         {"judge", {3, 4}},
                                                         {"train", {3}}};
  EXPECT_EQ(own, expected);
}

class ShellCompletion : public ::testing::Test {
 protected:
  static std::string script(const std::string& shell) { return test::run_plumb({"completion", shell}).output; }

  /// Bash's completions of each of these command lines; the word to complete is the last one.
  static std::vector<WordSet> bash(const std::vector<std::vector<std::string>>& lines,
                                   const fs::path& directory = ".") {
    static const TemporaryDirectory folder;
    static const fs::path file = folder / "plumb.bash";
    if (!fs::exists(file)) write_file_atomic(file, script("bash"));
    std::string program = "COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'\nsource " + file.string() + '\n';
    for (const auto& line : lines) {
      program += "COMP_WORDS=(" + test::plumb_program();
      for (const std::string& word : line) program += " '" + word + '\'';
      program +=
          ")\nCOMP_CWORD=" + std::to_string(line.size()) + "\n_plumb\nprintf '%s\\n' \"${COMPREPLY[@]}\"\necho '#'\n";
    }
    const test::Finished finished = test::Process("bash", {"--norc", "-c", program}, directory).wait();
    EXPECT_EQ(finished.errors, "");
    std::vector<WordSet> replies(1);
    for (const std::string& line : split(finished.output, '\n')) {
      if (line == "#") {
        replies.emplace_back();
      } else if (!line.empty()) {
        replies.back().insert(line);
      }
    }
    replies.pop_back();
    EXPECT_EQ(replies.size(), lines.size());
    replies.resize(lines.size());
    return replies;
  }
  static WordSet bash_for(const std::vector<std::string>& line) { return bash({line}).front(); }
};

WordSet set_of(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }

TEST_F(ShellCompletion, OfBashProposesEveryVerbAndEveryOption) {
  std::vector<std::vector<std::string>> lines;
  for (const auto& [verb, help] : test::all_help()) {
    std::vector<std::string> words = verb.empty() ? std::vector<std::string>{} : split(verb, ' ');
    words.emplace_back("");
    lines.push_back(words);
    words.back() = "-";
    lines.push_back(words);
  }
  const std::vector<WordSet> replies = bash(lines);
  size_t i = 0;
  for (const auto& [verb, help] : test::all_help()) {
    if (!help.verbs.empty()) {
      EXPECT_EQ(replies[i], set_of(help.verbs)) << verb;
    }
    EXPECT_EQ(replies[i + 1], help.options) << verb;
    i += 2;
  }
}

TEST_F(ShellCompletion, OfBashProposesValues) {
  EXPECT_EQ(bash_for({"train", "--precision", ""}), (WordSet{"float32", "bf16"}));
  EXPECT_EQ(bash_for({"train", "--precision", "=", "b"}), (WordSet{"bf16"}));
  EXPECT_EQ(bash_for({"data", "prepare", "--tokenizer", "u"}), (WordSet{"unigram"}));
  EXPECT_EQ(bash_for({"bench", "train", "--residual", ""}), set_of(residual_schemes().names()));
  EXPECT_EQ(bash_for({"completion", ""}), (WordSet{"bash", "zsh", "fish"}));
  EXPECT_EQ(bash_for({"man", "synth"}), (WordSet{"synthesize"}));
  EXPECT_EQ(bash_for({"train", "--threads", ""}), WordSet{});
}

TEST_F(ShellCompletion, OfBashProposesKeysAndTheirValues) {
  WordSet keys;
  for (const KeyList::Key& key : list_keys(ModelConfig())) keys.insert("model." + key.name + '=');
  const WordSet proposed = bash_for({"train", "--set", "model."});
  for (const std::string& key : keys) EXPECT_EQ(proposed.count(key), 1U) << key;
  EXPECT_EQ(proposed.count("model.rotary.factor="), 1U) << "the option of a variant";
  // Bash has split the word at "=", and replaces the part after it with the reply.
  EXPECT_EQ(bash_for({"train", "--set", "model.norm", "="}), set_of(norms().names()));
  EXPECT_EQ(bash_for({"train", "--set", "train.optimizer", "=", "ad"}), (WordSet{"adafactor", "adam", "adamw"}));
  EXPECT_EQ(bash_for({"train", "--set", "model.parallel", "=", ""}), (WordSet{"true", "false"}));
  EXPECT_EQ(bash_for({"train", "--set", "collapse."}), WordSet{}) << "a key of studies";
  WordSet collapse;
  KeyList part;
  Options(study_parts().at("collapse").options).visit(part);
  for (const KeyList::Key& key : part.keys()) collapse.insert("collapse." + key.name + '=');
  EXPECT_EQ(bash_for({"study", "--set", "collapse."}), collapse);
  EXPECT_EQ(bash_for({"finetune", "--set", "finetune.unfreeze", "="}),
            (WordSet{"all", "gradual", "chain-thaw", "last"}));
  EXPECT_EQ(bash_for({"train", "--set", "finetune."}), WordSet{}) << "a key that only plumb finetune reads";
  EXPECT_EQ(bash_for({"train", "--set", "task.classification.direction", "="}), (WordSet{"forward", "backward"}));
}

/// What validation says about [train] with this key; "accepted" if nothing.
std::string complaint(const std::string& key, const std::string& value) {
  Config config;
  const std::string section = key.substr(0, key.find('.'));  // of an optimizer or a schedule factor
  if (optimizers().entries().contains(section)) config.set("train.optimizer=" + section);
  if (schedule_factors().entries().contains(section)) config.set("train.schedule=constant * " + section);
  config.set("train." + key + "=" + value);
  return test::message_of([&] {
    TrainConfig train;
    config.read("train", train);
    validate(train);
  });
}

// A key that refuses unknown values has values to propose, and these are accepted.
TEST_F(ShellCompletion, ProposesTheValuesThatValidationKnows) {
  int checked = 0;
  for (const KeyList::Key& key : list_keys(TrainConfig())) {
    if (!key.value.starts_with('"') || key.name == "schedule") continue;  // a product of factors
    const bool open = complaint(key.name, "nonsense").find("nonsense") == std::string::npos;
    if (open) continue;
    ++checked;
    const WordSet proposed = bash_for({"train", "--set", "train." + key.name, "="});
    EXPECT_FALSE(proposed.empty()) << key.name;
    for (const std::string& value : proposed)
      EXPECT_EQ(complaint(key.name, value), "accepted") << key.name << " = " << value;
  }
  EXPECT_GE(checked, 7);
}

/// Every value proposed for a key of a model is one that a model accepts.
TEST_F(ShellCompletion, ProposesValuesThatAreTaken) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> keys;
  for (const KeyList::Key& key : list_keys(ModelConfig())) {
    keys.push_back("model." + key.name);
    lines.push_back({"train", "--set", keys.back(), "="});
  }
  const std::vector<WordSet> replies = bash(lines);
  size_t tried = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (const std::string& value : replies[i]) {
      Config file;
      ModelConfig config;
      config.source_vocabulary = config.target_vocabulary = 40;
      if (keys[i] == "model.pooling" || keys[i] == "model.output_transform") config.kind = "encoder";
      if (keys[i] == "model.output_transform") config.pooling = "none";
      if (keys[i] == "model.encoder_residual" && value != "same") config.residual = value;  // ngpt needs ngpt
      if (value == "theory") config.heads = 1;
      file.set(keys[i] + '=' + value);
      try {
        file.read("model", config);
        if (config.kind == "encoder" && config.pooling != "none") config.labels = 2;
        validate(config);
      } catch (const Error& error) {
        ADD_FAILURE() << keys[i] << '=' << value << ": " << error.what();
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 50U);
}

TEST_F(ShellCompletion, OfBashProposesFilesAndDirectories) {
  const TemporaryDirectory folder;
  write_file_atomic(folder / "reference one.de", "a\n");
  fs::create_directory(folder / "run");
  const std::vector<WordSet> replies = bash({{"score", "ref"},
                                             {"data", "prepare", "--train", "x.de", "ref"},
                                             {"translate", ""},
                                             {"train", "--out", "r"},
                                             {"study", "layern"}},
                                            folder / ".");
  EXPECT_EQ(replies[0], (WordSet{"reference one.de"}));
  EXPECT_EQ(replies[1], (WordSet{"reference one.de"})) << "the second of two files";
  EXPECT_EQ(replies[2], (WordSet{"run"}));
  EXPECT_EQ(replies[3], (WordSet{"run"}));
  EXPECT_EQ(replies[4], (WordSet{"layernorm"}));
}

/// The answer to `plumb __complete SHELL WORDS…`, without its two lines for the script.
std::vector<std::string> candidates(std::vector<std::string> words) {
  words.insert(words.begin(), "__complete");
  const test::Finished finished = test::succeeded(test::run_plumb(words));
  std::vector<std::string> lines = split(finished.output, '\n');
  EXPECT_GE(lines.size(), 3U) << finished.output;
  return lines.size() < 3 ? lines : std::vector<std::string>(lines.begin() + 2, lines.end() - 1);
}

/// What stands before the separator in each line, and that something stands behind it.
WordSet described(const std::vector<std::string>& lines, char separator) {
  WordSet words;
  for (const std::string& line : lines) {
    const size_t end = line.find(separator);
    EXPECT_TRUE(end != std::string::npos && end + 1 < line.size()) << line;
    words.insert(line.substr(0, end));
  }
  return words;
}

TEST_F(ShellCompletion, OfZshAndFishDescribesEveryVerbAndEveryOption) {
  for (const auto& [shell, separator] : {std::pair{"zsh", ':'}, std::pair{"fish", '\t'}}) {
    for (const auto& [verb, help] : test::all_help()) {
      std::vector<std::string> words = verb.empty() ? std::vector<std::string>{} : split(verb, ' ');
      words.insert(words.begin(), shell);
      words.emplace_back("-");
      EXPECT_EQ(described(candidates(words), separator), help.options) << shell << ": " << verb;
      words.back() = "";
      if (!help.verbs.empty()) {
        EXPECT_EQ(described(candidates(words), separator), set_of(help.verbs)) << shell << ": " << verb;
      }
    }
  }
}

TEST_F(ShellCompletion, OfZshAndFishDescribesKeysAndProposesTheirValues) {
  EXPECT_EQ(candidates({"fish", "train", "--set", "model.d_m"}),
            std::vector<std::string>{"model.d_model=\tmodel width"});
  EXPECT_EQ(candidates({"zsh", "train", "--set", "model.d_m"}), std::vector<std::string>{"model.d_model=:model width"});
  EXPECT_EQ(candidates({"fish", "train", "--set", "model.norm=layer"}),
            std::vector<std::string>{"model.norm=layernorm"});
  EXPECT_EQ(candidates({"fish", "train", "--set=model.norm=layer"}),
            std::vector<std::string>{"--set=model.norm=layernorm"});
  EXPECT_EQ(candidates({"zsh", "train", "--precision=b"}), std::vector<std::string>{"--precision=bf16"});
}

TEST_F(ShellCompletion, ScriptsAreValid) {
  const TemporaryDirectory folder;
  for (const auto& [shell, check] :
       {std::pair{"bash", "-n"}, std::pair{"zsh", "-n"}, std::pair{"fish", "--no-execute"}}) {
    const std::string text = script(shell);
    EXPECT_CONTAINS(text, std::string("__complete ") + shell) << shell;
    if (!is_installed(shell)) continue;
    write_file_atomic(folder / shell, text);
    EXPECT_EQ(test::Process(shell, {check, (folder / shell).string()}).wait().errors, "") << shell;
  }
}

// Help, completion and wrong words are answered from what the build wrote, without loading LibTorch.
TEST(Manual, AnswersWithoutTheLibraries) {
  const fs::path build = fs::path(test::plumb_program()).parent_path(), manual = build / "manual" / "manual.json";
  ASSERT_TRUE(fs::exists(manual) && fs::last_write_time(manual) >= fs::last_write_time(build / "libplumb.so"))
      << manual << " is older than the library: build everything";
  const auto limited = [](const std::string& words) {  // the libraries need more address space
    return test::Process("sh", {"-c", "ulimit -v 200000; exec " + test::plumb_program() + " " + words}).wait();
  };
  EXPECT_EQ(limited("--help").output, test::all_help().at("").text);
  EXPECT_EQ(limited("help data prepare").output, test::all_help().at("data prepare").text);
  EXPECT_CONTAINS(limited("list norm").output, "layernorm");
  EXPECT_CONTAINS(limited("help Post-LN").output, "norm(x + dropout(f(x)))");
  EXPECT_CONTAINS(limited("help ResiDual").output, "residual-dual");
  EXPECT_CONTAINS(limited("help RMSNorm").output, "(model.norm)\n  rmsnorm");
  EXPECT_EQ(limited("__complete bash train --set model.d_m").output, "key\nmodel.d_m\nmodel.d_model=\n");
  const test::Finished wrong = limited("trian");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_CONTAINS(wrong.errors, "did you mean 'train'?");
}

}  // namespace
}  // namespace plumb
