// BIG-bench Hard (Suzgun et al. 2022, arXiv 2210.09261), with the harness's prompts: as multiple choice
// (leaderboard_bbh), and with generated answers, without examples or reasoning (bbh_zeroshot).
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

/// A part whose answers come from a fixed list.
struct HardPart {
  std::string name;
  std::string description;
  std::vector<std::string> choices;
};

const std::vector<HardPart>& hard_parts() {
  static const std::vector<HardPart> parts = {
      {"boolean_expressions", "Evaluate the result of a random Boolean expression.", {"False", "True"}},
      {"date_understanding", "Infer the date from context.", {"(A)", "(B)", "(C)", "(D)", "(E)", "(F)"}},
      {"logical_deduction_three_objects",
       "A logical deduction task which requires deducing the order of a sequence of objects.",
       {"(A)", "(B)", "(C)"}}};
  return parts;
}

EvaluationItem hard_item(const HardPart& part, const Json& example) {
  EvaluationItem item{.context = fmt::format("Q: {}\nA:", example.at("input").get<std::string>()),
                      .choices = part.choices};
  const auto target = example.at("target").get<std::string>();
  while (item.gold < part.choices.size() && part.choices[item.gold] != target) ++item.gold;
  if (item.gold == part.choices.size()) throw Error(fmt::format("{}: the answer '{}' is unknown", part.name, target));
  return item;
}

EvaluationTask load_hard_part(const std::filesystem::path& file, const HardPart& part) {
  return take_json(file, [&](const Json& json) {
    EvaluationTask task{
        .name = "leaderboard_bbh_" + part.name, .groups = {"leaderboard_bbh"}, .category = "BIG-bench Hard"};
    task.description = part.description;
    task.metrics = {"acc_norm", "acc"};
    for (const Json& example : json.at("examples")) task.items.push_back(hard_item(part, example));
    return task;
  });
}

/// The same with generated answers.
EvaluationTask load_written_part(const std::filesystem::path& file, const HardPart& part) {
  EvaluationTask task = load_hard_part(file, part);
  task.name = "bbh_zeroshot_" + part.name;
  task.groups = {"bbh_zeroshot"};
  task.kind = RequestKind::generate_until;
  task.version = 3;
  task.description = part.description + "\n\n";
  task.metrics = {"exact_match,flexible-extract", "exact_match,strict-match"};
  task.group_metrics = {"exact_match,flexible-extract"};
  task.until = {"</s>", "Q:", "<|im_end|>"};
  for (EvaluationItem& item : task.items) {
    item.choices = {item.choices[item.gold]};
    item.gold = 0;
  }
  return task;
}

/// The parts whose files exist, each loaded by `load`.
std::vector<EvaluationTask> load_parts(const std::filesystem::path& folder,
                                       EvaluationTask (*load)(const std::filesystem::path& file,
                                                              const HardPart& part)) {
  std::vector<EvaluationTask> tasks;
  for (const HardPart& part : hard_parts()) {
    const std::filesystem::path file = folder / "bbh" / (part.name + ".json");
    if (std::filesystem::exists(file)) tasks.push_back(load(file, part));
  }
  if (tasks.empty())
    throw Error(fmt::format("{}: contains no part of BIG-bench Hard", (folder / "bbh").string()),
                "give the folder that contains bbh with --data");
  return tasks;
}

const bool kBigBenchHardRegistered = [] {
  evaluation_tasks().add("leaderboard_bbh", "reasoning that was hard for language models: three of the 27 tasks",
                         "Suzgun et al. 2022, arXiv 2210.09261",
                         [](const auto& folder) { return load_parts(folder, load_hard_part); });
  evaluation_tasks().add("bbh_zeroshot", "three of the 27 tasks of BIG-bench Hard, with answers that the model writes",
                         "Suzgun et al. 2022, arXiv 2210.09261",
                         [](const auto& folder) { return load_parts(folder, load_written_part); });
  return true;
}();

}  // namespace
}  // namespace plumb
