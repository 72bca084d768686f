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
        row += fmt::format(" {:.2f} |", confidence_interval(point.losses).mean);
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
    return with_limits(confidence_interval(minus(arms_.at(first, at), arms_.at(second, rate)))) + ")";
  };
  const auto same_rate = [&](double rate) { return difference("post-ln; adam; 0", rate, "post-ln; adam; 100", rate); };
  expect(fmt::format("{} at 0.00025, {} at 0.001, {} at 0.004, and {} at 0.016", same_rate(0.00025), same_rate(0.001),
                     same_rate(0.004), same_rate(0.016)));
  expect("at 0.004 Post-LN loses " + same_rate(0.004).insert(4, " nats") + " without it");
  const auto four_times = [&](const char* arm) { return difference(arm, 0.004, arm, 0.016); };
  expect(fmt::format("by {} nats for DeepNorm, but by {} for Pre-LN and {} for ResiDual",
                     four_times("deepnorm; adam; 100"), four_times("pre-ln; adam; 100"),
                     four_times("residual-dual; adam; 100")));
  expect(difference("post-ln; adam; 0", 0.001, "post-ln; muon; 0", 0.004) + " below Adam without it");
  expect("do not show it: " + difference("post-ln; lion; 0", 0.00025, "post-ln; adam; 0", 0.001));
  expect("worse by " + difference("post-ln; lion; 100", 0.004, "post-ln; adam; 100", 0.001));
  // Between the rates of the sweeps.
  const auto gain = [&](const char* arm) {
    Sweep sweep = arms_.at(arm);
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
      "[BERT study](bert.md), W₁ by {}",
      growth("xiong_figure3", "post-ln", "encoder", 1), growth("xiong_figure3", "post-ln", "encoder", 2), alone));
  expect(fmt::format("That of W₁ does, by {}, which is little", alone));
  expect(fmt::format("small for W₁, {}, and warm-up", alone));
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
