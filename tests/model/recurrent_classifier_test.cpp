// The classifier of ULMFiT against its equations, using PyTorch's batch norm and the states of a language model with
// the same weights.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "plumb/base/error.h"
#include "plumb/model/awd_lstm.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

AwdLstmOptions unregularized() { return {0, 0, 0, 0, 0, 0, 0, 1400, 6, 0, 0}; }

ModelConfig recurrent(const AwdLstmOptions& options, int64_t labels, const std::string& pooling = "concat") {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.embedding_size = 5;
  config.hidden_size = 7;
  config.layers = 2;
  config.target_vocabulary = 13;
  config.labels = labels;
  config.pooling = pooling;
  config.options.insert_or_assign("awd-lstm", Options(options));
  return config;
}

/// Parameters and running averages are random; variances are positive.
AwdLstm random_model(const ModelConfig& config) {
  AwdLstm model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 5, 0.4));
  uint64_t seed = 20;
  for (const Parameter& buffer : model.parameters().buffers())
    buffer.value.copy_(testing::random_tensor(buffer.value.sizes(), seed++).abs() + 0.1);
  return model;
}

/// Texts of these lengths, whose tokens count up modulo the vocabulary.
Batch labeled_batch(const std::vector<int64_t>& lengths) {
  Batch batch;
  for (const int64_t length : lengths) {
    for (int64_t t = 0; t < length; ++t) batch.target_input.push_back(std::ssize(batch.target_input) % 13);
    batch.target_layout.append(length);
    batch.labels.push_back(std::ssize(batch.labels) % 3);
  }
  return batch;
}

Tensor value_of(const Model& model, const std::string& name) {
  for (const Parameter& buffer : model.parameters().buffers()) {
    if (buffer.name == name) return buffer.value;
  }
  return model.parameters().at(name).value;
}

/// The states of one text's tokens, by a language model with the classifier's weights.
Tensor states_of_text(const AwdLstm& classifier, const std::vector<int64_t>& tokens) {
  ModelConfig config = classifier.config();
  config.labels = 0;
  AwdLstm language_model(config, at::kDouble);
  const at::NoGradGuard no_graph;
  for (const Parameter& parameter : language_model.parameters().all()) {
    if (parameter.name != "output.bias") parameter.value.copy_(classifier.parameters().at(parameter.name).value);
  }
  ForwardContext context;
  return language_model.run(tokens, Ragged({std::ssize(tokens)}), {}, context).before_dropout;
}

/// The logits by the equations; the last `pooled` states of each text are pooled.
Tensor expected_logits(const AwdLstm& model, const Batch& batch, int64_t pooled, bool evaluation) {
  const at::NoGradGuard no_graph;
  std::vector<Tensor> rows;
  for (int64_t s = 0; s < batch.target_layout.sequences(); ++s) {
    const auto begin = batch.target_input.begin() + batch.target_layout.begin(s);
    const Tensor all = states_of_text(model, {begin, begin + batch.target_layout.length(s)});
    const Tensor h = all.slice(0, std::max<int64_t>(all.size(0) - pooled, 0));
    rows.push_back(at::cat({h[-1], std::get<0>(h.max(0)), h.mean(0)}));
  }
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return at::batch_norm(x, value_of(model, name + ".weight"), value_of(model, name + ".bias"),
                          value_of(model, name + ".running_mean").clone(),
                          value_of(model, name + ".running_var").clone(), !evaluation, 0.1, 1e-5, false);
  };
  const Tensor hidden = at::relu(at::linear(norm(at::stack(rows), "pooler.norm1"), value_of(model, "pooler.weight"),
                                            value_of(model, "pooler.bias")));
  return at::linear(norm(hidden, "pooler.norm2"), value_of(model, "output.weight"), value_of(model, "output.bias"));
}

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(RecurrentClassifier, IsConcatPoolingAndTwoBlocks) {
  AwdLstm model = random_model(recurrent(unregularized(), 3));
  const Batch batch = labeled_batch({4, 9, 1, 6});
  EXPECT_EQ(model.parameters().at("pooler.weight").value.sizes(), (at::IntArrayRef{6, 15}));
  EXPECT_EQ(model.parameters().at("output.weight").value.sizes(), (at::IntArrayRef{3, 6}));
  EXPECT_LT(largest_difference(model.class_logits(batch), expected_logits(model, batch, 1400, true)), 1e-12);
  ForwardContext context(Pass::measurement);
  const Tensor expected = expected_logits(model, batch, 1400, false);
  EXPECT_LT(largest_difference(model.logits(model.states(batch, context)), expected), 1e-11);
  const Loss loss = model.loss(batch, {}, context);
  const Tensor labels = at::tensor(at::ArrayRef<int64_t>(batch.labels), at::kLong);
  EXPECT_NEAR(loss.value.item<double>(), at::cross_entropy_loss(expected, labels).item<double>(), 1e-12);
}

// Sequences are concatenated, without padding.
TEST(RecurrentClassifier, OtherTextsOfABatchChangeNothing) {
  AwdLstm model = random_model(recurrent(unregularized(), 3));
  const Batch batch = labeled_batch({4, 9, 1, 6});
  const Tensor together = model.class_logits(batch);
  for (int64_t s = 0; s < 4; ++s) {
    Batch alone;
    const auto begin = batch.target_input.begin() + batch.target_layout.begin(s);
    alone.target_input.assign(begin, begin + batch.target_layout.length(s));
    alone.target_layout.append(batch.target_layout.length(s));
    alone.labels = {0};
    EXPECT_LT(largest_difference(model.class_logits(alone)[0], together[s]), 1e-13) << s;
  }
}

TEST(RecurrentClassifier, PoolsTheEndOfALongText) {
  AwdLstmOptions options = unregularized();
  options.pooled_tokens = 3;
  AwdLstm model = random_model(recurrent(options, 3));
  const Batch batch = labeled_batch({2, 7, 3});
  EXPECT_LT(largest_difference(model.class_logits(batch), expected_logits(model, batch, 3, true)), 1e-12);

  // Tokens 2 to 5 are read before the last three of the second text: no gradient reaches them.
  ForwardContext context(Pass::measurement);
  const Loss loss = model.loss(batch, {}, context);
  const Tensor gradient = gradients({loss.value}, {model.parameters().at("embedding.weight").value}, {})[0];
  std::set<int64_t> reached;
  for (int64_t token = 0; token < gradient.size(0); ++token) {
    if (gradient[token].abs().max().item<double>() > 0) reached.insert(token);
  }
  EXPECT_EQ(reached, (std::set<int64_t>{0, 1, 6, 7, 8, 9, 10, 11}));
}

// A step's masks are the same for the beginning of a text and for its end.
TEST(RecurrentClassifier, MasksDoNotDependOnWhereTheEndBegins) {
  const Batch batch = labeled_batch({2, 7, 5});
  const auto loss_with = [&](int64_t pooled_tokens) {
    AwdLstmOptions options;
    options.pooled_tokens = pooled_tokens;
    options.activation_penalty = options.temporal_penalty = 0;
    AwdLstm model = random_model(recurrent(options, 3, "last"));
    ForwardContext step(0.1, 1, 1);
    return model.loss(batch, {}, step).value.item<double>();
  };
  const double whole = loss_with(1400);
  EXPECT_NEAR(loss_with(3), whole, 1e-12);
  EXPECT_NEAR(loss_with(1), whole, 1e-12);
}

TEST(RecurrentClassifier, DropoutTakesPartInTrainingStepsAlone) {
  AwdLstmOptions options = unregularized();
  options.pooled_dropout = options.head_dropout = 0.5;
  AwdLstm model = random_model(recurrent(options, 3)), plain = random_model(recurrent(unregularized(), 3));
  const Batch batch = labeled_batch({4, 9, 1, 6});
  const auto loss = [&](AwdLstm& of, ForwardContext context) {
    return of.loss(batch, {}, context).value.item<double>();
  };
  EXPECT_EQ(loss(model, ForwardContext(Pass::measurement)), loss(plain, ForwardContext(Pass::measurement)));
  const double step = loss(model, ForwardContext(0.1, 1, 1));
  EXPECT_NE(step, loss(plain, ForwardContext(0.1, 1, 1)));
  EXPECT_EQ(loss(model, ForwardContext(0.1, 1, 1)), step);
  EXPECT_NE(loss(model, ForwardContext(0.1, 1, 2)), step);
}

TEST(RecurrentClassifier, UpdatesItsRunningAveragesInSteps) {
  AwdLstm model = random_model(recurrent(unregularized(), 3));
  const Tensor before = value_of(model, "pooler.norm2.running_mean").clone();
  ForwardContext measured(Pass::measurement);
  (void)model.loss(labeled_batch({4, 9}), {}, measured);
  EXPECT_TRUE(at::equal(value_of(model, "pooler.norm2.running_mean"), before));
  ForwardContext step(0.1, 1, 1);
  (void)model.loss(labeled_batch({4, 9}), {}, step);
  EXPECT_FALSE(at::equal(value_of(model, "pooler.norm2.running_mean"), before));
}

TEST(RecurrentClassifier, ClassifiesAndNothingElse) {
  AwdLstm classifier(recurrent(unregularized(), 3), at::kDouble), language_model(recurrent(unregularized(), 0));
  EXPECT_NE(classifier.classifies(), nullptr);
  EXPECT_EQ(classifier.generates(), nullptr);
  EXPECT_TRUE(classifier.reads_target());
  EXPECT_EQ(classifier.labels(), 3);
  EXPECT_EQ(language_model.classifies(), nullptr);
  EXPECT_NE(language_model.generates(), nullptr);
  const auto refuses = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = recurrent(unregularized(), 3);
    change(config);
    EXPECT_THROW((void)make_model(config), Error);
  };
  refuses([](ModelConfig& config) { config.pooling = "none"; });
  refuses([](ModelConfig& config) { config.pooling = "sum"; });
  refuses([](ModelConfig& config) { config.pooler = true; });
  const auto refuses_option = [&](const std::function<void(AwdLstmOptions&)>& change) {
    AwdLstmOptions options;
    change(options);
    EXPECT_THROW((void)make_model(recurrent(options, 3)), Error);
  };
  refuses_option([](AwdLstmOptions& options) { options.pooled_tokens = 0; });
  refuses_option([](AwdLstmOptions& options) { options.head_size = 0; });
  refuses_option([](AwdLstmOptions& options) { options.pooled_dropout = 1; });
  refuses_option([](AwdLstmOptions& options) { options.head_dropout = -0.1; });
}

}  // namespace
}  // namespace plumb
