// Compares sentences on the pages of findings with the numbers in the results.
#include <gtest/gtest.h>

#include <regex>

#include "app/findings.h"
#include "support/contains.h"

namespace plumb {
namespace {

using namespace findings;

/// The page with its lines joined, so that sentences can be found.
std::string flowing(const std::string& page) { return std::regex_replace(page, std::regex(R"(\n *)"), " "); }

/// Sentences of the page, made from the results.
class Sentences : public ::testing::Test {
 protected:
  void expect(const std::string& text) const { EXPECT_CONTAINS(page_, text); }

  const std::string page_ = flowing(all_pages());
  const Json multi30k_ = results_of("multi30k_warmup");
  const Arms arms_ = training_arms("multi30k_warmup");
};

TEST_F(Sentences, LossesByLearningRate) {
  const std::map<std::string, std::string> names = {
      {"post-ln", "Post-LN"}, {"pre-ln", "Pre-LN"}, {"residual-dual", "ResiDual"}, {"deepnorm", "DeepNorm"}};
  for (const auto& [scheme, name] : names) {
    for (const char* warm_up : {"0", "100"}) {
      std::string row = fmt::format("| {}, {} warm-up |", name, warm_up[0] == '0' ? "without" : "with");
      if (scheme != "post-ln") row += " |";
      for (const Sweep::Point& point : arms_.at(scheme + "; adam; " + warm_up).points)
        row += fmt::format(" {:.2f} |", mean_of(counted(point.losses, kMulti30k)));
      expect(row);
    }
  }
}

TEST_F(Sentences, WhatFailsAndWhatTrains) {
  expect(fmt::format("has at least {:.2f} on these sentences", kLabelEntropy.at("multi30k_warmup")));
  const auto trained = [&](const std::string& arm) {
    std::vector<std::pair<double, int>> runs;  // rate, number of runs that learned something
    for (const Sweep::Point& point : arms_.at(arm).points) {
      runs.emplace_back(point.learning_rate, std::count_if(point.losses.begin(), point.losses.end(), [&](double loss) {
                          return loss < kLabelEntropy.at("multi30k_warmup");
                        }));
    }
    return runs;
  };
  using Runs = std::vector<std::pair<double, int>>;
  for (const char* arm : {"pre-ln; adam; 0", "pre-ln; adam; 100", "residual-dual; adam; 0", "residual-dual; adam; 100"})
    EXPECT_EQ(trained(arm), (Runs{{0.001, 3}, {0.004, 3}, {0.016, 3}, {0.064, 3}})) << arm;
  EXPECT_EQ(trained("deepnorm; adam; 0"), (Runs{{0.001, 3}, {0.004, 3}, {0.016, 0}, {0.064, 0}}));
  EXPECT_EQ(trained("deepnorm; adam; 100"), (Runs{{0.001, 3}, {0.004, 3}, {0.016, 3}, {0.064, 0}}));
  EXPECT_EQ(trained("post-ln; adam; 0"), (Runs{{0.00025, 3}, {0.001, 3}, {0.004, 0}, {0.016, 0}}));
  EXPECT_EQ(trained("post-ln; adam; 100"), (Runs{{0.00025, 3}, {0.001, 3}, {0.004, 2}, {0.016, 0}}));
  int sgd = 0, learned = 0;
  for (const auto& [name, sweep] : arms_.all()) {
    if (!name.starts_with("post-ln; sgd")) continue;
    for (const Sweep::Point& point : sweep.points) sgd += static_cast<int>(point.losses.size());
    for (const auto& [rate, runs] : trained(name)) learned += runs;
  }
  EXPECT_EQ(learned, 1);
  expect(fmt::format("begins to train Post-LN in one run of {}, clipped", sgd));
  const std::vector<double>& clipped = arms_.at("post-ln; sgd, clipped at 1; 100", 0.1);
  expect(fmt::format("{:.2f}, where the other seeds end at {:.2f} and {:.2f}", clipped[0], clipped[1], clipped[2]));
  const auto highest = [&](const std::string& scheme) {
    double most = 0;
    for (const char* warm_up : {"; adam; 0", "; adam; 100"}) {
      for (const Sweep::Point& point : arms_.at(scheme + warm_up).points)
        most = std::max(most, *std::max_element(point.losses.begin(), point.losses.end()));
    }
    return most;
  };
  expect(fmt::format("end at up to {:.2f} nats, DeepNorm's at up to {:.2f}", highest("post-ln"), highest("deepnorm")));
  expect(fmt::format("a uniform guess, {:.2f}", std::log(2000.0)));
  int all = 0, good = 0;
  for (const auto& [name, sweep] : arms_.all()) {
    if (name.find("; adam; ") == std::string::npos) continue;
    for (const Sweep::Point& point : sweep.points) {
      EXPECT_TRUE(
          std::all_of(point.losses.begin(), point.losses.end(), [](double loss) { return std::isfinite(loss); }));
      all += static_cast<int>(point.losses.size());
    }
    for (const auto& [rate, runs] : trained(name)) good += runs;
  }
  expect(fmt::format("Of {} runs with Adam, {} failed. All of them kept a finite loss", all, all - good));
}

TEST_F(Sentences, DifferencesBetweenArms) {
  const auto difference = [&](const char* first, double at, const char* second, double rate) {
    return with_limits(confidence_interval(counted_minus(arms_.at(first, at), arms_.at(second, rate), kMulti30k))) +
           ")";
  };
  const auto same_rate = [&](double rate) { return difference("post-ln; adam; 0", rate, "post-ln; adam; 100", rate); };
  expect(fmt::format("{} at 0.00025, {} at 0.001, and {} at 0.004. At 0.016 all six runs fail", same_rate(0.00025),
                     same_rate(0.001), same_rate(0.004)));
  EXPECT_TRUE(
      counted_minus(arms_.at("post-ln; adam; 0", 0.016), arms_.at("post-ln; adam; 100", 0.016), kMulti30k).empty());
  const auto failed = [&](const char* arm) { return static_cast<int64_t>(failures(arms_.at(arm, 0.004), kMulti30k)); };
  EXPECT_EQ(failed("post-ln; adam; 0"), 3);
  EXPECT_EQ(failed("post-ln; adam; 100"), 1);
  expect(
      fmt::format("At 0.004 all three Post-LN runs fail without a warm-up, and one of three with it: three seeds do "
                  "not show a difference (Fisher's exact test, p = {:.2f})",
                  failure_p_value(3, 3, 1, 3)));
  const auto four_times = [&](const char* arm) { return difference(arm, 0.004, arm, 0.016); };
  expect(fmt::format("by {} nats for DeepNorm, but by {} for Pre-LN and {} for ResiDual",
                     four_times("deepnorm; adam; 100"), four_times("pre-ln; adam; 100"),
                     four_times("residual-dual; adam; 100")));
  expect(difference("post-ln; adam; 0", 0.001, "post-ln; muon; 0", 0.004) + " below Adam without it");
  expect("above Adam without warm-up by " + difference("post-ln; lion; 0", 0.00025, "post-ln; adam; 0", 0.001));
  EXPECT_EQ(failures(arms_.at("post-ln; lion; 0", 0.00025), kMulti30k), 1U);
  expect("above Adam by " + difference("post-ln; lion; 100", 0.004, "post-ln; adam; 100", 0.001));
  for (const Sweep::Point& point : arms_.at("post-ln; lion; 100").points)
    EXPECT_EQ(failures(point.losses, kMulti30k), 3U);
  // Between the rates of the sweeps.
  const auto gain = [&](const char* arm) {
    Sweep sweep = arms_.at(arm);
    for (Sweep::Point& point : sweep.points) point.losses = counted(point.losses, kMulti30k);
    sweep.failed_at = kInfinity;
    return sweep.gain_between();
  };
  expect(fmt::format("{:.2f} for Pre-LN without warm-up and {:.2f} with it", gain("pre-ln; adam; 0"),
                     gain("pre-ln; adam; 100")));
  const double fine =
      confidence_interval(minus(arms_.at("pre-ln; adam; 0").best_losses(), arms_.at("pre-ln; adam; 100").best_losses()))
          .mean -
      gain("pre-ln; adam; 0") + gain("pre-ln; adam; 100");
  expect(fmt::format("difference {:.2f} instead of 0.07, and by {:.2f} for Post-LN", fine, gain("post-ln; adam; 0")));
  Sweep without_third = arms_.at("post-ln; adam; 0");
  for (Sweep::Point& point : without_third.points) point.losses.pop_back();
  EXPECT_EQ(without_third.open_end(), "the best learning rate, 0.00025, is the smallest of the sweep");
}

TEST_F(Sentences, MeasurementsBesidesTheLoss) {
  const auto of = [&](const char* scheme, int layer) { return gradients(multi30k_, scheme, layer); };
  const auto ratio = [](const std::vector<double>& values) { return with_limits(geometric_interval(values)) + ")"; };
  expect("as large as Pre-LN's, " + ratio(first_layers(multi30k_)[0].values));
  expect(fmt::format("layer 6 has {} times", ratio(over(of("residual-dual", 6), of("pre-ln", 6)))));
  // The gradient at the decoder's input over that at its result.
  const auto arriving = [&](const char* scheme) {
    std::vector<double> shares;
    for (const Json& seed : multi30k_["measurements"]["backward_gain"][scheme]) {
      for (const Json& stack : seed["stacks"]) {
        if (stack["stack"] != "decoder") continue;
        for (const Json& part : stack["parts"]) {
          if (part["part"] == "decoder")
            shares.push_back(stack["input_gradient"].get<double>() / part["gradient"].get<double>());
        }
      }
    }
    return shares;
  };
  expect(fmt::format("arrives at its input is {} times", ratio(over(arriving("residual-dual"), arriving("pre-ln")))));

  // Critical learning rates of the first step, on its own examples and on watched ones.
  std::map<std::string, double> critical;
  for (const Json& row : with_id(multi30k_["tables"], "first_step")["rows"]) {
    if (row[0] == "adam") critical[row[1]] = row[2];
  }
  expect(fmt::format("step is {:.2f} for DeepNorm, {:.2f} for Pre-LN, {:.2f} for Post-LN and {:.2f} for ResiDual",
                     critical["deepnorm"], critical["pre-ln"], critical["post-ln"], critical["residual-dual"]));
  expect(fmt::format("share of {:.3f} to {:.3f}", 0.001 / critical["deepnorm"], 0.001 / critical["residual-dual"]));
  std::vector<double> watched;
  for (const Json& row : with_id(multi30k_["tables"], "along_training_critical")["rows"]) {
    if (row[1] == 0) watched.push_back(row[4]);
  }
  const auto [least, most] = std::minmax_element(watched.begin(), watched.end());
  expect(fmt::format("rate is {:.3f} to {:.3f} of the critical one", *least, *most));

  // Sharpness itself: the multiple of the threshold, which is 100 times higher at step 1 of the warm-up.
  std::map<std::string, std::vector<double>> multiples;
  for (const Json& row : with_id(multi30k_["tables"], "along_training")["rows"]) multiples[row[0]].push_back(row[5]);
  const auto sharper = [&](const std::string& scheme) { return multiples[scheme][0] / multiples[scheme][1] / 100; };
  expect(
      fmt::format("itself is {:.0f} times as large after a step without warm-up for Post-LN, {:.1f} times for "
                  "DeepNorm and {:.2f} times for Pre-LN",
                  sharper("post-ln"), sharper("deepnorm"), sharper("pre-ln")));

  const auto last_cosine = [&](const std::string& series) {
    for (const Json& each : with_id(multi30k_["figures"], "along_similarity_encoder")["series"]) {
      if (each["name"] == series) return each["y"].back().get<double>();
    }
    return kInfinity;
  };
  expect(fmt::format("DeepNorm's encoder has a cosine of {:.4f} from step 100 to the end, and ResiDual's of {:.5f}",
                     last_cosine("DeepNorm, no warm-up"), last_cosine("ResiDual, no warm-up")));
  // One of six quantities ranks four schemes rightly by chance.
  expect(fmt::format("by chance in {:.0f}% of cases", 100 * (1 - std::pow(23.0 / 24, 6))));
}

TEST_F(Sentences, GradientsOfTheFirstMatrix) {
  const auto grown = [](const char* file, const std::string& scheme, const std::string& stack, int matrix) {
    const Json all = results_of(file)["measurements"]["gradients"][scheme];
    const auto of_layer = [&](int layer) {
      return numbers(all[fmt::format("{}.layers.{}.linear{}.weight", stack, layer - 1, matrix)]);
    };
    return geometric_interval(over(of_layer(6), of_layer(1)));
  };
  const auto growth = [&](const char* file, const std::string& scheme, const std::string& stack, int matrix) {
    return with_limits(grown(file, scheme, stack, matrix)) + ")";
  };
  const Interval decoder = grown("xiong_figure3", "post-ln", "decoder", 1);
  expect(fmt::format("a factor of {:.1f} ({:.1f} to {:.1f}) with Post-LN, as W₂'s does, and changes by {} with Pre-LN",
                     decoder.mean, decoder.low, decoder.high, growth("xiong_figure3", "pre-ln", "decoder", 1)));
  expect(fmt::format("little beside a decoder's {:.1f}", decoder.mean));
  const std::string alone = growth("bert_warmup", "post-ln", "encoder", 1);
  expect(fmt::format(
      "Over the encoder, Post-LN's W₁ grows by {} and W₂ by {}; in the encoder without a decoder of the "
      "[BERT study](warm-up.md#does-bert-need-warm-up), W₁ by {}",
      growth("xiong_figure3", "post-ln", "encoder", 1), growth("xiong_figure3", "post-ln", "encoder", 2), alone));
  expect(fmt::format("That of W₁ does, by {}, which is little", alone));
}

TEST_F(Sentences, RunsThatFail) {
  const auto losses = [](const char* study, const char* arm) {
    return arms_at_one_rate(study).at(arm).points.front().losses;
  };
  const auto learned = [&](const char* study, const char* arm) {
    const std::vector<double> of_arm = losses(study, arm);
    return of_arm.size() - failures(of_arm, kLabelEntropy.at(study));
  };
  const auto difference = [&](const char* study, const char* first, const char* second) {
    return with_limits(confidence_interval(
               counted_minus(losses(study, first), losses(study, second), kLabelEntropy.at(study)))) +
           ")";
  };
  const auto in_nats = [](std::string text) { return text.insert(text.find(" ("), " nats"); };

  const char* first_steps = "post_ln_first_steps";
  EXPECT_EQ(learned(first_steps, "warm-up of queries, keys, values"), 4U);
  EXPECT_EQ(learned(first_steps, "no warm-up"), 2U);
  expect("queries, keys and values alone lets four of five runs learn; without any, two of five do");
  for (const char* arm :
       {"warm-up of norms", "warm-up of embeddings", "second moment first", "query-key norm", "fast output bias"})
    EXPECT_LE(learned(first_steps, arm), 2U) << arm;
  expect("of each, at least three of five runs failed");
  for (const char* arm : {"warm-up of attention", "warm-up of feed-forward", "BatchNorm", "rotary positions"})
    EXPECT_EQ(learned(first_steps, arm), 5U) << arm;
  expect("trained without a warm-up in all five runs each");
  expect("still loses " + in_nats(difference(first_steps, "no warm-up", "warm-up")));

  const char* length = "warm_up_length";
  EXPECT_EQ(learned(length, "0.9, no warm-up"), 5U);
  EXPECT_EQ(learned(length, "0.999, no warm-up"), 4U);
  expect("hardly apart: five of five, and four of five");
  expect("with 0.9 they end " + difference(length, "0.999, no warm-up", "0.9, no warm-up").insert(4, " nats lower"));
  expect("the difference is " + in_nats(difference(length, "0.9, no warm-up", "0.999, 150 steps")));
  expect("gains nothing over none, " + difference(length, "0.9, no warm-up", "0.9, 20 steps"));

  const char* moment = "second_moment";
  EXPECT_EQ(learned(moment, "0.999"), 1U);
  EXPECT_EQ(learned(moment, "0.9"), 10U);
  EXPECT_EQ(learned(moment, "0.999, equal gradients"), 5U);
  expect("With β₂ = 0.999 one run of ten learns; with 0.9 all ten do, and end " +
         difference(moment, "0.999", "0.9").insert(4, " nats lower"));
  expect("five of ten runs learn, where one did");
  expect("with 0.9, which end " + difference(moment, "0.999", "0.9").insert(4, " nats lower"));
  expect(fmt::format("at most {:.2f} times the rate with β₂ = 0.9, and by up to {:.2f} times the rate with 0.999",
                     largest_step(0.9), largest_step(0.999)));

  const char* translation = "translation_warm_up";
  EXPECT_EQ(learned(translation, "Post-LN"), 0U);
  EXPECT_EQ(learned(translation, "Post-LN, warm-up"), 3U);
  expect("the loss falls by " + in_nats(difference(translation, "Post-LN", "Post-LN, warm-up")));
  std::vector<double> ends = losses(translation, "Post-LN");
  std::sort(ends.begin(), ends.end());
  expect(fmt::format("lie far apart: {:.2f}, {:.2f} and {:.2f}", ends[0], ends[1], ends[2]));

  const char* depth = "depth_or_width";
  EXPECT_EQ(learned(depth, "Post-LN, 8 layers"), 1U);
  expect("four times the layers cost it " + in_nats(difference(depth, "Post-LN, 8 layers", "Post-LN")));
  expect("they end at " + as_counted(losses(depth, "Post-LN, 8 layers"), kTwoThousandPieces));

  const char* update = "update_size";
  EXPECT_EQ(learned(update, "Post-LN, 0.004"), 0U);
  const double post_ln = mean_of(losses(update, "Post-LN, step of DeepNorm's size"));
  expect(
      fmt::format("it ends at {:.2f}, {}", post_ln,
                  difference(update, "Post-LN, 0.004", "Post-LN, step of DeepNorm's size").insert(4, " nats lower")));
  expect(fmt::format("Post-LN has gained {:.2f} nats and DeepNorm {:.2f}", kMulti30k - post_ln,
                     kMulti30k - mean_of(losses(update, "DeepNorm, the same rate"))));
}

// The distance of Post-LN with a warm-up from Pre-LN with one, first seed, along training.
TEST_F(Sentences, GapAlongTranslation) {
  const Json results = results_of("translation_warm_up");
  const Json& series = with_id(results["figures"], "loss_adam_layers6")["series"];
  const std::vector<double> gap = minus(numbers(test::entry(series, "name", "Post-LN, warm-up")["y"]),
                                        numbers(test::entry(series, "name", "Pre-LN, warm-up")["y"]));
  std::string listed;
  for (size_t i = 0; i < gap.size(); ++i)
    listed += (i == 0 ? "" : i + 1 < gap.size() ? ", " : " and ") + rounded(gap[i]);
  expect("With the first seed it is " + listed + " nats after 500, 1,000 and so on to 4,000 steps");
}

TEST_F(Sentences, CorrelationsBetweenArms) {
  const auto correlation = [](const Arms& arms) {
    std::vector<std::vector<double>> losses;
    for (const auto& [name, sweep] : arms.all()) losses.push_back(sweep.best_losses());
    return rounded(mean_correlation(losses));
  };
  const auto at_one_rate = [&](const std::string& file) {
    return correlation({with_id(results_of(file)["tables"], "runs"), {0}, 4, 8, kInfinity});
  };
  EXPECT_EQ(correlation(training_arms("bert_warmup")), at_one_rate("post_ln_first_steps"));
  expect(fmt::format(
      "two arms correlate by {} on average in the study of warm-up, by {} in those of BERT and of the first "
      "steps, and by {} in that of the memory",
      correlation(arms_), at_one_rate("post_ln_first_steps"), at_one_rate("post_ln_memory")));
}

TEST_F(Sentences, OtherStudies) {
  const Json bert = results_of("bert_warmup");
  const Json& effect = with_id(bert["verdicts"], "pre_ln_learns_faster_adamw_clipped1")["effect"];
  // From 95% to 97% for four degrees of freedom.
  const double half = (effect["high"].get<double>() - effect["mean"].get<double>()) * student_t_quantile(0.985, 4) /
                      student_t_quantile(0.975, 4);
  expect(fmt::format("the interval is {} to {}", rounded(effect["mean"].get<double>() - half),
                     rounded(effect["mean"].get<double>() + half)));
  Sweep post_ln = training_arms("bert_warmup").at("post-ln; adamw, clipped at 1; 80");
  post_ln.failed_at = kInfinity;
  expect(fmt::format("a parabola would give Post-LN with warm-up another {:.2f} between", post_ln.gain_between()));

  const Json figure3 = results_of("xiong_figure3");
  const auto last_of = [&](const std::string& series) {
    for (const Json& each : with_id(figure3["figures"], "gradient_by_layer_decoder")["series"]) {
      if (each["name"] == series) return each["y"].back().get<double>();
    }
    return kInfinity;
  };
  expect(fmt::format("gradient is {:.2f} with Xavier's initialization and {:.2f} in the theory's setting",
                     last_of("Post-LN W₂"), last_of("Post-LN W₂, theory's setting")));
  // √d / (d √ln d) at 128 and 512.
  const auto looseness = [](double d) { return std::log(std::sqrt(d) / (d * std::sqrt(std::log(d)))); };
  expect(fmt::format("an exponent of {}", rounded((looseness(512) - looseness(128)) / std::log(4.0))));

  const auto step = [&](const char* file) {
    const Json results = results_of(file);
    const std::vector<double> losses = numbers(with_id(results["figures"], "scale_parameters")["series"][0]["y"]);
    return losses.back() - losses[losses.size() - 2];
  };
  expect(fmt::format("next smaller one by {:.2f}", -step("scale_quick")));
  expect(fmt::format("it is off by {:.2f}, and \"the same loss as the next smaller model\" by {:.2f}",
                     with_id(results_of("scale")["verdicts"], "scale_held_out")["effect"]["mean"].get<double>(),
                     step("scale")));
  expect(fmt::format("between those of the sweep may gain {:.1f}",
                     transfer_arms("ulmfit").at("awd-lstm; from scratch; 1000").gain_between()));
}

}  // namespace
}  // namespace plumb
