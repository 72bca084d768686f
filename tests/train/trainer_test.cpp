// Training in memory: that it learns, and that what it reports is what happened.
#include "plumb/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/data/batches.h"
#include "plumb/model/encoder_decoder.h"

namespace plumb {
namespace {

class Training : public ::testing::Test {
 protected:
  Training() : data_(make(folder_ / "data")), run_(test::copy_run(folder_ / "data")) {
    run_.model.source_vocabulary = data_.source_vocabulary();
    run_.model.target_vocabulary = data_.target_vocabulary();
  }

  static DataDirectory make(const std::filesystem::path& path) {
    set_verbosity(Verbosity::quiet);
    test::make_copy_task(path);
    return DataDirectory::open(path);
  }

  EncoderDecoder model(at::ScalarType type = at::kFloat) const {
    EncoderDecoder model(run_.model, type);
    model.initialize(1);
    return model;
  }

  test::TemporaryDirectory folder_;
  DataDirectory data_;
  RunConfig run_;
};

TEST_F(Training, LearnsToCopy) {
  run_.train.steps = 200;
  run_.train.validate_every = 100;
  run_.train.schedule = "constant * linear_warmup";
  run_.model.dropout = 0;
  EncoderDecoder learner = model();
  const double before = evaluate(learner, data_.split("valid"), 64, 0).nll;
  const TrainResult result = train(learner, run_.train, data_);
  EXPECT_EQ(result.outcome, "finished");
  EXPECT_GT(before, 2.0);  // near ln of the vocabulary
  EXPECT_LT(*result.valid_nll, 0.7);
  EXPECT_LT(result.history.back().nll, 0.7);
  EXPECT_LT(*result.best_valid_nll, before);
  EXPECT_EQ(result.steps, 200);
}

TEST_F(Training, TheFirstStepsAreThoseOfTheFormula) {
  // Two steps of SGD without momentum in float64: w − lr·∇ of the mean smoothed loss of the first batches.
  run_.model.dropout = 0;
  run_.train.optimizer = "sgd";
  Config::from_string("[train.sgd]\nmomentum = 0\n", "test").read("train", run_.train);
  run_.train.schedule = "constant";
  run_.train.learning_rate = 0.05;
  run_.train.steps = 2;
  run_.train.log_every = 2;
  run_.train.clip_norm = 0.5;
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, data_);
  const auto plan = plan_batches(costs_of(data_.split("train")), run_.train.batch_tokens, 1, 0);
  double loss_sum = 0, nll_sum = 0, norm = 0;
  int64_t tokens = 0;
  for (size_t b = 0; b < 2; ++b) {
    ForwardContext context;
    const Loss loss = expected.loss(make_batch(data_.split("train"), plan[b]), {0.1, std::nullopt, false}, context);
    if (b == 1) {  // the first step makes a point of its own
      loss_sum += loss.value.item<double>() * static_cast<double>(loss.tokens);
      nll_sum += loss.nll;
      tokens += loss.tokens;
    }
    const Tensor gradient = joined(gradients({loss.value}, expected.parameters().values(), {}));
    norm = gradient.norm().item<double>();
    expected.parameters().flat().sub_(gradient * (0.05 * std::min(1.0, 0.5 / norm)));
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  const TrainPoint& point = result.history.back();
  EXPECT_EQ(point.step, 2);
  EXPECT_NEAR(point.loss, loss_sum / static_cast<double>(tokens), 1e-12);
  EXPECT_NEAR(point.nll, nll_sum / static_cast<double>(tokens), 1e-12);
  EXPECT_NEAR(point.gradient_norm, norm, 1e-10);
  EXPECT_EQ(point.learning_rate, 0.05);
}

TEST_F(Training, GroupsHaveRatesDecayAndFreezingOfTheirOwn) {
  // Three steps of SGD without momentum in float64, parameter by parameter.
  run_.model.dropout = 0;
  run_.train = TrainConfig();
  Config::from_string(R"([train]
optimizer = "sgd"
schedule = "constant"
learning_rate = 0.05
weight_decay = 0.1
clip_norm = 0.5
batch_tokens = 64
steps = 3
bleu_beam = 0
[train.sgd]
momentum = 0.0
[[train.groups]]
pattern = "src_embed.weight"
frozen_until = -1
[[train.groups]]
pattern = ["decoder.*.bias", "decoder.*norm*"]
learning_rate_factor = 3.0
weight_decay = 0.2
[[train.groups]]
pattern = "encoder.*"
learning_rate_factor = 0.5
frozen_until = 3
)",
                      "test")
      .read("train", run_.train);
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, data_);
  const auto plan = plan_batches(data_.split("train"), run_.train.batch_tokens, 1, 0);
  double norm = 0;
  for (size_t step = 1; step <= 3; ++step) {
    ForwardContext context;
    const Loss loss =
        expected.loss(make_batch(data_.split("train"), plan[step - 1]), {0.1, std::nullopt, false}, context);
    const auto gradient = gradients({loss.value}, expected.parameters().values(), {});
    const auto& all = expected.parameters().all();
    const auto frozen = [&](const std::string& name) {
      return name == "src_embed.weight" || (name.starts_with("encoder.") && step < 3);
    };
    norm = 0;
    for (size_t i = 0; i < all.size(); ++i) norm += frozen(all[i].name) ? 0 : gradient[i].square().sum().item<double>();
    norm = std::sqrt(norm);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string& name = all[i].name;
      if (frozen(name)) continue;
      const bool in_group = name.starts_with("decoder.") && (name.ends_with(".bias") || name.find("norm") != name.npos);
      const double rate = 0.05 * (in_group ? 3 : name.starts_with("encoder.") ? 0.5 : 1);
      const double decay = in_group ? 0.2 : all[i].value.dim() == 2 ? 0.1 : 0;
      const Tensor w = all[i].value.detach();
      w.sub_(rate * (gradient[i] * std::min(1.0, 0.5 / norm) + decay * w));
    }
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  EXPECT_NEAR(result.history.back().gradient_norm, norm, 1e-10);
  EXPECT_EQ(result.history.back().learning_rate, 0.05);
}

TEST_F(Training, EndsAfterItsEpochs) {
  run_.train.steps = 100000;
  run_.train.epochs = 2;
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, data_);
  const auto batches = [&](int64_t epoch) {
    return static_cast<int64_t>(plan_batches(costs_of(data_.split("train")), 64, 1, epoch).size());
  };
  EXPECT_EQ(result.outcome, "finished");
  EXPECT_EQ(result.steps, batches(0) + batches(1));
  EXPECT_TRUE(result.history.back().valid_nll.has_value());
}

TEST_F(Training, PatienceEndsIt) {
  run_.train.steps = 1000;
  run_.train.learning_rate = 0;  // nothing gets better
  run_.train.validate_every = 2;
  run_.train.patience = 3;
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, data_);
  EXPECT_EQ(result.outcome, "finished");
  EXPECT_EQ(result.best_step, 2);
  EXPECT_EQ(result.steps, 8);
}

TEST_F(Training, BleuIsAskedForWhenDue) {
  run_.train.bleu_every = 6;
  std::vector<int64_t> asked;
  TrainHooks hooks;
  hooks.bleu = [&](Model&) { return 12.5; };
  hooks.point = [&](const TrainPoint& point) {
    if (point.bleu) asked.push_back(point.step);
  };
  EncoderDecoder learner = model();
  EXPECT_EQ(train(learner, run_.train, data_, hooks).bleu, 12.5);
  EXPECT_EQ(asked, (std::vector<int64_t>{6, 12, 18, 20}));
}

TEST_F(Training, DivergesWhereNothingIsFinite) {
  EncoderDecoder broken = model();
  broken.parameters().flat().fill_(NAN);
  const TrainResult result = train(broken, run_.train, data_);
  EXPECT_EQ(result.outcome, "diverged");
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(result.to_json()["history"][0]["loss"].is_null());
}

TEST_F(Training, TheLossOfASplitDoesNotDependOnTheBatches) {
  EncoderDecoder any = model(at::kDouble);
  const Evaluation whole = evaluate(any, data_.split("valid"), 100000, 0.1);
  const Evaluation parts = evaluate(any, data_.split("valid"), 20, 0.1);
  EXPECT_EQ(whole.tokens, data_.split("valid").target_tokens() + data_.split("valid").size());
  EXPECT_EQ(parts.tokens, whole.tokens);
  EXPECT_NEAR(parts.nll, whole.nll, 1e-12);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-12);
}

TEST_F(Training, ResultsSurviveTheirJson) {
  TrainResult result{"diverged", 7, {}, 1.5, {}, 1.25, 5, 3.5};
  result.history.push_back({7, 1, 1e-3, NAN, 2.0, INFINITY, 100, {}, 1.5, {}});
  const Json json = result.to_json();
  const TrainResult read = TrainResult::from_json(Json::parse(json.dump()));
  EXPECT_EQ(read.to_json(), json);
  EXPECT_TRUE(std::isnan(read.history[0].loss));
  EXPECT_FALSE(read.bleu.has_value());
}

TEST_F(Training, RejectsAModelTooSmallForTheData) {
  run_.model.target_vocabulary = 5;
  EncoderDecoder small(run_.model);
  EXPECT_THROW(Trainer(small, run_.train, data_), Error);
}

}  // namespace
}  // namespace plumb
