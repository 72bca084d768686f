#include "plumb/evaluate/big_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb {
namespace {

EvaluationItem big_bench_item(const Json& task, const Json& example) {
  EvaluationItem item;
  std::vector<double> scores;
  for (const auto& [choice, score] : example.at("target_scores").items()) {
    item.choices.push_back(choice);
    scores.push_back(score.get<double>());
  }
  if (scores.size() < 2) throw Error("has fewer than two choices in \"target_scores\"");
  const auto best = std::max_element(scores.begin(), scores.end());
  item.gold = static_cast<size_t>(best - scores.begin());
  for (size_t i = item.gold + 1; i < scores.size(); ++i) {
    if (scores[i] == *best) item.also_right.push_back(i);
  }
  item.context = task.value("example_input_prefix", "\nQ: ") + example.at("input").get<std::string>();
  if (task.value("append_choices_to_input", true)) {
    for (const std::string& choice : item.choices)
      item.context += task.value("example_choice_prefix", "\n  choice: ") + choice;
  }
  item.context += task.value("example_output_prefix", "\nA: ");
  return item;
}

/// Throws Error if a task's name cannot be a file name: its result files are named after it.
void check_name(const std::string& name, const std::filesystem::path& file) {
  if (name.empty() || name == "." || name == ".." || name.find_first_of(std::string("/\0", 2)) != std::string::npos)
    throw Error(fmt::format("{}: \"name\" = '{}' cannot be the name of a file", file.string(), name),
                "its results are named after it");
}

}  // namespace

EvaluationTask load_big_bench_task(const std::filesystem::path& file) {
  return take_json(file, [&](const Json& json) {
    if (!json.contains("examples"))
      throw Error(fmt::format("{}: has no \"examples\", as a task of BIG-bench has", file.string()));
    EvaluationTask task{.name = json.value("name", file.stem().string()), .category = "BIG-bench"};
    check_name(task.name, file);
    task.target_delimiter = "";
    task.example_delimiter = json.value("few_shot_example_separator", "\n");
    task.description = json.value("task_prefix", "");
    task.metrics = {"acc"};
    for (const Json& example : json.at("examples")) {
      if (!example.contains("target_scores")) {
        throw Error(fmt::format("{}: example {} has no \"target_scores\"", file.string(), task.items.size()),
                    "only tasks of multiple choice are read; give texts to complete as JSON Lines");
      }
      try {
        task.items.push_back(big_bench_item(json, example));
      } catch (const Error& error) {
        throw Error(fmt::format("{}: example {} {}", file.string(), task.items.size(), error.what()));
      }
    }
    return task;
  });
}

}  // namespace plumb
