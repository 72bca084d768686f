// The recurrent model with QRNN layers: against a loop over positions, its state from batch to batch, and generation.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/text_rows.h"
#include "plumb/base/error.h"
#include "plumb/model/awd_lstm.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

ModelConfig quasi_recurrent(double weight_drop = 0) {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.embedding_size = 5;
  config.hidden_size = 7;
  config.layers = 3;
  config.target_vocabulary = 11;
  AwdLstmOptions options{0, 0, 0, 0, 0, 0, 0};
  options.cell = "qrnn";
  options.weight_drop = weight_drop;
  config.options.insert_or_assign("awd-lstm", Options(options));
  return config;
}

AwdLstm random_quasi_recurrent(const ModelConfig& config = quasi_recurrent()) {
  AwdLstm model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 5, 0.4));
  return model;
}

/// The states of one text by the equations, position by position.
Tensor states_by_loop(const AwdLstm& model, const std::vector<int64_t>& tokens) {
  const at::NoGradGuard no_graph;
  const auto value = [&](const std::string& name) { return model.parameters().at(name).value; };
  std::vector<Tensor> rows;
  for (const int64_t token : tokens) rows.push_back(value("embedding.weight")[token]);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const std::string name = "qrnn." + std::to_string(layer);
    const Tensor weight = value(name + ".weight"), bias = value(name + ".bias");
    Tensor cell = at::zeros({weight.size(0) / 3}, at::kDouble);
    Tensor before = at::zeros_like(rows.front());
    for (Tensor& row : rows) {
      const Tensor read = layer == 0 ? at::cat({row, before}) : row;
      const std::vector<Tensor> gates = (at::mv(weight, read) + bias).chunk(3);
      before = row;
      const Tensor forget = at::sigmoid(gates[1]);
      cell = forget * cell + (1 - forget) * at::tanh(gates[0]);
      row = at::sigmoid(gates[2]) * cell;
    }
  }
  return at::stack(rows);
}

double quasi_distance(const Tensor& a, const Tensor& b) { return (a.detach() - b).abs().max().item<double>(); }

TEST(QrnnModel, EqualsALoopOverPositions) {
  AwdLstm model = random_quasi_recurrent();
  const std::vector<std::vector<int64_t>> texts = {{1, 4, 9, 2, 4, 4, 10}, {3, 8}, {7, 6, 5, 0}};
  Batch batch;
  std::vector<Tensor> expected;
  for (const std::vector<int64_t>& text : texts) {
    batch.target_input.insert(batch.target_input.end(), text.begin(), text.end());
    batch.target_layout.append(std::ssize(text));
    expected.push_back(states_by_loop(model, text));
  }
  ForwardContext context(Pass::measurement);
  EXPECT_LT(quasi_distance(model.states(batch, context), at::cat(expected)), 1e-12);
  const int64_t layers = 3 * 7 * (2 * 5 + 1) + 3 * 7 * (7 + 1) + 3 * 5 * (7 + 1);
  EXPECT_EQ(model.parameters().count(), 55 + layers + 11);
}

TEST(QrnnModel, DropsItsMatricesInTrainingStepsAlone) {
  AwdLstm model = random_quasi_recurrent(quasi_recurrent(0.5));
  Batch batch;
  batch.target_input = batch.labels = {1, 4, 9, 2};
  batch.target_layout = Ragged({4});
  const auto states = [&](ForwardContext context) { return model.states(batch, context).detach(); };
  const Tensor plain = states_by_loop(model, batch.target_input);
  EXPECT_LT(quasi_distance(states(ForwardContext()), plain), 1e-12);
  const Tensor step = states(ForwardContext(0.0, 1, 1));
  EXPECT_GT(quasi_distance(step, plain), 1e-3);
  EXPECT_TRUE(at::equal(states(ForwardContext(0.0, 1, 1)), step));
  EXPECT_FALSE(at::equal(states(ForwardContext(0.0, 1, 2)), step));
}

// Three rows in two batches; one row ends in the first batch.
TEST(QrnnModel, CarriesItsStateFromBatchToBatch) {
  AwdLstm model = random_quasi_recurrent();
  const std::vector<std::vector<int64_t>> rows = {{1, 4, 9, 2, 4, 4, 10, 0}, {3, 8, 5, 5, 7, 1}, {7, 6, 5, 0}};
  const auto piece = [&](int64_t begin, int64_t end) { return test::piece_of_rows(rows, begin, end); };
  const auto loss = [&](const Batch& batch, ForwardContext& context) { return model.loss(batch, {}, context).nll; };
  ForwardContext plain;
  CarriedState state;
  ForwardContext continuing;
  continuing.carry(state);
  const double parts = loss(piece(0, 3), continuing) + loss(piece(3, 7), continuing);
  EXPECT_NEAR(parts, loss(piece(0, 7), plain), 1e-12 * parts);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state.tensors) {
    names.push_back(name);
    EXPECT_FALSE(tensor.requires_grad()) << name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"qrnn.0.cell", "qrnn.0.input", "qrnn.1.cell", "qrnn.2.cell"}));
  const Tensor table = model.parameters().at("embedding.weight").value.detach();
  for (const auto& [row, token] : {std::pair{0, 10}, {1, 7}, {2, 5}})
    EXPECT_LT(quasi_distance(state.tensors[1].second[row], table[token]), 1e-15) << row;
  Batch other_rows;
  other_rows.target_input = other_rows.labels = {1, 2};
  other_rows.target_layout = Ragged({1, 1});
  EXPECT_THROW((void)loss(other_rows, continuing), Error);
}

TEST(QrnnModel, ContinuesAsIfItReadAllAtOnce) {
  AwdLstm model = random_quasi_recurrent();
  Generates& generating = *model.generates();
  DecoderState state = generating.start(3);
  const auto expect_last = [&](const Tensor& found, const std::vector<std::vector<int64_t>>& texts) {
    std::vector<Tensor> expected;
    for (const std::vector<int64_t>& text : texts) expected.push_back(states_by_loop(model, text)[-1]);
    EXPECT_LT(quasi_distance(found, at::stack(expected)), 1e-12);
  };
  const Tensor read = generating.read(state, {1, 4, 9, 2, 3, 3}, Ragged({3, 1, 2}));
  expect_last(read.index_select(0, at::tensor({2, 3, 5}, at::kLong)), {{1, 4, 9}, {2}, {3, 3}});
  state.reorder({2, 0, 0});  // the second row ends
  expect_last(generating.step(state, {5, 6, 7}), {{3, 3, 5}, {1, 4, 9, 6}, {1, 4, 9, 7}});
  expect_last(generating.step(state, {0, 0, 8}), {{3, 3, 5, 0}, {1, 4, 9, 6, 0}, {1, 4, 9, 7, 8}});
}

TEST(QrnnModel, AnUnknownCellIsAnError) {
  ModelConfig config = quasi_recurrent();
  AwdLstmOptions options;
  options.cell = "gru";
  config.options.insert_or_assign("awd-lstm", Options(options));
  EXPECT_THROW((void)make_model(config), Error);
}

}  // namespace
}  // namespace plumb
