#include "plumb/evaluate/own_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/evaluate/big_bench.h"
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
