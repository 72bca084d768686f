// WinoGrande: which of two names fills the gap in a sentence (Sakaguchi et al. 2020, arXiv 1907.10641). The rest of the
// sentence is scored after its beginning with either name (Trinh & Le 2018, arXiv 1806.02847).
#include "plumb/base/error.h"
#include "plumb/evaluate/item_files.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

EvaluationItem winogrande_item(const Json& line) {
  const auto sentence = line.at("sentence").get<std::string>();
  const auto answer = line.at("answer").get<std::string>();
  const size_t gap = sentence.find('_');
  if (gap == std::string::npos) throw Error("the sentence has no gap, \"_\"");
  if (answer != "1" && answer != "2") throw Error("the answer is neither \"1\" nor \"2\"");
  EvaluationItem item{.gold = answer == "2" ? 1U : 0U};
  for (const char* option : {"option1", "option2"})
    item.choices.push_back(sentence.substr(0, gap) + line.at(option).get<std::string>());
  item.ending = without_outer_space(std::string_view(sentence).substr(gap + 1));
  return item;
}

EvaluationItem winogrande_question(const Json& line) {
  EvaluationItem item = winogrande_item(line);
  if (item.ending.empty()) throw Error("nothing follows the gap in the sentence");
  return item;
}

/// An example may have nothing after the gap: then it is the sentence with the right name.
EvaluationItem winogrande_example(const Json& line) {
  EvaluationItem item = winogrande_item(line);
  if (!item.ending.empty()) return item;
  return {.context = item.choices[item.gold], .choices = {""}};
}

std::vector<EvaluationTask> load_winogrande(const std::filesystem::path& folder) {
  EvaluationTask task{.name = "winogrande", .category = "common sense", .metrics = {"acc"}};
  task.items = read_items(folder / "winogrande" / "dev.jsonl", winogrande_question);
  task.read_examples = examples_in(folder / "winogrande" / "train_xl.jsonl", [](const std::filesystem::path& file) {
    return read_items(file, winogrande_example);
  });
  return {task};
}

const bool kWinograndeRegistered =
    evaluation_tasks().add("winogrande", "which of two names fills the gap in a sentence",
                           "Sakaguchi et al. 2020, arXiv 1907.10641", load_winogrande);

}  // namespace
}  // namespace plumb
