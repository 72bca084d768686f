// ARC: questions of school science with four answers, the easier set (Clark et al. 2018, arXiv 1803.05457).
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

std::vector<EvaluationTask> load_arc_easy(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "arc_easy", .category = "question answering", .metrics = {"acc", "acc_norm"}};
  task.items =
      read_gauntlet_choices(folder / "arc_easy.jsonl", [](const std::string& query) { return query + "\nAnswer:"; });
  return {task};
}

const bool kArcEasyRegistered = evaluation_tasks().add("arc_easy", "questions of school science with four answers",
                                                       "Clark et al. 2018, arXiv 1803.05457", load_arc_easy);

}  // namespace
}  // namespace plumb
