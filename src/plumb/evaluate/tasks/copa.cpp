// COPA: which of two sentences is the cause or the effect of a first one (Roemmele et al. 2011; SuperGLUE).
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

/// Removes the comma before the connecting word, as in "The woman retired, therefore"; the harness has none.
std::string without_comma(const std::string& query) {
  const size_t comma = query.rfind(", ");
  if (comma == std::string::npos || query.find(' ', comma + 2) != std::string::npos) return query;
  return query.substr(0, comma) + query.substr(comma + 1);
}

std::vector<EvaluationTask> load_copa(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "copa", .category = "common sense", .metrics = {"acc"}};
  task.items = read_gauntlet_choices(folder / "copa.jsonl", without_comma);
  // The harness's choices begin with a space, so that two spaces precede them.
  for (EvaluationItem& item : task.items) {
    for (std::string& choice : item.choices) choice.insert(0, 1, ' ');
  }
  return {task};
}

const bool kCopaRegistered =
    evaluation_tasks().add("copa", "which of two sentences is the cause or the effect of a first one",
                           "Roemmele et al. 2011; SuperGLUE, arXiv 1905.00537", load_copa);

}  // namespace
}  // namespace plumb
