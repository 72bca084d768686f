#include "plumb/text/tokenizer.h"
#include "plumb/base/contains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/text/sentencepiece/content.h"
#include "plumb/text/sentencepiece/model.h"
#include "plumb/text/visible.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::TemporaryDirectory;

std::vector<std::string> sentences() {
  std::vector<std::string> lines;
  for (const char* who : {"Ein Mann", "Eine Frau", "Der Hund", "Das Mädchen", "Ein kleiner Junge"}) {
    for (const char* what :
         {"läuft über die Straße.", "sitzt auf einer Bank.", "spielt im Schnee.", "schläft zu Hause."}) {
      lines.push_back(std::string(who) + " " + what);
    }
  }
  return lines;
}

class TokenizerKinds : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, TokenizerKinds, testing::Values("bpe", "unigram"));

TEST_P(TokenizerKinds, RoundTrip) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 80});
  for (const std::string& line : sentences()) {
    const auto ids = tokenizer.encode(line);
    EXPECT_EQ(tokenizer.decode(ids), line);
    EXPECT_LT(ids.size(), line.size());  // pieces, not characters
    for (const int32_t id : ids) {
      EXPECT_GT(id, 3);  // neither special nor unknown tokens
      EXPECT_LT(id, tokenizer.vocabulary());
    }
  }
  EXPECT_LE(tokenizer.vocabulary(), 80);
}

/// SentencePiece and the exported tokenizer.json agree.
TEST_P(TokenizerKinds, AsTokenizerJson) {
  const TemporaryDirectory directory;
  const Tokenizer pieces = Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 80, .mask = true});
  pieces.save_as_json(directory / "tokenizer.json");
  EXPECT_EQ(read_json(directory / "tokenizer_config.json")["tokenizer_class"], "PreTrainedTokenizerFast");
  const Tokenizer json = Tokenizer::from_file(directory / "tokenizer.json");
  EXPECT_EQ(json.vocabulary(), pieces.vocabulary());
  EXPECT_EQ(json.specials(), pieces.specials());
  std::vector<std::string> lines = sentences();
  for (const char* line : {"  zwei  Männer ", "ein ﬁsch ½", "Straße\u00a0im\u3000Schnee", "日本 und 🙂 im Schnee",
                           "xylophon", "Ein Mann\tläuft"})
    lines.emplace_back(line);
  for (const std::string& line : lines) {
    std::vector<int32_t> ids = pieces.encode(line);
    EXPECT_EQ(json.encode(line), ids) << line;
    if (!contains(ids, pieces.specials().unknown)) {
      EXPECT_EQ(json.decode(ids), pieces.decode(ids));
    }
    ids.insert(ids.begin(), pieces.specials().bos);
    EXPECT_EQ(json.encode_as_input(line), ids) << line;
  }
}

TEST_P(TokenizerKinds, AsTokenizerJsonForEncodersAndTranslators) {
  const TemporaryDirectory directory;
  const Tokenizer pieces = Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 80});
  const std::string text = sentences().front();
  std::vector<int32_t> ids = pieces.encode(text);
  ids.push_back(pieces.specials().eos);
  pieces.save_as_json(directory / "translator.json", {.bos = false, .eos = true});
  EXPECT_EQ(Tokenizer::from_file(directory / "translator.json").encode_as_input(text), ids);
  ids.insert(ids.begin(), pieces.specials().bos);
  pieces.save_as_json(directory / "encoder.json", {.bos = true, .eos = true});
  EXPECT_EQ(Tokenizer::from_file(directory / "encoder.json").encode_as_input(text), ids);
}

/// `transformers` rejects inputs that a model does not have.
TEST_P(TokenizerKinds, SegmentsInTokenizerJsonWhereTheModelHasThem) {
  const TemporaryDirectory directory;
  const Tokenizer pieces = Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 80});
  for (const bool segments : {false, true}) {
    pieces.save_as_json(directory / "tokenizer.json", {.bos = true, .eos = true, .segments = segments});
    Json inputs = {"input_ids", "attention_mask"};
    if (segments) inputs.push_back("token_type_ids");
    EXPECT_EQ(read_json(directory / "tokenizer_config.json").at("model_input_names"), inputs);
    const Json pair = read_json(directory / "tokenizer.json").at("post_processor").at("pair");
    EXPECT_EQ(pair.at(3).at("Sequence"), (Json{{"id", "B"}, {"type_id", segments ? 1 : 0}}));
  }
}

/// Marian's tokenizers are SentencePiece models with other ids.
TEST(MarianTokenizer, RenumbersThePieces) {
  const TemporaryDirectory directory;
  const Tokenizer pieces = Tokenizer::train(sentences(), {.kind = "unigram", .vocabulary = 80});
  pieces.save(directory / "plain.model");
  pieces.save(directory / "source.spm");
  pieces.save(directory / "target.spm");
  const SentencePieceContent content = read_sentence_piece(read_file(directory / "plain.model"));
  Json ids = {{"</s>", 0}, {"<unk>", 1}, {">>deu<<", 2}};
  const auto last = static_cast<int32_t>(content.pieces.size()) - 1;
  for (int32_t i = 4; i < last; ++i) ids[content.pieces[static_cast<size_t>(i)].text] = last + 2 - i;  // not the last
  ids["<pad>"] = last - 1;
  write_json(directory / "vocab.json", ids);
  const Tokenizer marian = Tokenizer::from_file(directory / "source.spm");
  EXPECT_EQ(marian.specials(), (Specials{last - 1, -1, 0, 1, -1}));
  EXPECT_EQ(marian.vocabulary(), last);
  for (const std::string& line : sentences()) {
    std::vector<int32_t> expected;
    bool complete = true;
    for (const int32_t id : pieces.encode(line)) {
      expected.push_back(id == last ? 1 : last + 2 - id);
      complete = complete && id != last;
    }
    EXPECT_EQ(marian.encode(line), expected) << line;
    if (complete) {
      EXPECT_EQ(marian.decode(expected), line);
    }
    expected.insert(expected.begin(), 2);
    EXPECT_EQ(marian.encode(">>deu<< " + line), expected) << line;
    expected.push_back(0);
    EXPECT_EQ(marian.encode_as_input(">>deu<< " + line), expected) << line;
  }
  write_json(directory / "target_vocab.json", {{"</s>", 0}, {"<unk>", 1}});
  EXPECT_EQ(Tokenizer::from_file(directory / "target.spm").vocabulary(), 2);
  write_json(directory / "vocab.json", {{"</s>", -1}, {"<unk>", 1}});
  EXPECT_THROW(Tokenizer::from_file(directory / "source.spm"), Error);
  write_json(directory / "vocab.json", {{"</s>", 0}});
  EXPECT_THROW(Tokenizer::from_file(directory / "source.spm"), Error);
}

TEST_P(TokenizerKinds, TrainingIsDeterministic) {
  const TokenizerOptions options{.kind = GetParam(), .vocabulary = 80};
  const TemporaryDirectory directory;
  Tokenizer::train(sentences(), options).save(directory / "a");
  Tokenizer::train(sentences(), options).save(directory / "b");
  EXPECT_EQ(read_file(directory / "a"), read_file(directory / "b"));
}

TEST_P(TokenizerKinds, LargerVocabularyThanTheTextSupports) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 5000});
  EXPECT_LT(tokenizer.vocabulary(), 500);
  std::set<int32_t> ids;
  for (const auto& line : sentences()) {
    for (const int32_t id : tokenizer.encode(line)) ids.insert(id);
  }
  EXPECT_LT(*ids.rbegin(), tokenizer.vocabulary());
}

TEST_P(TokenizerKinds, TrainingPrintsNothing) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 80});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Tokenizer, SpecialsDisappearInText) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.vocabulary = 80});
  const Specials specials = tokenizer.specials();
  std::vector<int32_t> ids = {specials.bos};
  for (const int32_t id : tokenizer.encode("Der Hund schläft zu Hause.")) ids.push_back(id);
  ids.insert(ids.end(), {specials.eos, specials.pad, specials.pad});
  EXPECT_EQ(tokenizer.decode(ids), "Der Hund schläft zu Hause.");
  EXPECT_EQ(tokenizer.decode({}), "");
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(Tokenizer, UnseenCharacterIsUnknown) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.vocabulary = 80});
  const auto ids = tokenizer.encode("Ω");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.specials().unknown), 1);
  EXPECT_CONTAINS(tokenizer.decode(ids), "⁇");
}

TEST(Tokenizer, TextThatLooksLikeSpecialsIsText) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.vocabulary = 80});
  for (const int32_t id : tokenizer.encode("</s> <pad>")) EXPECT_GE(id, tokenizer.specials().unknown);
}

// SentencePiece aborts the process on these.
TEST_P(TokenizerKinds, TextWithoutACharacterIsEmpty) {
  for (const char* nothing : {"\u3000", "\u200B", "\uFEFF", "\x01", "\uFFFD", "\u2581"}) {
    EXPECT_EQ(test::message_of([&] {
                Tokenizer::train({nothing, "", nothing}, {.kind = GetParam()});
              }),
              "the tokenizer cannot be trained: the text is empty");
  }
}

TEST_P(TokenizerKinds, EndlessWordsTrain) {
  std::vector<std::string> lines = sentences();
  std::string endless = "ein Wort ";
  for (int i = 0; i < 40000; ++i) endless += i % 3 == 0 ? "ä" : "ax";
  lines.push_back(endless);
  const Tokenizer tokenizer = Tokenizer::train(lines, {.kind = GetParam(), .vocabulary = 80});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Der Hund schläft.")), "Der Hund schläft.");
  EXPECT_LT(tokenizer.encode("axaxäax").size(), 5U);  // learned from the long word
}

// SentencePiece would ignore a line of this length in training.
TEST_P(TokenizerKinds, LongLinesTrain) {
  std::string line;
  Random random(1, "words");  // random, since repetitions would slow down SentencePiece's suffix array
  while (line.size() < (size_t{3} << 19)) line += "wort" + std::to_string(random.below(100)) + " ";
  const Tokenizer tokenizer = Tokenizer::train({line}, {.kind = GetParam(), .vocabulary = 60});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("wort7 wort42")), "wort7 wort42");
  EXPECT_LT(tokenizer.encode("wort7 wort42").size(), 10U);
}

// Long lines are encoded in parts, which must not change the pieces of their words.
TEST_P(TokenizerKinds, LongLinesHaveThePiecesOfTheirWords) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.kind = GetParam(), .vocabulary = 80});
  std::string line;
  std::vector<int32_t> expected;
  std::map<std::string, std::vector<int32_t>> of_word;
  Random random(1, "words");
  while (line.size() < (size_t{5} << 19)) {
    const std::string word = "Hund" + std::to_string(random.below(40));
    const auto [found, is_new] = of_word.try_emplace(word);
    if (is_new) found->second = tokenizer.encode(word);
    expected.insert(expected.end(), found->second.begin(), found->second.end());
    line += (line.empty() ? "" : random.below(9) == 0 ? "  " : " ") + word;
  }
  EXPECT_EQ(tokenizer.encode(line), expected);
}

TEST(Tokenizer, PiecesAreFoundByTheirText) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.vocabulary = 80});
  for (int32_t id = 0; id < tokenizer.vocabulary(); ++id) EXPECT_EQ(tokenizer.find(tokenizer.piece(id)), id);
  EXPECT_EQ(tokenizer.find("no such piece"), -1);
  EXPECT_THROW((void)tokenizer.piece(static_cast<int32_t>(tokenizer.vocabulary())), Error);
  EXPECT_THROW((void)tokenizer.piece(-1), Error);
}

TEST(Visible, WhatIsLeftAsTokens) {
  for (const char* text : {"a", " ß ", "\u3000.", "\0011", "😀"}) EXPECT_TRUE(has_visible_character(text)) << text;
  for (const char* text : {"", " \t\r", "\u3000\u00A0", "\u200B\uFEFF", "\x01\x7F", "\u2581", "\xFF"})
    EXPECT_FALSE(has_visible_character(text)) << text;
}

TEST(Tokenizer, SpecialsOfItsOwnModels) {
  EXPECT_EQ(Tokenizer::train(sentences(), {.vocabulary = 80}).specials(), (Specials{0, 1, 2, 3}));
}

/// A model trained with SentencePiece's own options and these ids.
std::string foreign_model(const Specials& specials) {
  std::string serialized;
  const std::string message = SentencePieceModel::train({{"model_type", "bpe"},
                                                         {"vocab_size", "80"},
                                                         {"pad_id", std::to_string(specials.pad)},
                                                         {"bos_id", std::to_string(specials.bos)},
                                                         {"eos_id", std::to_string(specials.eos)},
                                                         {"unk_id", std::to_string(specials.unknown)},
                                                         {"hard_vocab_limit", "false"},
                                                         {"minloglevel", "3"}},
                                                        sentences(), serialized);
  EXPECT_EQ(message, "");
  return serialized;
}

TEST(Tokenizer, ModelsWithOtherIds) {
  const TemporaryDirectory directory;
  // SentencePiece's defaults, those of T5, which has no BOS, and arbitrary ones.
  for (const Specials specials : {Specials{-1, 1, 2, 0}, Specials{0, -1, 1, 2}, Specials{3, 2, 1, 0}}) {
    write_file_atomic(directory / "model", foreign_model(specials));
    const Tokenizer tokenizer = Tokenizer::from_file(directory / "model");
    EXPECT_EQ(tokenizer.specials(), specials);
    const std::string text = "Der Hund schläft zu Hause.";
    std::vector<int32_t> ids = tokenizer.encode(text);
    for (const int32_t id : ids) {
      EXPECT_FALSE(specials.is_control(id)) << id;
      EXPECT_NE(id, specials.unknown);
    }
    EXPECT_EQ(tokenizer.decode(ids), text);
    for (const int32_t id : {specials.pad, specials.bos, specials.eos}) {
      if (id >= 0) ids.push_back(id);
    }
    EXPECT_EQ(tokenizer.decode(ids), text);
    ids = {specials.unknown};
    EXPECT_CONTAINS(tokenizer.decode(ids), "⁇");
  }
}

TEST(Tokenizer, AbsentSpecialsAreAnErrorWhereTheyAreNeeded) {
  EXPECT_EQ(require_special(7, "beginning of a sentence"), 7);
  EXPECT_EQ(test::message_of([] { require_special(-1, "beginning of a sentence"); }),
            "the tokenizer has no token for the beginning of a sentence");
  EXPECT_FALSE((Specials{-1, 1, 2, 0}).is_control(-1));
}

TEST(Tokenizer, HostileTextTrains) {
  std::vector<std::string> lines = sentences();
  lines.insert(lines.end(),
               {std::string("a\0b", 3), "▁▁", "<unk> </s>", "\xEF\xBF\xBD", "\t", std::string(20000, 'x')});
  EXPECT_GT(Tokenizer::train(lines, {.vocabulary = 100}).vocabulary(), 4);
}

TEST(Tokenizer, SaveAndLoad) {
  const TemporaryDirectory directory;
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.vocabulary = 80});
  tokenizer.save(directory / "model");
  const Tokenizer loaded = Tokenizer::from_file(directory / "model");
  EXPECT_EQ(loaded.vocabulary(), tokenizer.vocabulary());
  EXPECT_EQ(loaded.encode("Eine Frau spielt."), tokenizer.encode("Eine Frau spielt."));
}

TEST(Tokenizer, BadFiles) {
  const TemporaryDirectory directory;
  EXPECT_CONTAINS(test::message_of([&] { Tokenizer::from_file(directory / "none"); }), "cannot be read");
  write_file_atomic(directory / "text", "this is no model");
  EXPECT_CONTAINS(test::message_of([&] { Tokenizer::from_file(directory / "text"); }), "not a SentencePiece model");
  write_file_atomic(directory / "empty", "");
  EXPECT_CONTAINS(test::message_of([&] { Tokenizer::from_file(directory / "empty"); }), "not a SentencePiece model");
  Tokenizer::train(sentences(), {.vocabulary = 80}).save(directory / "model");
  const std::string whole = read_file(directory / "model");
  write_file_atomic(directory / "cut", whole.substr(0, whole.size() / 2));
  EXPECT_CONTAINS(test::message_of([&] { Tokenizer::from_file(directory / "cut"); }), "not a SentencePiece model");
}

TEST(Tokenizer, BadRequests) {
  // 27 is enough for the special tokens, but not for the distinct characters as well.
  EXPECT_CONTAINS(test::message_of([] { Tokenizer::train(sentences(), {.vocabulary = 27}); }),
                  "a vocabulary of 27 is too small");
  EXPECT_EQ(test::message_of([] { Tokenizer::train({}, {}); }), "the tokenizer cannot be trained: the text is empty");
  EXPECT_EQ(test::message_of([] {
              Tokenizer::train({" ", ""}, {});
            }),
            "the tokenizer cannot be trained: the text is empty");
  EXPECT_EQ(test::message_of([] { Tokenizer::train(sentences(), {.kind = "words"}); }), "unknown tokenizer 'words'");
  EXPECT_EQ(test::message_of([] { Tokenizer::train(sentences(), {.kind = "word", .character_coverage = 0.99}); }),
            "words have no character coverage");
  EXPECT_EQ(test::message_of([] { Tokenizer::train(sentences(), {.vocabulary = -1}); }),
            "the vocabulary size -1 is out of range");
  EXPECT_EQ(test::message_of([] { Tokenizer::train(sentences(), {.vocabulary = 2000000000}); }),
            "the vocabulary size 2000000000 is out of range");
  EXPECT_EQ(test::message_of([] { Tokenizer::train(sentences(), {.character_coverage = 0.5}); }),
            "the character coverage 0.5 is out of range");
  const Tokenizer tokenizer = Tokenizer::train(sentences(), {.vocabulary = 80});
  const std::vector<int32_t> outside = {static_cast<int32_t>(tokenizer.vocabulary())};
  EXPECT_CONTAINS(test::message_of([&] { (void)tokenizer.decode(outside); }), "outside the vocabulary");
}

}  // namespace
}  // namespace plumb
