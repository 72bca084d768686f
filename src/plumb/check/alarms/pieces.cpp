// Whether the tokenizer fits the text: unknown tokens, empty texts, and pieces that never occur.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

constexpr int64_t kMostExamples = 100'000;  // looked at

/// What one side of the training data consists of.
struct PieceCounts {
  int64_t texts = 0, empty = 0, tokens = 0, unknown = 0;
  std::vector<bool> occurs;  // [piece]

  PieceCounts(const Tokenizer& tokenizer, const Split& split, bool source)
      : texts(std::min(kMostExamples, split.size())), occurs(static_cast<size_t>(tokenizer.vocabulary())) {
    for (int64_t i = 0; i < texts; ++i) {
      const auto ids = source ? split.source(i) : split.target(i);
      empty += ids.empty() ? 1 : 0;
      tokens += std::ssize(ids);
      for (const int32_t id : ids) {
        unknown += id == tokenizer.specials().unknown ? 1 : 0;
        occurs[static_cast<size_t>(id)] = true;
      }
    }
  }
};

/// A translation with an empty side teaches nothing; the second text of other tasks may be missing.
Finding measure_texts(const PieceCounts& counts, const std::string& side) {
  Finding finding{
      .where = side, .value = static_cast<double>(counts.empty) / static_cast<double>(counts.texts), .threshold = 0.05};
  finding.raised = finding.value > finding.threshold;
  finding.text = fmt::format(
      "{:.3g}% of the {} texts are empty; the others have {:.3g} tokens on average", 100 * finding.value, side,
      static_cast<double>(counts.tokens) / static_cast<double>(std::max<int64_t>(counts.texts - counts.empty, 1)));
  finding.advice = "data without empty texts";
  return finding;
}

/// Of a tokenizer for the language at hand, fewer than 1 % of the tokens are unknown.
Finding measure_unknown(const PieceCounts& counts, const std::string& side) {
  Finding finding{.where = side,
                  .value = static_cast<double>(counts.unknown) / static_cast<double>(counts.tokens),
                  .threshold = 0.05};
  finding.raised = finding.value > finding.threshold;
  finding.text = fmt::format("{:.3g}% of the {} tokens are unknown to the tokenizer", 100 * finding.value, side);
  finding.advice = "a tokenizer that was trained on text of this kind";
  return finding;
}

/// A vocabulary learned from the data uses nearly all of its pieces. Given weights come with their own.
Finding measure_unused(const std::vector<bool>& occurs, const std::string& side, bool judged) {
  const auto used = std::count(occurs.begin(), occurs.end(), true);
  Finding finding{
      .where = side, .value = 1 - static_cast<double>(used) / static_cast<double>(occurs.size()), .threshold = 0.5};
  finding.raised = judged && finding.value > finding.threshold;
  finding.text = fmt::format("{:.3g}% of the {} pieces of the vocabulary never occur in the {} training data",
                             100 * finding.value, occurs.size(), side);
  finding.advice = "a smaller vocabulary, or a tokenizer that was trained on text of this kind";
  return finding;
}

std::vector<Finding> measure_pieces(const PlannedRun& planned) {
  const DataDirectory& data = planned.task.data();
  const Split& split = data.split("train");
  const bool pairs = data.task() == "translation";
  std::vector<Finding> findings;
  std::vector<bool> joint;
  for (const bool source : {true, false}) {
    if ((source ? split.source_tokens() : split.target_tokens()) == 0) continue;
    const Tokenizer& tokenizer = source ? data.source_tokenizer() : data.target_tokenizer();
    const PieceCounts counts(tokenizer, split, source);
    const std::string side = source ? "source" : "target";
    findings.push_back(measure_unknown(counts, side));
    if (pairs) findings.push_back(measure_texts(counts, side));
    const bool judged = planned.random && split.size() <= kMostExamples;
    if (!data.joint()) {
      findings.push_back(measure_unused(counts.occurs, side, judged));
      continue;
    }
    joint.resize(std::max(joint.size(), counts.occurs.size()));
    for (size_t i = 0; i < counts.occurs.size(); ++i) joint[i] = joint[i] || counts.occurs[i];
    if (!source) findings.push_back(measure_unused(joint, pairs ? "joint" : side, judged));
  }
  return findings;
}

[[maybe_unused]] const bool kPiecesAlarm =
    alarms().add("pieces", "whether the tokenizer fits the training data: unknown tokens, empty texts, unused pieces",
                 "", {measure_pieces});

}  // namespace
}  // namespace plumb::check
