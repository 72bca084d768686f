// The order of a study's results, and their summary.
#include "plumb/report/answers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb {
namespace {

Verdict verdict(const char* claim, Outcome outcome, const char* figure) {
  Verdict made;
  made.claim = claim;
  made.quantity = "ratio";
  made.judgment.outcome = outcome;
  made.figure = figure;
  return made;
}

const double kNone = std::nan("");

TEST(Answers, AreTheFirstDecidedVerdictsOfDifferentFigures) {
  std::vector<Verdict> verdicts = {verdict("A", Outcome::undecided, "f"),    verdict("B", Outcome::supported, "f"),
                                   verdict("C", Outcome::supported, "f"),    verdict("D", Outcome::smaller, "g"),
                                   verdict("E", Outcome::contradicted, "h"), verdict("F", Outcome::supported, "i")};
  verdicts[1].judgment.effect = {2, 1, 3, 5};
  verdicts[4].judgment.effect = {0.12345, kNone, kNone, 1};
  EXPECT_EQ(answers_in_words(verdicts),
            (std::vector<std::string>{"B: supported; ratio: 2 (95% interval 1 to 3; 5 seeds).",
                                      "D: no effect of that size.", "E: contradicted; ratio: 0.123 (1 seed)."}));
  verdicts[1].told = true;
  EXPECT_EQ(answers_in_words(verdicts).front(), "B: supported.");
  EXPECT_EQ(answers_in_words({verdicts[0]}), std::vector<std::string>{"The claim is not decided."});
  EXPECT_EQ(answers_in_words({verdicts[0], verdict("G", Outcome::not_testable, "f")}),
            std::vector<std::string>{"None of the 2 claims is decided."});
  EXPECT_TRUE(answers_in_words({}).empty());

  verdicts[0].judgment.effect = verdicts[4].judgment.effect;
  verdicts[0].judgment.reason = "one seed has no interval";
  const std::string seen = "A: not proven; ratio: 0.123 (1 seed); one seed has no interval.";
  EXPECT_EQ(answers_in_words({verdicts[0]}), (std::vector<std::string>{"The claim is not decided.", seen}));
  EXPECT_EQ(answers_in_words({verdicts[0], verdicts[3]}).back(), seen);
}

TEST(Answers, TellTheValuesOrTheChangeOfEachArm) {
  EXPECT_EQ(told({"final loss"}, {{"Post-LN", {4.2, 4.1, 4.3, 3}}, {"ReZero", {kNone, kNone, kNone, 0}}}),
            "Final loss: Post-LN 4.2 (4.1 to 4.3).");
  const Telling change = {"gradient", "over the decoder"};
  EXPECT_EQ(
      told(change, {{"Post-LN", {6.9, 5.8, 8.2, 5}}, {"Pre-LN", {1.1, 0.97, 1.2, 5}}}),
      "Post-LN's gradient grows 6.9-fold (5.8 to 8.2) over the decoder; Pre-LN's hardly changes (×0.97 to ×1.2).");
  EXPECT_EQ(told(change, {{"Pre-LN, heads 8", {0.25, kNone, kNone, 1}}, {"Pre-LN, heads 4", {120, 110, 130, 5}}}),
            "The gradient of Pre-LN, heads 8 shrinks to 25% over the decoder; that of Pre-LN, heads 4 grows 120-fold "
            "(110 to 130).");
  const Interval flat = {1, kNone, kNone, 1};
  EXPECT_EQ(
      told(change, {{"A", flat}, {"B", {0.5, 0.25, 0.75, 5}}, {"C", flat}, {"D", {3, kNone, kNone, 1}}, {"E", flat}}),
      "B's gradient shrinks to 50% (25% to 75%) over the decoder; D's grows 3-fold; the other 3 lie between "
      "these.");
  EXPECT_EQ(told({"size"}, {{"A", flat}}, "1 of 1 runs failed"), "Size: A 1; 1 of 1 runs failed.");
  EXPECT_EQ(told(change, {}), "");
}

TEST(Answers, OfOwnClaimsComeFirstWithTheirFigureAndItsParts) {
  Results results{"title", ""};
  results.summary = {"of a part", "of the claim"};
  results.verdicts = {verdict("own", Outcome::undecided, "h"), verdict("own2", Outcome::supported, "g2"),
                      verdict("A", Outcome::supported, "f")};
  for (const char* id : {"e", "f", "g", "g2", "h"}) {
    Figure figure;
    figure.id = id;
    if (figure.id[0] == 'g') figure.part_of = "g";
    results.figures.push_back(figure);
  }
  const auto order = [&] {
    std::string text;
    for (const Figure& figure : results.figures) text += figure.id + " ";
    return text;
  };
  put_answers_first(results, 1);
  EXPECT_EQ(results.summary, (std::vector<std::string>{"of the claim", "of a part"}));
  EXPECT_EQ(order(), "g g2 e f h ");

  // Nothing decided: the figure of the first verdict; and a summary where there is none.
  for (Verdict& each : results.verdicts) each.judgment.outcome = Outcome::undecided;
  results.summary = {};
  put_answers_first(results, 0);
  EXPECT_EQ(order(), "h g g2 e f ");
  EXPECT_EQ(results.summary, std::vector<std::string>{"None of the 3 claims is decided."});
  results.summary = {"of a part"};
  put_answers_first(results, 0);
  EXPECT_EQ(results.summary, (std::vector<std::string>{"of a part", "None of the 3 claims is decided."}));
}

TEST(Results, BecomeADocument) {
  Results results{"title", "subtitle"};
  Json json = results.to_json();
  EXPECT_EQ(json["schema"], "plumb.study/1");
  EXPECT_EQ(json["subtitle"], "subtitle");
  for (const char* list : {"summary", "settings", "verdicts", "figures", "tables"})
    EXPECT_EQ(json[list], Json::array());
  EXPECT_FALSE(json.contains("measurements"));
  EXPECT_FALSE(json.contains("subject"));
  results.settings = {{"machine", {{"threads", "2"}}}};
  results.measurements = Json::object();
  results.subject = "measurement";
  json = results.to_json();
  EXPECT_EQ(json["settings"][0]["items"], Json::array({Json::array({"threads", "2"})}));
  EXPECT_EQ(json["measurements"], Json::object());
  EXPECT_EQ(json["subject"], "measurement");
}

}  // namespace
}  // namespace plumb
