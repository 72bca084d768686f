#include "plumb/evaluate/results.h"

#include <fmt/format.h>

#include "plumb/base/contains.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

Json metric_json(const MetricResult& metric) {
  Json json = {{"value", metric.score}, {"higher_is_better", metric.higher_is_better}};
  if (metric.standard_error) json["standard_error"] = *metric.standard_error;
  if (metric.interval) json["interval"] = {metric.interval->low, metric.interval->high};
  if (metric.ties) json["ties"] = *metric.ties;
  return json;
}

Json task_json(const TaskResult& result) {
  Json json = {{"kind", name_of(result.task.kind)},
               {"category", result.task.category},
               {"items", result.items.size()},
               {"items_in_file", result.task.items.size()},
               {"metrics", Json::object()}};
  if (result.task.kind == RequestKind::multiple_choice) json["same_tokens"] = result.same_tokens;
  if (result.bytes > 0)
    json.update({{"bytes", result.bytes}, {"lost_bytes", result.lost_bytes}, {"tokens", result.tokens}});
  for (const MetricResult& metric : result.metrics) json["metrics"][metric.name] = metric_json(metric);
  return json;
}

Json generation_json(const TaskResult& result) {
  return {
      {"until", result.task.until}, {"max_gen_toks", result.max_tokens}, {"do_sample", false}, {"temperature", 0.0}};
}

void add_rows(std::vector<std::vector<std::string>>& rows, const TaskResult& task) {
  for (const MetricResult& metric : task.metrics) {
    rows.push_back(
        {task.task.name, metric.name, with_thousands(std::ssize(task.items)), shown_score(metric.score),
         metric.standard_error ? shown_score(*metric.standard_error) : "",
         metric.interval ? shown_score(metric.interval->low) + " … " + shown_score(metric.interval->high) : ""});
  }
}

/// What makes the numbers of a task mean less than they seem to.
std::string notes_on(const TaskResult& task) {
  std::string notes;
  const auto note = [&](int64_t count, int64_t all, const std::string& what) {
    if (count == 0) return;
    notes += fmt::format("{}: {} of {} {}\n", task.task.name, with_thousands(count), with_thousands(all), what);
  };
  note(task.lost_bytes, task.bytes, "bytes are unknown to the tokenizer or lost: no number to compare with others'");
  note(task.same_tokens, std::ssize(task.items), "items have choices of the same tokens");
  for (const MetricResult& metric : task.metrics)
    note(metric.ties.value_or(0), std::ssize(task.items),
         "items tie in " + metric.name + ", where the first one counts");
  return printable(notes, "\n");
}

/// The mean accuracy of the tasks in a category.
struct CategoryResult {
  std::string name;
  std::vector<std::string> tasks;
  double accuracy = 0;
};

/// The categories of the tasks that have an accuracy.
std::vector<CategoryResult> categories_of(const std::vector<TaskResult>& tasks) {
  std::vector<const EvaluationTask*> asked;
  for (const TaskResult& task : tasks) asked.push_back(&task.task);
  std::vector<CategoryResult> categories;
  for (const TaskCategory& category : task_categories(asked)) {
    CategoryResult& result = categories.emplace_back(CategoryResult{.name = category.name});
    for (const size_t i : category.tasks) {
      result.tasks.push_back(asked[i]->name);
      const MetricResult* accuracy = find_by(tasks[i].metrics, &MetricResult::name, "acc");
      result.accuracy += accuracy->score / static_cast<double>(category.tasks.size());
    }
  }
  return categories;
}

std::string category_text(const std::vector<CategoryResult>& categories) {
  std::vector<std::vector<std::string>> rows = {{"category", "tasks", "mean acc"}};
  for (const CategoryResult& category : categories)
    rows.push_back({category.name, join(category.tasks), fmt::format("{:.4f}", category.accuracy)});
  return aligned(rows, 2);
}

}  // namespace

Json evaluation_json(const std::vector<TaskResult>& tasks) {
  Json json = {{"tasks", Json::object()}, {"categories", Json::object()}};
  for (const TaskResult& task : tasks) json["tasks"][task.task.name] = task_json(task);
  for (const CategoryResult& category : categories_of(tasks))
    json["categories"][category.name] = {{"tasks", category.tasks}, {"acc", category.accuracy}};
  return json;
}

std::string evaluation_text(const std::vector<TaskResult>& tasks) {
  std::vector<std::vector<std::string>> rows = {{"task", "metric", "items", "value", "stderr", "95% interval"}};
  for (const TaskResult& task : tasks) add_rows(rows, task);
  const std::vector<CategoryResult> categories = categories_of(tasks);
  std::string text = aligned(rows, 2);
  if (categories.size() > 1) text.append("\n").append(category_text(categories));
  for (const TaskResult& task : tasks) text += notes_on(task);
  return text;
}

std::string samples_text(const TaskResult& result) {
  std::string text;
  for (size_t i = 0; i < result.items.size(); ++i) {
    const ItemResult& item = result.items[i];
    const EvaluationItem& asked = result.task.items[i];
    Json line = {
        {"doc_id", i},
        {"target", result.task.kind == RequestKind::multiple_choice ? Json(asked.gold) : Json(asked.choices[0])},
        {"arguments", Json::array()},
        {"resps", Json::array()}};
    for (size_t k = 0; k < item.continuations.size(); ++k) {
      const Answer& answer = item.answers[k];
      if (answer.text) {
        line["arguments"].push_back(Json::array({asked.context, generation_json(result)}));
        line["resps"].push_back(Json::array({*answer.text}));
        continue;
      }
      const bool rolling = result.task.kind == RequestKind::rolling;
      line["arguments"].push_back(rolling ? Json::array({item.continuations[k]})
                                          : Json::array({asked.context, item.continuations[k]}));
      line["resps"].push_back(rolling ? Json::array({answer.log_likelihood})
                                      : Json::array({Json::array({answer.log_likelihood, answer.greedy})}));
    }
    line["metrics"] = Json::array();
    for (const MetricResult& metric : result.metrics) {
      const std::vector<double> terms = evaluation_metrics().at(metric.name).make.terms(asked, item.answers);
      line["metrics"].push_back(metric.name);
      line[metric.name] = terms.size() == 1 ? Json(terms[0]) : Json(terms);
    }
    text += line.dump() + '\n';
  }
  return text;
}

}  // namespace plumb
