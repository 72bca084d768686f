// Generated answers compared with greedy decoding one token at a time.
#include "plumb/evaluate/completion.h"
#include "plumb/base/contains.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decode/random_model.h"
#include "plumb/base/error.h"
#include "support/small_tokenizer.h"

namespace plumb {
namespace {

using test::RandomModel;
using Ids = std::vector<int32_t>;

constexpr int64_t kMaxTokens = 12;

/// Prompts of different lengths, more than fit into one batch.
std::vector<std::string> prompts() {
  std::vector<std::string> all;
  for (const char* first : {"a", "the", "cat", "dog", "mat"}) {
    for (const char* second : {"", " sat", " sees the", " and a cat"}) {
      for (const char* third : {"", " on the mat"}) all.push_back(std::string(first) + second + third);
    }
  }
  return all;
}

/// The most probable tokens after `sequence`, up to but excluding `end`.
Ids greedy_tokens(const RandomModel& model, std::vector<int64_t> sequence, const Ids& never, int32_t end) {
  Ids ids;
  while (std::ssize(ids) < kMaxTokens) {
    const std::vector<double> logits = model.logits_after(sequence);
    int32_t best = -1;
    for (int32_t id = 0; id < std::ssize(logits); ++id) {
      if (contains(never, id)) continue;
      if (best < 0 || logits[static_cast<size_t>(id)] > logits[static_cast<size_t>(best)]) best = id;
    }
    if (best == end) return ids;
    ids.push_back(best);
    sequence.push_back(best);
  }
  return ids;
}

std::vector<std::string> completed(RandomModel& model, const TextEncoder& encoder,
                                   const std::vector<std::string>& until, const Ids& ends = {}) {
  std::vector<Ids> ids;
  for (const std::string& prompt : prompts()) ids.push_back(encoder.prompt(prompt, 100));
  std::vector<std::string> texts(ids.size());
  size_t answered = 0, batches = 0;
  complete_prompts(
      model, encoder, ids, {.until = until, .max_tokens = kMaxTokens, .ends = ends},
      [&](size_t i, const Answer& answer) {
        texts[i] = answer.text.value();
        ++answered;
      },
      [&] { ++batches; });
  EXPECT_EQ(answered, texts.size());
  EXPECT_EQ(batches, 2U);
  return texts;
}

TEST(Completion, OfWholeTextsIsTheTextOfTheNewTokens) {
  const Tokenizer tokenizer = test::small_tokenizer();
  RandomModel model(5, tokenizer.vocabulary());
  const std::vector<std::string> until = {"at", "d "};
  const std::vector<std::string> found = completed(model, TextEncoder(tokenizer, EvaluatedText::whole), until);
  int stopped = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const Ids prompt = tokenizer.encode(prompts()[i]);
    std::string expected =
        tokenizer.decode(greedy_tokens(model, {prompt.begin(), prompt.end()}, {}, tokenizer.specials().eos));
    const size_t stop = std::min(expected.find(until[0]), expected.find(until[1]));
    if (stop != std::string::npos) {
      expected.resize(stop);
      ++stopped;
    }
    EXPECT_EQ(found[i], expected) << prompts()[i];
  }
  EXPECT_GT(stopped, 3);
}

/// The greedy continuation of a prompt, up to the first token in `ends`.
std::string text_before(const RandomModel& model, const Tokenizer& tokenizer, const std::string& prompt,
                        const Ids& ends) {
  const Ids ids = tokenizer.encode(prompt);
  Ids written = greedy_tokens(model, {ids.begin(), ids.end()}, {}, -1);
  written.erase(std::find_first_of(written.begin(), written.end(), ends.begin(), ends.end()), written.end());
  return tokenizer.decode(written);
}

/// Special tokens have no text in which a stop string could be found.
TEST(Completion, EndsAtSpecialTokens) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const Specials& specials = tokenizer.specials();
  RandomModel model(7, tokenizer.vocabulary());
  const int32_t other = tokenizer.encode("the").front();
  const TextEncoder encoder(tokenizer, EvaluatedText::whole);
  const std::vector<std::string> at_eos = completed(model, encoder, {"<|im_end|>"}, {other});
  const std::vector<std::string> at_bos = completed(model, encoder, {"<s>"}, {other});
  for (size_t i = 0; i < at_eos.size(); ++i) {
    EXPECT_EQ(at_eos[i], text_before(model, tokenizer, prompts()[i], {other, specials.eos})) << prompts()[i];
    EXPECT_EQ(at_bos[i], text_before(model, tokenizer, prompts()[i], {other, specials.eos, specials.bos}));
  }
  EXPECT_NE(at_eos, at_bos);
}

TEST(Completion, EndsAreEOSAndSpecialStopStrings) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const Specials& specials = tokenizer.specials();
  const auto ends = [&](const Ids& given, const std::vector<std::string>& until) {
    return ends_of_answers(tokenizer, given, until);
  };
  EXPECT_EQ(ends({}, {}), Ids{specials.eos});
  EXPECT_EQ(ends({9, specials.eos}, {"</s>"}), (Ids{specials.eos, 9}));
  EXPECT_EQ(ends({9}, {"<s>"}), (Ids{specials.bos, specials.eos, 9}));
  // This tokenizer maps "<|im_end|>" to the unknown token, and the others are not special tokens.
  EXPECT_EQ(ends({}, {"Q:", "<|im_end|>", tokenizer.piece(9)}), Ids{specials.eos});
  Specials without = specials;
  without.eos = -1;
  EXPECT_EQ(ends_of_answers(tokenizer.with_specials(without), {}, {}), Ids());
}

TEST(Completion, OfModelsOfLinesEndsWithTheLine) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const Specials& specials = tokenizer.specials();
  RandomModel model(6, tokenizer.vocabulary());
  const std::vector<std::string> found = completed(model, TextEncoder(tokenizer, EvaluatedText::lines), {"\n"});
  for (size_t i = 0; i < found.size(); ++i) {
    Ids all = tokenizer.encode(prompts()[i]);
    const std::string prompt = tokenizer.decode(all);
    std::vector<int64_t> sequence = {specials.bos};
    sequence.insert(sequence.end(), all.begin(), all.end());
    const Ids written = greedy_tokens(model, sequence, {specials.pad, specials.bos, specials.unknown}, specials.eos);
    all.insert(all.end(), written.begin(), written.end());
    EXPECT_EQ(prompt + found[i], tokenizer.decode(all));
  }
}

TEST(Completion, PromptsLeaveRoomForAnswers) {
  EXPECT_EQ(room_for_prompt(48, 6), 42);
  EXPECT_EQ(room_for_prompt(7, 6), 1);
  EXPECT_THROW(room_for_prompt(6, 6), Error);
  const Tokenizer tokenizer = test::small_tokenizer();
  const Ids ids = tokenizer.encode("the cat sat on the mat");
  ASSERT_GT(ids.size(), 4U);
  const TextEncoder whole(tokenizer, EvaluatedText::whole), lines(tokenizer, EvaluatedText::lines);
  EXPECT_EQ(whole.prompt("the cat sat on the mat", 4), Ids(ids.end() - 4, ids.end()));
  EXPECT_EQ(lines.prompt("the cat sat on the mat", 4), Ids(ids.end() - 3, ids.end()));  // after BOS
  EXPECT_EQ(lines.prompt("the cat sat on the mat", 1), Ids());
  EXPECT_EQ(whole.prompt("the cat sat on the mat", 100), ids);
}

}  // namespace
}  // namespace plumb
