// What a run reports survives its file: every field, and the metrics of every task.
#include "plumb/run/point.h"
#include "plumb/base/contains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/task/task.h"
#include "support/text_lines.h"

namespace plumb {
namespace {

/// Data for each kind of task.
std::vector<DataDirectory> data_of_all_kinds(const std::filesystem::path& folder) {
  test::make_copy_task(folder / "pairs");
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += i % 2 == 0 ? "good\ta dog\n" : "bad\ta cat\n";
  write_file_atomic(folder / "labels.tsv", lines);
  LabelOptions labels;
  labels.train = folder / "labels.tsv";
  labels.valid = labels.train;
  labels.tokenizer.vocabulary = 24;
  prepare_labels(labels, folder / "labels");
  return {DataDirectory::open(folder / "pairs"),
          test::prepare_lines(folder / "text", test::in_turn(20, {"a dog sees a cat"}), {"a dog"}, 256, 24, true),
          DataDirectory::open(folder / "labels")};
}

/// The names under which points have the metrics of a task.
std::vector<std::string> names_in_points(const Task& task) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    const std::string own = name == "loss" || name == "nll" ? "valid_" + name : name;
    if (!contains(names, own)) names.push_back(own);
  };
  for (const auto& [name, value] : task.metrics(task.zero())) add(name);
  for (const MetricInfo& info : task.metric_infos()) add(info.name);
  return names;
}

/// By task: the names of its metrics.
std::map<std::string, std::vector<std::string>> metrics_of_all_tasks() {
  const test::TemporaryDirectory folder;
  std::map<std::string, std::vector<std::string>> names;
  for (const DataDirectory& data : data_of_all_kinds(folder.path())) {
    for (const auto& [name, entry] : tasks().entries()) {
      try {
        names[name] = names_in_points(*entry.make(data, entry.options));
      } catch (const Error&) {  // data of another kind
      }
    }
  }
  return names;
}

double any_number(Random& random) {
  if (random.below(8) == 0) return NAN;
  return (random.uniform() - 0.5) * std::pow(10, static_cast<double>(random.below(40)) - 20);
}
std::optional<double> perhaps(Random& random) {
  return random.below(2) == 0 ? std::optional(any_number(random)) : std::nullopt;
}
int64_t any_count(Random& random) { return static_cast<int64_t>(random.below(uint64_t{1} << 50)); }

TrainPoint any_point(Random& random, const std::vector<std::string>& names) {
  TrainPoint point;
  point.step = any_count(random);
  point.epoch = any_count(random);
  point.learning_rate = any_number(random);
  point.loss = any_number(random);
  point.nll = any_number(random);
  point.gradient_norm = perhaps(random);
  point.tokens_per_second = any_number(random);
  point.tokens = any_count(random);
  point.ceiling_fraction = perhaps(random);
  for (const std::string& name : names)
    if (random.below(2) == 0) point.metrics.set(name, any_number(random));
  point.exchange_seconds = perhaps(random);
  point.exchange_bytes = perhaps(random);
  point.data_seconds = perhaps(random);
  point.epochs = perhaps(random);
  point.skipped_steps = perhaps(random);
  return point;
}

TroubleRecord any_trouble(Random& random) {
  TroubleRecord record{.step = any_count(random), .cause = TroubleCause::nonfinite, .text = "the loss is nan"};
  record.action = random.below(2) == 0 ? TroubleAction::rollback : TroubleAction::skip;
  record.loss = any_number(random);
  record.gradient_norm = any_number(random);
  if (random.below(2) == 0) record.spikes.push_back({"loss", 5, 4, 1, 12, 3, 1});
  if (random.below(2) == 0) {
    record.findings = Findings{.parameter = "src_embed.weight", .examples = {3}, .batch = {3, 4}};
    if (random.below(2) == 0) record.findings->forward = {"encoder.input", any_number(random)};
    if (random.below(2) == 0) record.findings->again = {any_number(random), any_number(random)};
  }
  if (record.action == TroubleAction::rollback) record.to = any_count(random);
  record.rate_factor = perhaps(random);
  return record;
}

/// Equal, or both NaN.
void expect_same(const std::optional<double>& found, const std::optional<double>& wanted, const std::string& what) {
  ASSERT_EQ(found.has_value(), wanted.has_value()) << what;
  if (wanted && std::isnan(*wanted)) {
    EXPECT_TRUE(std::isnan(*found)) << what;
  } else {
    EXPECT_EQ(found, wanted) << what;
  }
}

void expect_same(const Metrics& found, const Metrics& wanted) {
  std::vector<std::string> names[2];
  for (const auto& [name, value] : found) names[0].push_back(name);
  for (const auto& [name, value] : wanted) names[1].push_back(name);
  EXPECT_EQ(names[0], names[1]);
  for (const auto& [name, value] : wanted) expect_same(found.get(name), value, name);
}

void expect_same(const TrainPoint& found, const TrainPoint& wanted) {
  EXPECT_EQ(found.step, wanted.step);
  EXPECT_EQ(found.epoch, wanted.epoch);
  EXPECT_EQ(found.tokens, wanted.tokens);
  expect_same(found.learning_rate, wanted.learning_rate, "learning_rate");
  expect_same(found.loss, wanted.loss, "loss");
  expect_same(found.nll, wanted.nll, "nll");
  expect_same(found.gradient_norm, wanted.gradient_norm, "gradient_norm");
  expect_same(found.tokens_per_second, wanted.tokens_per_second, "tokens_per_second");
  expect_same(found.ceiling_fraction, wanted.ceiling_fraction, "ceiling_fraction");
  expect_same(found.exchange_seconds, wanted.exchange_seconds, "exchange_seconds");
  expect_same(found.exchange_bytes, wanted.exchange_bytes, "exchange_bytes");
  expect_same(found.data_seconds, wanted.data_seconds, "data_seconds");
  expect_same(found.epochs, wanted.epochs, "epochs");
  expect_same(found.skipped_steps, wanted.skipped_steps, "skipped_steps");
  expect_same(found.metrics, wanted.metrics);
}

TEST(Points, EveryFieldAndTheMetricsOfEveryTaskAreReadAsWritten) {
  const auto all = metrics_of_all_tasks();
  Random random(1, "points");
  for (const std::string& task : tasks().names()) {
    ASSERT_TRUE(all.contains(task)) << "no data of this test are for the task " << task;
    for (int i = 0; i < 200; ++i) {
      const TrainPoint point = any_point(random, all.at(task));
      expect_same(from_described_json<TrainPoint>(Json::parse(described_json(point).dump())), point);
      if (HasFailure()) FAIL() << task << ": " << described_json(point);
    }
  }
}

TEST(Results, EveryFieldAndTheMetricsOfEveryTaskAreReadAsWritten) {
  Random random(1, "results");
  for (const auto& [task, names] : metrics_of_all_tasks()) {
    for (int i = 0; i < 200; ++i) {
      TrainResult result;
      result.outcome = i % 2 == 0 ? RunOutcome::finished : RunOutcome::diverged;
      result.steps = any_count(random);
      result.seconds = random.uniform();
      for (uint64_t n = random.below(4); n > 0; --n) result.history.push_back(any_point(random, names));
      result.metrics = last_metrics(result.history);
      const std::string best = names[random.below(names.size())];
      const std::optional<double> value = perhaps(random);
      if (value) result.best = {best, *value, any_count(random)};
      if (random.below(2) == 0) result.watched.push_back({any_count(random), {}});
      if (random.below(2) == 0) result.troubles.push_back(any_trouble(random));
      if (random.below(2) == 0) result.diagnosis = {"first", "second"};

      const TrainResult read = TrainResult::from_json(Json::parse(result.to_json().dump()));
      EXPECT_EQ(read.outcome, result.outcome);
      EXPECT_EQ(read.steps, result.steps);
      EXPECT_EQ(read.seconds, result.seconds);
      EXPECT_EQ(read.best_step(), result.best_step());
      EXPECT_EQ(read.diagnosis, result.diagnosis);
      expect_same(read.metrics, result.metrics);
      ASSERT_EQ(read.best.has_value(), result.best.has_value());
      if (result.best) {
        EXPECT_EQ(read.best->metric, result.best->metric);
        expect_same(read.best->value, result.best->value, "best value");
      }
      ASSERT_EQ(read.history.size(), result.history.size());
      for (size_t k = 0; k < read.history.size(); ++k) expect_same(read.history[k], result.history[k]);
      EXPECT_EQ(read.to_json(), result.to_json());  // with the records of watches and troubles
      if (HasFailure()) FAIL() << task << ": " << result.to_json();
    }
  }
}

TEST(Results, WhatFollowsFromOtherValuesIsNoMetric) {
  TrainResult result;
  result.history.emplace_back();
  result.history[0].metrics.set("valid_nll", 1.5);
  result.history[0].metrics.set("bleu", 30);
  result.metrics = result.history[0].metrics;
  result.best = {"bleu", 31, 7};
  const Json json = result.to_json();
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(1.5), 1e-12);
  EXPECT_NEAR(json["history"][0]["valid_perplexity"].get<double>(), std::exp(1.5), 1e-12);
  EXPECT_EQ(json["best"], (Json{{"metric", "bleu"}, {"value", 31.0}, {"step", 7}}));
  EXPECT_EQ(json["metrics"], (Json{{"valid_nll", 1.5}, {"bleu", 30.0}}));
  EXPECT_EQ(TrainResult::from_json(json).metrics, result.metrics);
  EXPECT_EQ(TrainResult::from_json(json).history[0].metrics, result.metrics);
}

TEST(Results, HaveTheirOutcomeAsAWord) {
  for (const RunOutcome outcome :
       {RunOutcome::finished, RunOutcome::diverged, RunOutcome::stopped, RunOutcome::averaged, RunOutcome::imported}) {
    const Json json = TrainResult{.outcome = outcome}.to_json();
    EXPECT_EQ(json["outcome"], to_string(outcome));
    EXPECT_EQ(Json(outcome), to_string(outcome));  // a cell of a table
    EXPECT_EQ(TrainResult::from_json(json).outcome, outcome);
  }
  Json other = TrainResult().to_json();
  other["outcome"] = "over";
  EXPECT_THROW((void)TrainResult::from_json(other), Error);
}

}  // namespace
}  // namespace plumb
