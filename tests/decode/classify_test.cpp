// Labels of texts from a model whose scores reveal its input.
#include "plumb/decode/classify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "plumb/base/error.h"
#include "support/errors.h"
#include "support/small_tokenizer.h"

namespace plumb {
namespace {

/// Scores of three labels that depend on every token, its position and its segment.
class Sums final : public Classifies {
 public:
  Tensor class_logits(const Batch& batch) override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    const Tensor out = at::zeros({batch.source_layout.sequences(), 3}, at::kDouble);
    for (int64_t s = 0; s < out.size(0); ++s) {
      std::vector<int64_t> tokens;
      std::vector<int64_t> segments;
      for (int64_t t = batch.source_layout.begin(s); t < batch.source_layout.begin(s + 1); ++t) {
        tokens.push_back(batch.source[static_cast<size_t>(t)]);
        segments.push_back(batch.segments.empty() ? 0 : batch.segments[static_cast<size_t>(t)]);
      }
      const std::vector<double> row = scores(tokens, segments);
      std::copy(row.begin(), row.end(), out.data_ptr<double>() + 3 * s);
    }
    const std::scoped_lock lock(mutex_);
    ++calls;
    return broken ? out * std::numeric_limits<double>::quiet_NaN() : out;
  }
  [[nodiscard]] int64_t labels() const override { return 3; }

  static std::vector<double> scores(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments) {
    std::vector<double> row(3);
    for (size_t t = 0; t < tokens.size(); ++t) {
      const double x = static_cast<double>(tokens[t] * (t + 1)) + 0.5 * static_cast<double>(segments[t]);
      for (size_t label = 0; label < 3; ++label) row[label] += std::sin(x * static_cast<double>(label + 1));
    }
    return row;
  }

  int64_t calls = 0;
  bool broken = false;

 private:
  std::mutex mutex_;
};

/// BOS + first + EOS [+ second + EOS].
std::vector<double> expected(const std::vector<int32_t>& first, const std::vector<int32_t>& second) {
  std::vector<int64_t> tokens = {1};
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.push_back(2);
  std::vector<int64_t> segments(tokens.size(), 0);
  if (!second.empty()) {
    tokens.insert(tokens.end(), second.begin(), second.end());
    tokens.push_back(2);
    segments.resize(tokens.size(), 1);
  }
  std::vector<double> p = Sums::scores(tokens, segments);
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x);
  for (double& x : p) x /= sum;
  return p;
}

TEST(Classify, GivesTheProbabilitiesOfEveryExampleInOrder) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const std::vector<TextExample> examples = {{"the cat sat on the mat and sees the dog", ""},
                                             {"a dog", ""},
                                             {"", ""},
                                             {"the dog", "a cat sat"},
                                             {"a dog", ""}};
  for (const int64_t batch_tokens : {1, 12, 4096}) {
    Sums model;
    ClassifyOptions options;
    options.batch_tokens = batch_tokens;
    int64_t last = 0;
    const auto found = classify(model, tokenizer, examples, options, [&](int64_t done) {
      EXPECT_GT(done, last);
      last = done;
    });
    EXPECT_EQ(last, 5);
    EXPECT_EQ(model.calls > 1, batch_tokens < 4096);
    ASSERT_EQ(found.size(), 5U);
    for (size_t i = 0; i < 5; ++i) {
      const auto wanted = expected(tokenizer.encode(examples[i].first), tokenizer.encode(examples[i].second));
      for (size_t label = 0; label < 3; ++label) EXPECT_NEAR(found[i][label], wanted[label], 1e-14) << i;
    }
  }
}

TEST(Classify, CutsAsTrainingDoes) {
  const Tokenizer tokenizer = test::small_tokenizer();
  Sums model;
  ClassifyOptions options;
  options.length_limit = 5;
  std::vector<int32_t> first = tokenizer.encode("the cat sat on the mat");
  std::vector<int32_t> second = tokenizer.encode("a");
  ASSERT_GT(first.size() + second.size(), 5U);
  const auto found = classify(model, tokenizer, {{"the cat sat on the mat", "a"}}, options);
  first.resize(5 - second.size());
  const auto wanted = expected(first, second);
  for (size_t label = 0; label < 3; ++label) EXPECT_NEAR(found[0][label], wanted[label], 1e-14);
}

TEST(Classify, WhatCannotBe) {
  const Tokenizer tokenizer = test::small_tokenizer();
  Sums model;
  EXPECT_TRUE(classify(model, tokenizer, {}, {}).empty());
  ClassifyOptions options;
  options.batch_tokens = 0;
  EXPECT_THROW(classify(model, tokenizer, {{"a", ""}}, options), Error);
  model.broken = true;
  EXPECT_THROW(classify(model, tokenizer, {{"a", ""}}, {}), Error);
}

TEST(Classify, OnlyAnEncoderWithLabelsClassifies) {
  ModelConfig config;
  config.kind = "decoder";
  config.target_vocabulary = 10;
  const std::unique_ptr<Model> decoder = make_model(config);
  EXPECT_EQ(test::message_of([&] { (void)classifier_of(*decoder); }),
            "the model, of kind \"decoder\", was not trained to classify");
  config.kind = "encoder";
  config.source_vocabulary = 10;
  config.labels = 3;
  const std::unique_ptr<Model> encoder = make_model(config);
  EXPECT_EQ(classifier_of(*encoder).labels(), 3);
}

}  // namespace
}  // namespace plumb
