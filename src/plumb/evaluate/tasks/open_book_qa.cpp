// OpenBookQA: questions about elementary science with four answers (Mihaylov et al. 2018, arXiv 1809.02789).
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

std::vector<EvaluationTask> load_open_book_qa(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "openbookqa", .category = "question answering", .metrics = {"acc", "acc_norm"}};
  const auto read = [](const std::filesystem::path& file) {
    return read_labeled_choices(file, [](const std::string& stem) { return stem; });
  };
  task.items = read(folder / "openbookqa" / "test.jsonl");
  task.read_examples = examples_in(folder / "openbookqa" / "train.jsonl", read);
  return {task};
}

const bool kOpenBookQaRegistered =
    evaluation_tasks().add("openbookqa", "questions about elementary science with four answers",
                           "Mihaylov et al. 2018, arXiv 1809.02789", load_open_book_qa);

}  // namespace
}  // namespace plumb
