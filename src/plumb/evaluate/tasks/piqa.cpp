// PIQA: which of two ways to reach a practical goal works (Bisk et al. 2020, arXiv 1911.11641).
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

std::vector<EvaluationTask> load_piqa(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "piqa", .category = "common sense", .metrics = {"acc", "acc_norm"}};
  task.items = read_gauntlet_choices(folder / "piqa.jsonl", [](const std::string& query) {
    return std::string(query.ends_with('\n') ? query.substr(0, query.size() - 1) : query) + "\nAnswer:";
  });
  return {task};
}

const bool kPiqaRegistered = evaluation_tasks().add("piqa", "which of two ways to reach a practical goal works",
                                                    "Bisk et al. 2020, arXiv 1911.11641", load_piqa);

}  // namespace
}  // namespace plumb
