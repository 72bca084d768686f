// Answers to requests compared with those computed one by one, and the number of tokens read for them.
#include "plumb/evaluate/scoring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "decode/random_model.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t kVocabulary = 12;

Ids drawn(Random& random, uint64_t length) {
  Ids ids;
  for (uint64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(random.below(kVocabulary)));
  return ids;
}

/// Items with one to four continuations of one to five tokens; the contexts of the second half share a beginning.
std::vector<TokenRequest> random_requests() {
  Random random(1, "requests");
  const Ids beginning = drawn(random, 40);
  std::vector<TokenRequest> requests;
  for (int item = 0; item < 30; ++item) {
    Ids context = item < 15 ? Ids() : beginning;
    const Ids more = drawn(random, 1 + random.below(20));
    context.insert(context.end(), more.begin(), more.end());
    const uint64_t choices = 1 + random.below(4);
    for (uint64_t i = 0; i < choices; ++i) requests.push_back({context, drawn(random, 1 + random.below(5))});
  }
  return requests;
}

/// The definition: log softmax of the logits after each token, one request after another.
Answer answer_by_definition(const test::RandomModel& model, const TokenRequest& request) {
  std::vector<int64_t> sequence(request.context.begin(), request.context.end());
  Answer answer{.log_likelihood = 0, .greedy = true};
  for (const int32_t id : request.continuation) {
    const std::vector<double> logits = model.logits_after(sequence);
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    answer.log_likelihood += logits[static_cast<size_t>(id)] - std::log(sum);
    answer.greedy = answer.greedy && std::max_element(logits.begin(), logits.end()) - logits.begin() == id;
    sequence.push_back(id);
  }
  return answer;
}

TEST(Scoring, AnswersAreThoseOfTheDefinition) {
  const std::vector<TokenRequest> requests = random_requests();
  for (const int64_t batch_tokens : {1, 50, 300, 100000}) {
    test::RandomModel model(7, kVocabulary);
    std::vector<int> answered(requests.size());
    score_requests(model, requests, {.batch_tokens = batch_tokens}, [&](size_t i, const Answer& answer) {
      ++answered[i];
      const Answer expected = answer_by_definition(model, requests[i]);
      EXPECT_NEAR(answer.log_likelihood, expected.log_likelihood, 1e-9);
      EXPECT_EQ(answer.greedy, expected.greedy);
    });
    EXPECT_EQ(answered, std::vector<int>(requests.size(), 1));
  }
}

TEST(Scoring, KnowsWhatGreedyDecodingGives) {
  test::RandomModel model(7, kVocabulary);
  TokenRequest request{{3, 1, 4}, {}};
  std::vector<int64_t> sequence = {3, 1, 4};
  for (int i = 0; i < 4; ++i) {
    const std::vector<double> logits = model.logits_after(sequence);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    request.continuation.push_back(static_cast<int32_t>(best));
    sequence.push_back(best);
  }
  TokenRequest other = request;
  other.continuation.back() = (other.continuation.back() + 1) % static_cast<int32_t>(kVocabulary);
  score_requests(model, {request, other}, {}, [](size_t i, const Answer& answer) { EXPECT_EQ(answer.greedy, i == 0); });
}

TEST(Scoring, ReadsASharedContextOnce) {
  test::RandomModel model(7, kVocabulary);
  const Ids context(30, 5);
  const std::vector<TokenRequest> requests = {{context, {1, 2, 3}}, {context, {4}}, {context, {1, 2, 3, 4}}};
  score_requests(model, requests, {}, [](size_t, const Answer&) {});
  int64_t tokens = 0;
  for (const Ragged& layout : model.reads) tokens += layout.tokens();
  EXPECT_EQ(tokens, 30 + 2 + 0 + 3);
}

TEST(Scoring, ReadsWhatAllContextsBeginWithOnce) {
  test::RandomModel model(7, kVocabulary);
  std::vector<TokenRequest> requests;
  for (int32_t item = 0; item < 8; ++item) {
    Ids context(100, 5);
    context.push_back(item);
    for (const int32_t choice : {1, 2, 3, 4}) requests.push_back({context, {choice}});
  }
  score_requests(model, requests, {.batch_tokens = 200}, [](size_t, const Answer&) {});
  int64_t tokens = 0;
  for (const Ragged& layout : model.reads) tokens += layout.tokens();
  EXPECT_EQ(tokens, 100 + 8);
}

TEST(Scoring, BatchesAreWithinTheLimit) {
  const std::vector<TokenRequest> requests = random_requests();
  constexpr int64_t kLimit = 120;
  test::RandomModel model(7, kVocabulary);
  int64_t batches = 0;
  score_requests(
      model, requests, {.batch_tokens = kLimit}, [](size_t, const Answer&) {},
      [&] {
        int64_t tokens = 0;
        for (const Ragged& layout : model.reads) tokens += layout.tokens();
        EXPECT_LE(tokens, kLimit);
        model.reads.clear();
        ++batches;
      });
  EXPECT_GT(batches, 4);
}

TEST(Scoring, RefusesWhatTheModelCannotRead) {
  test::RandomModel model(7, kVocabulary, /*longest=*/10);
  const auto score = [&](TokenRequest request) {
    score_requests(model, {std::move(request)}, {}, [](size_t, const Answer&) {});
  };
  score({Ids(8, 1), Ids(3, 1)});
  EXPECT_THROW(score({Ids(9, 1), Ids(3, 1)}), Error);
  EXPECT_THROW(score({{1}, {static_cast<int32_t>(kVocabulary)}}), Error);
  EXPECT_THROW(score({{}, {1}}), Error);
  EXPECT_THROW(score({{1}, {}}), Error);
}

TEST(Shortened, TakesTokensFromTheFrontOfTheContext) {
  const TokenRequest request{{1, 2, 3, 4}, {5, 6}};
  EXPECT_EQ(shortened(request, 5), request);  // the last token is not read
  EXPECT_EQ(shortened(request, 4), (TokenRequest{{2, 3, 4}, {5, 6}}));
  EXPECT_EQ(shortened(request, 2), (TokenRequest{{4}, {5, 6}}));
  EXPECT_THROW(shortened(request, 1), Error);
}

}  // namespace
}  // namespace plumb
