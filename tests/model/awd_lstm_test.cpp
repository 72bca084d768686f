// The AWD-LSTM compared with models made of torch.nn.LSTM (tests/golden/README.md), its training steps and generation.
#include "plumb/model/awd_lstm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden.h"
#include "model/text_rows.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/data/sequences.h"
#include "plumb/io/safetensors.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

ModelConfig small_awd_lstm() {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.embedding_size = 8;
  config.hidden_size = 12;
  config.layers = 3;
  config.target_vocabulary = 11;
  return config;
}

void set_options(ModelConfig& config, const AwdLstmOptions& options) {
  config.options.insert_or_assign("awd-lstm", Options(options));
}

/// Neither dropout nor penalties.
AwdLstmOptions no_regularization() { return {0, 0, 0, 0, 0, 0, 0}; }

/// A model with random parameters, biases included.
AwdLstm random_awd_lstm(const ModelConfig& config) {
  AwdLstm model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 5, 0.3));
  return model;
}

Batch text_batch() {
  return batch_from_json(Json::parse(R"({"tokens": [[1, 4, 9, 2, 4, 4, 10], [3, 8], [7, 6, 5, 0]]})"));
}

/// A model, a batch and the expected values: the files NAME.toml, NAME.safetensors and NAME.json.
void expect_golden_values(const std::filesystem::path& base) {
  const auto with = [&](const char* extension) { return std::filesystem::path(base).concat(extension); };
  ModelConfig config;
  Config::from_file(with(".toml")).read("model", config);
  const Json golden = read_json(with(".json"));
  const Batch batch = batch_from_json(golden["batch"]);
  const double expected = golden["loss"];

  AwdLstm model(config, at::kDouble);
  load_parameters(model.parameters(), load_safetensors(with(".safetensors")), "golden");
  test::expect_golden_loss_and_gradients(model, batch, golden);
  ForwardContext context;
  const AwdLstm::Result result = model.run(batch.target_input, batch.target_layout, {}, context);
  const Json& states = golden["final_states_h_c_by_row_and_layer"];
  ASSERT_EQ(std::ssize(states), batch.target_layout.sequences());
  for (size_t row = 0; row < states.size(); ++row) {
    ASSERT_EQ(states[row].size(), result.last.size());
    for (size_t layer = 0; layer < result.last.size(); ++layer) {
      const ops::LstmState& last = result.last[layer];
      const Json& of_layer = states[row][layer];
      for (const auto& [values, found] : {std::pair{&of_layer[0], &last.hidden}, std::pair{&of_layer[1], &last.cell}}) {
        const auto numbers = values->get<std::vector<double>>();
        const Tensor given = at::tensor(at::ArrayRef<double>(numbers), at::kDouble);
        EXPECT_LT((found->detach()[static_cast<int64_t>(row)] - given).abs().max().item<double>(), 1e-10);
      }
    }
  }

  // A training step without dropout: the penalties alone, then both with the loss.
  const auto in_training = [&](double alpha, double beta) {
    AwdLstmOptions options = no_regularization();
    options.activation_penalty = alpha;
    options.temporal_penalty = beta;
    set_options(config, options);
    AwdLstm penalized(config, at::kDouble);
    penalized.parameters().flat().copy_(model.parameters().flat());
    ForwardContext step(0.0, 1, 1);
    const Loss loss = penalized.loss(batch, {}, step);
    EXPECT_NEAR(loss.nll / loss.weight, expected, 1e-10 * expected);
    return loss.value.item<double>();
  };
  EXPECT_NEAR(in_training(1, 0) - expected, golden["activation_regularization_mean_square"].get<double>(), 1e-10);
  EXPECT_NEAR(in_training(0, 1) - expected, golden["temporal_regularization_mean_square"].get<double>(), 1e-10);
  EXPECT_NEAR(in_training(2, 1), golden["loss_with_ar_2_tar_1"].get<double>(), 1e-10 * expected);
}

TEST(AwdLstm, HasTheValuesOfPyTorch) {
  expect_golden_values(test::source_directory() / "tests" / "golden" / "awd_lstm_tiny");
}

TEST(AwdLstm, HasTheValuesOfAnotherImplementation) {
  PLUMB_REQUIRE_SHARED("golden/awd_tiny.json");
  expect_golden_values(test::shared_directory() / "golden" / "awd_tiny");
}

TEST(AwdLstm, IsRegularizedInTrainingStepsAlone) {
  AwdLstm model = random_awd_lstm(small_awd_lstm());
  const Batch batch = text_batch();
  const auto loss = [&](ForwardContext context) { return model.loss(batch, {}, context).value.item<double>(); };
  const double plain = loss(ForwardContext());
  EXPECT_EQ(loss(ForwardContext(Pass::measurement)), plain);
  EXPECT_EQ(loss(ForwardContext(Pass::training)), plain);
  const double step = loss(ForwardContext(0.1, 1, 1));
  EXPECT_NE(step, plain);
  EXPECT_EQ(loss(ForwardContext(0.1, 1, 1)), step);
  EXPECT_NE(loss(ForwardContext(0.1, 1, 2)), step);
  EXPECT_NE(loss(ForwardContext(0.1, 2, 1)), step);
}

// The gradient does not depend on how a step's batch is split. TAR is excluded: the means of the parts do not add up to
// that of the whole.
TEST(AwdLstm, MasksDoNotDependOnHowABatchIsDivided) {
  ModelConfig config = small_awd_lstm();
  AwdLstmOptions options;
  options.temporal_penalty = 0;
  set_options(config, options);
  AwdLstm model = random_awd_lstm(config);
  const Batch whole = text_batch();
  const auto gradient = [&](const Batch& batch, double scale) {
    ForwardContext context(0.1, 1, 1);
    LossOptions given;
    given.scale = scale;
    return joined(gradients({model.loss(batch, given, context).value}, model.parameters().values(), {}));
  };
  const Ragged& layout = whole.target_layout;
  const double scale = 1 / whole.weight();
  Tensor sum = at::zeros_like(model.parameters().flat());
  for (const std::vector<int64_t>& sequences : {std::vector<int64_t>{2, 1}, {0}}) {
    Batch part;
    std::vector<int64_t> origins;
    for (const int64_t s : sequences) {
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
        part.target_input.push_back(whole.target_input[static_cast<size_t>(t)]);
        part.labels.push_back(whole.labels[static_cast<size_t>(t)]);
      }
      part.target_layout.append(layout.length(s));
      origins.push_back(layout.begin(s));
    }
    part.target_layout.set_origins(origins);
    sum += gradient(part, scale);
  }
  const Tensor expected = gradient(whole, scale);
  EXPECT_LT((sum - expected).abs().max().item<double>(), 1e-12);
  EXPECT_GT(expected.norm().item<double>(), 0);
}

TEST(AwdLstm, LearnsABatchByGradientDescent) {
  ModelConfig config = small_awd_lstm();
  config.initialization = "lstm";
  set_options(config, no_regularization());
  AwdLstm model(config, at::kDouble);
  model.initialize(1);
  const Batch batch = text_batch();
  std::vector<double> losses;
  for (int64_t step = 1; step <= 20; ++step) {
    ForwardContext context(0.0, 1, step);
    const Loss loss = model.loss(batch, {}, context);
    losses.push_back(loss.value.item<double>());
    const Tensor gradient = joined(gradients({loss.value}, model.parameters().values(), {}));
    model.parameters().flat().sub_(0.2 * gradient);
  }
  EXPECT_NEAR(losses.front(), std::log(11.0), 0.1);  // embeddings are small, so that words are equally likely
  for (size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[i - 1]) << i;
}

TEST(AwdLstm, ContinuesAsIfItReadAllAtOnce) {
  AwdLstm model = random_awd_lstm(small_awd_lstm());
  ForwardContext context;
  const auto whole = [&](const std::vector<int64_t>& tokens) {
    return model.hidden(tokens, {}, Ragged({static_cast<int64_t>(tokens.size())}), context).detach();
  };
  const auto expect_rows = [](const Tensor& found, const std::vector<Tensor>& expected) {
    ASSERT_EQ(found.sizes(), at::cat(expected, 0).sizes());
    EXPECT_LT((found - at::cat(expected, 0)).abs().max().item<double>(), 1e-12);
  };
  Generates& generating = *model.generates();
  DecoderState state = generating.start(3);
  expect_rows(generating.read(state, {1, 4, 9, 2, 3, 3}, Ragged({3, 1, 2})),
              {whole({1, 4, 9}), whole({2}), whole({3, 3})});
  EXPECT_EQ(state.positions, std::vector<int64_t>({3, 1, 2}));
  state.reorder({2, 0, 0});  // the second row ends
  expect_rows(
      generating.step(state, {5, 6, 7}),
      {whole({3, 3, 5})[-1].unsqueeze(0), whole({1, 4, 9, 6})[-1].unsqueeze(0), whole({1, 4, 9, 7})[-1].unsqueeze(0)});
  expect_rows(generating.read(state, {8, 8}, Ragged({0, 2, 0})), {whole({1, 4, 9, 6, 8, 8}).narrow(0, 4, 2)});
  expect_rows(generating.step(state, {0, 0, 0}),
              {whole({3, 3, 5, 0})[-1].unsqueeze(0), whole({1, 4, 9, 6, 8, 8, 0})[-1].unsqueeze(0),
               whole({1, 4, 9, 7, 0})[-1].unsqueeze(0)});
  EXPECT_EQ(generating.vocabulary(), 11);
  EXPECT_THROW(generating.read(state, {1}, Ragged({1})), Error);
}

// Three rows in two batches; one row ends in the first batch.
TEST(AwdLstm, CarriesItsStateFromBatchToBatch) {
  AwdLstm model = random_awd_lstm(small_awd_lstm());
  const std::vector<std::vector<int64_t>> rows = {{1, 4, 9, 2, 4, 4, 10, 0}, {3, 8, 5, 5, 7, 1}, {7, 6, 5, 0}};
  const auto piece = [&](int64_t begin, int64_t end) { return test::piece_of_rows(rows, begin, end); };
  const auto loss = [&](const Batch& batch, ForwardContext& context) { return model.loss(batch, {}, context).nll; };
  ForwardContext plain;
  const Batch whole = piece(0, 7);
  const AwdLstm::Result at_once = model.run(whole.target_input, whole.target_layout, {}, plain);
  CarriedState state;
  ForwardContext continuing;
  continuing.carry(state);
  const double parts = loss(piece(0, 3), continuing) + loss(piece(3, 7), continuing);
  EXPECT_NEAR(parts, loss(whole, plain), 1e-12 * parts);
  ASSERT_EQ(state.tensors.size(), 2 * at_once.last.size());
  for (const auto& [name, tensor] : state.tensors) {
    EXPECT_FALSE(tensor.requires_grad()) << name;
    const ops::LstmState& expected = at_once.last[static_cast<size_t>(name.at(5) - '0')];
    const Tensor& other = name.ends_with("hidden") ? expected.hidden : expected.cell;
    EXPECT_LT((tensor - other.detach()).abs().max().item<double>(), 1e-12) << name;
  }
  Batch other_rows;
  other_rows.target_input = other_rows.labels = {1, 2};
  other_rows.target_layout = Ragged({1, 1});
  EXPECT_THROW((void)loss(other_rows, continuing), Error);
  state.tensors.pop_back();
  EXPECT_THROW((void)loss(whole, continuing), Error);
}

TEST(AwdLstm, ShowsItsLayers) {
  AwdLstm model = random_awd_lstm(small_awd_lstm());
  ForwardContext context(Pass::measurement);
  std::vector<std::string> shown;
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    shown.push_back(to_string(point) + " " + std::to_string(x.size(1)));
  });
  model.states(text_batch(), context);
  EXPECT_EQ(shown,
            (std::vector<std::string>{"decoder.input 8", "decoder.layers.0.input 8", "decoder.layers.0.output 12",
                                      "decoder.layers.1.input 12", "decoder.layers.1.output 12",
                                      "decoder.layers.2.input 12", "decoder.layers.2.output 8", "decoder.result 8"}));
}

// ULMFiT's sizes, counted by its authors' formula: 4·size·(in + size + 2) for each layer.
TEST(AwdLstm, HasTheParametersOfThePaper) {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.target_vocabulary = 1000;
  const auto model = make_model(config);
  const int64_t layers = 4 * 1150 * (400 + 1150 + 2) + 4 * 1150 * (1150 + 1150 + 2) + 4 * 400 * (1150 + 400 + 2);
  EXPECT_EQ(layers, 20'211'600);  // 20.21 million
  EXPECT_EQ(model->parameters().count(), 400'000 + layers + 1000);
}

TEST(AwdLstm, ConfigurationsAreCheckedAndWritten) {
  const auto parsed = [](const std::string& toml) {
    ModelConfig config;
    Config::from_string(
        "[model]\nkind = \"awd-lstm\"\ntarget_vocabulary = 9\nembedding_size = 4\nhidden_size = 6\n" + toml, "test")
        .read("model", config);
    return config;
  };
  const ModelConfig given = parsed("[model.awd-lstm]\nweight_drop = 0.25");
  ModelConfig again;
  Config::from_string(ConfigWriter().section("model", given).text(), "written").read("model", again);
  EXPECT_EQ(again, given);
  EXPECT_EQ(again.options.at("awd-lstm").as<AwdLstmOptions>().weight_drop, 0.25);
  EXPECT_NO_THROW(make_model(given));
  EXPECT_NO_THROW(make_model(parsed("attention = \"linear\"\nattention_dropout = 0.1")));  // it has no attention
  for (const char* bad :
       {"hidden_size = 0", "layers = 0", "embedding_size = 2000000000", "target_vocabulary = 0", "residual = \"ngpt\"",
        "initialization = \"theory\"\nheads = 1", "[model.awd-lstm]\nweight_drop = 1.0",
        "[model.awd-lstm]\ninput_dropout = nan", "[model.awd-lstm]\ntemporal_penalty = -1.0"}) {
    EXPECT_THROW(
        {
          ModelConfig config = given;
          Config::from_string(std::string("[model]\n") + bad, "test").read("model", config);
          make_model(config);
        },
        Error)
        << bad;
  }
}

TEST(AwdLstmConfig, HasNoOutputMatrixBesideItsEmbedding) {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.target_vocabulary = 9;
  validate(config);
  config.share_embeddings = "none";
  EXPECT_THROW(validate(config), Error);
  config.labels = 2;  // a classifier has no output over the vocabulary
  validate(config);
}

}  // namespace
}  // namespace plumb
