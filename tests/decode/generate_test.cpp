// Generation from a model whose next token depends on everything before it, compared with a plain loop over one
// sequence.
#include "plumb/decode/generate.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "decode/random_model.h"
#include "plumb/base/error.h"
#include "plumb/ops/threads.h"
#include "support/errors.h"

namespace plumb {
namespace {

using test::RandomModel;
using Ids = std::vector<int32_t>;

const Specials kSpecials;

/// The expected output of `generate` for one sample: token by token, each computed from the whole sequence.
Generated plain(const RandomModel& model, const Ids& prompt, const GenerateOptions& options, int64_t sample) {
  Ids never = {kSpecials.pad, kSpecials.bos, kSpecials.unknown};
  if (options.whole_texts) never.clear();
  for (int64_t id = options.vocabulary; options.vocabulary > 0 && id < model.vocabulary(); ++id)
    never.push_back(static_cast<int32_t>(id));
  const Sampler sampler(options.sampling, never);
  Generated result;
  std::vector<int64_t> sequence;
  if (!options.whole_texts) sequence.push_back(kSpecials.bos);
  sequence.insert(sequence.end(), prompt.begin(), prompt.end());
  int64_t lines = 0;
  while (std::ssize(result.ids) < options.max_tokens && std::ssize(sequence) <= model.longest()) {
    const std::vector<double> logits = model.logits_after(sequence);
    const Ids seen(sequence.begin(), sequence.end());
    const int32_t id = sampler.draw(logits, seen, sample, std::ssize(sequence));
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    result.log_probability += logits[static_cast<size_t>(id)] - std::log(sum);
    if (id == kSpecials.eos && ++lines == options.lines) {
      result.finish = Finish::end;
      break;
    }
    result.ids.push_back(id);
    sequence.push_back(id);
  }
  return result;
}

const std::vector<Ids> kPrompts = {{5, 6, 7}, {}, {4}, {9, 9, 2, 4, 10, 11, 8}, {5, 6}, {4}};

void expect_plain(RandomModel& model, const std::vector<Ids>& prompts, const GenerateOptions& options) {
  const std::vector<Generated> found = generate(model, prompts, options);
  const auto samples = static_cast<size_t>(options.samples);
  ASSERT_EQ(found.size(), prompts.size() * samples);
  for (size_t i = 0; i < found.size(); ++i) {
    const Generated expected = plain(model, prompts[i / samples], options, static_cast<int64_t>(i % samples));
    EXPECT_EQ(found[i].ids, expected.ids) << i;
    EXPECT_EQ(found[i].finish, expected.finish) << i;
    EXPECT_NEAR(found[i].log_probability, expected.log_probability, 1e-10) << i;
  }
}

TEST(Generate, WholeTextsBeginAndEndWithTheirOwnTokens) {
  RandomModel model(7);
  GenerateOptions options;
  options.whole_texts = true;
  options.max_tokens = 20;
  options.samples = 5;
  const std::vector<Ids> prompts = {{5, 6, 7}, {kSpecials.bos, 4}, {kSpecials.eos}};
  expect_plain(model, prompts, options);
  options.vocabulary = 9;
  expect_plain(model, prompts, options);
  int64_t specials = 0;
  for (const Generated& generated : generate(model, prompts, options)) {
    for (const int32_t id : generated.ids) {
      EXPECT_LT(id, 9);
      specials += id == kSpecials.pad || id == kSpecials.bos || id == kSpecials.unknown ? 1 : 0;
    }
  }
  EXPECT_GT(specials, 0);  // generated like any other token
  EXPECT_THROW(generate(model, {{4}, {}}, options), Error);
}

TEST(Generate, EqualsAPlainLoopHoweverItIsBatched) {
  RandomModel model(1);
  model.eos = 1;
  GenerateOptions options;
  options.max_tokens = 12;
  const int threads = omp_get_max_threads();
  for (const int64_t samples : {1, 3, 7}) {
    for (const int64_t batch_rows : {1, 2, 5, 32}) {
      for (const int64_t many : {1, 2}) {
        ops::set_threads(many);
        options.samples = samples;
        options.batch_rows = batch_rows;
        expect_plain(model, kPrompts, options);
      }
    }
  }
  ops::set_threads(threads);
}

TEST(Generate, AVocabularyThatIsWorthThreads) {
  RandomModel model(14, 20000);
  GenerateOptions options;
  options.max_tokens = 3;
  expect_plain(model, kPrompts, options);
  model.broken = true;
  EXPECT_THROW(generate(model, kPrompts, options), Error);
}

TEST(Generate, FiltersSeeTheWholeSequence) {
  RandomModel model(2);
  GenerateOptions options;
  options.max_tokens = 10;
  options.samples = 2;
  options.lines = 0;
  options.sampling = {0.8, 5, 0.9, 0.05, 1.7, 3};
  expect_plain(model, kPrompts, options);
  const std::vector<Generated> penalized = generate(model, kPrompts, options);
  options.sampling.repetition_penalty = 1;
  EXPECT_NE(generate(model, kPrompts, options)[0].ids, penalized[0].ids);
  options.sampling.temperature = 0;
  expect_plain(model, kPrompts, options);
  EXPECT_EQ(generate(model, kPrompts, options)[0].ids, generate(model, kPrompts, options)[1].ids);
}

TEST(Generate, SamplesDifferAndSeedsDo) {
  RandomModel model(3);
  GenerateOptions options;
  options.samples = 3;
  options.max_tokens = 8;
  options.lines = 0;
  const std::vector<Generated> first = generate(model, {{5}}, options);
  EXPECT_NE(first[0].ids, first[1].ids);
  EXPECT_NE(first[0].ids, first[2].ids);
  EXPECT_NE(first[1].ids, first[2].ids);
  options.sampling.seed = 2;
  EXPECT_NE(generate(model, {{5}}, options)[0].ids, first[0].ids);
}

TEST(Generate, ATextContinuedFromItsMiddleIsTheSame) {
  RandomModel model(4);
  GenerateOptions options;
  options.max_tokens = 9;
  options.lines = 0;
  const Ids whole = generate(model, {{5, 6}}, options)[0].ids;
  ASSERT_EQ(whole.size(), 9U);
  Ids longer = {5, 6};
  longer.insert(longer.end(), whole.begin(), whole.begin() + 4);
  options.max_tokens = 5;
  EXPECT_EQ(generate(model, {longer}, options)[0].ids, Ids(whole.begin() + 4, whole.end()));
}

TEST(Generate, SamplesShareTheReadingOfTheirPromptAndLeaveWhenTheyEnd) {
  RandomModel model(5);
  model.eos = 1;
  GenerateOptions options;
  options.samples = 4;
  options.max_tokens = 10;
  const std::vector<Generated> found = generate(model, {{5, 6, 7}, {}}, options);
  EXPECT_EQ(model.reads[0], Ragged({4, 1}));
  std::vector<int64_t> steps;  // needed by each sample: one for every token except the last
  for (const Generated& one : found) {
    steps.push_back(std::ssize(one.ids) - (one.finish == Finish::length ? 1 : 0));
  }
  ASSERT_EQ(std::ssize(model.reads) - 1, *std::max_element(steps.begin(), steps.end()));
  EXPECT_LT(*std::min_element(steps.begin(), steps.end()), *std::max_element(steps.begin(), steps.end()));
  for (int64_t t = 0; t + 1 < std::ssize(model.reads); ++t) {
    const auto active = std::count_if(steps.begin(), steps.end(), [t](int64_t needed) { return needed > t; });
    EXPECT_EQ(model.reads[static_cast<size_t>(t) + 1], Ragged(std::vector<int64_t>(static_cast<size_t>(active), 1)));
  }
}

TEST(Generate, APromptIsReadInAsFewBatchesAsRowsAllow) {
  RandomModel model(6);
  const int threads = omp_get_max_threads();
  ops::set_threads(1);
  GenerateOptions options;
  options.samples = 3;
  options.batch_rows = 7;
  options.max_tokens = 1;
  generate(model, {{5}, {6, 6}, {7}, {8}}, options);
  EXPECT_EQ(model.reads, (std::vector<Ragged>{Ragged({2, 3}), Ragged({2, 2})}));
  model.reads.clear();
  options.batch_rows = 2;  // fewer than the samples per prompt
  generate(model, {{5, 5}}, options);
  EXPECT_EQ(model.reads, (std::vector<Ragged>{Ragged({3}), Ragged({3})}));
  ops::set_threads(threads);
}

TEST(Generate, EndsWhereTheModelCanReadNoFurther) {
  RandomModel model(7, 12, 6);
  model.eos = -100;
  GenerateOptions options;
  options.max_tokens = 100;
  const std::vector<Generated> found = generate(model, {{5}, {}, {5, 6, 7, 8, 9}}, options);
  EXPECT_EQ(found[0].ids.size(), 5U);  // BOS, one prompt token, and four of these five are read
  EXPECT_EQ(found[1].ids.size(), 6U);
  EXPECT_EQ(found[2].ids.size(), 1U);
  for (const Generated& one : found) EXPECT_EQ(one.finish, Finish::length);
  expect_plain(model, {{5}, {}, {5, 6, 7, 8, 9}}, options);
  EXPECT_EQ(test::message_of([&] {
              generate(model, {{5}, {5, 6, 7, 8, 9, 10}}, options);
            }),
            "prompt 2 has 7 tokens including BOS, but the model reads at most 6");
}

TEST(Generate, EndsAfterAsManyLinesAsWanted) {
  RandomModel model(8);
  model.eos = 2;
  GenerateOptions options;
  options.max_tokens = 60;
  for (const int64_t lines : {1, 3, 0}) {
    options.lines = lines;
    expect_plain(model, kPrompts, options);
    const Generated one = generate(model, {{4}}, options)[0];
    const auto ends = std::count(one.ids.begin(), one.ids.end(), kSpecials.eos);
    if (lines > 0) {
      EXPECT_EQ(ends, lines - 1);
    }
    EXPECT_EQ(one.finish, lines > 0 ? Finish::end : Finish::length);
  }
}

TEST(Generate, TellsItsHooksAndEndsASampleAtTheirWord) {
  RandomModel model(9);
  GenerateOptions options;
  options.samples = 2;
  options.max_tokens = 15;
  options.batch_rows = 3;
  const std::vector<Generated> free = generate(model, kPrompts, options);
  const int32_t last = free[0].ids.at(1);
  std::map<std::pair<size_t, size_t>, Ids> tokens;
  std::map<std::pair<size_t, size_t>, Finish> ends;
  GenerateHooks hooks;
  hooks.token = [&](size_t prompt, size_t sample, int32_t id) {
    EXPECT_EQ(ends.count({prompt, sample}), 0U);
    tokens[{prompt, sample}].push_back(id);
    return id != last;
  };
  hooks.end = [&](size_t prompt, size_t sample, const Generated& generated) {
    EXPECT_TRUE(ends.emplace(std::pair(prompt, sample), generated.finish).second);
  };
  const std::vector<Generated> found = generate(model, kPrompts, options, hooks);
  for (size_t i = 0; i < found.size(); ++i) {
    const std::pair<size_t, size_t> key(i / 2, i % 2);
    EXPECT_EQ(found[i].ids, tokens[key]);
    EXPECT_EQ(found[i].finish, ends.at(key));
    const auto place = std::find(free[i].ids.begin(), free[i].ids.end(), last);
    if (place == free[i].ids.end()) {
      EXPECT_EQ(found[i].ids, free[i].ids);
    } else {
      EXPECT_EQ(found[i].ids, Ids(free[i].ids.begin(), place + 1));
      EXPECT_EQ(found[i].finish, Finish::stop);
    }
  }
}

TEST(Generate, OtherSpecials) {
  RandomModel model(10);
  GenerateOptions options;
  options.max_tokens = 40;
  options.lines = 0;
  const Specials specials{8, 9, 10, 11};
  const Generated found = generate(model, {{5}}, options, {}, specials)[0];
  EXPECT_EQ(found.ids.size(), 40U);
  for (const int32_t id : {8, 9, 11}) EXPECT_EQ(std::count(found.ids.begin(), found.ids.end(), id), 0) << id;
  for (const int32_t id : {0, 1, 2, 3, 10}) EXPECT_NE(std::count(found.ids.begin(), found.ids.end(), id), 0) << id;
  EXPECT_EQ(model.reads[0], Ragged({2}));
}

TEST(Generate, ATokenizerMayLackSpecials) {
  RandomModel model(15);
  GenerateOptions options;
  options.max_tokens = 60;
  const Generated found = generate(model, {{5}}, options, {}, {-1, 1, -1, -1})[0];
  EXPECT_EQ(found.finish, Finish::length);  // nothing ends a line
  for (const int32_t id : {0, 2, 3}) EXPECT_NE(std::count(found.ids.begin(), found.ids.end(), id), 0) << id;
  // Without BOS, a line begins with EOS; without both, it has no beginning.
  const Ids line = generate(model, {{5}}, options, {}, {-1, -1, 2, -1})[0].ids;
  EXPECT_THROW(generate(model, {{5}}, options, {}, {0, -1, -1, 3}), Error);
  options.whole_texts = true;
  const Ids whole = generate(model, {{2, 5}}, options, {}, {-1, -1, 2, -1})[0].ids;
  ASSERT_LE(line.size(), whole.size());
  EXPECT_TRUE(!line.empty() && std::equal(line.begin(), line.end(), whole.begin()));
}

TEST(Generate, NothingOfNothing) {
  RandomModel model(11);
  EXPECT_TRUE(generate(model, {}, {}).empty());
}

TEST(Generate, ABrokenModelIsAnErrorFromEveryThread) {
  RandomModel model(12);
  model.broken = true;
  GenerateOptions options;
  options.batch_rows = 1;
  EXPECT_THROW(generate(model, kPrompts, options), Error);
}

TEST(Generate, ImpossibleOptions) {
  RandomModel model(13);
  const auto refused = [&](auto change) {
    GenerateOptions options;
    change(options);
    return !test::error_of([&] { generate(model, {{5}}, options); }).hint().empty();
  };
  EXPECT_TRUE(refused([](GenerateOptions& options) { options.samples = 0; }));
  EXPECT_TRUE(refused([](GenerateOptions& options) { options.max_tokens = 0; }));
  EXPECT_TRUE(refused([](GenerateOptions& options) { options.lines = -1; }));
  EXPECT_TRUE(refused([](GenerateOptions& options) { options.batch_rows = 0; }));
  EXPECT_TRUE(refused([](GenerateOptions& options) { options.precision = "float8"; }));
  EXPECT_TRUE(refused([](GenerateOptions& options) { options.sampling.top_p = 0; }));
  EXPECT_TRUE(model.reads.empty());
}

}  // namespace
}  // namespace plumb
