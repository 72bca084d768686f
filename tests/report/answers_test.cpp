// The order of a study's results, and their summary.
#include "plumb/report/answers.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

Json verdict(const char* claim, const char* outcome, const char* figure) {
  return {{"claim", claim},
          {"verdict", outcome},
          {"figure", figure},
          {"quantity", "ratio"},
          {"effect", {{"mean", nullptr}, {"low", nullptr}, {"high", nullptr}, {"seeds", 0}}}};
}

TEST(Answers, AreTheFirstDecidedVerdictsOfDifferentFigures) {
  Json verdicts = {verdict("A", "undecided", "f"),    verdict("B", "supported", "f"),
                   verdict("C", "supported", "f"),    verdict("D", "no effect of that size", "g"),
                   verdict("E", "contradicted", "h"), verdict("F", "supported", "i")};
  verdicts[1]["effect"] = {{"mean", 2.0}, {"low", 1.0}, {"high", 3.0}, {"seeds", 5}};
  verdicts[4]["effect"] = {{"mean", 0.12345}, {"low", nullptr}, {"high", nullptr}, {"seeds", 1}};
  EXPECT_EQ(answers_in_words(verdicts),
            (std::vector<std::string>{"B: supported; ratio: 2 (95% interval 1 to 3; 5 seeds).",
                                      "D: no effect of that size.", "E: contradicted; ratio: 0.123 (1 seed)."}));
  EXPECT_EQ(answers_in_words(Json::array({verdicts[0]})), std::vector<std::string>{"The claim is not decided."});
  EXPECT_EQ(answers_in_words({verdicts[0], verdict("G", "this setting cannot test it", "f")}),
            std::vector<std::string>{"None of the 2 claims is decided."});
  EXPECT_TRUE(answers_in_words(Json::array()).empty());

  verdicts[0]["effect"] = verdicts[4]["effect"];
  verdicts[0]["reason"] = "One seed has no interval.";
  EXPECT_EQ(answers_in_words(Json::array({verdicts[0]})),
            (std::vector<std::string>{"The claim is not decided.",
                                      "A: not proven; ratio: 0.123 (1 seed). One seed has no interval."}));
  EXPECT_EQ(answers_in_words(Json::array({verdicts[0], verdicts[3]})).back(),
            "A: not proven; ratio: 0.123 (1 seed). One seed has no interval.");
}

std::string in_order(const Json& list, const char* key) {
  std::string text;
  for (const Json& each : list) text += each[key].get<std::string>() + " ";
  return text;
}

TEST(Answers, OfOwnClaimsComeFirstWithTheirFigureAndItsParts) {
  Json results = {
      {"summary", {"of a part", "of the claim"}},
      {"verdicts",
       {verdict("A", "supported", "f"), verdict("own", "undecided", "h"), verdict("own2", "supported", "g2")}},
      {"figures",
       {{{"id", "e"}},
        {{"id", "f"}},
        {{"id", "g"}, {"part_of", "g"}},
        {{"id", "g2"}, {"part_of", "g"}},
        {{"id", "h"}}}}};
  put_answers_first(results, 2, 1);
  EXPECT_EQ(in_order(results["verdicts"], "claim"), "own own2 A ");
  EXPECT_EQ(results["summary"], Json({"of the claim", "of a part"}));
  EXPECT_EQ(in_order(results["figures"], "id"), "g g2 e f h ");

  // Nothing decided: the figure of the first verdict; and a summary where there is none.
  for (Json& each : results["verdicts"]) each["verdict"] = "undecided";
  results["summary"] = Json::array();
  put_answers_first(results, 0, 0);
  EXPECT_EQ(in_order(results["figures"], "id"), "h g g2 e f ");
  EXPECT_EQ(results["summary"], Json({"None of the 3 claims is decided."}));
  results["summary"] = Json::array({"of a part"});
  put_answers_first(results, 0, 0);
  EXPECT_EQ(results["summary"], Json({"of a part", "None of the 3 claims is decided."}));
}

}  // namespace
}  // namespace plumb
