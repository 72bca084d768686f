// Compares tokenizers in the format of Hugging Face's tokenizer.json with outputs of the PyPI package `tokenizers`
// (scripts/golden/tokenizer_files.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/base/utf8.h"
#include "plumb/data/sequences.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/tokenizer.h"
#include "plumb/text/tokenizer_model.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::TemporaryDirectory;
using Ids = std::vector<int32_t>;
using Model = std::shared_ptr<const TokenizerModel>;

/// Counts the differences, and prints the first few.
class Differences {
 public:
  explicit Differences(std::string name) : name_(std::move(name)) {}

  template <typename Value>
  void expect_equal(const char* what, const Json& line, const Value& ours, const Value& theirs) {
    if (ours == theirs) return;
    if (++count_ > 5) return;
    ADD_FAILURE() << name_ << ", " << what << " of " << line.at("text").dump()
                  << "\n ours:   " << testing::PrintToString(ours) << "\n theirs: " << testing::PrintToString(theirs);
  }
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  std::string name_;
  int64_t count_ = 0;
};

void compare_line(const TokenizerModel& tokenizer, const Json& line, Differences& differences) {
  const auto text = line.at("text").get<std::string>();
  differences.expect_equal("ids", line, tokenizer.encode(text), line.at("ids").get<Ids>());
  differences.expect_equal("decoded text", line, tokenizer.decode(line.at("ids").get<Ids>()),
                           line.at("decoded").get<std::string>());
  if (!line.contains("input")) return;
  differences.expect_equal("input", line, tokenizer.as_input(tokenizer.encode(text)), line.at("input").get<Ids>());
}

int64_t compare(const TokenizerModel& tokenizer, const Json& test_case) {
  Differences differences(test_case.at("name").get<std::string>());
  for (const Json& line : test_case.at("lines")) compare_line(tokenizer, line, differences);
  EXPECT_EQ(differences.count(), 0) << test_case.at("name");
  return differences.count();
}

const Json& golden() {
  static const Json document = read_json(test::source_directory() / "tests/golden/tokenizers.json");
  return document;
}

/// The tokenizer.json of a small tokenizer with this name.
Json document_of(const std::string& name) {
  for (const Json& test_case : golden().at("cases")) {
    if (test_case.at("name") == name) return test_case.at("tokenizer");
  }
  throw Error("no such tokenizer: " + name);
}

Model from_document(const Json& document) {
  const TemporaryDirectory directory;
  write_json(directory / "tokenizer.json", document);
  return load_tokenizer_model(directory / "tokenizer.json");
}

struct Refusal {
  std::string what, hint;
};
Refusal refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.what(), error.hint()};
  }
  return {"no error", ""};
}

TEST(HuggingFaceTokenizers, SmallOnesOfEveryKindEqualThePackage) {
  for (const Json& test_case : golden().at("cases")) compare(*from_document(test_case.at("tokenizer")), test_case);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// In one thread; the best of three rounds.
double tokens_per_second(const TokenizerModel& tokenizer, const Json& speed) {
  const auto lines = speed.at("lines").get<std::vector<std::string>>();
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    size_t count = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (const std::string& line : lines) count += tokenizer.encode(line).size();
    best = std::max(best, static_cast<double>(count) / seconds_since(begin));
    EXPECT_EQ(count, speed.at("tokens").get<size_t>());
  }
  return best;
}

/// What is left of a text's first character determines whether a space is prepended to the first piece.
TEST(Normalizers, WhatIsLeftOfTheFirstCharacter) {
  using nlohmann::json;
  const auto replace = [](const json& pattern, const char* by) {
    return json{{"type", "Replace"}, {"pattern", pattern}, {"content", by}};
  };
  const json compatible_and_stripped = {
      {"type", "Sequence"},
      {"normalizers", {{{"type", "NFKC"}}, {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}}}};
  struct Case {
    json normalizer;
    std::string text, expected;
    size_t beginning;  // bytes, according to the offsets of the package `tokenizers`
  };
  const Case cases[] = {
      {compatible_and_stripped, "a", "a", 1},
      {compatible_and_stripped, " a", "a", 0},
      {compatible_and_stripped, "\u02dca", "\u0303a", 2},   // NFKC: a space and U+0303
      {compatible_and_stripped, " \u02dca", "\u0303a", 0},  // the first character was the space
      {compatible_and_stripped, "\u00a0a", "a", 0},
      {{{"type", "NFC"}}, "e\u0301a", "\u00e9a", 2},
      {{{"type", "Lowercase"}}, "\u0130a", "i\u0307a", 3},
      {{{"type", "Prepend"}, {"prepend", "\u2581"}}, "ab", "\u2581ab", 4},
      {replace({{"String", " "}}, "\u2581"), " a", "\u2581a", 3},
      {replace({{"Regex", " {2,}"}}, "b"), "  a", "ba", 0},  // in place of the second space
      {replace({{"String", "a"}}, ""), "ab", "b", 0},
  };
  for (const Case& each : cases) {
    size_t first = 0;
    next_character(each.text, first);
    tokenization::Piece piece{each.text, -1, first};
    tokenization::make_normalizer(each.normalizer)(piece);
    EXPECT_EQ(piece.text, each.expected);
    EXPECT_EQ(piece.beginning, each.beginning) << each.normalizer << " of '" << each.text << "'";
  }
}

// The large comparison: scripts/golden/tokenizer_files.py --output DIRECTORY.
TEST(HuggingFaceTokenizers, LargeComparison) {
  const char* directory = std::getenv("PLUMB_TOKENIZERS");
  if (directory == nullptr) GTEST_SKIP() << "name the directory of the references with PLUMB_TOKENIZERS";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    const Json document = read_json(entry.path());
    for (const Json& test_case : document.at("cases")) {
      const auto begin = std::chrono::steady_clock::now();
      const Model tokenizer = load_tokenizer_model(test_case.at("folder").get<std::string>());
      const double loading = seconds_since(begin);
      const int64_t different = compare(*tokenizer, test_case);
      const Json& speed = test_case.at("speed");
      std::cout << fmt::format("{}: read in {:.2f} s, {} lines, different: {}; tokens/s {:.0f}, package {:.0f}",
                               test_case.at("name").get<std::string>(), loading, test_case.at("lines").size(),
                               different, tokens_per_second(*tokenizer, speed),
                               speed.at("tokens_per_second").get<double>())
                << std::endl;
    }
  }
}

TEST(HuggingFaceTokenizers, VocabularyOfBert) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "vocab.txt",
                    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nship\n##s\ncafe\n.\nThe\ncaf\n##é\n小\n");
  const Model lower = load_tokenizer_model(directory.path());
  EXPECT_EQ(lower->vocabulary(), 14);
  EXPECT_EQ(lower->encode("The ships[MASK] caf\u00e9\u0007 \u5c0f\u5c0f.x"), (Ids{5, 6, 7, 4, 8, 13, 13, 9, 1}));
  EXPECT_EQ(lower->as_input(lower->encode("the")), (Ids{2, 5, 3}));
  EXPECT_EQ(lower->specials(), (Specials{0, 2, 3, 1, 4}));
  EXPECT_EQ(lower->find("[MASK]"), 4);
  EXPECT_EQ(lower->find("[none]"), -1);
  EXPECT_EQ(lower->decode(Ids{2, 5, 6, 7, 9, 3, 0}), "the ships.");

  write_file_atomic(directory / "tokenizer_config.json", R"({"do_lower_case": false, "bos_token": "the"})");
  const Model cased = load_tokenizer_model(directory / "vocab.txt");
  EXPECT_EQ(cased->encode("The café cafe"), (Ids{10, 11, 12, 8}));
  EXPECT_EQ(cased->specials().bos, 5);
}

TEST(HuggingFaceTokenizers, VocabularyAndMergesOfGpt2) {
  const Json document = document_of("gpt2");
  const TemporaryDirectory directory;
  write_json(directory / "vocab.json", document.at("model").at("vocab"));
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : document.at("model").at("merges")) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  write_file_atomic(directory / "merges.txt", merges);
  const Model files = load_tokenizer_model(directory.path());
  const Model one_file = from_document(document);
  const std::string text = "The ships’ rain<|endoftext|> 123 \n\n 船";
  EXPECT_EQ(files->encode(text), one_file->encode(text));
  EXPECT_EQ(files->decode(files->encode("The ships’ 船")), "The ships’ 船");
  std::filesystem::remove(directory / "vocab.json");
  EXPECT_CONTAINS(refusal_of([&] { load_tokenizer_model(directory.path()); }).what, "there is no vocab.json beside it");
}

// A classifier reads a pair of sentences as the tokenizer joins them.
TEST(HuggingFaceTokenizers, PairsForAClassifierEqualThePackages) {
  for (const Json& test_case : golden().at("cases")) {
    const bool roberta = test_case.at("name") == "roberta";
    if (!roberta && test_case.at("name") != "bert") continue;
    const Model model = from_document(test_case.at("tokenizer"));
    EXPECT_EQ(model->specials().separators, roberta ? 2 : 1);
    int64_t pairs = 0;
    for (const Json& line : test_case.at("lines")) {
      if (!line.contains("pair")) continue;
      const Ids second = model->encode(line.at("second").get<std::string>());
      if (second.empty()) continue;
      Batch batch;
      append_labeled(batch, model->encode(line.at("text").get<std::string>()), second, model->specials(), 0, 0);
      EXPECT_EQ(Ids(batch.source.begin(), batch.source.end()), line.at("pair").get<Ids>());
      if (!roberta) {
        EXPECT_EQ(Ids(batch.segments.begin(), batch.segments.end()), line.at("pair_segments").get<Ids>());
      }
      ++pairs;
    }
    EXPECT_GT(pairs, 0);
  }
}

TEST(HuggingFaceTokenizers, TemplatesOfOneTextHaveItOnce) {
  Json document = document_of("llama2");
  Json& single = document["post_processor"]["single"];
  const auto refusal = [&] { return refusal_of([&] { from_document(document); }).what; };
  single.push_back(Json{{"Sequence", {{"id", "B"}, {"type_id", 0}}}});
  EXPECT_CONTAINS(refusal(), "unknown text 'B' in a template");
  single = Json::array();
  EXPECT_CONTAINS(refusal(), "the template for a single text does not contain it exactly once");
}

TEST(HuggingFaceTokenizers, FolderWithoutTokenizer) {
  const TemporaryDirectory directory;
  const Refusal refusal = refusal_of([&] { load_tokenizer_model(directory.path()); });
  EXPECT_EQ(refusal.what, directory.path().string() + ": the folder contains no tokenizer");
  for (const char* name : {"tokenizer.json", "tokenizer.model", "merges.txt", "vocab.txt"}) {
    EXPECT_CONTAINS(refusal.hint, name);
  }
}

TEST(HuggingFaceTokenizers, UnknownComponentsAreNamedWithTheFile) {
  const TemporaryDirectory directory;
  const auto refusal = [&](const char* section, const Json& value) {
    Json document = document_of("bert");
    document[section] = value;
    write_json(directory / "tokenizer.json", document);
    return refusal_of([&] { load_tokenizer_model(directory.path()); });
  };
  const std::string file = (directory / "tokenizer.json").string();
  const std::pair<const char*, const char*> kSections[] = {{"normalizer", "normalizer"},
                                                           {"pre_tokenizer", "pre-tokenizer"},
                                                           {"post_processor", "post-processor"},
                                                           {"decoder", "decoder"},
                                                           {"model", "tokenizer model"}};
  for (const auto& [section, name] : kSections) {
    const Refusal direct = refusal(section, {{"type", "Frobnicate"}});
    EXPECT_EQ(direct.what, file + ": unknown " + name + " 'Frobnicate'");
    EXPECT_CONTAINS(direct.hint, "known: ");
  }
  const Json nested = {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}, {{"type", "Uppercase"}}}}};
  EXPECT_EQ(refusal("normalizer", nested).what, file + ": unknown normalizer 'Uppercase'");
  EXPECT_EQ(refusal("normalizer", nested).hint.substr(0, 25), "did you mean 'Lowercase'?");

  Json random = document_of("gpt2").at("model");
  random["dropout"] = 0.1;
  EXPECT_EQ(refusal("model", random).what, file + ": the model's 'dropout' would make token ids random");
  const Json split = {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}, {"invert", false}};
  EXPECT_EQ(refusal("pre_tokenizer", split).what,
            file + ": the regular expression '(a' is invalid: end pattern with unmatched parenthesis");
}

TEST(HuggingFaceTokenizers, SpecialTokensComeFromTheFilesBeside) {
  const TemporaryDirectory directory;
  write_json(directory / "tokenizer.json", document_of("llama3"));
  const Model by_name = load_tokenizer_model(directory.path());
  const int32_t begin = by_name->find("<|begin_of_text|>");
  const int32_t end = by_name->find("<|endoftext|>");
  EXPECT_EQ(by_name->specials(), (Specials{-1, begin, end, -1}));

  write_file_atomic(directory / "tokenizer_config.json", R"({"pad_token": {"content": "<|endoftext|>"}})");
  EXPECT_EQ(load_tokenizer_model(directory.path())->specials(), (Specials{end, begin, end, -1}));
  write_file_atomic(directory / "special_tokens_map.json", R"({"bos_token": "A", "pad_token": "B"})");
  const Model configured = load_tokenizer_model(directory.path());
  EXPECT_EQ(configured->specials(), (Specials{configured->find("B"), configured->find("A"), end, -1}));

  const TemporaryDirectory other;
  configured->save(other / "source.model");
  const Model loaded = load_tokenizer_model(other / "source.model");
  EXPECT_EQ(loaded->encode("The ships"), configured->encode("The ships"));
}

// Values of tokenizers 0.23.3.
TEST(HuggingFaceTokenizers, AnAddedTokenOfWhichNothingIsLeftIsNoToken) {
  const auto ids_of = [](bool left, bool right) {
    const Json token = {{"id", 1}, {"content", " "}, {"lstrip", left}, {"rstrip", right}, {"normalized", false}};
    const Json model = {{"type", "WordLevel"}, {"unk_token", "a"}, {"vocab", {{"a", 0}}}};
    return from_document({{"added_tokens", Json::array({token})}, {"model", model}})->encode("  ");
  };
  EXPECT_EQ(ids_of(true, true), Ids{1});
  EXPECT_EQ(ids_of(true, false), (Ids{1, 1}));
  EXPECT_EQ(ids_of(false, true), (Ids{1, 1}));
}

TEST(HuggingFaceTokenizers, TheDefinitionIsWhatDeterminesIds) {
  const Json document = document_of("llama2");
  Json saved_again = document;
  saved_again["truncation"] = {{"direction", "Right"}, {"max_length", 8}, {"strategy", "LongestFirst"}, {"stride", 0}};
  saved_again["model"]["ignore_merges"] = false;
  for (Json& merge : saved_again["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_EQ(from_document(saved_again)->definition(), from_document(document)->definition());
  Json other = document;
  other["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  EXPECT_NE(from_document(other)->definition(), from_document(document)->definition());
}

TEST(HuggingFaceTokenizers, TokenizerReadsAndWritesThem) {
  const TemporaryDirectory directory;
  write_json(directory / "tokenizer.json", document_of("llama2"));
  const Tokenizer tokenizer = Tokenizer::from_file(directory.path());
  const Ids ids = tokenizer.encode("The ships <s> sail");
  EXPECT_EQ(ids, load_tokenizer_model(directory.path())->encode("The ships <s> sail"));
  EXPECT_EQ(tokenizer.decode(ids), "The ships   sail");
  EXPECT_EQ(tokenizer.specials(), (Specials{-1, 1, 2, 0}));
  EXPECT_EQ(refusal_of([&] { (void)tokenizer.decode(Ids{1000000}); }).what,
            fmt::format("token id 1000000 is outside the vocabulary of {}", tokenizer.vocabulary()));
  tokenizer.save(directory / "copy.model");
  EXPECT_EQ(Tokenizer::from_file(directory / "copy.model").encode("The ships <s> sail"), ids);
}

TEST(HuggingFaceTokenizers, MalformedBytesReadAsReplacementCharacters) {
  for (const char* name : {"gpt2", "llama2", "bert", "t5"}) {
    const Model tokenizer = from_document(document_of(name));
    EXPECT_EQ(tokenizer->encode("a\xC3(\xF0\x9F\x98 b"), tokenizer->encode("a\uFFFD(\uFFFD b")) << name;
  }
}

TEST(HuggingFaceTokenizers, OneLongWord) {
  std::string word;
  for (int i = 0; i < 60000; ++i) word += "pörtschiff"[i % 10];
  for (const Json& test_case : golden().at("cases")) {
    const Model tokenizer = from_document(test_case.at("tokenizer"));
    EXPECT_GT(tokenizer->encode(word).size(), 0U) << test_case.at("name");
  }
}

/// Loads a document and uses the tokenizer; the only failure allowed is an Error.
void use(const std::string& document, const std::filesystem::path& path) {
  try {
    std::ofstream(path, std::ios::binary) << document;  // not atomic: syncing hundreds of files takes seconds
    const Model tokenizer = load_tokenizer_model(path);
    for (const char* text : {"The small ship sails", "Łódź 船港口 <s> [SEP] 1,250.5\r\n\t e\u0301 \u00a0\u0001"}) {
      const Ids ids = tokenizer->encode(text);
      for (const int32_t id : ids) {
        EXPECT_GE(id, 0);
        EXPECT_LT(id, tokenizer->vocabulary());
      }
      EXPECT_TRUE(is_valid_utf8(tokenizer->decode(ids)));
      for (const int32_t id : tokenizer->as_input(ids)) EXPECT_LT(id, tokenizer->vocabulary());
    }
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()), "");
  }
}

TEST(HuggingFaceTokenizers, DamagedFilesGiveErrors) {
  const TemporaryDirectory directory;
  const auto& cases = golden().at("cases");
  for (uint64_t i = 0; i < 500; ++i) {
    const auto random = [i](uint64_t index) { return philox(9, i, index)[0]; };
    std::string document = cases[i % cases.size()].at("tokenizer").dump();
    if (i % 3 == 0) {
      document.resize(random(0) % document.size());
    } else {
      for (uint64_t flip = 0; flip < 1 + i % 4; ++flip) {
        document[random(2 * flip) % document.size()] = static_cast<char>(random(2 * flip + 1));
      }
    }
    use(document, directory / "tokenizer.json");
  }
}

/// Collects pointers to the values of a document; those within large containers are omitted.
void collect(Json& value, std::vector<Json*>& values) {
  values.push_back(&value);
  if (value.is_structured() && value.size() < 60) {
    for (Json& part : value) collect(part, values);
  }
}

TEST(HuggingFaceTokenizers, WrongValuesGiveErrors) {
  const TemporaryDirectory directory;
  const std::vector<Json> kWrong = {nullptr,
                                    true,
                                    -1,
                                    3,
                                    1e300,
                                    4294967296,
                                    "",
                                    "x",
                                    "\u2581",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({"a"}),
                                    {{"type", "Sequence"}},
                                    {{"Regex", "(?=a)|"}},
                                    {{"String", ""}},
                                    "AAAA"};
  const auto& cases = golden().at("cases");
  for (uint64_t i = 0; i < 600; ++i) {
    const auto random = [i](uint64_t index) { return philox(11, i, index)[0]; };
    Json document = cases[i % cases.size()].at("tokenizer");
    std::vector<Json*> values;
    collect(document, values);
    *values[1 + random(0) % (values.size() - 1)] = kWrong[random(1) % kWrong.size()];
    use(document.dump(), directory / "tokenizer.json");
  }
}

TEST(HuggingFaceTokenizers, DeepNestingIsRefused) {
  const TemporaryDirectory directory;
  std::string document = R"({"model": )";
  for (int i = 0; i < 100000; ++i) document += R"({"type": "Sequence", "normalizers": [)";
  write_file_atomic(directory / "tokenizer.json", document);
  EXPECT_CONTAINS(refusal_of([&] { load_tokenizer_model(directory.path()); }).what, "nested too deeply");
}

}  // namespace
}  // namespace plumb
