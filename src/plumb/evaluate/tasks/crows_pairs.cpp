// CrowS-Pairs: whether a model finds a sentence with a stereotype likelier than one without (Nangia et al. 2020,
// arXiv 2010.00133), as the harness measures it.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

EvaluationTask crows_pairs_task(const std::string& part) {
  EvaluationTask task{.name = "crows_pairs_english" + part, .category = "stereotypes", .subset = !part.empty()};
  task.target_delimiter = "";
  task.metrics = {"likelihood_diff", "pct_stereotype"};
  return task;
}

/// "sexual-orientation" → "_sexual_orientation".
std::string part_of(std::string kind) {
  const bool named =
      !kind.empty() && std::all_of(kind.begin(), kind.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  if (!named) throw Error(fmt::format("bias_type = '{}' is not a name in lower case", kind));
  std::replace(kind.begin(), kind.end(), '-', '_');
  return "_" + kind;
}

EvaluationItem crows_pairs_item(const std::string& more, const std::string& less) {
  if (more.empty() || less.empty()) throw Error("a sentence is empty");
  return {.context = "", .choices = {more, less}};
}

std::vector<EvaluationTask> load_crows_pairs(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "crows_pairs_anonymized.csv";
  std::vector<EvaluationTask> tasks = {crows_pairs_task("")};
  each_record(file, read_csv(file), {"sent_more", "sent_less", "bias_type"}, [&](const auto& columns) {
    const EvaluationItem item = crows_pairs_item(columns[0], columns[1]);
    const EvaluationTask part = crows_pairs_task(part_of(columns[2]));
    tasks.front().items.push_back(item);
    auto found = std::find_if(tasks.begin(), tasks.end(), [&](const auto& task) { return task.name == part.name; });
    if (found == tasks.end()) found = tasks.insert(found, part);
    found->items.push_back(item);
  });
  return tasks;
}

const bool kCrowsPairsRegistered =
    evaluation_tasks().add("crows_pairs_english", "whether a sentence with a stereotype is likelier than one without",
                           "Nangia et al. 2020, arXiv 2010.00133", load_crows_pairs);

}  // namespace
}  // namespace plumb
