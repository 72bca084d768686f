// Claims judged on quantities whose values are known.
#include "plumb/study/claims.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/sweep.h"
#include "plumb/study/study.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

std::vector<StudyArm> four_arms() {
  return study_arms({"post-ln", "pre-ln"}, {}, {{"model.norm", {"layernorm", "rmsnorm"}}}, {}, {});
}

/// A quantity with these values of the four arms, [arm][seed].
Quantity quantity_with(const std::vector<std::vector<double>>& values, Scale scale) {
  Quantity quantity{"size", "the size", scale, {}};
  const std::vector<StudyArm> arms = four_arms();
  for (size_t i = 0; i < arms.size(); ++i) quantity.of_arm[arms[i].name] = [v = values[i]] { return v; };
  return quantity;
}

StudyClaim claim_that(double above, const std::string& of, const std::string& against) {
  StudyClaim claim;
  claim.text = "it is larger";
  claim.quantity = "size";
  claim.of = {of};
  if (!against.empty()) claim.against = {against};
  claim.above = above;
  return claim;
}

Judgment judged(const StudyClaim& claim, const Quantity& quantity) {
  return judge_claim(claim, four_arms(), {quantity}).judgment;
}

const double kInfinity = std::numeric_limits<double>::infinity();

TEST(StudyClaims, DifferencesAreTakenSeedBySeedInEveryPair) {
  // RMSNorm is larger by 1 under Post-LN and by 2 under Pre-LN, whatever the seed.
  const Quantity size = quantity_with({{1, 5, 9}, {2, 6.01, 9.99}, {3, 4, 5}, {5, 6.01, 6.99}}, Scale::linear);
  const auto verdict = [&](double above) {
    return judge_claim(claim_that(above, "model.norm=rmsnorm", "model.norm=layernorm"), four_arms(), {size});
  };
  EXPECT_EQ(verdict(0.9).judgment.outcome, Outcome::supported);
  EXPECT_NEAR(verdict(0.9).judgment.effect.mean, 1, 1e-9);     // of the worse pair
  EXPECT_EQ(verdict(1.5).judgment.outcome, Outcome::smaller);  // larger, but not by as much
  EXPECT_EQ(judged(claim_that(0.1, "model.norm=layernorm", "model.norm=rmsnorm"), size).outcome, Outcome::contradicted);
  EXPECT_EQ(verdict(0.9).quantity,
            "the size, model.norm=rmsnorm minus model.norm=layernorm, in each of 2 pairs of arms");
  EXPECT_EQ(verdict(0.9).claim, "it is larger");
}

TEST(StudyClaims, AnEffectThatIsTooSmallInOnePairContradictsNothing) {
  const Quantity size = quantity_with({{1, 5, 9}, {2, 6.01, 9.99}, {3, 4, 5}, {3.1, 4.11, 5.09}}, Scale::linear);
  const auto outcome = [&](double above) {
    return judged(claim_that(above, "model.norm=rmsnorm", "model.norm=layernorm"), size).outcome;
  };
  EXPECT_EQ(outcome(0.05), Outcome::supported);
  EXPECT_EQ(outcome(0.5), Outcome::smaller);
  EXPECT_EQ(outcome(-0.5), Outcome::supported);
}

TEST(StudyClaims, RatiosOfSeveralPairsAreGeometric) {
  const Quantity size = quantity_with({{1, 1, 1}, {2, 8, 4}, {1, 1, 1}, {20, 80, 40}}, Scale::logarithmic);
  const Judgment judgment = judged(claim_that(0.5, "model.norm=rmsnorm", "model.norm=layernorm"), size);
  EXPECT_NEAR(judgment.effect.mean, 4, 1e-9);
}

TEST(StudyClaims, PairingsThatDifferInMoreAreNotCompared) {
  const std::vector<StudyArm> arms = study_arms(
      {"pre-ln"},
      {{"ours", {"model.norm=rmsnorm", "model.heads=8"}}, {"theirs", {"model.norm=layernorm", "model.heads=4"}}}, {},
      {}, {});
  const auto check = [&](const char* of, const char* against) { check_claims({claim_that(1, of, against)}, arms); };
  EXPECT_NO_THROW(check("arm=ours", "arm=theirs"));
  EXPECT_CONTAINS(test::message_of([&] { check("model.norm=rmsnorm", "model.norm=layernorm"); }),
                  "compares no two arms");
}

TEST(StudyClaims, OnePairAndRatios) {
  const Quantity size = quantity_with({{1, 5, 9}, {2, 10.1, 17.9}, {3, 4, 5}, {3, 4.01, 4.99}}, Scale::logarithmic);
  StudyClaim claim = claim_that(1.5, "model.norm=rmsnorm", "model.norm=layernorm");
  claim.of.emplace_back("model.residual=post-ln");
  const Verdict supported = judge_claim(claim, four_arms(), {size});
  EXPECT_EQ(supported.judgment.outcome, Outcome::supported);
  EXPECT_NEAR(supported.judgment.effect.mean, 2, 0.01);
  EXPECT_EQ(supported.quantity, "the size, Post-LN, rmsnorm / Post-LN, layernorm");
  claim.of.back() = "model.residual=pre-ln";
  EXPECT_EQ(judged(claim, size).outcome, Outcome::smaller);  // of that size
  claim.above.reset();
  claim.within = 0.05;
  EXPECT_EQ(judged(claim, size).outcome, Outcome::supported);
}

TEST(StudyClaims, AnArmThatFailsMoreOftenHasTheLargerLoss) {
  const std::vector<double> trained = {3, 3.1, 2.9, 3}, failed = {kInfinity, kInfinity, kInfinity, kInfinity};
  const Quantity loss = quantity_with({failed, failed, trained, trained}, Scale::linear);
  StudyClaim claim = claim_that(0.1, "model.residual=post-ln", "model.residual=pre-ln");
  claim.of.emplace_back("model.norm=rmsnorm");
  const Verdict verdict = judge_claim(claim, four_arms(), {loss});
  EXPECT_EQ(verdict.judgment.outcome, Outcome::supported);
}

TEST(StudyClaims, SayWhichRunsFailed) {
  const std::vector<double> trained = {3, 3.1, 2.9};
  const std::vector<double> failed = {kInfinity, kInfinity, kInfinity}, partly = {3, kInfinity, 3};
  const StudyClaim claim = claim_that(0.1, "model.norm=rmsnorm", "model.norm=layernorm");
  // RMSNorm fails under Post-LN only: the other pair does not decide for it, and the failures are not missing numbers.
  const Quantity loss = quantity_with({partly, failed, trained, {4, 4.1, 3.9}}, Scale::linear);
  const Judgment judgment = judged(claim, loss);
  EXPECT_EQ(judgment.outcome, Outcome::undecided);
  EXPECT_EQ(judgment.reason, "Post-LN, rmsnorm and Post-LN, layernorm: 3 and 1 of 3 runs failed");
  EXPECT_TRUE(judgment.rule.ends_with("; runs that failed decide nothing")) << judgment.rule;
  EXPECT_EQ(comparison_tables(four_arms(), {loss}).front().rows[0][9], judgment.reason);
  const Quantity both = quantity_with({trained, failed, trained, partly}, Scale::linear);
  EXPECT_EQ(judged(claim, both).reason,
            "Post-LN, rmsnorm and Post-LN, layernorm: 3 and 0 of 3 runs failed; "
            "Pre-LN, rmsnorm and Pre-LN, layernorm: 1 and 0 of 3 runs failed");
  // A pair that contradicts the claim does so, whatever failed in another.
  const Quantity against = quantity_with({trained, failed, trained, {1, 1.1, 0.9}}, Scale::linear);
  EXPECT_EQ(judged(claim, against).outcome, Outcome::contradicted);
  // Of one arm, without a comparison.
  StudyClaim alone = claim_that(2, "model.norm=rmsnorm", "");
  alone.of.emplace_back("model.residual=post-ln");
  EXPECT_EQ(judged(alone, loss).reason, "Post-LN, rmsnorm: 3 of 3 runs failed");
}

TEST(StudyClaims, MayBeAboutTheQuantityItself) {
  const Quantity size = quantity_with({{1, 1.1, 0.9}, {1, 1.1, 0.9}, {3, 3.1, 2.9}, {3, 3.1, 2.9}}, Scale::linear);
  EXPECT_EQ(judged(claim_that(2, "model.residual=pre-ln", ""), size).outcome, Outcome::supported);
  EXPECT_EQ(judged(claim_that(2, "model.norm=rmsnorm", ""), size).outcome, Outcome::contradicted);
}

TEST(StudyClaims, AQuantityIsToldForEachArm) {
  const std::vector<double> numbers = {1, 2, 3};
  Quantity size = quantity_with({numbers, numbers, {1, 2, kInfinity}, numbers}, Scale::linear);
  EXPECT_EQ(answer_in_words(size, four_arms()), "");
  size.telling = {"the size"};
  EXPECT_EQ(answer_in_words(size, four_arms()),
            "The size: 2 (−0.484 to 4.48) for Post-LN, layernorm; 2 (−0.484 to 4.48) for Post-LN, rmsnorm; "
            "1.5 (−4.85 to 7.85) for Pre-LN, layernorm; 2 (−0.484 to 4.48) for Pre-LN, rmsnorm; "
            "Pre-LN, layernorm: 1 of 3 runs failed.");
  for (const char* arm : {"post-ln, rmsnorm", "pre-ln, layernorm", "pre-ln, rmsnorm"}) size.of_arm.erase(arm);
  size.of_arm["post-ln, layernorm"] = [] { return std::vector<double>{1, 1, 1}; };
  size.telling = {"size", "over the stack", [](double power) { return std::pow(4, power); }};
  EXPECT_EQ(answer_in_words(size, four_arms()), "The size of Post-LN, layernorm grows 4-fold (4 to 4) over the stack.");
  EXPECT_TRUE(judge_claim(claim_that(0.5, "model.residual=post-ln", ""), four_arms(), {size}).told);
}

TEST(StudyClaims, AQuantityThatWasNotMeasuredForAllArmsDecidesNothing) {
  Quantity size = quantity_with({{1, 2, 3}, {2, 3, 4}, {1, 2, 3}, {2, 3, 4}}, Scale::linear);
  size.of_arm.erase("pre-ln, rmsnorm");
  const Verdict verdict =
      judge_claim(claim_that(0.5, "model.norm=rmsnorm", "model.norm=layernorm"), four_arms(), {size});
  EXPECT_EQ(verdict.judgment.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.judgment.reason, "measured for 1 of the 2 arms or pairs that it is about");
}

TEST(StudyClaims, WhatIsInDoubtDecidesNothing) {
  Quantity size = quantity_with({{1, 5, 9}, {2, 6.01, 9.99}, {3, 4, 5}, {4, 5.01, 5.99}}, Scale::linear);
  const StudyClaim claim = claim_that(0.9, "model.norm=rmsnorm", "model.norm=layernorm");
  size.doubt = [](const std::string&, const std::string&, const Region&, double) { return std::string(); };
  EXPECT_EQ(judged(claim, size).outcome, Outcome::supported);
  size.doubt = [](const std::string&, const std::string& against, const Region& region, double) {
    EXPECT_TRUE(region.low == 0.9 || std::isinf(region.low));  // of the table
    return std::string(against == "pre-ln, layernorm" ? "one learning rate is no sweep" : "");
  };
  const Judgment judgment = judged(claim, size);
  EXPECT_EQ(judgment.outcome, Outcome::undecided);
  EXPECT_EQ(judgment.reason, "one learning rate is no sweep");
  EXPECT_EQ(comparison_tables(four_arms(), {size}).front().rows[1][9], judgment.reason);
}

// 0.16 ± 0.0248 at 95%, ± 0.0358 at the 97.5% that two claims ask for; between the rates of its sweep, RMSNorm may gain
// (0.68 − 0.2)²/(8 · (0.68 + 0.2)) = 0.0327. So 0.1 stands at 95%, and at 97.5% only without that gain.
TEST(StudyClaims, WhatASweepLeavesOutIsJudgedAtTheConfidenceOfAllClaims) {
  const auto sweep = [](double slower, const std::vector<double>& best, double faster) {
    const auto beside = [&](double higher) { return std::vector<double>(3, best[1] + higher); };
    return Sweep{{{1e-3, beside(slower)}, {2e-3, best}, {4e-3, beside(faster)}}};
  };
  const std::vector<std::vector<double>> losses = {{2, 2, 2}, {2.15, 2.16, 2.17}, {2, 2, 2}, {1, 2, 3}};
  std::map<std::string, Sweep> sweeps;
  for (size_t i = 0; i < losses.size(); ++i)
    sweeps[four_arms()[i].name] = i == 1 ? sweep(0.2, losses[i], 0.68) : sweep(1, losses[i], 1);
  Quantity loss = quantity_with(losses, Scale::linear);
  loss.doubt = [&](const std::string& of, const std::string& against, const Region& region, double confidence) {
    const Judgment judgment = judge_best(sweeps.at(of), sweeps.at(against), region, confidence);
    return is_decided(judgment.outcome) ? std::string() : judgment.reason;
  };
  std::vector<StudyClaim> claims;
  for (const char* scheme : {"post-ln", "pre-ln"}) {
    claims.push_back(claim_that(0.1, "model.norm=rmsnorm", "model.norm=layernorm"));
    claims.back().of.push_back(std::string("model.residual=") + scheme);
  }
  EXPECT_EQ(judge_claims({claims[0]}, four_arms(), {loss})[0].judgment.outcome, Outcome::supported);
  const Judgment together = judge_claims(claims, four_arms(), {loss})[0].judgment;
  EXPECT_EQ(together.outcome, Outcome::undecided);
  EXPECT_CONTAINS(together.reason, "supported by itself, but not at 97.5% confidence, as 2 claims together require");
  loss.doubt = {};
  EXPECT_EQ(judge_claims(claims, four_arms(), {loss})[0].judgment.outcome, Outcome::supported);
}

// No run counts with more than 5.67, so the failed ones of Post-LN end 2.75 above the others, wherever they end.
TEST(StudyClaims, RunsThatFailedCountWithTheLossOfFrequencies) {
  const std::vector<double> trained = {2.90, 2.92, 2.94}, failed = {5.9, 12, kInfinity};
  Quantity loss = quantity_with({trained, failed, trained, failed}, Scale::linear);
  loss.failed_at = [] { return 5.67; };
  StudyClaim claim = claim_that(1, "model.norm=rmsnorm", "model.norm=layernorm");
  const Judgment of_both = judged(claim, loss);
  EXPECT_EQ(of_both.outcome, Outcome::supported);
  EXPECT_NEAR(of_both.effect.mean, 2.75, 1e-12);
  EXPECT_CONTAINS(of_both.reason, "Post-LN, rmsnorm and Post-LN, layernorm: 3 and 0 of 3 runs failed");
  EXPECT_CONTAINS(of_both.rule, "no run counts with more than 5.67");
  const Table table = comparison_tables(four_arms(), {loss}).front();
  EXPECT_NEAR(table.rows[0][4].get<double>(), 2.75, 1e-12);
  // Where every run failed, nothing is compared, and no difference found.
  loss = quantity_with({failed, failed, trained, trained}, Scale::linear);
  loss.failed_at = [] { return 5.67; };
  claim.above.reset();
  claim.within = 0.1;
  EXPECT_EQ(judged(claim, loss).outcome, Outcome::undecided);
  claim.of.emplace_back("model.residual=post-ln");
  EXPECT_EQ(judged(claim, loss).outcome, Outcome::not_testable);
}

TEST(StudyClaims, TogetherAreDecidedByHolm) {
  // Two-sided p-values of 0 by Student's t with two degrees of freedom, 1 − t/√(2 + t²): 0.0003, 0.0033 and 0.035.
  const Quantity size = quantity_with({{0.97, 1, 1.03}, {0.9, 1, 1.1}, {0.667, 1, 1.333}, {-3, 0, 3}}, Scale::linear);
  const std::vector<std::pair<std::string, std::string>> settings = {{"model.residual=post-ln", "model.norm=layernorm"},
                                                                     {"model.residual=post-ln", "model.norm=rmsnorm"},
                                                                     {"model.residual=pre-ln", "model.norm=layernorm"},
                                                                     {"model.residual=pre-ln", "model.norm=rmsnorm"}};
  const auto outcomes = [&](std::vector<size_t> which) {
    std::vector<StudyClaim> claims;
    for (const size_t i : which) {
      claims.push_back(claim_that(0, settings[i].first, ""));
      claims.back().of.push_back(settings[i].second);
    }
    std::vector<Outcome> found;
    for (const Verdict& verdict : judge_claims(claims, four_arms(), {size})) found.push_back(verdict.judgment.outcome);
    return found;
  };
  const Outcome yes = Outcome::supported, open = Outcome::undecided;
  EXPECT_EQ(outcomes({2}), std::vector<Outcome>{yes});
  // The first two stand among two and three, which leaves the third with a level of 5%.
  EXPECT_EQ(outcomes({0, 1, 2}), (std::vector<Outcome>{yes, yes, yes}));
  // One more that is undecided by itself leaves it with half of that.
  EXPECT_EQ(outcomes({0, 1, 2, 3}), (std::vector<Outcome>{yes, yes, open, open}));
}

// It grows by a fifth, 1.175 to 1.225 at 95%, and more was claimed.
TEST(StudyClaims, OfAQuantityMayHaveAValueWithoutTheEffect) {
  const std::vector<double> grows = {1.2, 1.21, 1.19};
  const Quantity size = quantity_with({grows, grows, grows, grows}, Scale::logarithmic);
  StudyClaim claim = claim_that(1.5, "model.residual=pre-ln", "");
  claim.of.emplace_back("model.norm=rmsnorm");
  const auto outcome = [&] { return judged(claim, size).outcome; };
  EXPECT_EQ(outcome(), Outcome::contradicted);
  claim.no_effect = 1;
  EXPECT_EQ(outcome(), Outcome::smaller);
  claim.no_effect = 1.3;
  EXPECT_EQ(outcome(), Outcome::contradicted);
  claim.above.reset();
  claim.no_effect.reset();
  claim.around = 1.25;
  claim.within = 0.1;  // 1.136 to 1.375
  EXPECT_EQ(outcome(), Outcome::supported);
  claim.within = 0.01;  // 1.238 to 1.263
  EXPECT_EQ(outcome(), Outcome::contradicted);
  const Quantity exponent = quantity_with({grows, grows, grows, grows}, Scale::linear);
  claim.within = 0.1;
  EXPECT_EQ(judged(claim, exponent).outcome, Outcome::supported);
}

TEST(StudyClaims, AreDecidedOnlyIfEveryReadingAgrees) {
  const std::vector<double> one = {1, 1.01, 0.99}, two = {2, 2.02, 1.98};
  const Quantity size = quantity_with({one, two, one, one}, Scale::logarithmic);
  Quantity other = quantity_with({one, two, one, one}, Scale::logarithmic);
  other.name = "other";
  other.meaning = "the other size";
  StudyClaim claim = claim_that(1.5, "model.norm=rmsnorm", "model.norm=layernorm");
  claim.of.emplace_back("model.residual=post-ln");
  claim.readings = {"other"};
  const Judgment agreed = judge_claim(claim, four_arms(), {size, other}).judgment;
  EXPECT_EQ(agreed.outcome, Outcome::supported);
  EXPECT_CONTAINS(agreed.reason, "the other size: 2");
  other.of_arm["post-ln, rmsnorm"] = [one] { return one; };
  EXPECT_EQ(judge_claim(claim, four_arms(), {size, other}).judgment.outcome, Outcome::undecided);
  EXPECT_CONTAINS(test::message_of([&] { check_quantity(claim, four_arms(), {size}); }),
                  "the study does not measure 'other'");
  EXPECT_FALSE(can_be_judged(claim, four_arms(), {size}));
  EXPECT_TRUE(can_be_judged(claim, four_arms(), {size, other}));
  claim.of.pop_back();
  EXPECT_CONTAINS(test::message_of([&] { check_claims({claim}, four_arms()); }),
                  "has readings and several arms or quantities");
}

// Each by itself, so that they neither loosen nor tighten what the study's own claims require.
TEST(StudyClaims, OfTheLiteratureAreNotInHolmsProcedure) {
  const Quantity size = quantity_with({{0.667, 1, 1.333}, {0.667, 1, 1.333}, {-3, 0, 3}, {-3, 0, 3}}, Scale::linear);
  StudyClaim own = claim_that(0, "model.residual=post-ln", "");
  own.of.emplace_back("model.norm=rmsnorm");
  StudyClaim known = own;
  known.source = "A paper";
  const std::vector<Verdict> verdicts = judge_claims({own, known, known}, four_arms(), {size});
  for (const Verdict& verdict : verdicts) EXPECT_EQ(verdict.judgment.outcome, Outcome::supported);
  EXPECT_EQ(judge_claims({own, own, known}, four_arms(), {size})[0].judgment.outcome, Outcome::undecided);
  Quantity generated = size;
  generated.untestable = [] { return "the claim is about real text"; };
  const std::vector<Verdict> of_generated = judge_claims({own, known}, four_arms(), {generated});
  EXPECT_EQ(of_generated[0].judgment.outcome, Outcome::supported);
  EXPECT_EQ(of_generated[1].judgment.outcome, Outcome::not_testable);
  known.of = {"model.residual=rezero"};  // judged in studies with that arm
  EXPECT_NO_THROW(check_claims({known}, four_arms()));
  EXPECT_FALSE(can_be_judged(known, four_arms(), {size}));
}

TEST(StudyClaims, OfTheLiteratureInStudiesAreAboutTheirArms) {
  size_t checked = 0;
  for (const auto& file : std::filesystem::directory_iterator(test::source_directory() / "studies")) {
    if (file.path().extension() != ".toml") continue;
    StudyConfig study = read_study(Config::from_file(file.path()));
    // What is an arm to a part, such as a recipe of [transfer], is judged in the tests of these parts.
    std::erase_if(study.study.claims, [](const StudyClaim& claim) {
      return !claim.of.empty() && (claim.of[0].starts_with("transfer.") || claim.of[0].starts_with("fast_weights."));
    });
    for (StudyClaim& claim : study.study.claims) {
      checked += claim.source.empty() ? 0 : 1;
      claim.source.clear();
      claim.readings.clear();  // of measurements at initialization, whose arms have no warm-ups
    }
    EXPECT_NO_THROW(check_claims(study.study.claims, study.trained_arms())) << file.path();
  }
  EXPECT_GT(checked, 20U);
}

TEST(StudyClaims, MistakesAreErrors) {
  const auto error = [](const StudyClaim& claim) {
    return test::message_of([&] { check_claims({claim}, four_arms()); });
  };
  const StudyClaim good = claim_that(1, "model.norm=rmsnorm", "model.norm=layernorm");
  EXPECT_NO_THROW(check_claims({good}, four_arms()));
  StudyClaim claim = good;
  claim.above.reset();
  EXPECT_CONTAINS(error(claim), "does not say what it expects");
  claim.within = 0.1;
  claim.below = 1;
  EXPECT_CONTAINS(error(claim), "does not say what it expects");
  claim.below.reset();
  claim.against.clear();
  EXPECT_CONTAINS(error(claim), "has a margin but no comparison");
  claim.within.reset();
  claim.above = claim.around = 1;
  EXPECT_CONTAINS(error(claim), "says around what, but not how far from it");
  claim = good;
  claim.below = 0.5;
  EXPECT_EQ(error(claim), "[[study.claim]] \"it is larger\" expects more than 1 and less than 0.5");
  claim = good;
  claim.no_effect = 0;
  EXPECT_CONTAINS(error(claim), "compares arms, whose no_effect is known");
  EXPECT_CONTAINS(error(claim_that(1, "model.norm=none", "")), "no arm has 'model.norm=none'");
  EXPECT_CONTAINS(error(claim_that(1, "model.norm=rmsnorm", "model.norm=rmsnorm")), "compares no two arms");
  EXPECT_EQ(test::message_of([&] { check_quantity(good, four_arms(), {}); }),
            "[[study.claim]] \"it is larger\": the study does not measure 'size'");
  Quantity size = quantity_with({{1}, {2}, {3}, {4}}, Scale::linear);
  EXPECT_NO_THROW(check_quantity(good, four_arms(), {size}));
  for (const char* arm : {"post-ln, rmsnorm", "pre-ln, rmsnorm"}) size.of_arm.erase(arm);
  EXPECT_EQ(test::message_of([&] { check_quantity(good, four_arms(), {size}); }),
            "[[study.claim]] \"it is larger\": 'size' is not measured for the arms that it is about");
}

TEST(StudyComparisons, AreWithTheFirstArmThatDiffersInOneSetting) {
  const Quantity size = quantity_with({{1, 2, 3}, {2, 3, 4}, {1, 2.5, 3}, {2, 3, 2.9}}, Scale::linear);
  const std::vector<Table> tables = comparison_tables(four_arms(), {size});
  ASSERT_EQ(tables.size(), 1U);
  std::vector<std::string> pairs;
  for (const Json& row : tables[0].rows)
    pairs.push_back(row[1].get<std::string>() + " | " + row[2].get<std::string>() + " | " + row[8].get<std::string>());
  EXPECT_EQ(pairs, (std::vector<std::string>{
                       "Post-LN, rmsnorm | Post-LN, layernorm | yes", "Pre-LN, rmsnorm | Pre-LN, layernorm | no",
                       "Pre-LN, layernorm | Post-LN, layernorm | no", "Pre-LN, rmsnorm | Post-LN, rmsnorm | no"}));
  EXPECT_TRUE(comparison_tables(study_arms({"pre-ln"}, {}, {}, {}, {}), {}).empty());
}

}  // namespace
}  // namespace plumb
