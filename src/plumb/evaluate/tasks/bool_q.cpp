// BoolQ: yes/no questions about a passage (Clark et al. 2019, arXiv 1905.10044), with passages as in SuperGLUE:
// "title -- text".
#include <fmt/format.h>

#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

/// A line of the authors' file, with "title" and "answer", or of SuperGLUE's, with "label".
EvaluationItem bool_q_item(const Json& line) {
  const bool of_authors = line.contains("answer");
  const std::string title = of_authors ? line.at("title").get<std::string>() + " -- " : "";
  return {.context = fmt::format("{}{}\nQuestion: {}?\nAnswer:", title, line.at("passage").get<std::string>(),
                                 line.at("question").get<std::string>()),
          .choices = {"no", "yes"},
          .gold = line.at(of_authors ? "answer" : "label").get<bool>() ? 1U : 0U};
}

std::vector<EvaluationTask> load_bool_q(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "boolq", .category = "reading comprehension", .version = 2, .metrics = {"acc"}};
  const bool of_super_glue = std::filesystem::exists(folder / "BoolQ" / "val.jsonl");
  const std::filesystem::path lines = folder / (of_super_glue ? "BoolQ" : "boolq");
  const auto read = [](const std::filesystem::path& file) { return read_items(file, bool_q_item); };
  task.items = read(lines / (of_super_glue ? "val.jsonl" : "dev.jsonl"));
  task.read_examples = examples_in(lines / "train.jsonl", read);
  return {task};
}

const bool kBoolQRegistered =
    evaluation_tasks().add("boolq", "yes/no questions about a passage",
                           "Clark et al. 2019, arXiv 1905.10044; SuperGLUE, arXiv 1905.00537", load_bool_q);

}  // namespace
}  // namespace plumb
