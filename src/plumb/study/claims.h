// Claims about the arms of a study, one's own and those of the literature, judged by the rules that stand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/report/answers.h"
#include "plumb/study/arms.h"

namespace plumb {

/// [[study.claim]]: what a quantity is, or how it differs between arms.
struct StudyClaim {
  std::string text;
  std::string source;                  // where the literature claims it; empty: the study itself does
  std::string quantity;                // a Quantity's name, or its beginning and "*" for each of several
  std::vector<std::string> of;         // settings of the arms that it is about: "model.norm=rmsnorm"
  std::vector<std::string> against;    // of those that they are compared with, otherwise the same
  std::optional<double> above, below;  // of the quantity, the difference or the ratio
  std::optional<double> within;        // the largest distance from `around`
  std::optional<double> around;        // otherwise from no effect
  std::optional<double> no_effect;     // the value of a quantity, judged itself, that a smaller effect does not reach
  std::vector<std::string> readings;   // other quantities that express the same, which have to give the same outcome

  bool operator==(const StudyClaim&) const = default;
};
void describe(Fields& field, StudyClaim& claim);

/// What a part measured for each arm: a number per seed. A positive quantity on a logarithmic scale is compared by
/// ratios, any other by differences.
struct Quantity {
  std::string name;     // "validation_loss"
  std::string meaning;  // "final validation loss (nats per token)"
  Scale scale = Scale::linear;
  std::map<std::string, std::function<std::vector<double>()>> of_arm;  // by arm, [seed]; read after measuring
  std::shared_ptr<const std::vector<StudyArm>> arms{};                 // that it compares; null: those of the study
  /// Why the values of an arm, compared with those of another (or "") to see whether they differ by what lies in a
  /// region, decide nothing with this confidence, such as a best rate at the end of a sweep; "" if they do.
  using Doubt = std::function<std::string(const std::string& of, const std::string& against, const Region& region,
                                          double confidence)>;
  Doubt doubt{};
  /// Why this setting cannot test what the literature claims of it; "" if it can.
  std::function<std::string()> untestable = [] { return std::string(); };
  /// Of losses: the one from which a run has failed, and the most that any counts with (rules.h, `judge_difference`).
  std::function<double()> failed_at = [] { return kNoLimit; };
  std::string figure{};             // the id of the figure that shows it best
  bool in_comparison_table = true;  // in the comparisons of all arms, which nobody has to ask for
  Telling telling{};                // in the summary
  /// The setting in which an arm is measured, and further numbers on it in sentences.
  using OfArm = std::function<std::string(const std::string& arm)>;
  OfArm setting{}, evidence{};
};

/// Throws Error unless each claim says what it compares and what it expects, of arms that exist unless it is one of the
/// literature, and every pair of arms that it compares differs in nothing else.
void check_claims(const std::vector<StudyClaim>& claims, const std::vector<StudyArm>& arms);

/// The arms that a claim is about, or the pairs that it compares: "pre-ln, layers 2 against post-ln, layers 2".
std::vector<std::string> compared_by(const StudyClaim& claim, const std::vector<StudyArm>& arms,
                                     const std::vector<Quantity>& quantities);

/// Throws Error if the claim is about a quantity that is not measured, with the names of the others, or not for any of
/// its arms.
void check_quantity(const StudyClaim& claim, const std::vector<StudyArm>& arms,
                    const std::vector<Quantity>& quantities);

/// Whether the study has the arms that the claim is about, a single one or pair if it has readings, and measures its
/// quantities.
bool can_be_judged(const StudyClaim& claim, const std::vector<StudyArm>& arms, const std::vector<Quantity>& quantities);

/// The verdict on a claim by itself. If it is about several arms, or pairs of arms, it has to hold for each of them.
Verdict judge_claim(const StudyClaim& claim, const std::vector<StudyArm>& arms, const std::vector<Quantity>& quantities,
                    double confidence = kConfidence);

/// The verdicts on all claims of a study. Those that it makes itself are judged together: at most one study in twenty
/// has a wrong one, by Holm's procedure (analysis/holm.h) at a confidence of 1 − 0.05/n. Each claim of the literature
/// is judged by itself. Effects have their 95% intervals.
std::vector<Verdict> judge_claims(const std::vector<StudyClaim>& claims, const std::vector<StudyArm>& arms,
                                  const std::vector<Quantity>& quantities);

/// What a quantity is for each arm, in a sentence; empty if it is not told.
std::string answer_in_words(const Quantity& quantity, const std::vector<StudyArm>& arms);

/// Every arm against the first of those that differ from it in one axis only, for every quantity. Empty if there is
/// nothing to compare.
std::vector<Table> comparison_tables(const std::vector<StudyArm>& arms, const std::vector<Quantity>& quantities);

}  // namespace plumb
