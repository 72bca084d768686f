#include "plumb/evaluate/big_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb {
namespace {

EvaluationItem big_bench_item(const Json& task, const Json& example) {
  EvaluationItem item;
  double best = -1;
  for (const auto& [choice, score] : example.at("target_scores").items()) {
    if (item.choices.empty() || score.get<double>() > best) {
      best = score.get<double>();
      item.gold = item.choices.size();
    }
    item.choices.push_back(choice);
  }
  item.context = task.value("example_input_prefix", "\nQ: ") + example.at("input").get<std::string>();
  if (task.value("append_choices_to_input", true)) {
    for (const std::string& choice : item.choices)
      item.context += task.value("example_choice_prefix", "\n  choice: ") + choice;
  }
  item.context += task.value("example_output_prefix", "\nA: ");
  return item;
}

}  // namespace

EvaluationTask load_big_bench_task(const std::filesystem::path& file) {
  return take_json(file, [&](const Json& json) {
    if (!json.contains("examples"))
      throw Error(fmt::format("{}: has no \"examples\", as a task of BIG-bench has", file.string()));
    EvaluationTask task{.name = json.value("name", file.stem().string()), .category = "BIG-bench"};
    task.target_delimiter = "";
    task.example_delimiter = json.value("few_shot_example_separator", "\n");
    task.description = json.value("task_prefix", "");
    task.metrics = {"acc"};
    for (const Json& example : json.at("examples")) {
      if (!example.contains("target_scores")) {
        throw Error(fmt::format("{}: example {} has no \"target_scores\"", file.string(), task.items.size()),
                    "only tasks of multiple choice are read; give texts to complete as JSON Lines");
      }
      task.items.push_back(big_bench_item(json, example));
    }
    return task;
  });
}

}  // namespace plumb
