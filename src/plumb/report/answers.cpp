#include "plumb/report/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "plumb/base/text.h"

namespace plumb {
namespace {

constexpr double kFlat = 1.5;  // what changes by less than this factor hardly changes

std::string few_digits(double number) { return fmt::format("{:.{}g}", number, number < 100 ? 2 : 3); }

bool is_answer(const Verdict& verdict) { return is_decided(verdict.judgment.outcome); }

/// "2 (95% interval 1 to 3; 5 seeds)"; empty without an estimate.
std::string effect_in_words(const Interval& effect) {
  if (!std::isfinite(effect.mean) || effect.count == 0) return "";
  const std::string seeds = fmt::format("{} seed{}", effect.count, effect.count == 1 ? "" : "s");
  if (!std::isfinite(effect.low) || !std::isfinite(effect.high)) return fmt::format("{:.3g} ({})", effect.mean, seeds);
  return fmt::format("{:.3g} (95% interval {:.3g} to {:.3g}; {})", effect.mean, effect.low, effect.high, seeds);
}

/// The id of the figure of which this is a part, or its own.
const std::string& whole_figure(const Figure& figure) { return figure.part_of.empty() ? figure.id : figure.part_of; }

/// "Post-LN's gradient"; after the first arm, "Pre-LN's" or, of a name with commas, "that of pre-ln, heads 8".
std::string owner_of(const std::string& name, const std::string& subject, bool first) {
  const bool is_short = name.find(", ") == std::string::npos;
  if (first) return is_short ? fmt::format("{}'s {}", name, subject) : fmt::format("The {} of {}", subject, name);
  return is_short ? name + "'s" : "that of " + name;
}

}  // namespace

std::string change_in_words(const Interval& factor) {
  const double percent = factor.mean < 1 / kFlat ? 100 : 1;
  const std::string mean = few_digits(percent * factor.mean);
  std::string low, high;
  if (std::isfinite(factor.low) && std::isfinite(factor.high)) {
    low = few_digits(percent * factor.low);
    high = few_digits(percent * factor.high);
  }
  const auto ends = [&](const char* before, const char* after) {
    return low.empty() ? "" : fmt::format(" ({0}{2}{1} to {0}{3}{1})", before, after, low, high);
  };
  if (factor.mean < 1 / kFlat) return fmt::format("shrinks to {}%{}", mean, ends("", "%"));
  if (factor.mean > kFlat) return fmt::format("grows {}-fold{}", mean, ends("", ""));
  return "hardly changes" + ends("×", "");
}

std::string told(const Telling& telling, std::vector<std::pair<std::string, Interval>> named,
                 const std::string& remark) {
  constexpr size_t kMostNamed = 4;
  std::erase_if(named, [](const auto& one) { return !std::isfinite(one.second.mean); });
  if (named.empty()) return {};
  const std::string end = remark.empty() ? "." : "; " + remark + ".";
  if (telling.over.empty()) {
    std::string subject = telling.subject;
    subject.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(subject.front())));
    const bool has_commas = std::any_of(named.begin(), named.end(),
                                        [](const auto& one) { return one.first.find(", ") != std::string::npos; });
    if (!has_commas || named.size() > kMostNamed) return fmt::format("{}: {}{}", subject, with_intervals(named), end);
    std::vector<std::string> each;
    for (const auto& [name, value] : named) each.push_back(fmt::format("{} for {}", with_interval(value), name));
    return fmt::format("{}: {}{}", subject, join(each, "; "), end);
  }
  const size_t others = named.size() > kMostNamed ? named.size() - 2 : 0;
  if (others > 0) {
    const auto [least, most] = std::minmax_element(
        named.begin(), named.end(), [](const auto& a, const auto& b) { return a.second.mean < b.second.mean; });
    named = {*least, *most};
  }
  std::string text;
  for (const auto& [name, factor] : named) {
    const bool first = text.empty();
    text += fmt::format("{}{} {}{}", first ? "" : "; ", owner_of(name, telling.subject, first), change_in_words(factor),
                        first ? " " + telling.over : "");
  }
  return text + (others > 0 ? fmt::format("; the other {} lie between these", others) : "") + end;
}

std::string in_words(const Verdict& verdict) {
  const Judgment& judgment = verdict.judgment;
  const std::string effect = verdict.told && is_answer(verdict) ? "" : effect_in_words(judgment.effect);
  return fmt::format("{}: {}{}{}.", verdict.claim,
                     judgment.outcome == Outcome::undecided ? "not proven" : to_string(judgment.outcome),
                     effect.empty() ? "" : fmt::format("; {}: {}", verdict.quantity, effect),
                     is_answer(verdict) || judgment.reason.empty() ? "" : "; " + judgment.reason);
}

std::vector<std::string> answers_in_words(const std::vector<Verdict>& verdicts) {
  constexpr size_t kMost = 3;
  std::vector<std::string> sentences;
  std::set<std::string> figures;
  const auto add = [&](const Verdict& verdict) {
    if (sentences.size() < kMost && figures.insert(verdict.figure).second) sentences.push_back(in_words(verdict));
  };
  for (const Verdict& verdict : verdicts) {
    if (is_answer(verdict)) add(verdict);
  }
  if (sentences.empty() && !verdicts.empty()) {
    sentences.push_back(verdicts.size() == 1 ? "The claim is not decided."
                                             : fmt::format("None of the {} claims is decided.", verdicts.size()));
  }
  for (const Verdict& verdict : verdicts) {
    if (!is_answer(verdict) && !effect_in_words(verdict.judgment.effect).empty()) add(verdict);
  }
  return sentences;
}

void put_answers_first(Results& results, size_t sentences) {
  const std::vector<Verdict>& all = results.verdicts;
  std::vector<std::string>& summary = results.summary;
  std::rotate(summary.begin(), summary.end() - static_cast<std::ptrdiff_t>(sentences), summary.end());
  if (sentences == 0) {
    for (const std::string& sentence : answers_in_words(all)) results.summary.push_back(sentence);
  }
  auto answer = std::find_if(all.begin(), all.end(), is_answer);
  if (answer == all.end()) answer = all.begin();
  if (answer == all.end()) return;
  std::vector<Figure>& figures = results.figures;
  const auto shown =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& figure) { return figure.id == answer->figure; });
  if (shown == figures.end()) return;
  std::stable_partition(figures.begin(), figures.end(),
                        [id = whole_figure(*shown)](const Figure& figure) { return whole_figure(figure) == id; });
}

}  // namespace plumb
