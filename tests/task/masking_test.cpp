// Masked language modeling: which tokens are masked and how, what a batch contains, and what the loss counts.
#include "plumb/task/masking.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/task/task.h"
#include "plumb/train/trainer.h"
#include "support/errors.h"
#include "support/paths.h"
#include "support/small_model.h"
#include "support/text_lines.h"

namespace plumb {
namespace {

using Ids = std::vector<int64_t>;

std::vector<std::string> training_lines() {
  return test::in_turn(60, {"a big cat sees the dog", "a small cat sees the dog"});
}

Tokenizer with_mask(int64_t vocabulary = 24) {
  return Tokenizer::train(training_lines(), {.vocabulary = vocabulary, .mask = true});
}

/// Tokens of text only, each id in turn.
Ids text_of_length(const Tokenizer& tokenizer, int64_t length) {
  Ids tokens;
  for (int64_t i = 0; i < length; ++i) tokens.push_back(5 + i % (tokenizer.vocabulary() - 5));
  return tokens;
}

TEST(Masks, TheVocabularyHasOneThatTextNeverYields) {
  const Tokenizer tokenizer = with_mask();
  EXPECT_EQ(tokenizer.specials(), (Specials{0, 1, 2, 3, 4}));
  for (const int32_t id : tokenizer.encode("the cat <mask> sees")) EXPECT_NE(id, 4);
  std::vector<int32_t> ids = tokenizer.encode("the cat");
  ids.push_back(4);
  EXPECT_EQ(tokenizer.decode(ids), "the cat");
  EXPECT_EQ(Tokenizer::train(training_lines(), {.vocabulary = 24}).specials().mask, -1);
}

// Devlin et al.: 15% of the tokens, of which 80% are masked, 10% random, 10% unchanged.
TEST(Masks, ChooseAShareOfTheTokensAndReplaceMostOfThem) {
  const Tokenizer tokenizer = with_mask();
  const Masker masker(tokenizer, {});
  const Ids whole = text_of_length(tokenizer, 200);
  constexpr int kRounds = 400;
  double masked = 0, other = 0;
  std::vector<double> chosen(whole.size(), 0);
  std::map<int64_t, double> drawn;
  for (int round = 0; round < kRounds; ++round) {
    Random random(7, static_cast<uint64_t>(round));
    Ids tokens = whole;
    const Ids places = masker.mask(tokens, random);
    ASSERT_EQ(places.size(), 30U);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    EXPECT_EQ(std::set<int64_t>(places.begin(), places.end()).size(), 30U);
    for (size_t i = 0; i < whole.size(); ++i) {
      if (!std::binary_search(places.begin(), places.end(), static_cast<int64_t>(i))) {
        EXPECT_EQ(tokens[i], whole[i]);
        continue;
      }
      ++chosen[i];
      if (tokens[i] == 4) ++masked;
      if (tokens[i] == 4 || tokens[i] == whole[i]) continue;
      EXPECT_GT(tokens[i], 4);
      EXPECT_LT(tokens[i], tokenizer.vocabulary());
      ++other;
      ++drawn[tokens[i]];
    }
  }
  const double all = 30.0 * kRounds;
  const auto within = [](double found, double n, double p) {
    return std::abs(found - n * p) < 5 * std::sqrt(n * p * (1 - p));
  };
  const auto texts = static_cast<double>(tokenizer.vocabulary() - 5);
  EXPECT_TRUE(within(masked, all, 0.8)) << masked;
  EXPECT_TRUE(within(other, all, 0.1 * (texts - 1) / texts)) << other;  // a random token may be the same
  EXPECT_EQ(static_cast<double>(drawn.size()), texts);
  for (const double count : chosen) EXPECT_TRUE(within(count, kRounds, 0.15)) << count;
}

TEST(Masks, SpareSpecialTokensAndTakeAtLeastOne) {
  const Masker masker(with_mask(), {});
  for (uint64_t stream = 0; stream < 50; ++stream) {
    Random random(3, stream);
    Ids tokens = {1, 7, 2, 2};
    EXPECT_EQ(masker.mask(tokens, random), Ids{1});
    EXPECT_EQ((Ids{tokens[0], tokens[2], tokens[3]}), (Ids{1, 2, 2}));
    Ids nothing = {1, 2};
    EXPECT_EQ(masker.mask(nothing, random), Ids{0});
  }
}

TEST(Masks, OfWholeWords) {
  // Pieces shorter than words: "the" and "dog" have several.
  const Tokenizer tokenizer = with_mask(21);
  const Masker masker(tokenizer, {.share = 0.3, .whole_words = true});
  Ids tokens = {1};
  std::vector<size_t> word = {0};  // of each token; 0: none
  size_t words = 0;
  for (const char* text : {"the", "dog", "sees", "a", "small", "cat", "sees", "the", "big", "dog"}) {
    ++words;
    for (const int32_t id : tokenizer.encode(text)) {
      tokens.push_back(id);
      word.push_back(words);
    }
  }
  tokens.push_back(2);
  word.push_back(0);
  ASSERT_GT(tokens.size(), words + 4);  // otherwise the test shows nothing
  for (uint64_t stream = 0; stream < 50; ++stream) {
    Random random(3, stream);
    Ids masked = tokens;
    const Ids places = masker.mask(masked, random);
    std::set<size_t> hit;
    for (const int64_t place : places) hit.insert(word[static_cast<size_t>(place)]);
    EXPECT_EQ(hit.size(), 3U);  // 30% of ten words
    EXPECT_EQ(hit.count(0), 0U);
    Ids expected;
    for (size_t i = 0; i < word.size(); ++i) {
      if (hit.count(word[i]) > 0) expected.push_back(static_cast<int64_t>(i));
    }
    EXPECT_EQ(places, expected);
  }
}

TEST(Masks, UnsuitableOnesAreErrors) {
  const Error error =
      test::error_of([&] { const Masker masker(Tokenizer::train(training_lines(), {.vocabulary = 24}), {}); });
  EXPECT_CONTAINS(error.what(), "no mask token");
  EXPECT_CONTAINS(error.hint(), "--mask-token");
}

class MaskedLanguageModels : public ::testing::Test {
 protected:
  DataDirectory data(int64_t block, bool mask = true) const {
    return test::prepare_lines(folder_ / "text", training_lines(), {"the cat sees a dog", "a small dog sees a big cat"},
                               block, 24, mask);
  }

  static std::unique_ptr<Task> task_of(const DataDirectory& data, const std::string& options = "") {
    TaskConfig config;
    Config::from_string("[task]\nname = \"masked-language-modeling\"\n[task.masked-language-modeling]\n" + options,
                        "test")
        .read("task", config);
    return make_task(config, data, "encoder");
  }

  test::TemporaryDirectory folder_;
};

TEST_F(MaskedLanguageModels, AreWhatAnEncoderLearnsFromText) {
  EXPECT_EQ(make_task({}, data(8), "encoder")->name(), "masked-language-modeling");
  const auto task = task_of(data(8));
  ModelConfig config = test::small_learner("encoder", 1, "none");
  task->complete(config);
  EXPECT_EQ(config.source_vocabulary, task->data().target_vocabulary());
  EXPECT_EQ(make_model(config)->outputs(), config.source_vocabulary);
  config.pooling = "first";
  EXPECT_THROW(task->complete(config), Error);
  config = test::small_learner("encoder", 1, "none");
  config.kind = "decoder";
  EXPECT_THROW(task->complete(config), Error);
  EXPECT_THROW(task_of(data(8, false)), Error);
  EXPECT_THROW(task_of(data(8), "pack = -1"), Error);
  EXPECT_THROW(task_of(data(8), "share = 0.0"), Error);
  EXPECT_THROW(task_of(data(8), "share = 1.5"), Error);
}

TEST_F(MaskedLanguageModels, ReadTheTextWithMasksAndPredictWhatTheyHide) {
  for (const int64_t block : {0, 9}) {
    const auto task = task_of(data(block));
    const auto train = task->dataset("train");
    const Split& split = task->data().split("train");
    const std::vector<int64_t> examples = {3, 0, 5};
    const Batch batch = train->batch(examples);
    Ids restored = batch.source;
    ASSERT_EQ(batch.predicted_positions.size(), batch.labels.size());
    for (size_t i = 0; i < batch.predicted_positions.size(); ++i)
      restored[static_cast<size_t>(batch.predicted_positions[i])] = batch.labels[i];
    Ids expected;
    for (size_t i = 0; i < examples.size(); ++i) {
      const auto begin = std::ssize(expected);
      const auto ids = split.target(examples[i]);
      expected.push_back(1);
      expected.insert(expected.end(), ids.begin(), ids.end());
      if (expected.back() != 2) expected.push_back(2);
      EXPECT_EQ(batch.source_layout.length(static_cast<int64_t>(i)), std::ssize(expected) - begin);
      EXPECT_EQ(train->cost(examples[i]).source, std::ssize(expected) - begin);
    }
    EXPECT_EQ(restored, expected);
    EXPECT_EQ(batch.examples, examples);
    EXPECT_TRUE(batch.target_input.empty());
    EXPECT_TRUE(std::count(batch.source.begin(), batch.source.end(), 4) > 0);
  }
}

TEST_F(MaskedLanguageModels, JoinSentencesToSequences) {
  const auto task = task_of(data(0), "pack = 30");
  const auto packed = task->dataset("train");
  const Split& split = task->data().split("train");
  int64_t sentence = 0;
  for (int64_t i = 0; i < packed->size(); ++i) {
    Batch batch = packed->batch(std::vector<int64_t>{i});
    for (size_t k = 0; k < batch.predicted_positions.size(); ++k)
      batch.source[static_cast<size_t>(batch.predicted_positions[k])] = batch.labels[k];
    Ids expected = {1};
    while (std::ssize(expected) < std::ssize(batch.source)) {
      const auto ids = split.target(sentence++);
      expected.insert(expected.end(), ids.begin(), ids.end());
      expected.push_back(2);
    }
    EXPECT_EQ(batch.source, expected);
    EXPECT_LE(std::ssize(expected) - 1, 30);
  }
  EXPECT_EQ(sentence, split.size());
}

TEST_F(MaskedLanguageModels, DrawMasksByEpochAndExample) {
  const auto train = task_of(data(9))->dataset("train");
  const std::vector<int64_t> several = {4, 1, 7};
  EXPECT_EQ(train->batch(several), train->batch(several));
  EXPECT_EQ(train->drawn(several, {5, 2}), train->drawn(several, {5, 2}));
  // An example's masks do not depend on the rest of its batch.
  const Batch alone = train->drawn(std::vector<int64_t>{7}, {5, 2});
  const Batch together = train->drawn(several, {5, 2});
  EXPECT_TRUE(std::equal(alone.source.rbegin(), alone.source.rend(), together.source.rbegin()));
  std::vector<int64_t> all(static_cast<size_t>(train->size()));
  std::iota(all.begin(), all.end(), 0);
  const Batch first = train->drawn(all, {5, 0});
  EXPECT_NE(first.predicted_positions, train->drawn(all, {5, 1}).predicted_positions);
  EXPECT_NE(first.predicted_positions, train->drawn(all, {6, 0}).predicted_positions);
  EXPECT_NE(first.predicted_positions, train->batch(all).predicted_positions);
}

TEST_F(MaskedLanguageModels, CountMaskedTokensOnly) {
  const auto task = task_of(data(9));
  ModelConfig config = test::small_learner("encoder", 1, "none");
  task->complete(config);
  const auto model = make_model(config, at::kDouble);
  model->initialize(3);
  const auto valid = task->dataset("valid");
  std::vector<int64_t> all(static_cast<size_t>(valid->size()));
  std::iota(all.begin(), all.end(), 0);
  Batch batch = valid->batch(all);
  const Metrics metrics = task->metrics(evaluate(*task, *model, *valid, 1000, 0, {}));
  ForwardContext context;
  for (const bool twice : {false, true}) {
    LossOptions options;
    options.twice_differentiable = twice;
    EXPECT_NEAR(task->loss(*model, batch, options, context).value.item<double>(), *metrics.get("nll"), 1e-12);
  }
  // The same from the logits of all tokens.
  const Ids places = std::exchange(batch.predicted_positions, {});
  const Tensor log_p = at::log_softmax(model->logits(model->states(batch, context)), 1);
  ASSERT_EQ(log_p.size(0), std::ssize(batch.source));
  double nll = 0, right = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    nll -= log_p[places[i]][batch.labels[i]].item<double>();
    right += log_p[places[i]].argmax().item<int64_t>() == batch.labels[i] ? 1 : 0;
  }
  const auto labels = static_cast<double>(places.size());
  EXPECT_NEAR(*metrics.get("nll"), nll / labels, 1e-12);
  EXPECT_NEAR(*metrics.get("perplexity"), std::exp(nll / labels), 1e-10);
  EXPECT_DOUBLE_EQ(*metrics.get("accuracy"), right / labels);
}

TEST_F(MaskedLanguageModels, Learn) {
  const auto task = task_of(data(9));
  ModelConfig config = test::small_learner("encoder", 1, "none");
  task->complete(config);
  const auto model = make_model(config);
  model->initialize(1);
  const double before = *task->metrics(evaluate(*task, *model, *task->dataset("valid"), 1000, 0, {})).get("nll");
  TrainConfig training;
  training.steps = 200;
  training.batch_tokens = 200;
  training.learning_rate = 5e-3;
  training.warm_up = 10;
  training.label_smoothing = 0;
  const TrainResult result = train(*model, training, *task);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_LT(*result.valid_nll(), 0.7 * before);
}

}  // namespace
}  // namespace plumb
