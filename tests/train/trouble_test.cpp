// Numerical trouble: what is found out about it, and the response.
#include "plumb/trouble/trouble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "copy_task.h"
#include "disturbed_task.h"
#include "plumb/base/input.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/batches.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/diagnosis.h"
#include "plumb/train/run_training.h"
#include "plumb/train/trainer.h"
#include "plumb/trouble/inspection.h"
#include "run_contents.h"
#include "support/contains.h"
#include "support/ranks.h"
#include "troubled_run.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using Disturbed = test::DisturbedTask;
using Trouble = test::TroubledRun;

TEST_F(Trouble, ADamagedParameterIsNamedWithTheSubLayerAndTheSentencesItReaches) {
  EncoderDecoder broken = model();
  // The embedding of one token is damaged, which affects the sentences that contain it.
  const Batch batch = train_->batch(examples_of_step(1));
  const int64_t token = batch.source.front();
  broken.parameters().at("src_embed.weight").value.detach()[token].fill_(INFINITY);
  std::vector<int64_t> containing;
  for (int64_t s = 0; s < batch.source_layout.sequences(); ++s) {
    const auto begin = batch.source.begin() + batch.source_layout.begin(s);
    if (std::find(begin, begin + batch.source_layout.length(s), token) != begin + batch.source_layout.length(s))
      containing.push_back(batch.examples[static_cast<size_t>(s)]);
  }
  ASSERT_LT(containing.size(), batch.examples.size());
  const TrainResult result = train(broken, run_.train, *task_);
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_EQ(result.steps, 0);
  ASSERT_EQ(result.troubles.size(), 1U);
  const TroubleRecord& record = result.troubles[0];
  EXPECT_EQ(record.step, 1);
  EXPECT_EQ(record.cause, TroubleCause::nonfinite);
  EXPECT_EQ(record.action, TroubleAction::diverge);
  EXPECT_TRUE(std::isnan(record.loss));
  ASSERT_TRUE(record.findings);
  EXPECT_EQ(record.findings->parameter, "src_embed.weight");
  ASSERT_TRUE(record.findings->forward);
  EXPECT_EQ(record.findings->forward->where, "encoder.input");
  EXPECT_EQ(record.findings->examples, containing);
  EXPECT_EQ(record.findings->batch, batch.examples);
  EXPECT_FALSE(record.findings->again);
  const std::string& text = record.text;
  EXPECT_CONTAINS(text, "src_embed.weight");
  EXPECT_CONTAINS(text, task_->data().raw_source("train")[static_cast<size_t>(containing[0])].substr(0, 1));
  const Json found = result.to_json()["troubles"][0]["trouble"];
  EXPECT_EQ(found["kind"], "nonfinite");
  EXPECT_EQ(found["action"], "stop");
  EXPECT_TRUE(found["loss"].is_null());
  EXPECT_EQ(found["findings"]["forward"]["where"], "encoder.input");
  EXPECT_EQ(described_json(TrainResult::from_json(result.to_json()).troubles[0])["trouble"], found);
  EXPECT_TRUE(result.to_json()["history"][0]["loss"].is_null());
  EXPECT_TRUE(std::isnan(result.history[0].loss));
}

TEST_F(Trouble, TheFirstSubLayerInTheForwardPassIsNamed) {
  for (const auto& [parameter, where] : std::vector<std::pair<std::string, std::string>>{
           {"encoder.layers.0.linear2.bias", "encoder.layers.0.feed_forward.output"},
           {"decoder.layers.0.self_attn.out_proj.bias", "decoder.layers.0.self_attention.output"},
           {"decoder.layers.0.multihead_attn.out_proj.weight", "decoder.layers.0.cross_attention.output"}}) {
    EncoderDecoder broken = model();
    broken.parameters().at(parameter).value.detach().fill_(NAN);
    const TrainResult result = train(broken, run_.train, *task_);
    ASSERT_EQ(result.troubles.size(), 1U);
    EXPECT_EQ(result.troubles[0].findings.value().parameter, parameter);
    EXPECT_EQ(result.troubles[0].findings->forward.value().where, where);
  }
}

TEST_F(Trouble, AGradientThatIsNotFiniteIsNamedWhereTheLossIs) {
  // The derivative of √x² at 0 is 0/0.
  const Disturbed task(*task_, [](const Tensor& loss, int64_t step, Model& model) {
    if (step < 3) return loss;
    return loss + (model.parameters().at("decoder.layers.0.linear1.bias").value * 0).square().sum().sqrt();
  });
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, task);
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_EQ(result.steps, 2);
  const TroubleRecord& record = result.troubles.at(0);
  EXPECT_TRUE(std::isfinite(record.loss));
  EXPECT_TRUE(std::isnan(record.gradient_norm));
  const Findings& found = record.findings.value();
  EXPECT_EQ(found.gradient, "decoder.layers.0.linear1.bias");
  EXPECT_FALSE(found.forward);
  EXPECT_EQ(found.parameter, "");
  EXPECT_EQ(found.backward, "");
  EXPECT_EQ(result.history.back().step, 3);
  EXPECT_TRUE(std::isnan(result.history.back().gradient_norm.value()));
  EXPECT_TRUE(described_json(result.history.back())["gradient_norm"].is_null());
}

TEST_F(Trouble, TheBackwardPassIsFollowedFromTheLoss) {
  EncoderDecoder any = model();
  Inspection inspection;
  ForwardContext context(0.1, 1, 1);
  const Batch batch = train_->batch(examples_of_step(1));
  inspection.watch(context, batch);
  const Loss loss = any.loss(batch, {}, context);
  const auto found = inspection.findings(
      any.parameters(), gradients({loss.value}, any.parameters().values(), {at::tensor(INFINITY, at::kFloat)}));
  EXPECT_EQ(found.backward, "decoder.result");
  EXPECT_EQ(found.gradient, any.parameters().all().back().name);
  EXPECT_FALSE(found.forward);
  EXPECT_EQ(found.parameter, "");
}

TEST_F(Trouble, AStepThatComesOutOtherwiseTheSecondTimeIsTheHardwares) {
  int left = 1;
  const Disturbed task(*task_, [&left](const Tensor& loss, int64_t step, Model&) {
    return step == 4 && left-- > 0 ? loss * NAN : loss;
  });
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, task);
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  const TroubleRecord& record = result.troubles.at(0);
  EXPECT_TRUE(std::isfinite(record.findings.value().again.value().loss));
  EXPECT_CONTAINS(record.text, "the hardware is to blame");
}

TEST_F(Trouble, ASkippedStepLeavesParametersAndOptimizerAsTheyAre) {
  use_sgd();
  run_.train.steps = 4;
  run_.train.log_every = 1;
  run_.train.trouble.on_nonfinite = "skip";
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, nan_at({2, 3}));
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_EQ(result.steps, 4);
  for (const int64_t step : {1, 4}) {
    ForwardContext context;
    const Loss loss = expected.loss(train_->batch(examples_of_step(step)), {0.1, std::nullopt, false}, context);
    expected.parameters().flat().sub_(0.05 * joined(gradients({loss.value}, expected.parameters().values(), {})));
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  ASSERT_EQ(result.history.size(), 4U);
  EXPECT_FALSE(result.history[0].skipped_steps);
  EXPECT_EQ(result.history[1].skipped_steps, 1);
  EXPECT_TRUE(std::isnan(result.history[1].loss));  // mean over no steps
  EXPECT_EQ(result.history[3].skipped_steps, 2);
  EXPECT_TRUE(std::isfinite(result.history[3].loss));
  const Json point = described_json(result.history[3]);
  EXPECT_EQ(described_json(from_described_json<TrainPoint>(point)), point);
  ASSERT_EQ(result.troubles.size(), 2U);
  EXPECT_EQ(result.troubles[1].step, 3);
  EXPECT_EQ(result.troubles[1].action, TroubleAction::skip);
}

TEST_F(Trouble, ASkippedStepIsNoneOfAdamsAndLeavesRunningAverages) {
  run_.model.norm = "batchnorm";
  run_.train.steps = 5;
  run_.train.trouble.on_nonfinite = "skip";
  const fs::path with = folder_ / "with", without = folder_ / "without";
  EncoderDecoder skipping = model(), stopping = model();
  const Disturbed task = nan_at({4, 5});
  Trainer first(skipping, run_.train, task);
  first.run();
  run_.train.steps = 3;
  Trainer second(stopping, run_.train, *task_);
  second.run();
  fs::create_directories(with);
  fs::create_directories(without);
  first.save(with);
  second.save(without);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const NamedTensors a = load_safetensors(with / file), b = load_safetensors(without / file);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

TEST_F(Trouble, TooManySkippedStepsInARowAreDivergence) {
  run_.train.trouble.on_nonfinite = "skip";
  run_.train.trouble.skip_limit = 3;
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, nan_at({2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_EQ(result.steps, 7);
  EXPECT_EQ(result.troubles.back().action, TroubleAction::diverge);
  EXPECT_CONTAINS(result.troubles.back().text, "3 steps in a row");
}

TEST_F(Trouble, ASpikeIsReportedWithTheUpdateThatFollowsIt) {
  use_sgd();
  run_.train.batch_tokens = 100'000;  // every step has the same batch, and the weights hardly move: nothing else varies
  run_.train.learning_rate = 1e-4;
  run_.train.steps = 14;
  run_.train.trouble.window = 8;
  const Disturbed task(*task_, [](const Tensor& loss, int64_t step, Model&) { return step == 10 ? loss * 50 : loss; });
  EncoderDecoder learner = model(at::kDouble);
  std::vector<TroubleRecord> told;
  test::Moments moments;
  moments.trouble = [&](const TroubleRecord& record) { told.push_back(record); };
  const TrainResult result = train(learner, run_.train, task, moments);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(told.size(), result.troubles.size());
  EXPECT_EQ(told[0].step, 10);
  EXPECT_EQ(told[0].cause, TroubleCause::spike);
  EXPECT_EQ(told[0].action, TroubleAction::update);
  std::set<std::string> series;
  for (const Spike& spike : told[0].spikes) series.insert(spike.series);
  EXPECT_EQ(series, (std::set<std::string>{"loss", "gradient norm"}));
  // Its update is judged with the next step's numbers: per unit of learning rate, plain SGD moves by the gradient.
  EXPECT_EQ(told[1].step, 11);
  double squares = 0;
  for (const Spike& spike : told[1].spikes) {
    if (!spike.series.starts_with("update of ")) continue;
    EXPECT_EQ(spike.step, 10);
    squares += std::pow(spike.value, 2);
  }
  EXPECT_NEAR(std::sqrt(squares) / told[0].gradient_norm, 1, 0.01);
}

/// A run that continues through many spikes reports the first five; the records have all of them.
TEST_F(Trouble, ManySpikesAreNotAllReported) {
  use_sgd();
  run_.train.batch_tokens = 100'000;  // every step has the same batch, so that nothing else varies
  run_.train.steps = 160;
  run_.train.trouble.window = 8;
  const Disturbed task(*task_,
                       [](const Tensor& loss, int64_t step, Model&) { return step % 20 == 0 ? loss * 2.5 : loss; });
  EncoderDecoder learner = model(at::kDouble);
  set_verbosity(Verbosity::normal);
  ::testing::internal::CaptureStderr();
  const TrainResult result = train(learner, run_.train, task);
  const std::string said = ::testing::internal::GetCapturedStderr();
  set_verbosity(Verbosity::quiet);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_GT(result.troubles.size(), 7U);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 6) << said;
  EXPECT_TRUE(said.ends_with("further spikes are only recorded, in metrics.jsonl\n")) << said;
}

TEST_F(Trouble, ASpikeMayBeSkipped) {
  use_sgd();
  run_.train.steps = 12;
  run_.train.trouble.window = 8;
  run_.train.trouble.on_spike = "skip";
  const Disturbed task(*task_, [](const Tensor& loss, int64_t step, Model&) { return step == 10 ? loss * 50 : loss; });
  EncoderDecoder spiked = model(at::kDouble), expected = model(at::kDouble);
  EXPECT_EQ(train(spiked, run_.train, task).history.back().skipped_steps, 1);
  run_.train.trouble = {};
  run_.train.trouble.on_nonfinite = "skip";
  train(expected, run_.train, nan_at({10}));
  EXPECT_TRUE(spiked.parameters().flat().equal(expected.parameters().flat()));
}

TEST_F(Trouble, WhatIsWatchedChangesNothing) {
  EncoderDecoder watched = model(), plain = model();
  train(watched, run_.train, *task_);
  run_.train.trouble.window = 0;
  train(plain, run_.train, *task_);
  EXPECT_TRUE(watched.parameters().flat().equal(plain.parameters().flat()));
}

TEST_F(Trouble, EveryProcessComesToTheSame) {
  run_.train.trouble.on_nonfinite = "skip";
  run_.train.trouble.skip_limit = 2;
  run_.model.dropout = 0;
  // A token that only the second process has in step 1; every other example is its. Small batches have one.
  std::set<int64_t> tokens;
  for (run_.train.batch_tokens = 64; run_.train.batch_tokens > 8; run_.train.batch_tokens -= 4) {
    const Batch batch = train_->batch(examples_of_step(1));
    std::set<int64_t> others;
    for (int64_t s = 0; s < batch.source_layout.sequences(); ++s) {
      const auto begin = batch.source.begin() + batch.source_layout.begin(s);
      (s % 2 == 0 ? others : tokens).insert(begin, begin + batch.source_layout.length(s));
    }
    std::erase_if(tokens, [&](int64_t token) { return others.contains(token); });
    if (!tokens.empty()) break;
  }
  ASSERT_FALSE(tokens.empty());
  test::as_ranks(2, [&](const Group& group) {
    EncoderDecoder broken = model();
    broken.parameters().at("src_embed.weight").value.detach()[*tokens.begin()].fill_(NAN);
    Trainer trainer(broken, run_.train, *task_);
    trainer.join(group);
    const TrainResult result = trainer.run();
    EXPECT_EQ(result.outcome, RunOutcome::diverged);
    ASSERT_FALSE(result.troubles.empty());
    EXPECT_EQ(result.troubles[0].step, 1);
    EXPECT_EQ(result.troubles[0].findings.value().forward.value().where, "encoder.input");
    EXPECT_FALSE(result.troubles[0].findings->again);
  });
}

class ResumedTrouble : public Trouble, public ::testing::WithParamInterface<const char*> {};

TEST_P(ResumedTrouble, IsThatOfAnUninterruptedRun) {
  run_.train.steps = 40;
  run_.train.trouble.window = 6;
  run_.train.trouble.threshold = 1.5;  // low enough for frequent spikes
  run_.train.trouble.on_spike = GetParam();
  run_.train.trouble.rollback_limit = 1000;
  run_.train.trouble.pass_over = true;
  run_.train.keep_checkpoints = 1;
  const TrainResult whole = run_training(run_, folder_ / "whole");
  EXPECT_GT(whole.history.back().skipped_steps.value_or(0), 2);
  EXPECT_FALSE(whole.troubles.empty());
  const fs::path out = folder_ / "parts";
  for (const int64_t steps : {10, 2, 1, 4, 9, 3}) {
    if (run_training(run_, out, test::stop_after(steps)).outcome != RunOutcome::stopped) break;
  }
  const TrainResult resumed = run_training(run_, out);
  EXPECT_EQ(resumed.outcome, whole.outcome);
  EXPECT_EQ(resumed.steps, whole.steps);
  Json a = read_json(latest_checkpoint(folder_ / "whole") / "state.json");
  Json b = read_json(latest_checkpoint(out) / "state.json");
  for (Json* each : {&a, &b}) test::drop_times(*each);
  EXPECT_EQ(a, b);
  EXPECT_EQ(read_file(latest_checkpoint(folder_ / "whole") / "model.safetensors"),
            read_file(latest_checkpoint(out) / "model.safetensors"));
  const auto lines = [](const fs::path& run) {
    std::vector<std::string> found;
    for (const std::string& line : read_lines(run / "metrics.jsonl")) {
      Json json = Json::parse(line);
      for (const char* key : {"tokens_per_second", "data_seconds", "command"}) json.erase(key);
      found.push_back(json.dump());
    }
    return found;
  };
  EXPECT_EQ(lines(out), lines(folder_ / "whole"));
  EXPECT_EQ(read_records(out / "metrics.jsonl").troubles.size(), whole.troubles.size());
}

INSTANTIATE_TEST_SUITE_P(Of, ResumedTrouble, ::testing::Values("skip", "rollback"));

TEST_F(Trouble, WhatRoseFirstIsTheFirstReason) {
  TroubleConfig config;
  config.window = 16;  // which the rise does not fill by half
  TroubleJudge judge(config, {{"decoder.layers.0.feed_forward"}, {"src_embed.weight"}}, 0, 0);
  for (int64_t step = 1; step <= 20; ++step) {
    const double rise = step < 15 ? 1 : 4.0 * static_cast<double>(step - 14);  // 4, 8, …
    (void)judge.judge({step, step < 18 ? 2.0 : 9.0, 1.0, 0.01});
    judge.see_updates(step, 0.01, {0.02 * rise, 0.01});
  }
  EncoderDecoder any = model();
  const auto optimizer = make_optimizer("sgd", any.parameters());
  const std::vector<Batch> none;
  const std::vector<Tensor> gradients = any.parameters().values();
  const WatchedRun run{any, *task_, run_.train, *optimizer, *train_, none, 20, 0.01, {}};
  const std::vector<std::string> lines = diagnose({run, {}, {}, gradients, judge, {}, false});
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            "first to rise was the update of decoder.layers.0.feed_forward: far above its median since step 15, 24 "
            "times the median in step 20; the loss rose 3 steps later");
  EXPECT_EQ(lines.back(),
            "try: a lower learning_rate_factor for decoder.layers.0.feed_forward alone ([[train.groups]])");
}

}  // namespace
}  // namespace plumb
