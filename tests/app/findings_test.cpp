// Compares the pages of findings with the results that they quote: verdicts, by the present rules, tables, and the numbers
// in their sentences.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "plumb/analysis/sweep.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr const char* kFiles[] = {"multi30k_warmup", "bert_warmup", "xiong_figure3", "scale_quick",
                                  "scale",           "ulmfit",      "finetuning"};

/// The entropy of the validation labels (task/baseline.h) of the studies' data, which the files do not have. That of
/// BERT's masked tokens is approximate; no verdict depends on it between 6.1 and 6.3.
const std::map<std::string, double> kLabelEntropy = {{"multi30k_warmup", 5.632934602716145}, {"bert_warmup", 6.2}};

Json results_of(const std::string& name) {
  return read_json(test::source_directory() / "docs" / "findings" / (name + ".json"));
}

/// The page with its lines joined, so that sentences can be found.
std::string flowing(const std::string& page) { return std::regex_replace(page, std::regex(R"(\n *)"), " "); }
/// docs/findings.md and all pages in docs/findings.
std::string all_pages() {
  const fs::path docs = test::source_directory() / "docs";
  std::string text = read_file(docs / "findings.md");
  for (const auto& entry : fs::directory_iterator(docs / "findings")) {
    if (entry.path().extension() == ".md") text += read_file(entry.path());
  }
  return text;
}

void collect(const Json& json, std::vector<double>& numbers) {
  if (json.is_number()) numbers.push_back(std::abs(json.get<double>()));
  if (!json.is_structured()) return;
  for (const Json& each : json) collect(each, numbers);
}

std::string rounded(double number, int decimals = 2) {
  const std::string text = fmt::format("{:.{}f}", number, decimals);
  if (!text.starts_with('-')) return text;
  const std::string size = text.substr(1);
  return size.find_first_not_of("0.") == std::string::npos ? size : "−" + size;
}

/// "0.16 (−0.05 to 0.38", without the closing parenthesis.
std::string with_limits(double mean, double low, double high) {
  return fmt::format("{} ({} to {}", rounded(mean), rounded(low), rounded(high));
}
std::string with_limits(const Interval& interval) { return with_limits(interval.mean, interval.low, interval.high); }
std::string with_limits(const Json& mean, const Json& low, const Json& high) {
  return with_limits(mean.get<double>(), low.get<double>(), high.get<double>());
}

const Json& with_id(const Json& list, const std::string& id) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Json& each) { return each["id"] == id; });
  if (found == list.end()) throw std::out_of_range(id);
  return *found;
}

double number_or_infinity(const Json& cell) { return cell.is_null() ? kInfinity : cell.get<double>(); }

/// The runs of an arm as a sweep, from a table of runs whose columns `key` identify the arm.
class Arms {
 public:
  Arms(const Json& table, const std::vector<size_t>& key, size_t rate, size_t loss, double failed_at) {
    for (const Json& row : table["rows"]) {
      std::string name;
      for (const size_t column : key)
        name += (name.empty() ? "" : "; ") +
                (row[column].is_string() ? row[column].get<std::string>() : row[column].dump());
      Sweep& sweep = arms_[name];
      sweep.failed_at = failed_at;
      const auto learning_rate = row[rate].get<double>();
      if (sweep.points.empty() || sweep.points.back().learning_rate != learning_rate)
        sweep.points.push_back({learning_rate, {}});
      sweep.points.back().losses.push_back(number_or_infinity(row[loss]));
    }
  }
  [[nodiscard]] const Sweep& at(const std::string& name) const { return arms_.at(name); }
  [[nodiscard]] const std::vector<double>& at(const std::string& name, double rate) const {
    for (const Sweep::Point& point : at(name).points) {
      if (point.learning_rate == rate) return point.losses;
    }
    throw std::out_of_range(name);
  }
  [[nodiscard]] const std::map<std::string, Sweep>& all() const { return arms_; }

 private:
  std::map<std::string, Sweep> arms_;  // by "pre-ln; adam; 100" or "encoder; from scratch; 300"
};

Arms training_arms(const std::string& file) {
  return {with_id(results_of(file)["tables"], "runs"), {0, 2, 3}, 4, 8, kLabelEntropy.at(file)};
}
Arms transfer_arms(const std::string& file) {
  return {with_id(results_of(file)["tables"], "transfer_runs"), {0, 1, 2}, 3, 7, kInfinity};
}

std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return difference;
}

std::vector<double> over(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratio;
  for (size_t i = 0; i < a.size(); ++i) ratio.push_back(a[i] / b[i]);
  return ratio;
}

std::vector<double> numbers(const Json& list) { return list.get<std::vector<double>>(); }

/// [seed]: the gradient norm of W₂ in a decoder layer, from 1.
std::vector<double> gradients(const Json& results, const std::string& scheme, int layer) {
  return numbers(
      results["measurements"]["gradients"][scheme][fmt::format("decoder.layers.{}.linear2.weight", layer - 1)]);
}

/// The readings of residual_dual_bounded: layer 1 by itself, and relative to layer 6.
std::vector<QuantityReading> first_layers(const Json& results) {
  const auto of = [&](const char* scheme, int layer) { return gradients(results, scheme, layer); };
  const std::vector<double> first = over(of("residual-dual", 1), of("pre-ln", 1));
  return {{"by itself", first}, {"relative to layer 6", over(first, over(of("residual-dual", 6), of("pre-ln", 6)))}};
}

/// The comparisons of training runs: verdict, first arm, second arm, region.
using Comparison = std::tuple<const char*, const char*, const char*, Region>;
std::vector<Comparison> comparisons(const std::string& file) {
  const Region worse = Region::above(0.1, 0), as_good = Region::below(0.1);
  if (file == "multi30k_warmup") {
    return {{"post_ln_warm_up", "post-ln; adam; 0", "post-ln; adam; 100", worse},
            {"post_ln_sgd_warm_up", "post-ln; sgd; 0", "post-ln; sgd; 100", worse},
            {"post_ln_radam_warm_up", "post-ln; radam; 0", "post-ln; radam; 100", as_good},
            {"pre_ln_warm_up", "pre-ln; adam; 0", "pre-ln; adam; 100", as_good},
            {"residual_dual_warm_up", "residual-dual; adam; 0", "residual-dual; adam; 100", as_good}};
  }
  if (file == "bert_warmup") {
    const char* pre_ln = "pre-ln; adamw, clipped at 1; 0";
    const char* post_ln = "post-ln; adamw, clipped at 1; 80";
    return {{"post_ln_adamw_warm_up", "post-ln; adamw, clipped at 1; 0", post_ln, worse},
            {"pre_ln_adamw_warm_up", pre_ln, "pre-ln; adamw, clipped at 1; 80", as_good},
            {"pre_ln_learns_faster_adamw_clipped1", pre_ln, post_ln, Region::below(0)}};
  }
  const Region helps = Region::above(0.5, 0), no_help = Region::below(0.5);
  if (file == "ulmfit") {
    const char* complete = "awd-lstm; complete recipe; 5180";
    return {
        {"transfer_awd_lstm_unfreezing", "awd-lstm; without gradual unfreezing; 5180", complete, helps},
        {"transfer_awd_lstm_discriminative", "awd-lstm; without discriminative rates; 5180", complete, helps},
        {"transfer_awd_lstm_slanted", "awd-lstm; with a constant rate; 5180", complete, helps},
        {"transfer_awd_lstm_last_layer", "awd-lstm; last layer only; 5180", complete, helps},
        {"transfer_awd_lstm_text", "awd-lstm; without the task's text; 5180", complete, helps},
        {"transfer_awd_lstm_pretraining", "awd-lstm; from scratch; 5180", complete, helps},
        {"transfer_awd_lstm_pretraining_100", "awd-lstm; from scratch; 100", "awd-lstm; complete recipe; 100", helps},
        {"transfer_awd_lstm_pretraining_1000", "awd-lstm; from scratch; 1000", "awd-lstm; complete recipe; 1000",
         helps}};
  }
  if (file == "finetuning") {
    return {{"transfer_decoder_unfreezing", "decoder; without gradual unfreezing; 5180",
             "decoder; complete recipe; 5180", no_help},
            {"transfer_encoder_unfreezing", "encoder; without gradual unfreezing; 5180",
             "encoder; complete recipe; 5180", no_help},
            {"transfer_decoder_pretraining", "decoder; from scratch; 5180", "decoder; all at once; 5180", helps},
            {"transfer_decoder_pretraining_300", "decoder; from scratch; 300", "decoder; all at once; 300", helps},
            {"transfer_encoder_pretraining", "encoder; from scratch; 5180", "encoder; all at once; 5180", helps},
            {"transfer_encoder_pretraining_300", "encoder; from scratch; 300", "encoder; all at once; 300", helps}};
  }
  return {};
}

/// The judgment of a stored verdict's measurements by the present rules.
Judgment judged_now(const std::string& file, const Json& results, const Json& verdict) {
  const auto id = verdict["id"].get<std::string>();
  for (const auto& [name, first, second, region] : comparisons(file)) {
    if (id != name) continue;
    const Arms arms = file.ends_with("_warmup") ? training_arms(file) : transfer_arms(file);
    return judge_best(arms.at(first), arms.at(second), region);
  }
  if (id == "residual_dual_bounded")
    return judge_readings(first_layers(results), Region::above(1 / 1.5), Scale::logarithmic);
  Judgment stored;
  const Json& effect = verdict["effect"];
  stored.effect = {effect["mean"], effect["low"], effect["high"], effect["seeds"]};
  for (const Outcome outcome : {Outcome::supported, Outcome::contradicted, Outcome::undecided}) {
    if (verdict["verdict"] == to_string(outcome)) stored.outcome = outcome;
  }
  if (id == "scale_comprehension") {
    for (const Json& row : with_id(results["tables"], "scale_evaluation")["rows"]) {
      if (row[0] == "reading comprehension" && row[5] != 0) return stored;
    }
    return not_testable_because(stored, "no model answers any item");
  }
  // Effects have bounds of 1.1; none of the stored intervals lies between the bound and 1.
  if (id == "post_ln_grows" || id == "curvature") stored.outcome = outcome_of(stored.effect, Region::above(1.1, 1));
  return undecided_because(stored, stored.effect.count < 3 ? "two seeds never decide" : "");
}

// Every verdict, every arm at its best and every difference is quoted with its interval.
TEST(Findings, QuoteAllArmsAndVerdicts) {
  const std::string page = all_pages();
  const auto expect = [&page](const std::string& text) { EXPECT_NE(page.find(text), std::string::npos) << text; };
  size_t verdicts = 0;
  std::vector<std::string> changed;
  for (const std::string name : kFiles) {
    const Json results = results_of(name);
    for (const Json& verdict : results["verdicts"]) {
      ++verdicts;
      const Judgment now = judged_now(name, results, verdict);
      if (now.effect.count > 2 && verdict["id"] != "residual_dual_bounded" && now.outcome != Outcome::not_testable) {
        EXPECT_NEAR(now.effect.mean, verdict["effect"]["mean"].get<double>(), 1e-9) << verdict["id"];
      }
      // A claim whose runs failed has no effect by the present rules; the page quotes the stored one.
      const Json& effect = verdict["effect"];
      const std::string quoted = verdict["id"] == "residual_dual_bounded"
                                     ? with_limits(now.effect)
                                     : with_limits(effect["mean"], effect["low"], effect["high"]);
      const std::string seeds = fmt::format(", {} seeds)", effect["seeds"].get<int>());
      if (verdict["id"] == "residual_dual_bounded") {
        expect(fmt::format("{}{}; relative to layer 6: {}{} | {} |", quoted, seeds,
                           with_limits(effect["mean"], effect["low"], effect["high"]), seeds, to_string(now.outcome)));
      } else {
        expect(fmt::format("{}{} | {} |", quoted, seeds, to_string(now.outcome)));
      }
      if (to_string(now.outcome) != verdict["verdict"]) changed.push_back(verdict["id"]);
    }
    for (const Json& table : results["tables"]) {
      for (const Json& row : table["rows"]) {
        if (table["id"] == "sweeps")
          expect(fmt::format("{}) | {:g}", with_limits(row[5], row[6], row[7]), row[4].get<double>()));
        if (table["id"] == "warm_up") expect(with_limits(row[5], row[6], row[7]) + ") |\n");
        if (table["id"] == "scale_schemes") expect(with_limits(row[2], row[3], row[4]) + ") |");
        if (table["id"] == "transfer_recipes") expect(with_limits(row[4], row[5], row[6]) + ") |");
      }
    }
  }
  expect(fmt::format("have {} verdicts", verdicts));
  // Each of these is explained on the page.
  EXPECT_EQ(changed, (std::vector<std::string>{"residual_dual_bounded", "post_ln_sgd_warm_up", "pre_ln_warm_up",
                                               "pre_ln_learns_faster_adamw_clipped1", "scale_rate_standard",
                                               "scale_comprehension", "transfer_awd_lstm_pretraining_100",
                                               "transfer_awd_lstm_pretraining_1000"}));
}

/// Sentences of the page, made from the results.
class Sentences : public ::testing::Test {
 protected:
  void expect(const std::string& text) const { EXPECT_NE(page_.find(text), std::string::npos) << text; }

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

TEST(Findings, OfPostLnAreTheirRegisteredClaims) {
  const std::string pages = all_pages();
  for (const char* study : {"post_ln_gradient", "post_ln_first_steps", "post_ln_memory"}) {
    const Json registered =
        read_json(test::source_directory() / "docs" / "findings" / fmt::format("{}.registration.json", study));
    const Json verdicts = results_of(study)["verdicts"];
    ASSERT_GT(verdicts.size(), 5U);
    for (const Json& verdict : verdicts) {
      const auto claim = verdict["claim"].get<std::string>();
      EXPECT_NE(registered["study"].get<std::string>().find("text = \"" + claim + "\""), std::string::npos) << claim;
      const Json& effect = verdict["effect"];
      const std::string row =
          fmt::format("| {} | {}: {}, {} seeds) | {} |", claim, verdict["quantity"].get<std::string>(),
                      with_limits(effect["mean"], effect["low"], effect["high"]), effect["seeds"].get<int>(),
                      verdict["verdict"].get<std::string>());
      EXPECT_NE(pages.find(row), std::string::npos) << row;
    }
  }
}

TEST(Findings, AreThoseOfTheResults) {
  const fs::path docs = test::source_directory() / "docs";
  std::vector<double> numbers;
  for (const auto& entry : fs::directory_iterator(docs / "findings")) {
    if (entry.path().extension() == ".json") collect(read_json(entry.path()), numbers);
  }
  ASSERT_GT(numbers.size(), 1000U);
  const std::string page = std::regex_replace(all_pages(), std::regex(R"(arXiv \d+\.\d+|\]\([^)]*\))"), "");
  // Every number with two or more decimals on the page is one of the results, rounded. The tests of sentences compare
  // computed numbers one by one.
  const std::regex quoted(R"(\d+\.(\d{2,}))");
  std::map<size_t, std::set<std::string>> rounded;  // by decimals
  size_t count = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), quoted), end; match != end; ++match, ++count) {
    const auto decimals = static_cast<size_t>((*match)[1].length());
    auto& texts = rounded[decimals];
    if (texts.empty()) {
      for (const double number : numbers) texts.insert(fmt::format("{:.{}f}", number, decimals));
    }
    EXPECT_TRUE(texts.contains(match->str())) << match->str() << " is in no results.json of docs/findings";
  }
  EXPECT_GT(count, 50U);
}

}  // namespace
}  // namespace plumb
