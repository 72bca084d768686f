// Training on several corpora with weights.
#include "plumb/train/corpora.h"
#include "plumb/base/input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "copy_task.h"
#include "plumb/base/files.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "plumb/train/step_source.h"
#include "plumb/train/timeline.h"
#include "run_contents.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// 120 pairs of "web" and 30 of "news". With temperature 2 and weight 3 for "news", the proportions are √120 : 3 √30 =
/// 2 : 3, so an epoch has 60 and 90 draws.
class SeveralCorpora : public ::testing::Test {
 protected:
  SeveralCorpora() {
    PrepareOptions options;
    options.tokenizer.vocabulary = 24;
    options.corpora = {{"web", files_of("web", 120, 1)}, {"news", files_of("news", 30, 3)}};
    options.valid = files_of("valid", 20, 2);
    prepare_data(options, folder_ / "data");
    config_ = test::copy_run(folder_ / "data");
    config_.train.corpus_temperature = 2;
    config_.train.corpora = {{"news", 3}};
    task_ = make_task({}, DataDirectory::open(folder_ / "data"), "encoder-decoder");
    set_ = task_->dataset("train");
  }

  CorpusFiles files_of(const std::string& name, int64_t pairs, uint64_t seed) const {
    std::string lines;
    for (const std::string& line : test::copy_text(pairs, seed).sources) lines += line + "\n";
    for (const char* side : {".de", ".en"}) write_file_atomic(folder_ / (name + side), lines);
    return {folder_ / (name + ".de"), folder_ / (name + ".en")};
  }

  std::string refused(const fs::path& out) const {
    return test::message_of([&] { run_training(config_, out); });
  }

  test::FastDirectory folder_;
  RunConfig config_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Dataset> set_;
};

TEST_F(SeveralCorpora, AnEpochHasTheirShares) {
  EXPECT_EQ(set_->corpora(), (std::vector<CorpusSize>{{"web", 120}, {"news", 30}}));
  EXPECT_TRUE(task_->dataset("valid")->corpora().empty());
  const auto mixture = mixture_of(config_.train, *set_);
  ASSERT_TRUE(mixture.has_value());
  EXPECT_EQ(mixture->shares(), (std::vector<int64_t>{60, 90}));
  EXPECT_EQ(mixture_summary(*mixture), "an epoch draws 60 of 120 examples of web, 90 of 30 of news");
  StepSource source(*set_, plan_settings(config_.train, mixture), 1);
  std::map<int64_t, int64_t> seen;
  for (const int64_t epoch : {0, 1}) {
    source.go_to(epoch);
    int64_t of_web = 0, of_news = 0;
    const StepSource::Batches batches = source.plan().batches(0, source.plan().size());
    for (const auto& batch : batches) {
      for (const int64_t example : batch) {
        ++(example < 120 ? of_web : of_news);
        ++seen[example];
      }
    }
    EXPECT_EQ(of_web, 60);
    EXPECT_EQ(of_news, 90);
  }
  // In two epochs, every pair of "web" occurs exactly once, and every pair of "news" six times.
  ASSERT_EQ(seen.size(), 150U);
  for (const auto& [example, times] : seen) EXPECT_EQ(times, example < 120 ? 1 : 6) << example;
}

TEST_F(SeveralCorpora, EqualWeightsAtTemperatureOneAreEveryExampleOnce) {
  config_.train.corpus_temperature = 1;
  config_.train.corpora = {};
  EXPECT_FALSE(mixture_of(config_.train, *set_).has_value());
  config_.train.corpora = {{"web", 3}, {"news", 3}};
  EXPECT_FALSE(mixture_of(config_.train, *set_).has_value());
  config_.train.corpora = {{"web", 3}};
  EXPECT_TRUE(mixture_of(config_.train, *set_).has_value());
}

TEST_F(SeveralCorpora, EveryProcessTakesItsPartOfTheSameStep) {
  const PlanSettings settings = plan_settings(config_.train, mixture_of(config_.train, *set_));
  StepSource source(*set_, settings, 2);
  source.go_to(3);
  for (int64_t first = 0; first < source.plan().size(); first += source.count(first)) {
    std::vector<int64_t> expected, found;
    const StepSource::Batches batches = source.batches(first);
    for (const auto& batch : batches) expected.insert(expected.end(), batch.begin(), batch.end());
    for (const int64_t rank : {0, 1, 2}) {
      const StepShare share = source.take(first, {rank, 3, 20});
      for (const auto& [batch, placeholder] : share.micro_batches)
        if (!placeholder) found.insert(found.end(), batch.examples.begin(), batch.examples.end());
    }
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
  }
}

TEST_F(SeveralCorpora, DurationsAreCountedInEpochsOfTheMixture) {
  const auto mixture = mixture_of(config_.train, *set_);
  const ExampleCosts costs(set_->size(), [&](int64_t i) { return set_->cost(i); });
  const PlanSettings settings = plan_settings(config_.train, mixture);
  int64_t batches = 0, tokens = 0;
  for (const int64_t epoch : {0, 1}) {
    const BatchPlan plan(costs, settings, epoch);
    batches += plan.size();
    const BatchPlan::Batches all = plan.batches(0, plan.size());
    for (const auto& batch : all)
      for (const int64_t example : batch) tokens += set_->cost(example).target;
  }
  Timeline timeline = make_timeline(costs, config_.train, plan_settings(config_.train, mixture), "encoder-decoder");
  EXPECT_EQ(timeline.first_step(Duration::parse("2e")), batches);
  EXPECT_EQ(timeline.first_step(Duration::parse(std::to_string(tokens) + "t")), batches);
  EXPECT_EQ(timeline.first_step(Duration::parse(std::to_string(tokens + 1) + "t")), batches + 1);
}

TEST_F(SeveralCorpora, ARunGoesOnToTheSameBits) {
  struct Kill {};
  for (const std::string kind : {"encoder-decoder", "decoder"}) {
    config_.model.kind = kind;
    const fs::path whole = folder_ / kind / "whole", killed = folder_ / kind / "killed",
                   stopped = folder_ / kind / "two";
    const TrainResult result = run_training(config_, whole);
    EXPECT_EQ(result.outcome, RunOutcome::finished);
    test::Moments moments;
    moments.point = [](const TrainPoint& point) {
      if (point.step == 12) throw Kill();
    };
    EXPECT_THROW(run_training(config_, killed, moments), Kill);
    run_training(config_, killed);
    EXPECT_EQ(test::contents_of_run(killed), test::contents_of_run(whole)) << kind;
    // Stopped twice within an epoch.
    for (const int64_t steps : {5, 8}) {
      EXPECT_EQ(run_training(config_, stopped, test::stop_after(steps)).outcome, RunOutcome::stopped);
    }
    EXPECT_EQ(run_training(config_, stopped).outcome, RunOutcome::finished);
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_EQ(read_file(latest_checkpoint(stopped) / file), read_file(latest_checkpoint(whole) / file)) << kind;
  }
}

// All tasks with separate examples have the corpora of their text; a stream is read in order.
TEST_F(SeveralCorpora, AreThoseOfEveryTaskButAStream) {
  PrepareOptions options;
  options.tokenizer.vocabulary = 24;
  options.tokenizer.mask = true;
  options.corpora = {{"web", files_of("web", 120, 1)}, {"news", files_of("news", 30, 3)}};
  options.valid = files_of("valid", 20, 2);
  prepare_data(options, folder_ / "masked");
  const DataDirectory data = DataDirectory::open(folder_ / "masked");
  const auto masked = make_task({.name = "masked-language-modeling"}, data, "encoder")->dataset("train");
  EXPECT_EQ(masked->corpora(), set_->corpora());
  EXPECT_EQ(mixture_of(config_.train, *masked)->shares(), (std::vector<int64_t>{60, 90}));
  const TaskConfig streamed =
      read_run_config(
          Config::from_string("[task]\nname = \"language-modeling\"\n[task.language-modeling]\nstream = 2", "test"))
          .task;
  const auto stream = make_task(streamed, data, "awd-lstm")->dataset("train");
  EXPECT_EQ(test::message_of([&] { (void)mixture_of(config_.train, *stream); }),
            "[[train.corpora]] is set, but a stream reads all of its text in order");
  config_.train.corpora = {};
  config_.train.corpus_temperature = 1;
  EXPECT_FALSE(mixture_of(config_.train, *stream).has_value());
}

TEST_F(SeveralCorpora, OtherWeightsAreAnotherRun) {
  const fs::path out = folder_ / "run";
  config_.train.steps = 2;
  run_training(config_, out);
  EXPECT_EQ(refused(out), "accepted");
  config_.train.corpora[0].weight = 2;
  EXPECT_EQ(refused(out), out.string() +
                              ": contains a run with a different configuration: train.corpora.0.weight = "
                              "3.0 there, 2.0 here");
}

TEST_F(SeveralCorpora, ChangedDataNameTheCorpus) {
  const fs::path out = folder_ / "run", data = folder_ / "data";
  config_.train.steps = 2;
  run_training(config_, out);
  const std::string tokens = read_file(data / "splits" / "train.tokens");
  {  // change one id of the last pair
    const Split split = Split::open(data / "splits" / "train.tokens");
    std::vector<std::vector<int32_t>> sources, targets;
    for (int64_t i = 0; i < split.size(); ++i) {
      sources.emplace_back(split.source(i).begin(), split.source(i).end());
      targets.emplace_back(split.target(i).begin(), split.target(i).end());
    }
    int32_t& last = targets.back().back();
    last = last == 4 ? 5 : 4;
    write_split(data / "splits" / "train.tokens", sources, targets);
  }
  const std::string start = fs::canonical(data).string() + ": corpus 'news' of split 'train' ";
  EXPECT_EQ(refused(out), start + "has changed since the run was started");
  write_file_atomic(data / "splits" / "train.tokens", tokens);
  EXPECT_EQ(refused(out), "accepted");
  // The same tokens, divided differently: of two changed corpora, the first is named.
  const Json info = read_json(data / "data.json");
  Json other = info;
  other["splits"]["train"]["corpora"][0]["pairs"] = 121;
  other["splits"]["train"]["corpora"][1]["pairs"] = 29;
  write_json(data / "data.json", other);
  EXPECT_CONTAINS(refused(out), "corpus 'web' of split 'train' has changed");
  write_json(data / "data.json", info);
  EXPECT_EQ(refused(out), "accepted");
}

TEST_F(SeveralCorpora, WhatCannotBeIsAnErrorThatNamesTheKey) {
  const auto mixed = [&] { return test::message_of([&] { (void)mixture_of(config_.train, *set_); }); };
  const auto checked = [&] { return test::message_of([&] { validate(config_.train); }); };
  EXPECT_EQ(mixed(), "accepted");
  EXPECT_EQ(checked(), "accepted");
  config_.train.corpora = {{"newz", 2}};
  EXPECT_EQ(mixed(), "[[train.corpora]]: the training data have no corpus 'newz'");
  config_.train.corpora = {{"news", 2}, {"web", 1}, {"news", 2}};
  EXPECT_EQ(checked(), "[[train.corpora]] has two weights for 'news'");
  config_.train.corpora = {{"", 2}};
  EXPECT_EQ(checked(), "a corpus of [[train.corpora]] has no name");
  for (const double weight : {0.0, -1.0}) {
    config_.train.corpora = {{"news", weight}};
    EXPECT_EQ(checked(),
              weight == 0 ? "train.corpora.weight = 0 must be above 0" : "train.corpora.weight = -1 must be above 0");
    EXPECT_EQ(refused(folder_ / "never"), checked());
  }
  config_.train.corpora = {};
  for (const double temperature : {0.0, -2.0}) {
    config_.train.corpus_temperature = temperature;
    EXPECT_EQ(checked(), temperature == 0 ? "train.corpus_temperature = 0 must be above 0"
                                          : "train.corpus_temperature = -2 must be above 0");
  }
  // Data of one corpus.
  test::make_copy_task(folder_ / "one");
  const auto one = make_task({}, DataDirectory::open(folder_ / "one"), "encoder-decoder")->dataset("train");
  const auto single = [&] { return test::message_of([&] { (void)mixture_of(config_.train, *one); }); };
  config_.train.corpus_temperature = 1;
  EXPECT_EQ(single(), "accepted");
  config_.train.corpus_temperature = 2;
  EXPECT_EQ(single(), "train.corpus_temperature is set, but the training data are one corpus");
  config_.train.corpora = {{"news", 1}};
  EXPECT_EQ(single(), "[[train.corpora]] is set, but the training data are one corpus");
}

TEST_F(SeveralCorpora, AreConfiguredAndWrittenAsSections) {
  const RunConfig read =
      read_run_config(Config::from_string("[train]\ncorpus_temperature = 5\n[[train.corpora]]\nname = \"news\"\nweight "
                                          "= 2\n[[train.corpora]]\nname = \"web\"\n",
                                          "test"));
  EXPECT_EQ(read.train.corpus_temperature, 5);
  EXPECT_EQ(read.train.corpora, (std::vector<CorpusWeight>{{"news", 2}, {"web", 1}}));
  EXPECT_EQ(read_run_config(Config::from_string(to_toml(read), "written")).train, read.train);
}

}  // namespace
}  // namespace plumb
