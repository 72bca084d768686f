// LAMBADA: the last word of a passage (Paperno et al. 2016, arXiv 1606.06031), as OpenAI prepared it for GPT-2.
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

std::vector<EvaluationTask> load_lambada(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "lambada_openai",
                      .category = "reading comprehension",
                      .kind = RequestKind::log_likelihood,
                      .metrics = {"perplexity", "acc"}};
  task.items = read_items(folder / "lambada_openai.jsonl", [](const Json& line) {
    return EvaluationItem{.context = line.at("context").get<std::string>(),
                          .choices = {" " + line.at("continuation").get<std::string>()}};
  });
  return {task};
}

const bool kLambadaRegistered = evaluation_tasks().add("lambada_openai", "the last word of a passage",
                                                       "Paperno et al. 2016, arXiv 1606.06031", load_lambada);

}  // namespace
}  // namespace plumb
