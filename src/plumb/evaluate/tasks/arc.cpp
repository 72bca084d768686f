// ARC: school science questions, mostly with four answers, the easier and the harder set (Clark et al. 2018, arXiv
// 1803.05457).
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

/// `name`: the harness's; `set`: the authors'. Reads the authors' file or, without it, that of the Mosaic Eval
/// Gauntlet.
EvaluationTask arc_task(const std::filesystem::path& folder, const std::string& name, const std::string& set) {
  EvaluationTask task{.name = name, .category = "question answering", .metrics = {"acc", "acc_norm"}};
  const auto prompt = [](const std::string& stem) { return "Question: " + stem + "\nAnswer:"; };
  const auto read = [prompt](const std::filesystem::path& file) { return read_labeled_choices(file, prompt); };
  const std::filesystem::path test = folder / (set + "-Test.jsonl");
  if (std::filesystem::exists(test)) {
    task.items = read(test);
    task.read_examples = examples_in(folder / (set + "-Train.jsonl"), read);
  } else {
    task.items =
        read_gauntlet_choices(folder / (name + ".jsonl"), [](const std::string& query) { return query + "\nAnswer:"; });
  }
  return task;
}

const bool kArcRegistered = [] {
  evaluation_tasks().add("arc_easy", "school science questions, mostly with four answers",
                         "Clark et al. 2018, arXiv 1803.05457",
                         [](const auto& folder) { return std::vector{arc_task(folder, "arc_easy", "ARC-Easy")}; });
  evaluation_tasks().add("arc_challenge", "school science questions that word statistics do not answer",
                         "Clark et al. 2018, arXiv 1803.05457", [](const auto& folder) {
                           return std::vector{arc_task(folder, "arc_challenge", "ARC-Challenge")};
                         });
  return true;
}();

}  // namespace
}  // namespace plumb
