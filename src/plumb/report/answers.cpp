#include "plumb/report/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plumb/analysis/rules.h"

namespace plumb {
namespace {

bool is_answer(const Json& verdict) {
  const Json& outcome = verdict.at("verdict");
  return outcome != to_string(Outcome::undecided) && outcome != to_string(Outcome::not_testable);
}

/// "2 (95% interval 1 to 3; 5 seeds)"; empty without an estimate.
std::string effect_in_words(const Json& effect) {
  if (effect["mean"].is_null()) return "";
  const auto number = [&](const char* key) { return fmt::format("{:.3g}", effect[key].get<double>()); };
  const auto count = effect["seeds"].get<int64_t>();
  const std::string seeds = fmt::format("{} seed{}", count, count == 1 ? "" : "s");
  if (effect["low"].is_null() || effect["high"].is_null()) return fmt::format("{} ({})", number("mean"), seeds);
  return fmt::format("{} (95% interval {} to {}; {})", number("mean"), number("low"), number("high"), seeds);
}

void move_last_first(Json& list, size_t count) {
  std::rotate(list.begin(), list.end() - static_cast<std::ptrdiff_t>(count), list.end());
}

/// The id of the figure of which this is a part, or its own.
std::string whole_figure(const Json& figure) { return figure.value("part_of", figure.at("id").get<std::string>()); }

}  // namespace

std::vector<std::string> answers_in_words(const Json& verdicts) {
  constexpr size_t kMost = 3;
  std::vector<std::string> sentences;
  std::set<std::string> figures;
  const auto add = [&](const Json& verdict) {
    if (sentences.size() == kMost || !figures.insert(verdict.at("figure")).second) return;
    const auto text = [&](const char* key) { return verdict.value(key, ""); };
    const std::string effect = effect_in_words(verdict.at("effect"));
    const std::string outcome = text("verdict") == to_string(Outcome::undecided) ? "not proven" : text("verdict");
    const std::string reason = is_answer(verdict) || text("reason").empty() ? "" : " " + text("reason");
    sentences.push_back(fmt::format("{}: {}{}.{}", text("claim"), outcome,
                                    effect.empty() ? "" : fmt::format("; {}: {}", text("quantity"), effect), reason));
  };
  for (const Json& verdict : verdicts) {
    if (is_answer(verdict)) add(verdict);
  }
  if (sentences.empty() && !verdicts.empty()) {
    sentences.push_back(verdicts.size() == 1 ? "The claim is not decided."
                                             : fmt::format("None of the {} claims is decided.", verdicts.size()));
  }
  for (const Json& verdict : verdicts) {
    if (!is_answer(verdict) && !verdict.at("effect").at("mean").is_null()) add(verdict);
  }
  return sentences;
}

void put_answers_first(Json& results, size_t verdicts, size_t sentences) {
  Json &all = results["verdicts"], &summary = results["summary"], &figures = results["figures"];
  move_last_first(all, verdicts);
  move_last_first(summary, sentences);
  if (sentences == 0) {
    for (const std::string& sentence : answers_in_words(all)) summary.push_back(sentence);
  }
  auto answer = std::find_if(all.begin(), all.end(), is_answer);
  if (answer == all.end()) answer = all.begin();
  if (answer == all.end()) return;
  const auto shown = std::find_if(figures.begin(), figures.end(),
                                  [&](const Json& figure) { return figure.at("id") == (*answer)["figure"]; });
  if (shown == figures.end()) return;
  std::stable_partition(figures.begin(), figures.end(),
                        [id = whole_figure(*shown)](const Json& figure) { return whole_figure(figure) == id; });
}

}  // namespace plumb
