// Several corpora in one data directory.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare.h"
#include "plumb/data/prepare_text.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using CorpusSizes = std::vector<CorpusSize>;

class PrepareSeveral : public testing::Test {
 protected:
  PrepareSeveral() { pairs_.tokenizer.vocabulary = text_.tokenizer.vocabulary = 50; }

  fs::path file(const std::string& name, const Strings& lines) {
    std::string content;
    for (const std::string& line : lines) content += line + "\n";
    write_file_atomic(directory_ / name, content);
    return directory_ / name;
  }
  /// "WORD 0", "WORD 1", …
  static Strings numbered(const std::string& word, int count) {
    Strings lines;
    for (int i = 0; i < count; ++i) lines.push_back(word + " " + std::to_string(i));
    return lines;
  }
  /// Has more words, and thus tokens, than the length limits below.
  static std::string many_words() {
    std::string line;
    for (int i = 0; i < 100; ++i) line += "so ";
    return line;
  }
  CorpusFiles pair_of(const std::string& name, const Strings& sources, const Strings& targets) {
    return {file(name + ".de", sources), file(name + ".en", targets)};
  }
  void add_pairs(const std::string& name, int count) {
    pairs_.corpora.emplace_back(name, pair_of(name, numbered("Satz " + name, count), numbered("line " + name, count)));
  }
  std::string refused(bool text = false) {
    const std::string message = test::message_of([&] {
      if (text) {
        prepare_text(text_, directory_ / "out");
      } else {
        prepare_data(pairs_, directory_ / "out");
      }
    });
    EXPECT_FALSE(fs::exists(directory_ / "out"));
    return message;
  }

  test::TemporaryDirectory directory_;
  PrepareOptions pairs_;
  TextOptions text_;
};

TEST_F(PrepareSeveral, PairsAreOneSplitThatKnowsWhereEachComesFrom) {
  add_pairs("web", 40);
  Strings sources = numbered("Satz", 12), targets = numbered("talk", 12);
  sources[3] = "";            // dropped
  targets[7] = many_words();  // too long
  pairs_.corpora.emplace_back("talks", pair_of("talks", sources, targets));
  pairs_.valid = pair_of("valid", {"Satz 1"}, {"line 1"});
  pairs_.length_limit = 60;
  const Json info = prepare_data(pairs_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  EXPECT_EQ(data.split_names(), (Strings{"train", "valid"}));
  EXPECT_EQ(data.split("train").corpora(), (CorpusSizes{{"web", 40}, {"talks", 10}}));
  EXPECT_TRUE(data.split("valid").corpora().empty());
  Strings expected = numbered("line web", 40);
  for (size_t i = 0; i < targets.size(); ++i)
    if (i != 3 && i != 7) expected.push_back(targets[i]);
  EXPECT_EQ(data.raw_target("train"), expected);
  const Json& inputs = info["inputs"]["train"];
  ASSERT_EQ(inputs.size(), 4U);
  EXPECT_EQ(inputs[1]["file"], (directory_ / "web.en").string());
  EXPECT_EQ(inputs[1]["corpus"], "web");
  EXPECT_EQ(inputs[2]["corpus"], "talks");
}

TEST_F(PrepareSeveral, PairsAreHeldOutOfAll) {
  add_pairs("web", 300);
  add_pairs("talks", 100);
  pairs_.valid_size = 60;
  prepare_data(pairs_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  const Strings trained = data.raw_target("train"), held = data.raw_target("valid");
  ASSERT_EQ(trained.size(), 340U);
  ASSERT_EQ(held.size(), 60U);
  const auto of_web = [](const Strings& lines) {
    return std::count_if(lines.begin(), lines.end(),
                         [](const std::string& line) { return line.starts_with("line web"); });
  };
  EXPECT_EQ(data.split("train").corpora(), (CorpusSizes{{"web", of_web(trained)}, {"talks", 340 - of_web(trained)}}));
  EXPECT_EQ(of_web(trained) + of_web(held), 300);
  EXPECT_GT(of_web(held), 0);
  EXPECT_LT(of_web(held), 60);
  const std::set<std::string> known(trained.begin(), trained.end());
  for (const std::string& line : held) EXPECT_FALSE(known.contains(line));
}

TEST_F(PrepareSeveral, ABlockHasTextOfOneCorpus) {
  text_.corpora = {{"a", file("a.txt", numbered("one", 30))}, {"b", file("b.txt", numbered("two", 20))}};
  text_.valid = file("valid.txt", {"one two"});
  text_.block = 7;
  prepare_text(text_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  const Split& split = data.split("train");
  ASSERT_EQ(split.corpora().size(), 2U);
  int64_t block = 0;
  for (const auto& [name, size] : split.corpora()) {
    std::vector<int32_t> joined, expected;
    for (const int64_t end = block + size; block < end; ++block) {
      if (block + 1 < end) {
        EXPECT_EQ(split.target(block).size(), 7U);
      }
      joined.insert(joined.end(), split.target(block).begin(), split.target(block).end());
    }
    for (const std::string& line : name == "a" ? numbered("one", 30) : numbered("two", 20)) {
      const auto ids = data.target_tokenizer().encode(line);
      expected.insert(expected.end(), ids.begin(), ids.end());
      expected.push_back(data.target_tokenizer().specials().eos);
    }
    EXPECT_EQ(joined, expected) << name;
  }
  EXPECT_EQ(block, split.size());
}

TEST_F(PrepareSeveral, TheLastLinesOfEachTextAreHeldOut) {
  text_.corpora = {{"a", file("a.txt", numbered("one", 60))}, {"b", file("b.txt", numbered("two", 40))}};
  text_.block = 0;
  prepare_text(text_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  EXPECT_EQ(data.split("train").corpora(), (CorpusSizes{{"a", 57}, {"b", 38}}));  // 5% of each are held out
  EXPECT_EQ(data.raw_target("valid"), (Strings{"one 57", "one 58", "one 59", "two 38", "two 39"}));
}

TEST_F(PrepareSeveral, WhatIsWrongNamesTheCorpus) {
  add_pairs("web", 40);
  pairs_.train = pair_of("train", {"a"}, {"b"});
  EXPECT_EQ(refused(), "the training text is given both as one corpus and as several");
  pairs_.train = {};
  add_pairs("web", 40);
  EXPECT_EQ(refused(), "two corpora are named 'web'");
  pairs_.corpora.back().first = "../web";
  EXPECT_EQ(refused(), "'../web' is not a valid name for a corpus");
  pairs_.corpora.back() = {"empty", pair_of("empty", {}, {})};
  EXPECT_CONTAINS(refused(), "empty.de: ");
  pairs_.corpora.back() = {"half", pair_of("half", {"a", ""}, {"", "b"})};
  EXPECT_EQ(refused(), "the corpus 'half' contains no pair with text on both sides");
  pairs_.length_limit = 60;
  pairs_.corpora.back() = {"long", pair_of("long", {many_words()}, {"line web 3"})};
  pairs_.valid = pair_of("valid", {"Satz 1"}, {"line 1"});
  EXPECT_EQ(refused(), "nothing of the corpus 'long' is left for training");

  text_.corpora = {{"a", file("a.txt", numbered("one", 30))}, {"b", file("b.txt", {" ", ""})}};
  EXPECT_EQ(refused(/*text=*/true), "the corpus 'b' contains no text");
  text_.train = text_.corpora.front().second;
  EXPECT_EQ(refused(/*text=*/true), "the training text is given both as one corpus and as several");
}

TEST_F(PrepareSeveral, CorporaThatDoNotAddUpAreDamage) {
  add_pairs("web", 40);
  add_pairs("talks", 20);
  pairs_.valid = pair_of("valid", {"Satz 1"}, {"line 1"});
  Json info = prepare_data(pairs_, directory_ / "out");
  for (const int64_t pairs : {19, 21, 0, -1}) {
    info["splits"]["train"]["corpora"][1]["pairs"] = pairs;
    write_json(directory_ / "out" / "data.json", info);
    EXPECT_THROW(DataDirectory::open(directory_ / "out"), Error) << pairs;
  }
  info["splits"]["train"]["corpora"][1]["pairs"] = 20;
  write_json(directory_ / "out" / "data.json", info);
  EXPECT_EQ(DataDirectory::open(directory_ / "out").split("train").corpora().size(), 2U);
}

// Equal pairs have equal checksums regardless of their position.
TEST_F(PrepareSeveral, AChecksumIsOfThePairsAlone) {
  const std::vector<std::vector<int32_t>> sources = {{5, 6}, {7}, {5, 6}, {7}, {5}, {6, 7}},
                                          targets = {{8}, {9, 4}, {8}, {9, 4}, {8}, {9, 4}};
  write_split(directory_ / "split", sources, targets);
  const Split split = Split::open(directory_ / "split");
  EXPECT_EQ(split.checksum_of(0, 2), split.checksum_of(2, 2));
  EXPECT_NE(split.checksum_of(0, 2), split.checksum_of(4, 2));  // the same ids, cut elsewhere
  EXPECT_NE(split.checksum_of(0, 2), split.checksum_of(1, 2));
  EXPECT_NE(split.checksum_of(0, 2), split.checksum_of(0, 1));
}

}  // namespace
}  // namespace plumb
