// The numbers of alarms, against formulas or counts of their own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "check/planned_run.h"
#include "plumb/check/gradient.h"
#include "support/contains.h"

namespace plumb {
namespace {

using test::finding_of;
using test::findings_for;
using test::planned;

TEST(Alarms, AllSayWhatTheyAreFor) {
  EXPECT_GE(alarms().entries().size(), 17U);
  for (const auto& [name, entry] : alarms().entries()) EXPECT_FALSE(entry.summary.empty()) << name;
}

TEST(Alarms, RaisedFindingsComeFirst) {
  RunConfig run = planned();
  run.model.dropout = 0.9;
  const std::vector<Finding> findings = findings_for(run);
  EXPECT_EQ(findings.front().alarm, "regularization");
  EXPECT_TRUE(std::is_partitioned(findings.begin(), findings.end(), [](const Finding& each) { return each.raised; }));
}

TEST(Alarms, LeaveTheModelAsItIs) {
  // ReZero has parameters without gradient, for which steps are taken and taken back.
  RunConfig run = planned();
  run.model.residual = "rezero";
  Tensor before, flat;
  (void)findings_for(run, {.weights = [&](const Parameters& parameters) {
                       flat = parameters.flat();
                       before = flat.clone();
                     }});
  EXPECT_TRUE(at::equal(flat, before));
}

TEST(Alarms, EqualLogitsHaveTheLossOfAUniformGuess) {
  RunConfig run = planned();
  run.model.share_embeddings = "none";
  const Finding finding = finding_of(
      findings_for(run,
                   {.weights = [](const Parameters& parameters) { parameters.at("output.weight").value.zero_(); }}),
      "initial_loss");
  const auto classes = static_cast<double>(DataDirectory::open(run.data).target_vocabulary());
  EXPECT_NEAR(finding.value, std::log(classes), 1e-5);
  EXPECT_NEAR(finding.threshold, std::log(classes) + 2, 1e-12);  // no matrix is shared
}

TEST(Alarms, AScaledSubLayerIsAsManyTimesLarger) {
  // A second matrix and bias that are 50 times those of equal neighbors return 50 times as much.
  RunConfig run = planned();
  run.model.decoder_layers = 3;
  run.model.residual = "layerscale";
  run.model.dropout = 0;
  const auto outputs = [&](double factor) {
    return finding_of(
        findings_for(run, {.weights =
                               [=](const Parameters& parameters) {
                                 for (const char* name : {"linear1.weight", "linear2.weight"}) {
                                   for (const char* layer : {"1.", "2."})
                                     parameters.at(fmt::format("decoder.layers.{}{}", layer, name))
                                         .value.copy_(parameters.at(fmt::format("decoder.layers.0.{}", name)).value);
                                 }
                                 parameters.at("decoder.layers.1.linear2.weight").value.mul_(factor);
                               }}),
        "signal", "decoder.layers.1.feed_forward");
  };
  const Finding finding = outputs(50);
  EXPECT_TRUE(finding.raised);
  EXPECT_NEAR(finding.value, 50, 5);  // layers read slightly different streams
}

TEST(Alarms, AdamMovesEveryElementByTheRate) {
  // ‖Δw‖/‖w‖ = η·√n/‖w‖, unless an element's gradient is as small as ε.
  RunConfig run = planned();
  run.model.residual = "pre-ln";
  run.model.decoder_layers = 1;
  run.train.schedule = "constant";
  run.train.learning_rate = 0.125;
  run.train.warm_up = 0;
  double elements = 0, square = 0;
  const std::vector<Finding> findings =
      findings_for(run, {.weights = [&](const Parameters& parameters) {
                     for (const Parameter& each : parameters.all()) {
                       if (each.value.dim() < 2 || each.name.find("layers.0") == std::string::npos) continue;
                       elements += static_cast<double>(each.value.numel());
                       square += each.value.square().sum().item<double>();
                     }
                   }});
  const Finding finding = finding_of(findings, "updates", "decoder.layers.0");
  EXPECT_NEAR(finding.value, 0.125 * std::sqrt(elements / square), 0.01 * finding.value);
  EXPECT_TRUE(finding.raised);
}

// A decoder may go on learning while nothing reaches its encoder any more.
TEST(Alarms, TheGradientAtTheInputIsThatOfTheStackThatGetsLess) {
  Parameters parameters(at::kDouble);
  std::vector<Tensor> gradient;
  const auto add = [&](const char* layer, double norm) {
    parameters.add(std::string(layer) + ".linear1.weight", {2, 2}, Role::weight);
    gradient.push_back(at::full({2, 2}, norm / 2, at::kDouble));
  };
  add("encoder.layers.0", 3e-6);
  add("encoder.layers.1", 5e-6);
  add("decoder.layers.0", 1);
  add("decoder.layers.1", 2);
  parameters.allocate();
  EXPECT_NEAR(*check::gradient_at_input(parameters, gradient), 1.5e-6, 1e-18);
  gradient[0].mul_(1e6);
  EXPECT_NEAR(*check::gradient_at_input(parameters, gradient), 0.5, 1e-12);
}

// With label smoothing, the loss before training is still compared as a negative log-likelihood.
TEST(Alarms, TheFirstLossIsWithoutSmoothing) {
  RunConfig run = planned();
  const double plain = finding_of(findings_for(run), "initial_loss").value;
  run.train.label_smoothing = 0.3;
  EXPECT_DOUBLE_EQ(finding_of(findings_for(run), "initial_loss").value, plain);
}

TEST(Alarms, EqualTokensAskForSmallerValues) {
  RunConfig run = planned();
  run.model.residual = "no-residual";
  run.model.decoder_layers = 8;
  const auto advice = [&] { return finding_of(findings_for(run), "token_similarity").advice; };
  EXPECT_CONTAINS(advice(), "model.initialization = \"small-init\"");
  run.model.initialization = "small-init";
  EXPECT_LACKS(advice(), "small-init");
}

TEST(Alarms, WeightsInBfloat16DoNotReachTheNextNumber) {
  RunConfig run = planned();
  run.train.parameters = "bf16";
  const auto text_at = [&](double rate) {
    run.train.learning_rate = rate;
    std::string all;
    for (const Finding& each : findings_for(run)) all += each.alarm == "updates" ? each.text : "";
    return all;
  };
  EXPECT_CONTAINS(text_at(1e-7), "bfloat16");
  EXPECT_LACKS(text_at(1e-4), "bfloat16");
}

TEST(Alarms, ADecayIsTheRateTimesTheDecay) {
  RunConfig run = planned();
  run.train.schedule = "constant";
  run.train.warm_up = 0;
  run.train.learning_rate = 0.002;
  run.train.weight_decay = 7;
  EXPECT_NEAR(finding_of(findings_for(run), "decay").value, 0.014, 1e-9);
}

TEST(Alarms, EpochsAreStepsTimesBatchOverTokens) {
  RunConfig run = planned();
  const auto data = DataDirectory::open(run.data);
  double tokens = 0;
  for (int64_t i = 0; i < data.split("train").size(); ++i)
    tokens += static_cast<double>(data.split("train").target(i).size());
  bool found = false;
  for (const Finding& each : findings_for(run))
    found |= each.alarm == "data_amount" && std::abs(each.value - 1000 * 512 / tokens) < 1e-9;
  EXPECT_TRUE(found);
}

TEST(Alarms, UnknownTokensAreCounted) {
  RunConfig run = planned();
  run.data = test::SyntheticData::of("foreign");
  const auto data = DataDirectory::open(run.data);
  double unknown = 0, all = 0;
  for (int64_t i = 0; i < data.split("train").size(); ++i) {
    for (const int32_t id : data.split("train").target(i)) {
      unknown += id == data.target_tokenizer().specials().unknown ? 1 : 0;
      ++all;
    }
  }
  EXPECT_NEAR(finding_of(findings_for(run), "pieces", "target").value, unknown / all, 1e-12);
}

TEST(Alarms, TwoOfThreeEqualLinesRepeatAnEarlierOne) {
  RunConfig run = planned();
  run.data = test::SyntheticData::of("repeated");
  const Finding finding = finding_of(findings_for(run), "duplicates");
  EXPECT_NEAR(finding.value, 2.0 / 3, 0.05);  // a few lines are equal anyway
}

TEST(Alarms, OnlyWeightsFrozenForGoodAreAFault) {
  RunConfig run = planned();
  run.train.groups = {{.pattern = {"tgt_embed.weight"}, .frozen_until = -1}};
  EXPECT_TRUE(finding_of(findings_for(run), "gradients").raised);
  run.train.groups.front().frozen_until = 10;
  EXPECT_FALSE(finding_of(findings_for(run), "gradients").raised);
}

}  // namespace
}  // namespace plumb
