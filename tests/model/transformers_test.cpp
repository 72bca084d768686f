// Models, imported or built from a configuration, compared with classes of the Python package transformers on the same
// weights, in float64; see tests/golden/README.md for the origin of the values.
#include <gtest/gtest.h>

#include <numeric>

#include "interop/golden_folder.h"
#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/decoder.h"
#include "plumb/model/model.h"
#include "support/paths.h"

namespace plumb::transformers_test {
namespace {

constexpr double kTolerance = 1e-10;

using Rows = test::IdRows;

/// A case: its values, and its model with its weights.
struct Golden {
  explicit Golden(const std::string& name) {
    const std::filesystem::path folder = test::folder_of(name);
    if (std::filesystem::is_directory(folder)) {
      values = read_json(folder / "values.json");
      model = test::model_in(folder, at::kDouble);
      tokens = values["tokens"].get<Rows>();
      return;
    }
    const auto base = test::source_directory() / "tests" / "golden" / name;
    const auto with = [&](const char* extension) { return std::filesystem::path(base).concat(extension); };
    ModelConfig config;
    Config::from_file(with(".toml")).read("model", config);
    values = read_json(with(".json"));
    model = make_model(config, at::kDouble);
    load_parameters(model->parameters(), load_safetensors(with(".safetensors")), name);
    tokens = values["batch"]["tokens"].get<Rows>();
  }

  [[nodiscard]] Tensor matrix(const std::string& key) const { return test::matrix_of(values.at(key)); }

  Json values;
  std::unique_ptr<Model> model;
  Rows tokens;  // the batch
};

std::vector<int64_t> flattened(const Rows& rows) {
  std::vector<int64_t> result;
  for (const auto& row : rows) result.insert(result.end(), row.begin(), row.end());
  return result;
}

Ragged layout_of(const Rows& rows) {
  Ragged layout;
  for (const auto& row : rows) layout.append(static_cast<int64_t>(row.size()));
  return layout;
}

/// Elements begin … end − 1 of each row, negative indices counting from its end.
Rows part(const Rows& rows, int64_t begin, int64_t end) {
  Rows result;
  for (const auto& row : rows) {
    const auto place = [&](int64_t index) { return row.begin() + (index < 0 ? std::ssize(row) + index : index); };
    result.emplace_back(place(begin), place(end));
  }
  return result;
}

void expect_equal(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_LT((found - expected).abs().max().item<double>(), kTolerance);
}

/// The states of every token; the values of an imported model have only their logits.
void expect_states(const Golden& golden, const Tensor& hidden) {
  if (golden.values.contains("hidden")) expect_equal(hidden, golden.matrix("hidden"));
  expect_equal(golden.model->logits(hidden), golden.matrix("logits"));
}

void expect_loss_and_gradients(Golden& golden, const Batch& batch) {
  const double expected = golden.values["loss"];
  for (const bool twice : {false, true}) {
    SCOPED_TRACE(twice ? "twice differentiable" : "once differentiable");
    ForwardContext context;
    LossOptions options;
    options.twice_differentiable = twice;
    const Loss loss = golden.model->loss(batch, options, context);
    EXPECT_NEAR(loss.value.item<double>(), expected, kTolerance * expected);
    const Parameters& parameters = golden.model->parameters();
    const auto gradient = gradients({loss.value}, parameters.values(), {});
    const Json& norms = golden.values["gradient_norm"];
    ASSERT_EQ(gradient.size(), norms.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      const std::string& name = parameters.all()[i].name;
      ASSERT_TRUE(norms.contains(name)) << name;
      const double norm = norms[name];
      EXPECT_NEAR(gradient[i].norm().item<double>(), norm, kTolerance * norm) << name;
    }
  }
}

class LanguageModel : public ::testing::TestWithParam<std::string> {};

TEST_P(LanguageModel, HiddenStatesAndLogits) {
  Golden golden(GetParam());
  auto& decoder = dynamic_cast<Decoder&>(*golden.model);
  ForwardContext context;
  expect_states(golden, decoder.hidden(flattened(golden.tokens), layout_of(golden.tokens), context));
}

TEST_P(LanguageModel, LossAndEveryGradientNorm) {
  Golden golden(GetParam());
  Batch batch;
  const Rows read = part(golden.tokens, 0, -1);
  batch.target_input = flattened(read);
  batch.target_layout = layout_of(read);
  Rows predicted = golden.tokens;
  for (auto& row : predicted) row.erase(row.begin());
  batch.labels = flattened(predicted);
  expect_loss_and_gradients(golden, batch);
}

/// Each sequence from an empty state, one token at a time.
TEST_P(LanguageModel, StepByStep) {
  Golden golden(GetParam());
  Generates* generates = golden.model->generates();
  ASSERT_NE(generates, nullptr);
  std::vector<Tensor> hidden;
  for (const auto& row : golden.tokens) {
    DecoderState state = generates->start(1);
    for (const int64_t token : row) hidden.push_back(generates->step(state, {token}));
  }
  expect_states(golden, at::cat(hidden));
  expect_equal(generates->logits(at::cat(hidden)), golden.matrix("logits"));
}

/// All sequences together: all tokens except the last of each in one pass, then the last ones, each at its own
/// position.
TEST_P(LanguageModel, RaggedPrefillAndAStep) {
  Golden golden(GetParam());
  Generates* generates = golden.model->generates();
  ASSERT_NE(generates, nullptr);
  DecoderState state = generates->start(std::ssize(golden.tokens));
  const Rows prompts = part(golden.tokens, 0, -1);
  const Ragged layout = layout_of(prompts);
  const Tensor first = generates->read(state, flattened(prompts), layout);
  std::vector<int64_t> last;
  for (const auto& row : golden.tokens) last.push_back(row.back());
  const Tensor second = generates->step(state, last);

  std::vector<Tensor> hidden;
  int64_t begin = 0;
  for (int64_t i = 0; i < std::ssize(prompts); ++i) {
    const auto length = std::ssize(prompts[static_cast<size_t>(i)]);
    hidden.push_back(first.narrow(0, begin, length));
    hidden.push_back(second.narrow(0, i, 1));
    begin += length;
  }
  expect_states(golden, at::cat(hidden));
}

/// A long prompt in two passes: the second sees the state left by the first.
TEST_P(LanguageModel, PrefillInTwoPasses) {
  Golden golden(GetParam());
  Generates* generates = golden.model->generates();
  ASSERT_NE(generates, nullptr);
  DecoderState state = generates->start(std::ssize(golden.tokens));
  const Rows beginning = part(golden.tokens, 0, 1);
  Rows end = golden.tokens;
  for (auto& row : end) row.erase(row.begin());
  const Tensor first = generates->read(state, flattened(beginning), layout_of(beginning));
  const Tensor second = generates->read(state, flattened(end), layout_of(end));

  std::vector<Tensor> hidden;
  int64_t begin = 0;
  for (int64_t i = 0; i < std::ssize(end); ++i) {
    const auto length = std::ssize(end[static_cast<size_t>(i)]);
    hidden.push_back(first.narrow(0, i, 1));
    hidden.push_back(second.narrow(0, begin, length));
    begin += length;
  }
  expect_states(golden, at::cat(hidden));
}

INSTANTIATE_TEST_SUITE_P(Models, LanguageModel,
                         ::testing::Values("llama2", "llama3", "qwen2", "qwen3", "gemma_tiny", "gpt2", "gptj_tiny"),
                         [](const auto& info) { return info.param; });

TEST(Bert, LossAndEveryGradientNorm) {
  Golden golden("bert");
  Batch batch;
  batch.source = flattened(golden.tokens);
  batch.segments = flattened(golden.values["segments"].get<Rows>());
  batch.source_layout = layout_of(golden.tokens);
  batch.labels.resize(golden.tokens.size());
  std::iota(batch.labels.begin(), batch.labels.end(), 0);
  expect_loss_and_gradients(golden, batch);
}

}  // namespace
}  // namespace plumb::transformers_test
