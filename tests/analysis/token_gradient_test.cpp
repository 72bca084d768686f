// The gradient of one token's loss, by truncated targets: no label depends on those that follow.
#include <gtest/gtest.h>

#include "analysis/tiny_translator.h"
#include "plumb/analysis/token_gradient.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

const std::string kMatrix = "decoder.layers.0.linear2.weight";

Batch translation(const std::vector<int64_t>& source, std::vector<int64_t> target_input, std::vector<int64_t> labels) {
  Batch batch;
  batch.source = source;
  batch.source_layout = Ragged({std::ssize(source)});
  batch.target_layout = Ragged({std::ssize(labels)});
  batch.target_input = std::move(target_input);
  batch.labels = std::move(labels);
  return batch;
}

/// n · the gradient of the mean loss of the first n labels; 0 for none.
Tensor summed_gradient(Model& model, Batch batch, int64_t n) {
  const Tensor value = model.parameters().at(kMatrix).value;
  if (n == 0) return at::zeros_like(value);
  batch.target_input.resize(static_cast<size_t>(n));
  batch.labels.resize(static_cast<size_t>(n));
  batch.target_layout = Ragged({n});
  ForwardContext context(Pass::measurement);
  return gradients({model.loss(batch, {}, context).value}, {value}, {}).front() * n;
}

TEST(TokenGradient, IsThatOfOneLabel) {
  const auto model = test::initialized(test::tiny_translator());
  const std::vector<Batch> batches = {translation({3, 4, 5}, {1, 6, 7, 4}, {6, 7, 4, 2}),
                                      translation({5, 3}, {1, 4, 3}, {4, 3, 2})};
  const std::vector<double> norms = measure_token_gradients(*model, batches, kMatrix);
  ASSERT_EQ(norms.size(), 2U);
  const std::vector<int64_t> places = {0, 1};  // ⌊3·0.618⌋
  for (size_t i = 0; i < norms.size(); ++i) {
    const Tensor one =
        summed_gradient(*model, batches[i], places[i] + 1) - summed_gradient(*model, batches[i], places[i]);
    EXPECT_NEAR(norms[i], one.norm().item<double>(), 1e-12) << i;
    EXPECT_GT(norms[i], 0.01);
  }
}

TEST(TokenGradient, OfAParameterThatIsNotThere) {
  const auto model = test::initialized(test::tiny_translator());
  EXPECT_THROW(measure_token_gradients(*model, {translation({3}, {1}, {2})}, "decoder.layers.9.linear2.weight"), Error);
}

}  // namespace
}  // namespace plumb
