// Measurements along a training run compared with loops, dense matrices and all possible draws, in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "plumb/analysis/attention_scores.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/noise_scale.h"
#include "plumb/analysis/token_similarity.h"
#include "plumb/analysis/update_ratio.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/train/trainer.h"
#include "support/batches.h"
#include "support/paths.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

class AlongTraining : public ::testing::Test {
 protected:
  AlongTraining() {
    set_verbosity(Verbosity::quiet);
    test::make_copy_task(folder_ / "data");
    run_ = test::copy_run(folder_ / "data");
    run_.model.d_model = 4;
    run_.model.feed_forward = 4;
    run_.model.heads = 2;
    run_.model.residual = "post-ln";
    run_.train.steps = 4;
    run_.train.warm_up = 10;
    task_ = make_task({}, DataDirectory::open(folder_ / "data"), run_.model.kind);
    task_->complete(run_.model);
    run_.watch.every = 4;
    run_.watch.examples = 10;
  }
  ~AlongTraining() override { set_verbosity(Verbosity::normal); }

  [[nodiscard]] std::unique_ptr<Model> model() const {
    std::unique_ptr<Model> made = make_model(run_.model, at::kDouble);
    made->initialize(3);
    return made;
  }

  [[nodiscard]] Batch examples(std::vector<int64_t> which) const { return task_->dataset("train")->batch(which); }

  void read_watch(const std::string& toml) {
    Config::from_string("[watch]\n" + toml, "test").read("watch", run_.watch);
  }

  test::TemporaryDirectory folder_;
  RunConfig run_;
  std::unique_ptr<Task> task_;
};

/// The tensors of a file whose names begin with a prefix, concatenated in the order of the parameters.
Tensor stored(const NamedTensors& state, const std::string& prefix, const Parameters& parameters) {
  std::vector<Tensor> pieces;
  for (const Parameter& parameter : parameters.all()) {
    for (const auto& [name, tensor] : state) {
      if (name == prefix + parameter.name) pieces.push_back(tensor);
    }
  }
  return joined(pieces);
}

double largest_real(const Tensor& matrix) { return at::real(at::linalg_eigvals(matrix)).max().item<double>(); }

TEST_F(AlongTraining, CurvatureIsThatOfTheDenseMatrices) {
  // Different rates, and a group that never moves.
  run_.train.groups = {{.pattern = {"encoder.*linear*"}, .learning_rate_factor = 0.25},
                       {.pattern = {"decoder.*norm*"}, .frozen_until = -1}};
  Config::from_string("[train.adam]\neps = 1e-3\n", "test").read("train", run_.train);  // near which some elements are
  read_watch("what = \"curvature\"\n[watch.curvature]\nproducts = 300\nfirst_products = 300\ntolerance = 1e-9\n");
  const auto trained = model();
  const Parameters& parameters = trained->parameters();
  const int64_t n = parameters.count();
  Trainer trainer(*trained, run_.train, *task_, run_.watch);
  const Schedule schedule = make_schedule(run_.train, run_.model.d_model);
  int compared = 0;
  double shares = 0;
  TrainHooks hooks;
  hooks.watched = [&](const WatchRecord& record) {
    const Json& found = record.values["curvature"];
    ASSERT_FALSE(found.contains("error")) << found;
    // The Hessian of the mean loss over the first ten examples, column by column.
    HessianOptions options;
    options.label_smoothing = run_.train.label_smoothing;
    HessianOperator hessian(*trained, {examples({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}, options);
    const Tensor matrix = at::empty({n, n}, at::kDouble);
    const Tensor unit = at::zeros({n}, at::kDouble);
    for (int64_t j = 0; j < n; ++j) {
      unit[j].fill_(1);
      matrix.select(1, j).copy_(hessian(unit));
      unit[j].fill_(0);
    }
    std::vector<Tensor> rates;
    for (const Parameter& parameter : parameters.all()) {
      const bool slow = parameter.name.starts_with("encoder.") && parameter.name.find("linear") != std::string::npos;
      const bool frozen = parameter.name.starts_with("decoder.") && parameter.name.find("norm") != std::string::npos;
      rates.push_back(at::full_like(parameter.value.detach(), frozen ? 0 : slow ? 0.25 : 1));
    }
    const Tensor rate = joined(rates);
    const Tensor moving = (rate > 0).to(at::kDouble);
    EXPECT_NEAR(found["hessian"]["value"].get<double>(), largest_real(moving.unsqueeze(1) * matrix * moving), 1e-7);
    EXPECT_FALSE(found["hessian"].contains("threshold"));
    ASSERT_EQ(found.contains("preconditioned"), record.step > 0);
    ++compared;
    if (record.step == 0) return;
    std::filesystem::create_directories(folder_ / "saved");
    trainer.save(folder_ / "saved");
    const NamedTensors state = load_safetensors(folder_ / "saved" / "optimizer.safetensors");
    const double t = static_cast<double>(record.step);
    const Tensor v = stored(state, "v.", parameters);
    const Tensor p = (1 - std::pow(0.9, t)) * ((v / (1 - std::pow(0.98, t))).sqrt() + 1e-3);
    const double expected = largest_real((rate / p).unsqueeze(1) * matrix);  // not symmetric
    EXPECT_NEAR(found["preconditioned"]["value"].get<double>() / expected, 1, 1e-6);
    EXPECT_LT(found["preconditioned"]["residual"].get<double>(), 1e-6 * expected);
    EXPECT_NEAR(found["preconditioned"]["threshold"].get<double>(), 38 / schedule(record.step), 1e-6);
    // Of its eigenvector, in the elements whose running mean of squared gradients is close to eps.
    const Tensor s = (rate / p).sqrt();
    const auto [values, vectors] = at::linalg_eigh(s.unsqueeze(1) * (matrix + matrix.t()) / 2 * s);
    const Tensor small = (v / (1 - std::pow(0.98, t))).sqrt() < 1e-2;
    const Tensor mass = vectors.select(1, n - 1).square();
    EXPECT_NEAR(found["preconditioned"]["share_at_epsilon"].get<double>(), (mass * small).sum().item<double>(), 1e-5);
    shares += found["preconditioned"]["share_at_epsilon"].get<double>();
  };
  ASSERT_EQ(trainer.run(hooks).outcome, "finished");
  EXPECT_EQ(compared, 3);
  EXPECT_GT(shares, 0.01);
}

TEST_F(AlongTraining, CurvatureWithoutSomeParametersIsThatOfTheBlock) {
  read_watch(
      "what = \"curvature\"\n[watch.curvature]\nleave_out = [\"src_*\", \"tgt_*\"]\nfirst_products = 300\n"
      "tolerance = 1e-9\n");
  run_.train.steps = 1;
  const auto trained = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  const Parameters& parameters = trained->parameters();
  HessianOptions options;
  options.label_smoothing = run_.train.label_smoothing;
  HessianOperator hessian(*trained, {examples({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}, options);
  std::vector<int64_t> kept;
  int64_t place = 0;
  for (const Parameter& parameter : parameters.all()) {
    const bool left_out = parameter.name.starts_with("src_") || parameter.name.starts_with("tgt_");
    for (int64_t i = 0; i < parameter.value.numel(); ++i, ++place) {
      if (!left_out) kept.push_back(place);
    }
  }
  const Tensor index = at::tensor(kept, at::kLong);
  const Tensor block = at::empty({index.numel(), index.numel()}, at::kDouble);
  Tensor unit = at::zeros({parameters.count()}, at::kDouble);
  for (int64_t j = 0; j < index.numel(); ++j) {
    unit[kept[static_cast<size_t>(j)]].fill_(1);
    block.select(1, j).copy_(hessian(unit).index_select(0, index));
    unit.zero_();
  }
  const Json& found = result.watched.back().values["curvature"];
  EXPECT_NEAR(found["hessian"]["value"].get<double>(), largest_real(block), 1e-7);
  EXPECT_FALSE(found["preconditioned"]["parameter"].get<std::string>().ends_with("embed.weight"));
  read_watch("[watch.curvature]\nleave_out = \"source*\"\n");
  const TrainResult wrong = train(*trained, run_.train, *task_, {}, run_.watch);
  EXPECT_EQ(wrong.watched.back().values["curvature"]["error"],
            "watch.curvature.leave_out: the pattern 'source*' matches no parameter");
}

TEST_F(AlongTraining, GradientDescentHasItsThresholdAtTheHessian) {
  run_.train.optimizer = "sgd";
  Config::from_string("[train.sgd]\nmomentum = 0.5\n", "test").read("train", run_.train);
  read_watch("what = \"curvature\"\n[watch.curvature]\nreference_products = 12\n");
  const auto trained = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  const Schedule schedule = make_schedule(run_.train, run_.model.d_model);
  for (const WatchRecord& record : result.watched) {
    const Json& found = record.values["curvature"];
    EXPECT_FALSE(found.contains("preconditioned"));
    EXPECT_NEAR(found["hessian"]["threshold"].get<double>(), 3 / schedule(std::max<int64_t>(record.step, 1)), 1e-9);
    EXPECT_EQ(found["hessian"]["reference"]["products"], 12);
    // One gradient for the graph, which is kept, and two for each product.
    EXPECT_EQ(found["gradients"].get<double>(), 1 + 2 * found["hessian"]["products"].get<double>());
  }
}

TEST_F(AlongTraining, UpdateRatiosAreThoseOfTheSteps) {
  read_watch("what = \"updates\"\n");
  const auto trained = model(), again = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  ASSERT_EQ(result.watched.size(), 3U);
  EXPECT_TRUE(result.watched[0].values.empty());
  // The same run again, inspected after every step.
  std::vector<std::map<std::string, Tensor>> values(1);
  const auto look = [&] {
    for (const Parameter& parameter : again->parameters().all())
      values.back()[parameter.name] = parameter.value.detach().clone();
  };
  look();
  TrainHooks hooks;
  hooks.stop = [&] {
    values.emplace_back();
    look();
    return false;
  };
  train(*again, run_.train, *task_, hooks);
  ASSERT_GE(values.size(), 5U);
  for (const auto& [record, step] : {std::pair{1, 1}, std::pair{2, 4}}) {
    std::map<std::string, std::pair<double, double>> squares;
    for (const auto& [name, before] : values[static_cast<size_t>(step - 1)]) {
      const Tensor& after = values[static_cast<size_t>(step)][name];
      std::string group = name;
      for (const char* layer : {"encoder.layers.0", "decoder.layers.0"}) {
        if (name.starts_with(std::string(layer) + ".")) group = layer;
      }
      for (const std::string& key : {group, std::string("total")}) {
        squares[key].first += (after - before).square().sum().item<double>();
        squares[key].second += before.square().sum().item<double>();
      }
    }
    const Json& found = result.watched[static_cast<size_t>(record)].values["updates"];
    EXPECT_EQ(found["ratio"].size(), squares.size() - 1);
    for (const auto& [name, square] : squares) {
      const double ratio = (name == "total" ? found["total"] : found["ratio"][name]).get<double>();
      EXPECT_GT(ratio, 0) << name;
      EXPECT_NEAR(ratio, std::sqrt(square.first / square.second), 1e-12) << name;
    }
  }
}

// Gradient descent without momentum moves by learning rate × gradient, here clipped to a norm of 0.1, so the gradients
// follow from the weights before and after each step.
TEST_F(AlongTraining, LayersHaveTheNormsOfTheirGradientsWeightsAndUpdates) {
  read_watch("what = \"layers\"\n");
  Config::from_string(
      "[train]\noptimizer = \"sgd\"\nschedule = \"constant\"\nlearning_rate = 0.5\nclip_norm = 0.1\n"
      "[train.sgd]\nmomentum = 0.0\n",
      "test")
      .read("train", run_.train);
  const auto trained = model(), again = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  EXPECT_TRUE(result.watched[0].values.empty());
  const auto look = [&] {
    std::map<std::string, Tensor> values;
    for (const Parameter& parameter : again->parameters().all())
      values[parameter.name] = parameter.value.detach().clone();
    return values;
  };
  const std::map<std::string, Tensor> before = look();
  run_.train.steps = 1;
  const TrainResult first = train(*again, run_.train, *task_);
  const double norm = *first.history.front().gradient_norm;
  ASSERT_GT(norm, 0.1);
  std::map<std::string, std::map<std::string, double>> squares;
  for (const auto& [name, after] : look()) {
    std::string group = name;
    for (const char* layer : {"encoder.layers.0", "decoder.layers.0"}) {
      if (name.starts_with(std::string(layer) + ".")) group = layer;
    }
    const Tensor update = after - before.at(name);
    for (const std::string& key : {group, std::string("total")}) {
      squares["update"][key] += update.square().sum().item<double>();
      squares["gradient"][key] += (update * (norm / 0.1 / 0.5)).square().sum().item<double>();
      squares["weight"][key] += before.at(name).square().sum().item<double>();
    }
  }
  const Json& found = result.watched[1].values["layers"];
  for (const auto& [what, groups] : squares) {
    EXPECT_EQ(found[what].size(), groups.size() - 1) << what;
    for (const auto& [name, square] : groups) {
      const Json& number = name == "total" ? found["total"][what] : found[what][name];
      EXPECT_NEAR(number.get<double>(), std::sqrt(square), 1e-11 * norm) << what << " of " << name;
    }
  }
  EXPECT_NEAR(found["total"]["gradient"].get<double>(), norm, 1e-12 * norm);
}

TEST(NoiseScale, HasNoBiasOverAllDraws) {
  // Per-example gradients of ½(x·w − y)² at a given w, x·(x·w − y), over every draw of two batches of two examples.
  const double x[4][2] = {{1, 0.5}, {-2, 1}, {0.25, 3}, {1.5, -1}}, y[4] = {1, -2, 0.5, 3}, w[2] = {0.7, -0.4};
  double g[4][2];
  double mean[2] = {0, 0};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 2; ++k) {
      g[i][k] = x[i][k] * (x[i][0] * w[0] + x[i][1] * w[1] - y[i]);
      mean[k] += g[i][k] / 4;
    }
  }
  double trace = 0;
  for (const auto& each : g) {
    for (int k = 0; k < 2; ++k) trace += (each[k] - mean[k]) * (each[k] - mean[k]) / 4;
  }
  double found_trace = 0, found_square = 0;
  for (int draw = 0; draw < 256; ++draw) {
    const int i[4] = {draw % 4, draw / 4 % 4, draw / 16 % 4, draw / 64};
    double squares = 0, square_of_mean = 0;
    for (int k = 0; k < 2; ++k) {
      const double first = (g[i[0]][k] + g[i[1]][k]) / 2, second = (g[i[2]][k] + g[i[3]][k]) / 2;
      squares += (first * first + second * second) / 2;
      square_of_mean += (first + second) * (first + second) / 4;
    }
    const NoiseScale noise = noise_scale(squares, square_of_mean, 2, 2);
    found_trace += noise.trace / 256;
    found_square += noise.square_gradient / 256;
  }
  EXPECT_NEAR(found_trace, trace, 1e-12);
  EXPECT_NEAR(found_square, mean[0] * mean[0] + mean[1] * mean[1], 1e-12);
  EXPECT_EQ(noise_scale(3, 2, 2, 4).examples(), 8.0);  // ‖G‖² = 1, tr Σ = 8
  EXPECT_TRUE(std::isnan(noise_scale(3, 1, 2, 4).examples()));
  EXPECT_THROW((void)noise_scale(1, 1, 1, 4), Error);
}

TEST_F(AlongTraining, NoiseIsThatOfTheGradientsOfTheBatches) {
  const auto initial = model();
  const std::vector<Batch> batches = {examples({3, 1}), examples({5, 7}), examples({8, 2})};
  const NoiseScale found = measure_noise_scale(*initial, batches, 2, 0.1);
  // Each batch's own mean gradient, weighted by its share of the labels.
  double labels = 0;
  for (const Batch& batch : batches) labels += static_cast<double>(batch.labels.size());
  double squares = 0;
  Tensor mean = at::zeros({initial->parameters().count()}, at::kDouble);
  for (const Batch& batch : batches) {
    const Tensor g =
        mean_loss(*initial, {batch}, 0.1).gradient * (3 * static_cast<double>(batch.labels.size()) / labels);
    squares += g.square().sum().item<double>() / 3;
    mean += g / 3;
  }
  EXPECT_NEAR(found.mean_square_norm, squares, 1e-12 * squares);
  EXPECT_NEAR(found.square_norm_of_mean, mean.square().sum().item<double>(), 1e-12 * squares);
  EXPECT_LT((mean - mean_loss(*initial, batches, 0.1).gradient).norm().item<double>(), 1e-13);
  EXPECT_NEAR(found.mean_square_norm, found.square_gradient + found.trace / 2, 1e-12 * squares);
}

TEST_F(AlongTraining, NoiseIsDrawnAnewAtEachStep) {
  read_watch("what = \"gradient_noise\"\n[watch.gradient_noise]\nbatches = 3\nexamples = 2\n");
  run_.train.learning_rate = 0;  // the model stays the same
  const auto trained = model(), again = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  const TrainResult second = train(*again, run_.train, *task_, {}, run_.watch);
  ASSERT_EQ(result.watched.size(), 3U);
  const auto norm = [](const WatchRecord& record) { return record.values["gradient_noise"]["mean_square_norm"]; };
  EXPECT_NE(norm(result.watched[0]), norm(result.watched[1]));
  EXPECT_EQ(norm(result.watched[2]), norm(second.watched[2]));
  EXPECT_EQ(result.watched[0].values["gradient_noise"]["gradients"], 3);
}

TEST_F(AlongTraining, SimilarityIsTheMeanCosineOfAllPairs) {
  run_.model.encoder_layers = run_.model.decoder_layers = 2;
  const auto initial = model();
  const std::vector<Batch> batches = {examples({0, 1, 2}), examples({3, 4})};
  TokenSimilarity similarity;
  std::map<ActivationPoint, std::pair<double, double>> expected;  // sum of cosines, pairs
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    similarity.see(*initial, batch, context);
    EXPECT_FALSE(context.watched());
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      const Ragged& layout = point.id.stack == StackKind::encoder ? batch.source_layout : batch.target_layout;
      for (int64_t s = 0; s < layout.sequences(); ++s) {
        for (int64_t i = 0; i < layout.length(s); ++i) {
          for (int64_t j = 0; j < layout.length(s); ++j) {
            if (i == j) continue;
            const Tensor a = x[layout.begin(s) + i], b = x[layout.begin(s) + j];
            expected[point].first += (a.dot(b) / (a.norm() * b.norm())).item<double>();
            expected[point].second += 1;
          }
        }
      }
    });
    initial->states(batch, context);
  }
  const std::map<LayerId, double> found = similarity.means();
  EXPECT_EQ(found.size(), 6U);  // four layers, two results
  for (const auto& [layer, mean] : found) {
    const ActivationPoint point =
        layer.layer ? ActivationPoint{{layer.stack, layer.layer, SubLayerKind::self_attention}, Point::input}
                    : ActivationPoint{layer, Point::result};
    ASSERT_EQ(expected.count(point), 1U) << to_string(point);
    EXPECT_NEAR(mean, expected[point].first / expected[point].second, 1e-12) << to_string(point);
  }
}

/// The mean cosine of all pairs of different rows within a sequence.
double mean_cosine(const Tensor& rows, const Ragged& layout) {
  double sum = 0, pairs = 0;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t i = layout.begin(s); i < layout.begin(s + 1); ++i) {
      for (int64_t j = layout.begin(s); j < layout.begin(s + 1); ++j) {
        if (i == j) continue;
        sum += (rows[i].dot(rows[j]) / (rows[i].norm() * rows[j].norm())).item<double>();
        pairs += 1;
      }
    }
  }
  return sum / pairs;
}

// What the output layer reads can be had without watching, in all schemes: the states of a batch that labels every
// token. What the next layer reads after Pre-LN's norms, from the stream.
TEST_F(AlongTraining, SimilarityIsThatOfWhatIsRead) {
  run_.model.kind = "decoder";
  run_.model.decoder_layers = 2;
  for (const std::string& residual : residual_schemes().names()) {
    SCOPED_TRACE(residual);
    run_.model.residual = residual;
    const auto initial = model();
    for (const Parameter& each : initial->parameters().all()) {  // norms and scales that do something
      if (each.value.dim() == 1) each.value.detach().add_(at::rand_like(each.value), 0.5);
    }
    Batch batch;
    append(batch, std::vector<int32_t>{}, std::vector<int32_t>{4, 5, 6, 7, 5}, 0);
    append(batch, std::vector<int32_t>{}, std::vector<int32_t>{8, 6, 4}, 0);
    batch.source.clear();
    batch.source_layout = {};
    ForwardContext context(Pass::measurement);
    TokenSimilarity similarity;
    similarity.see(*initial, batch, context);
    const std::map<LayerId, double> found = similarity.means();
    ASSERT_EQ(found.size(), 3U);
    ForwardContext again(Pass::measurement);
    std::map<ActivationPoint, Tensor> shown;
    again.watch([&](const ActivationPoint& point, const Tensor& x) { shown[point] = x.detach(); });
    const at::NoGradGuard no_graph;
    const Tensor states = initial->states(batch, again);
    ASSERT_EQ(states.size(0), batch.target_layout.tokens());
    EXPECT_NEAR(found.at({StackKind::decoder}), mean_cosine(states, batch.target_layout), 1e-12);
    if (residual != "pre-ln") continue;
    const auto value = [&](const char* name) { return initial->parameters().at(name).value.detach(); };
    const Tensor stream = shown.at({{StackKind::decoder, 0, SubLayerKind::feed_forward}, Point::stream});
    const Tensor read = at::layer_norm(stream, {stream.size(1)}, value("decoder.layers.1.norm1.weight"),
                                       value("decoder.layers.1.norm1.bias"), run_.model.norm_eps);
    EXPECT_NEAR(found.at({StackKind::decoder, 1}), mean_cosine(read, batch.target_layout), 1e-12);
  }
}

TEST_F(AlongTraining, ScoresAreTheArgumentOfTheSoftmax) {
  // The outputs of attention, recomputed from the observed scores and the values projected by hand.
  for (const char* positions : {"sinusoidal", "alibi", "rotary"}) {
    SCOPED_TRACE(positions);
    run_.model.positions = positions;
    run_.model.heads = 2;
    run_.model.kv_heads = 1;
    const auto initial = model();
    const Batch batch = examples({0, 1, 2});
    ForwardContext context(Pass::measurement);
    std::map<LayerId, std::vector<Tensor>> scores;
    std::map<LayerId, Tensor> inputs, outputs;
    Tensor memory;
    context.watch_scores([&](const LayerId& id, const Tensor& seen) { scores[id].push_back(seen); });
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      if (point.point == Point::input && point.id.sub_layer) inputs[point.id] = x;
      if (point.point == Point::output && point.id.sub_layer) outputs[point.id] = x;
      if (point.point == Point::result && point.id.stack == StackKind::encoder) memory = x;
    });
    initial->states(batch, context);
    ASSERT_EQ(scores.size(), 3U);
    for (const auto& [id, by_sequence] : scores) {
      const bool cross = id.sub_layer == SubLayerKind::cross_attention;
      const bool encoder = id.stack == StackKind::encoder;
      const std::string prefix = to_string(LayerId{id.stack, id.layer}) + (cross ? ".multihead_attn" : ".self_attn");
      const auto value = [&](const char* name) { return initial->parameters().at(prefix + name).value.detach(); };
      const Tensor from = cross ? memory : inputs[id];
      const Ragged& layout = encoder || cross ? batch.source_layout : batch.target_layout;
      const Ragged& queries = encoder ? batch.source_layout : batch.target_layout;
      // d = 4, two heads of two features that share one key-value head.
      const Tensor values =
          at::matmul(from, value(".in_proj_weight").narrow(0, 6, 2).t()) + value(".in_proj_bias").narrow(0, 6, 2);
      ASSERT_EQ(static_cast<int64_t>(by_sequence.size()), layout.sequences());
      for (int64_t s = 0; s < layout.sequences(); ++s) {
        const Tensor seen = by_sequence[static_cast<size_t>(s)];
        EXPECT_FALSE(seen.requires_grad());
        const Tensor weights = seen.softmax(-1);  // (2, queries, keys)
        EXPECT_EQ(weights.size(1), queries.length(s));
        if (!encoder && !cross) {
          EXPECT_EQ(weights.triu(1).abs().sum().item<double>(), 0);
        }
        const Tensor mixed = at::matmul(weights, values.narrow(0, layout.begin(s), layout.length(s)));
        const Tensor out =
            at::matmul(mixed.transpose(0, 1).reshape({queries.length(s), 4}), value(".out_proj.weight").t()) +
            value(".out_proj.bias");
        const Tensor expected = outputs[id].detach().narrow(0, queries.begin(s), queries.length(s));
        EXPECT_LT((out - expected).abs().max().item<double>(), 1e-12) << to_string(id);
      }
    }
  }
}

TEST(AttentionMeter, EntropyAndLargestLogitByLoops) {
  const LayerId first{StackKind::encoder, 0, SubLayerKind::self_attention};
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor scores[2] = {
      at::tensor({0.5, -1.0, 2.0, 0.0, 3.5, 1.0}, at::kDouble).view({2, 1, 3}),
      at::tensor({1.0, -infinity, -2.0, 0.25, 7.0, -infinity, 0.0, 0.0}, at::kDouble).view({2, 2, 2})};
  AttentionMeter meter;
  double sums[2] = {0, 0}, largest = -infinity, queries = 0;
  for (const Tensor& each : scores) {
    meter.see(first, each);
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t q = 0; q < each.size(1); ++q) {
        double total = 0, keys = 0;
        for (int64_t k = 0; k < each.size(2); ++k) {
          total += std::exp(each[h][q][k].item<double>());
          keys += std::isfinite(each[h][q][k].item<double>()) ? 1 : 0;
        }
        if (h == 0 && keys > 1) queries += 1;
        for (int64_t k = 0; k < each.size(2); ++k) {
          const double logit = each[h][q][k].item<double>();
          const double p = std::exp(logit) / total;
          if (p > 0 && keys > 1) sums[h] -= p * std::log(p) / std::log(keys);
          largest = std::max(largest, logit);
        }
      }
    }
  }
  const AttentionProfile found = meter.profiles().at(first);
  EXPECT_EQ(queries, 2);  // the first query of the second sequence sees one key
  EXPECT_NEAR(found.relative_entropy, (sums[0] + sums[1]) / 4, 1e-12);
  EXPECT_NEAR(found.lowest_head_entropy, std::min(sums[0], sums[1]) / 2, 1e-12);
  EXPECT_EQ(found.largest_logit, 7);
  EXPECT_EQ(largest, 7);
}

TEST(AttentionMeter, EqualWeightsHaveTheRelativeEntropyOneAtEveryLength) {
  const double infinity = std::numeric_limits<double>::infinity();
  const LayerId id{StackKind::decoder, 0, SubLayerKind::self_attention};
  for (const int64_t length : {2, 5, 40}) {
    AttentionMeter meter;
    const Tensor later = at::ones({length, length}, at::kBool).triu(1);
    meter.see(id, at::full({3, length, length}, 0.7, at::kDouble).masked_fill(later, -infinity));
    EXPECT_NEAR(meter.profiles().at(id).relative_entropy, 1, 1e-12) << length;
    EXPECT_NEAR(meter.profiles().at(id).lowest_head_entropy, 1, 1e-12) << length;
  }
  AttentionMeter one;
  one.see(id, at::zeros({3, 1, 1}, at::kDouble));
  EXPECT_TRUE(std::isnan(one.profiles().at(id).relative_entropy));
}

TEST_F(AlongTraining, ActivationsAreThoseOfTheFixedExamples) {
  read_watch("what = \"activations\"\nsplit = \"valid\"\nexamples = 5\n");
  run_.train.batch_tokens = 16;  // several batches
  const auto trained = model();
  int compared = 0;
  TrainHooks hooks;
  hooks.watched = [&](const WatchRecord& record) {
    const std::vector<int64_t> which = {0, 1, 2, 3, 4};
    const Batch batch = task_->dataset("valid")->batch(which);
    TokenSimilarity similarity;
    AttentionMeter meter;
    ForwardContext context(Pass::measurement);
    context.watch_scores(meter.observer());
    similarity.see(*trained, batch, context);
    const Json& found = record.values["activations"];
    ASSERT_EQ(found["token_cosine"].size(), similarity.means().size());
    for (const auto& [layer, mean] : similarity.means())
      EXPECT_NEAR(found["token_cosine"][to_string(layer)].get<double>(), mean, 1e-12);
    for (const auto& [id, profile] : meter.profiles()) {
      EXPECT_NEAR(found["relative_entropy"][to_string(id)].get<double>(), profile.relative_entropy, 1e-12);
      EXPECT_NEAR(found["lowest_relative_entropy"][to_string(id)].get<double>(), profile.lowest_head_entropy, 1e-12);
      EXPECT_NEAR(found["largest_logit"][to_string(id)].get<double>(), profile.largest_logit, 1e-12);
    }
    ++compared;
  };
  train(*trained, run_.train, *task_, hooks, run_.watch);
  EXPECT_EQ(compared, 3);
}

}  // namespace
}  // namespace plumb
