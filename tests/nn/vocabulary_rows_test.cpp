#include "plumb/nn/vocabulary_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plumb/ops/embedding.h"
#include "plumb/ops/linear.h"
#include "support/errors.h"
#include "support/ranks.h"

namespace plumb::vocabulary_rows_test {
namespace {

constexpr int64_t kRanks = 3, kVocabulary = 12, kWidth = 5;

/// A table and a bias of a vocabulary, whole and as this rank has them.
struct Tables {
  Parameters parameters{at::kDouble};
  Tensor table = parameters.add("table", {kVocabulary, kWidth}, Role::embedding);
  Tensor bias = parameters.add("bias", {kVocabulary}, Role::bias);
  Tensor whole_table, whole_bias;
  VocabularyRows rows;

  explicit Tables(const Group& group) {
    parameters.allocate();
    {
      const at::NoGradGuard no_graph;
      parameters.flat().copy_(at::sin(at::arange(parameters.count(), at::kDouble)));
    }
    whole_table = table.detach().clone().requires_grad_();
    whole_bias = bias.detach().clone().requires_grad_();
    LayerDivision division(parameters, group);
    rows = VocabularyRows(division, {table, bias});
    division.apply(parameters);
    EXPECT_EQ(table.size(0), kVocabulary / kRanks);
  }
  /// This rank's rows of a gradient of the whole.
  [[nodiscard]] Tensor own(const Tensor& gradient, const Group& group) const {
    return gradient.narrow(0, group.rank() * table.size(0), table.size(0));
  }
};

Tensor states(int64_t tokens) {
  return at::cos(at::arange(tokens * kWidth, at::kDouble)).view({tokens, kWidth}).requires_grad_();
}

/// d loss / d each of these.
std::vector<Tensor> derivatives(const Tensor& loss, const std::vector<Tensor>& of) {
  return torch::autograd::grad({loss}, of);
}

void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double scale = std::max(expected[i].abs().max().item<double>(), 1.0);
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-12 * scale) << i;
  }
}

TEST(VocabularyRows, CrossEntropyAndItsGradientsAreThoseOfTheWholeVocabulary) {
  test::as_ranks(kRanks, [](const Group& group) {
    const Tables tables(group);
    constexpr int64_t kTokens = 1100;  // more than a chunk
    std::vector<int64_t> labels;
    std::vector<double> weights;
    for (int64_t i = 0; i < kTokens; ++i) {
      labels.push_back(i * 7 % kVocabulary);
      weights.push_back(static_cast<double>(i % 4) / 2);
    }
    for (const bool weighted : {false, true}) {
      const Tensor hidden = states(kTokens), same = states(kTokens);
      if (weighted) {  // the weight of token 4 is 0
        const at::NoGradGuard no_graph;
        for (const Tensor& x : {hidden, same}) x[4].fill_(std::numeric_limits<double>::quiet_NaN());
      }
      const std::vector<double> used = weighted ? weights : std::vector<double>();
      const auto found = tables.rows.cross_entropy(hidden, tables.table, tables.bias, labels, used, 0.1, 0.25);
      const auto whole =
          ops::linear_cross_entropy(same, tables.whole_table, tables.whole_bias, labels, used, 0.1, 0.25);
      EXPECT_NEAR(found.loss.item<double>(), whole.loss.item<double>(), 1e-9);
      EXPECT_NEAR(found.nll, whole.nll, 1e-9);
      auto expected = derivatives(2 * whole.loss, {same, tables.whole_table, tables.whole_bias});
      auto gradients = derivatives(2 * found.loss, {hidden, tables.table, tables.bias});
      for (const size_t i : {1, 2}) expected[i] = tables.own(expected[i], group);
      if (weighted) {
        EXPECT_EQ(gradients[0][4].abs().max().item<double>(), 0.0);
        // 0 · NaN in the sums over tokens, as in the whole
        for (auto* each : {&gradients, &expected}) each->resize(1);
      }
      expect_close(gradients, expected);
    }
    Tensor excluded = at::zeros({kVocabulary}, at::kDouble);  // a bias of −∞ excludes a word; there is no smoothing
    excluded[6] = -std::numeric_limits<double>::infinity();
    const Tensor bias = tables.own(excluded, group);
    const auto some = tables.rows.cross_entropy(states(2), tables.table, bias, {11, 0}, {}, 0, 1);
    const Tensor log_p = at::log_softmax(at::mm(states(2), tables.whole_table.t()) + excluded, 1);
    EXPECT_NEAR(some.loss.item<double>(), -(log_p[0][11] + log_p[1][0]).item<double>(), 1e-12);
    const auto plain = tables.rows.cross_entropy(states(2), tables.table, {}, {11, 0}, {}, 0, 1);
    EXPECT_NEAR(plain.nll, ops::linear_cross_entropy(states(2), tables.whole_table, {}, {11, 0}, {}, 0, 1).nll, 1e-12);
    EXPECT_EQ(test::message_of([&] {
                static_cast<void>(tables.rows.cross_entropy(states(1), tables.table, {}, {kVocabulary}, {}, 0, 1));
              }),
              "a label is outside the vocabulary");
  });
}

TEST(VocabularyRows, EmbeddingAndLogitsAreThoseOfTheWholeVocabularyToSecondOrder) {
  test::as_ranks(kRanks, [](const Group& group) {
    const Tables tables(group);
    const std::vector<int64_t> tokens = {11, 0, 4, 4, 7};
    const auto loss = [&](const Tensor& embedded, const Tensor& logits) {
      return (logits.pow(3).sum() + embedded.pow(2).sum() * logits.sum());
    };
    const Tensor embedded = tables.rows.embedding(tables.table, tokens, 3);
    const Tensor whole = ops::embedding(tables.whole_table, tokens, 3);
    expect_close({embedded}, {whole});
    const Tensor logits = tables.rows.logits(embedded, tables.table, tables.bias);
    const Tensor all = ops::linear(whole, tables.whole_table, tables.whole_bias);
    expect_close({logits}, {all});
    const auto first = [](const Tensor& value, const Tensor& of) {
      return torch::autograd::grad({value}, {of}, {}, true, true).front();
    };
    const Tensor own = first(loss(embedded, logits), tables.table),
                 expected = first(loss(whole, all), tables.whole_table);
    expect_close({own}, {tables.own(expected, group)});
    // ∂/∂table of Σ g², where each rank has its rows of g.
    const Tensor second = derivatives(group.reduce_from_region(own.pow(2).sum()), {tables.table}).front();
    expect_close({second}, {tables.own(derivatives(expected.pow(2).sum(), {tables.whole_table}).front(), group)});
    EXPECT_EQ(test::message_of([&] { static_cast<void>(tables.rows.embedding(tables.table, {kVocabulary}, 1)); }),
              "token id 12 is outside the vocabulary of 12");
  });
}

TEST(VocabularyRows, AVocabularyThatTheRanksDoNotDivideStaysWhole) {
  test::as_ranks(2, [](const Group& group) {
    Parameters parameters{at::kDouble};
    const Tensor table = parameters.add("table", {7, 2}, Role::embedding);
    parameters.allocate();
    LayerDivision division(parameters, group);
    const VocabularyRows rows(division, {table, Tensor()});
    division.apply(parameters);
    EXPECT_FALSE(division.is_divided(0));
    EXPECT_EQ(rows.logits(at::ones({3, 2}, at::kDouble), table, {}).size(1), 7);
  });
}

}  // namespace
}  // namespace plumb::vocabulary_rows_test
