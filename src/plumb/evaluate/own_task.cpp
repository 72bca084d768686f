#include "plumb/evaluate/own_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/evaluate/item_files.h"

namespace plumb {
namespace {

/// A format of the lines of a task file.
struct LineForm {
  RequestKind kind;
  std::vector<std::string> keys;
  std::vector<std::string> metrics;
};

const std::vector<LineForm>& line_forms() {
  static const std::vector<LineForm> forms = {
      {RequestKind::multiple_choice, {"context", "choices", "gold"}, {"acc", "acc_norm", "acc_bytes"}},
      {RequestKind::log_likelihood, {"context", "continuation"}, {"perplexity", "acc"}},
      {RequestKind::generate_until, {"context", "answer"}, {"exact_match"}},
      {RequestKind::rolling, {"text"}, {"word_perplexity", "byte_perplexity", "bits_per_byte"}}};
  return forms;
}

bool has_keys(const Json& line, const LineForm& form) {
  return std::all_of(form.keys.begin(), form.keys.end(), [&](const std::string& key) { return line.contains(key); });
}

const LineForm& form_of(const Json& line) {
  for (const LineForm& form : line_forms()) {
    if (has_keys(line, form)) return form;
  }
  std::vector<std::string> known;
  for (const LineForm& form : line_forms()) known.push_back(join(form.keys, " + "));
  throw Error(fmt::format("has none of these sets of keys: {}", join(known, "; ")));
}

/// Throws Error if a line lacks a key of the form or has an unknown one.
void require_keys(const Json& line, const LineForm& form) {
  if (!has_keys(line, form)) throw Error(fmt::format("must have the keys {}", join(form.keys)));
  for (const auto& [key, value] : line.items()) {
    const bool known = key == "id" || key == "category" || contains(form.keys, key);
    if (!known) throw Error(fmt::format("unknown key '{}'; known: {}, id, category", key, join(form.keys)));
  }
}

EvaluationItem item_of(const Json& line, RequestKind kind) {
  if (kind == RequestKind::multiple_choice) {
    EvaluationItem item{.context = line.at("context").get<std::string>(),
                        .choices = line.at("choices").get<std::vector<std::string>>(),
                        .gold = gold_of(line)};
    if (item.choices.size() == 1 && item.gold == 0)
      throw Error("a single choice leaves nothing to choose: give at least two, or the keys context and continuation");
    return item;
  }
  if (kind == RequestKind::log_likelihood) {
    return {.context = line.at("context").get<std::string>(), .choices = {line.at("continuation").get<std::string>()}};
  }
  if (kind == RequestKind::generate_until)
    return {.context = line.at("context").get<std::string>(), .choices = {line.at("answer").get<std::string>()}};
  const auto text = line.at("text").get<std::string>();
  return {.choices = {text}, .words = words_between_spaces(text), .bytes = std::ssize(text)};
}

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

}  // namespace

EvaluationTask load_own_task(const std::filesystem::path& file) {
  if (file.extension() == ".json") return load_big_bench_task(file);
  const LineForm* form = nullptr;
  EvaluationTask task{.name = file.stem().string(), .category = "own"};
  task.items = read_items(file, [&](const Json& line) {
    const auto category = line.value("category", std::string("own"));
    if (form == nullptr) {
      form = &form_of(line);
      task.category = category;
    }
    if (category != task.category)
      throw Error(fmt::format("the category is '{}', that of the first line '{}'", category, task.category));
    require_keys(line, *form);
    return item_of(line, form->kind);
  });
  if (form == nullptr) throw Error(fmt::format("{}: contains no items", file.string()), "write one item per line");
  task.kind = form->kind;
  task.metrics = form->metrics;
  if (task.kind == RequestKind::generate_until) task.until = {"\n"};
  return task;
}

}  // namespace plumb
