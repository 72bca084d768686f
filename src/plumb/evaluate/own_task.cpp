#include "plumb/evaluate/own_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/metrics/unicode.h"

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
    const bool known = key == "id" || key == "category" || contains(form.keys, key) ||
                       (key == "until" && form.kind == RequestKind::generate_until);
    if (!known) throw Error(fmt::format("unknown key '{}'; known: {}, id, category", key, join(form.keys)));
  }
}

/// Throws Error if an item has no choices or its right choice is not one of them.
void check_item(const EvaluationItem& item) {
  if (item.choices.empty()) throw Error("there is nothing to choose from");
  if (item.gold >= item.choices.size())
    throw Error(fmt::format("the right choice is number {} of {}, counted from 0", item.gold, item.choices.size()));
}

/// The value of "gold", the index of the right choice.
size_t gold_of(const Json& line) {
  const Json& gold = line.at("gold");
  if (gold.is_number_integer() && (gold.is_number_unsigned() || gold.get<int64_t>() >= 0)) return gold.get<size_t>();
  throw Error(fmt::format("gold = {} is not the number of a choice, counted from 0", gold.dump()));
}

/// The number of words as the harness counts them: the pieces of re.split(r"\s+", text), including an empty one where
/// the text begins or ends with white space.
int64_t words_between_spaces(std::string_view text) {
  const int64_t inner = std::ssize(split_words(text));
  if (inner == 0) return text.empty() ? 1 : 2;
  const std::u32string characters = to_utf32(text);
  return inner + (is_space(characters.front()) ? 1 : 0) + (is_space(characters.back()) ? 1 : 0);
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

/// An error about one line of a file.
Error error_in_line(const std::filesystem::path& file, int64_t line, const std::string& what) {
  return Error(fmt::format("{}, line {}: {}", file.string(), line, what), "docs/evaluation.md describes the files");
}

/// The items that `take` makes from the JSON objects in a file; blank lines are skipped.
std::vector<EvaluationItem> read_items(const std::filesystem::path& file,
                                       const std::function<EvaluationItem(const Json& line)>& take) {
  std::vector<EvaluationItem> items;
  LineReader reader(file);
  while (const auto line = reader.next()) {
    if (without_outer_space(*line).empty()) continue;
    const Json json = parse_or_discard(*line);
    if (!json.is_object()) throw error_in_line(file, reader.count(), "is not a JSON object");
    try {
      items.push_back(take(json));
      check_item(items.back());
    } catch (const nlohmann::json::exception& error) {
      const std::string what = error.what();  // "[json.exception.…] type must be string, but is number"
      throw error_in_line(file, reader.count(), "a value of the wrong type: " + what.substr(what.find("] ") + 2));
    } catch (const Error& error) {
      throw error_in_line(file, reader.count(), error.what());
    }
  }
  return items;
}

}  // namespace

EvaluationTask load_own_task(const std::filesystem::path& file) {
  const LineForm* form = nullptr;
  EvaluationTask task{.name = file.stem().string(), .category = "own"};
  bool begun = false;
  task.items = read_items(file, [&](const Json& line) {
    const auto category = line.value("category", std::string("own"));
    if (form == nullptr) {
      form = &form_of(line);
      task.category = category;
    }
    if (category != task.category)
      throw Error(fmt::format("the category is '{}', that of the first line '{}'", category, task.category));
    require_keys(line, *form);
    if (form->kind == RequestKind::generate_until) {
      auto until = line.value("until", std::vector<std::string>{"\n"});
      if (begun && until != task.until) throw Error("until is not that of the first line");
      task.until = std::move(until);
    }
    begun = true;
    return item_of(line, form->kind);
  });
  if (form == nullptr) throw Error(fmt::format("{}: contains no items", file.string()), "write one item per line");
  task.kind = form->kind;
  task.metrics = form->metrics;
  return task;
}

std::vector<EvaluationTask> load_own_tasks(const std::vector<std::string>& files) {
  std::vector<EvaluationTask> tasks;
  for (const std::string& file : files) {
    if (!file.ends_with(".jsonl")) {
      throw Error(fmt::format("unknown evaluation task '{}', which is no file (*.jsonl)", file),
                  "write one as docs/evaluation.md describes; benchmarks are evaluated with `python -m plumb.harness`");
    }
    EvaluationTask task = load_own_task(file);
    if (find_by(tasks, &EvaluationTask::name, task.name) != nullptr)
      throw Error(fmt::format("the evaluation task '{}' is named twice", task.name));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace plumb
