// Compares the pages of findings with the results that they quote: verdicts, judged anew by the present rules, tables,
// and all numbers.
#include "app/findings.h"
#include "support/contains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>
#include <tuple>

namespace plumb {
namespace {

using namespace findings;

constexpr const char* kFiles[] = {"multi30k_warmup", "bert_warmup", "xiong_figure3", "scale_quick",
                                  "scale",           "ulmfit",      "finetuning"};

void collect(const Json& json, std::vector<double>& numbers) {
  if (json.is_number()) numbers.push_back(std::abs(json.get<double>()));
  if (!json.is_structured()) return;
  for (const Json& each : json) collect(each, numbers);
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

/// The cells of each scheme and optimizer: losses and best rates, without warm-up and with it, and their difference.
std::vector<std::string> best_against_best(const Arms& arms) {
  std::vector<std::string> rows;
  for (const auto& [name, without] : arms.all()) {
    if (!name.ends_with("; 0")) continue;
    const std::string prefix = name.substr(0, name.size() - 1);
    for (const auto& [other, with] : arms.all()) {
      if (other == name || !other.starts_with(prefix)) continue;
      std::string row = "|";
      for (const Sweep* arm : {&without, &with}) {
        row += fmt::format(" {} | {:g}{} |", as_counted(arm->best().losses, arm->failed_at), arm->best().learning_rate,
                           arm->open_end().empty() ? "" : "\\*");
      }
      const std::vector<double> difference = counted_minus(without.best().losses, with.best().losses, with.failed_at);
      rows.push_back(row + (difference.empty() ? " none to compare |\n"
                                               : " " + with_limits(confidence_interval(difference)) + ") |\n"));
    }
  }
  return rows;
}

// Every verdict, every arm at its best and every difference is quoted with its interval.
TEST(Findings, QuoteAllArmsAndVerdicts) {
  const std::string page = all_pages();
  const auto expect = [&page](const std::string& text) { EXPECT_CONTAINS(page, text); };
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
      const Json& effect = verdict["effect"];
      const std::string quoted = verdict["id"] == "residual_dual_bounded"
                                     ? with_limits(now.effect)
                                     : with_limits(effect["mean"], effect["low"], effect["high"]);
      const std::string seeds = fmt::format(", {} seeds)", effect["seeds"].get<int>());
      if (verdict["id"] == "residual_dual_bounded") {
        expect(fmt::format("{}{}; relative to layer 6: {}{} | {} |", quoted, seeds,
                           with_limits(effect["mean"], effect["low"], effect["high"]), seeds, to_string(now.outcome)));
      } else if (now.reason == "every run failed") {
        expect(fmt::format("every run failed ({} | {} |", seeds.substr(2), to_string(now.outcome)));
      } else {
        expect(fmt::format("{}{} | {} |", quoted, seeds, to_string(now.outcome)));
      }
      if (to_string(now.outcome) != verdict["verdict"]) changed.push_back(verdict["id"]);
    }
    for (const Json& table : results["tables"]) {
      for (const Json& row : table["rows"]) {
        if (table["id"] == "transfer_recipes") expect(with_limits(row[4], row[5], row[6]) + ") |");
      }
    }
    if (name.ends_with("_warmup")) {
      for (const std::string& row : best_against_best(training_arms(name))) expect(row);
    }
    if (!name.starts_with("scale")) continue;
    for (const char* scheme : {"post-ln", "residual-dual"}) {
      for (const std::vector<double>& difference : behind_pre_ln(name, scheme))
        expect(with_limits(confidence_interval(difference)) + ") |");
    }
  }
  expect(fmt::format("have {} verdicts", verdicts));
  // Each of these is explained on the page.
  EXPECT_EQ(changed, (std::vector<std::string>{"residual_dual_bounded", "post_ln_sgd_warm_up", "pre_ln_warm_up",
                                               "pre_ln_learns_faster_adamw_clipped1", "scale_rate_standard",
                                               "scale_comprehension", "transfer_awd_lstm_pretraining_100",
                                               "transfer_awd_lstm_pretraining_1000"}));
}

/// The region that a stored rule names: "lies above 1.1" or "lies between −0.15 and 0.15".
Region region_of(const std::string& rule) {
  std::smatch match;
  const std::regex named(R"(lies (above|below|between) ((?:−)?)([\d.]+)(?: and ((?:−)?)([\d.]+))?)");
  if (!std::regex_search(rule, match, named)) throw std::invalid_argument(rule);
  const auto number = [&](size_t at) { return (match[at].length() > 0 ? -1 : 1) * std::stod(match[at + 1]); };
  if (match[1] == "above") return Region::above(number(2));
  return match[1] == "below" ? Region::below(number(2)) : Region{number(2), number(4)};
}

/// An interval of 95% widened to another confidence.
Interval at_confidence(const Interval& interval, Scale scale, double confidence) {
  const bool logarithmic = scale == Scale::logarithmic;
  const auto to = [&](double x) { return logarithmic ? std::log(x) : x; };
  const auto from = [&](double x) { return logarithmic ? std::exp(x) : x; };
  const double wider = student_t_quantile((1 + confidence) / 2, interval.count - 1) /
                       student_t_quantile((1 + kConfidence) / 2, interval.count - 1);
  const double mean = to(interval.mean);
  return {interval.mean, from(mean - wider * (mean - to(interval.low))),
          from(mean + wider * (to(interval.high) - mean)), interval.count};
}

// How many verdicts are decided by themselves, and how many by Holm's procedure within each study.
TEST(Findings, ThatStandTogetherAreCounted) {
  size_t decided = 0, together = 0;
  std::vector<std::string> falling;
  for (const std::string name : kFiles) {
    const Json results = results_of(name);
    const size_t claims = results["verdicts"].size();
    std::vector<const Json*> alone;
    for (const Json& verdict : results["verdicts"]) {
      if (is_decided(judged_now(name, results, verdict).outcome)) alone.push_back(&verdict);
    }
    const auto stands = [](const Json& verdict, double confidence) {
      const auto rule = verdict["rule"].get<std::string>();
      const Scale scale = rule.find("of the ratio") == std::string::npos ? Scale::linear : Scale::logarithmic;
      const Json& effect = verdict["effect"];
      const Interval interval = {effect["mean"], effect["low"], effect["high"], effect["seeds"]};
      return outcome_of(at_confidence(interval, scale, confidence), region_of(rule)) != Outcome::undecided;
    };
    size_t standing = 0;
    for (bool more = true; more;) {
      const double confidence = 1 - 0.05 / static_cast<double>(claims - standing);
      const auto now = static_cast<size_t>(
          std::count_if(alone.begin(), alone.end(), [&](const Json* verdict) { return stands(*verdict, confidence); }));
      more = now > standing && now < claims;
      standing = std::max(standing, now);
      if (more) continue;
      for (const Json* verdict : alone) {
        EXPECT_TRUE(stands(*verdict, kConfidence)) << (*verdict)["id"];
        if (!stands(*verdict, confidence)) falling.push_back(name + ": " + (*verdict)["id"].get<std::string>());
      }
    }
    decided += alone.size();
    together += standing;
  }
  EXPECT_EQ(falling, (std::vector<std::string>{"multi30k_warmup: curvature", "bert_warmup: pre_ln_flat"}));
  const std::string sentence =
      fmt::format("{} of them are decided. Judged together within each study (Holm), {} would be", decided, together);
  EXPECT_CONTAINS(all_pages(), sentence);
}

/// A registered claim about how the final losses of two arms differ: the differences by seed, as losses count.
struct LossClaim {
  std::vector<double> differences;
  Region region;
};

LossClaim loss_claim(const std::string& study, const Json& verdict) {
  const auto quantity = verdict["quantity"].get<std::string>();
  std::smatch match;
  if (!std::regex_search(quantity, match, std::regex(R"(\(nats per token\), (.*) minus (.*))")))
    throw std::invalid_argument(quantity);
  const Arms arms = arms_at_one_rate(study);
  const auto losses = [&](size_t i) { return arms.at(match[i].str()).points.front().losses; };
  Region region = region_of(verdict["rule"].get<std::string>());
  // The null of an effect: a smaller one does not contradict the claim.
  if (std::isinf(region.low) != std::isinf(region.high) && (region.low > 0 || region.high < 0)) region.null = 0;
  return {counted_minus(losses(1), losses(2), kLabelEntropy.at(study)), region};
}

/// The outcomes of all claims of a study, by Holm's procedure.
std::vector<Outcome> judged_together(const std::vector<LossClaim>& claims) {
  const auto at = [&](size_t i, double confidence) {
    return outcome_of(confidence_interval(claims[i].differences, confidence), claims[i].region);
  };
  std::vector<Outcome> outcomes(claims.size(), Outcome::undecided);
  std::vector<size_t> open;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (is_decided(at(i, kConfidence))) open.push_back(i);
  }
  for (size_t left = claims.size(), stand = 1; stand > 0 && !open.empty(); left -= stand) {
    const double confidence = 1 - (1 - kConfidence) / static_cast<double>(left);
    stand = std::erase_if(open, [&](size_t i) {
      const Outcome strict = at(i, confidence);
      if (is_decided(strict)) outcomes[i] = strict;
      return is_decided(strict);
    });
  }
  return outcomes;
}

// Claims about losses are judged anew from the runs, by the present rule of failed ones.
TEST(Findings, OfRegisteredStudiesAreTheirClaims) {
  const std::string pages = all_pages();
  std::vector<std::string> changed;
  for (const char* study :
       {"post_ln_gradient", "post_ln_first_steps", "post_ln_memory", "talk_curvature", "inner_rates", "warm_up_length",
        "second_moment", "theorem1", "translation_warm_up", "update_size", "muon_schemes", "depth_or_width"}) {
    const auto registered =
        read_json(test::source_directory() / "docs" / "findings" / fmt::format("{}.registration.json", study))["study"]
            .get<std::string>();
    std::vector<Json> verdicts;
    std::vector<LossClaim> of_losses;
    const Json results = results_of(study);
    for (const Json& verdict : results["verdicts"]) {
      if (!verdict["source"].get<std::string>().starts_with("registered")) continue;  // a part's own
      verdicts.push_back(verdict);
      if (kLabelEntropy.contains(study)) of_losses.push_back(loss_claim(study, verdict));
    }
    const std::vector<Outcome> outcomes = judged_together(of_losses);
    const size_t claims = verdicts.size();
    for (size_t i = 0; i < claims; ++i) {
      const Json& verdict = verdicts[i];
      const auto claim = verdict["claim"].get<std::string>();
      EXPECT_CONTAINS(registered, "text = \"" + claim + "\"") << claim;
      const Json& stored = verdict["effect"];
      const std::string effect = of_losses.empty() ? with_limits(stored["mean"], stored["low"], stored["high"])
                                                   : with_limits(confidence_interval(of_losses[i].differences));
      const std::string outcome = of_losses.empty() ? verdict["verdict"].get<std::string>() : to_string(outcomes[i]);
      EXPECT_CONTAINS(
          pages, fmt::format("| {} | {}: {}, {} seeds) | {} |", claim, verdict["quantity"].get<std::string>(), effect,
                             stored["seeds"].get<int>(), outcome));
      if (outcome != verdict["verdict"]) changed.push_back(claim);
    }
    size_t announced = 0;
    for (size_t at = registered.find("[[study.claim]]"); at != std::string::npos;
         at = registered.find("[[study.claim]]", at + 1)) {
      ++announced;
    }
    EXPECT_EQ(claims, announced) << study;
    EXPECT_GE(claims, 2U) << study;
  }
  // Explained on the page of translation.
  EXPECT_EQ(changed, (std::vector<std::string>{"At a rate of 0.002, Post-LN needs a warm-up: it gains more than a nat",
                                               "Without one, Pre-LN is better than Post-LN by more than a nat"}));
}

// The table of what says which models learn is the one that scripts/initialization_law.py prints.
TEST(Findings, OfTheLawAreItsTable) {
  const Json law = results_of("initialization_law");
  const std::string pages = all_pages();
  const auto learn = law["learn"].get<size_t>(), fail = law["fail"].get<size_t>(), models = learn + fail;
  EXPECT_CONTAINS(pages, fmt::format("Of {} models {} learn with both seeds and {} with neither", models, learn, fail));
  for (const auto& [title, predictor] : law["predictors"].items()) {
    EXPECT_CONTAINS(pages, fmt::format("\n| {} | {} of {} | {:.0f}% | ", title, models - predictor["wrong"].size(),
                                       models, 100 * predictor["balanced"].get<double>()));
  }
}

// The files have two decimals of the loss from which a run has failed.
TEST(Findings, HaveTheLossOfTheFrequencies) {
  const std::regex named(R"(ended no lower than ([\d.]+),)");
  size_t found = 0;
  for (const auto& [study, entropy] : kLabelEntropy) {
    const Json results = results_of(study);
    for (const Json& table : results["tables"]) {
      const auto caption = table.value("caption", std::string());
      std::smatch match;
      if (!std::regex_search(caption, match, named)) continue;
      EXPECT_EQ(match[1], fmt::format("{:.2f}", entropy)) << study;
      ++found;
    }
  }
  EXPECT_GE(found, 10U);
}

// Tables of arms: the mean as losses count, and how many runs failed.
TEST(Findings, TablesOfArmsCountFailedRuns) {
  const std::string pages = all_pages();
  for (const char* study : {"post_ln_first_steps", "warm_up_length", "second_moment"}) {
    const double most = kLabelEntropy.at(study);
    const Arms arms = arms_at_one_rate(study);
    for (const auto& [name, sweep] : arms.all()) {
      const std::vector<double>& losses = sweep.points.front().losses;
      EXPECT_CONTAINS(pages, fmt::format("\n| {} | {} | {} of {} |\n", name, as_counted(losses, most),
                                         failures(losses, most), losses.size()));
    }
  }
  const Arms translation = arms_at_one_rate("translation_warm_up");
  for (const auto& [name, sweep] : translation.all()) {
    const std::string row = fmt::format("\n| {} | {} | ", name, as_counted(sweep.points.front().losses, kMulti30k));
    EXPECT_CONTAINS(pages, row);
  }
}

/// What the pages have of runs that failed: means of arms, and effects, as losses count.
void collect_counted(std::vector<double>& numbers) {
  const auto add = [&](const std::vector<double>& values) {
    if (values.empty()) return;
    const Interval interval = confidence_interval(values);
    for (const double number : {interval.mean, interval.low, interval.high}) numbers.push_back(std::abs(number));
  };
  for (const auto& [study, entropy] : kLabelEntropy) {
    if (study.starts_with("scale")) {
      for (const std::vector<double>& difference : behind_pre_ln(study, "post-ln")) add(difference);
      continue;
    }
    const Arms arms = study.ends_with("_warmup") ? training_arms(study) : arms_at_one_rate(study);
    for (const auto& [name, sweep] : arms.all()) {
      for (const Sweep::Point& point : sweep.points) add(counted(point.losses, entropy));
    }
    const Json results = results_of(study);
    for (const Json& verdict : results["verdicts"]) {
      if (!study.ends_with("_warmup") && verdict["source"].get<std::string>().starts_with("registered"))
        add(loss_claim(study, verdict).differences);
    }
  }
}

TEST(Findings, AreThoseOfTheResults) {
  const std::filesystem::path docs = test::source_directory() / "docs";
  std::vector<double> numbers;
  for (const auto& entry : std::filesystem::directory_iterator(docs / "findings")) {
    if (entry.path().extension() == ".json") collect(read_json(entry.path()), numbers);
  }
  collect_counted(numbers);
  numbers.push_back(largest_step(0.999));
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
