// MMLU: exam questions in many subjects, with four answers (Hendrycks et al. 2021, arXiv 2009.03300). Each subject is a
// task; its few-shot examples are the first ones in mmlu/dev, as in the authors' evaluation.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/base/contains.h"
#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/evaluate/item_files.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

constexpr size_t kAnswers = 4;

/// The authors' categories of subjects; all others are STEM.
const std::map<std::string, std::vector<std::string>>& subjects_by_category() {
  static const std::map<std::string, std::vector<std::string>> categories = {
      {"humanities",
       {"formal_logic", "high_school_european_history", "high_school_us_history", "high_school_world_history",
        "international_law", "jurisprudence", "logical_fallacies", "moral_disputes", "moral_scenarios", "philosophy",
        "prehistory", "professional_law", "world_religions"}},
      {"social_sciences",
       {"econometrics", "high_school_geography", "high_school_government_and_politics", "high_school_macroeconomics",
        "high_school_microeconomics", "high_school_psychology", "human_sexuality", "professional_psychology",
        "public_relations", "security_studies", "sociology", "us_foreign_policy"}},
      {"other",
       {"business_ethics", "clinical_knowledge", "college_medicine", "global_facts", "human_aging", "management",
        "marketing", "medical_genetics", "miscellaneous", "nutrition", "professional_accounting",
        "professional_medicine", "virology"}}};
  return categories;
}

std::string category_of_subject(const std::string& subject) {
  for (const auto& [category, subjects] : subjects_by_category()) {
    if (contains(subjects, subject)) return category;
  }
  return "stem";
}

EvaluationItem mmlu_item(const std::filesystem::path& file, const std::vector<std::string>& record, size_t number) {
  const std::string wanted = "a question, four answers, and the letter of the right one";
  const bool fits = record.size() == kAnswers + 2 && record.back().size() == 1 && record.back()[0] >= 'A' &&
                    record.back()[0] < 'A' + static_cast<int>(kAnswers);
  if (!fits) throw Error(fmt::format("{}, record {}: is not {}", file.string(), number, wanted));
  EvaluationItem item{.context = std::string(without_outer_space(record[0])),
                      .gold = static_cast<size_t>(record.back()[0] - 'A')};
  for (size_t i = 0; i < kAnswers; ++i) {
    const char letter = static_cast<char>('A' + i);
    item.context += fmt::format("\n{}. {}", letter, record[i + 1]);
    item.choices.emplace_back(1, letter);
  }
  item.context += "\nAnswer:";
  return item;
}

std::vector<EvaluationItem> mmlu_items(const std::filesystem::path& file) {
  std::vector<EvaluationItem> items;
  for (const std::vector<std::string>& record : read_csv(file))
    items.push_back(mmlu_item(file, record, items.size() + 1));
  return items;
}

EvaluationTask load_mmlu_subject(const std::filesystem::path& folder, const std::string& subject) {
  const std::string category = category_of_subject(subject);
  std::string words = subject;
  std::replace(words.begin(), words.end(), '_', ' ');
  EvaluationTask task{.name = "mmlu_" + subject, .groups = {"mmlu", "mmlu_" + category}, .category = "MMLU"};
  task.description = fmt::format("The following are multiple choice questions (with answers) about {}.\n\n", words);
  task.metrics = {"acc"};
  task.items = mmlu_items(folder / "test" / (subject + "_test.csv"));
  task.first_examples = true;
  const std::filesystem::path examples = folder / "dev" / (subject + "_dev.csv");
  if (std::filesystem::exists(examples)) task.examples = mmlu_items(examples);
  return task;
}

std::vector<EvaluationTask> load_mmlu(const std::filesystem::path& folder) {
  const std::filesystem::path tests = folder / "mmlu" / "test";
  if (!std::filesystem::is_directory(tests))
    throw Error(fmt::format("{}: is not a folder", tests.string()), "give the folder that contains mmlu with --data");
  std::vector<std::string> subjects;
  for (const auto& entry : std::filesystem::directory_iterator(tests)) {
    const std::string name = entry.path().filename().string();
    const std::string ending = "_test.csv";
    if (name.ends_with(ending)) subjects.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(subjects.begin(), subjects.end());
  std::vector<EvaluationTask> tasks;
  for (const std::string& subject : subjects) tasks.push_back(load_mmlu_subject(folder / "mmlu", subject));
  return tasks;
}

const bool kMmluRegistered = evaluation_tasks().add("mmlu", "exam questions in many subjects",
                                                    "Hendrycks et al. 2021, arXiv 2009.03300", load_mmlu);

}  // namespace
}  // namespace plumb
