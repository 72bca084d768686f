// Fast weights and recurrent layers continue a text with a state and operations whose size does not depend on how much
// text has been read.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "plumb/base/random.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/nn/attention/attention.h"
#include "support/small_model.h"

namespace plumb {
namespace {

/// The LibTorch operations called.
struct Operations {
  int64_t count = 0;
  int64_t numbers = 0;  // elements of all tensors passed to them

  bool operator==(const Operations&) const = default;
};

Operations& counted() {
  static thread_local Operations operations;
  return operations;
}

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
  ++counted().count;
  for (const c10::IValue& input : function.inputs()) {
    if (input.isTensor() && input.toTensor().defined()) counted().numbers += input.toTensor().numel();
  }
  return nullptr;
}

/// The operations of `work` on this thread.
template <typename Work>
Operations operations_of(const Work& work) {
  counted() = {};
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(count).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return counted();
}

ModelConfig small_decoder() {
  ModelConfig config = test::small_model("decoder");
  config.positions = "none";
  return config;
}

/// The cost of one step.
struct Step {
  int64_t state_bytes = 0;
  Operations operations;
};

Step step_after(Generates& model, int64_t length) {
  const at::NoGradGuard no_graph;
  Random random(1, "tokens");
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int64_t>(random.below(11)));
  DecoderState state = model.start(1);
  model.read(state, tokens, Ragged({length}));
  model.step(state, {4});
  Step step;
  step.operations = operations_of([&] { model.step(state, {5}); });
  EXPECT_EQ(state.positions.front(), length + 2);
  step.state_bytes = state.self_bytes();
  return step;
}

constexpr int64_t kFew = 5;
constexpr int64_t kMany = 65536;

void expect_constant(const ModelConfig& config) {
  const std::unique_ptr<Model> model = make_model(config);
  model->initialize(1);
  Generates& generator = *model->generates();
  const Step few = step_after(generator, kFew);
  const Step many = step_after(generator, kMany);
  EXPECT_GT(few.state_bytes, 0);
  EXPECT_EQ(many.state_bytes, few.state_bytes);
  EXPECT_GT(few.operations.count, 0);
  EXPECT_EQ(many.operations.count, few.operations.count);
  EXPECT_EQ(many.operations.numbers, few.operations.numbers);
}

TEST(ConstantState, OfEveryFastWeight) {
  for (const std::string& attention : attentions().names()) {
    if (attention == "softmax") continue;
    SCOPED_TRACE(attention);
    ModelConfig config = small_decoder();
    config.attention = attention;
    expect_constant(config);
  }
}

TEST(ConstantState, OfRecurrentLayers) { expect_constant(test::small_model("awd-lstm")); }

TEST(ConstantState, IsNotThatOfSoftmax) {
  const std::unique_ptr<Model> model = make_model(small_decoder());
  model->initialize(1);
  Generates& generator = *model->generates();
  EXPECT_GT(step_after(generator, 500).state_bytes, 5 * step_after(generator, kFew).state_bytes);
}

}  // namespace
}  // namespace plumb
