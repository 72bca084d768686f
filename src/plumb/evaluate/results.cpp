#include "plumb/evaluate/results.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/contains.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

/// A metric is named "NAME,FILTER" if the harness filters answers, otherwise "NAME".
std::string without_filter(const std::string& name) { return name.substr(0, name.find(',')); }
std::string filter_of(const std::string& name) {
  const size_t comma = name.find(',');
  return comma == std::string::npos ? ",none" : name.substr(comma);
}

/// The harness's key for a metric or its standard error.
std::string key_of(const std::string& name, const std::string& suffix = "") {
  return without_filter(name) + suffix + filter_of(name);
}

Json metrics_json(const std::string& name, size_t items, const std::vector<MetricResult>& metrics) {
  Json json = {{"name", name}, {"alias", name}, {"sample_len", items}};
  for (const MetricResult& metric : metrics) {
    json[key_of(metric.name)] = metric.score;
    json[key_of(metric.name, "_stderr")] = metric.standard_error ? Json(*metric.standard_error) : Json("N/A");
  }
  return json;
}

Json generation_json(const TaskResult& result) {
  return {
      {"until", result.task.until}, {"max_gen_toks", result.max_tokens}, {"do_sample", false}, {"temperature", 0.0}};
}

Json config_json(const TaskResult& result) {
  const EvaluationTask& task = result.task;
  Json metrics = Json::array();
  for (const MetricResult& metric : result.metrics) {
    Json entry = {{"metric", without_filter(metric.name)}, {"higher_is_better", metric.higher_is_better}};
    if (metrics.empty() || metrics.back() != entry) metrics.push_back(std::move(entry));
  }
  Json json = {{"task", task.name},
               {"output_type", name_of(task.kind)},
               {"description", task.description},
               {"target_delimiter", task.target_delimiter},
               {"fewshot_delimiter", task.example_delimiter},
               {"num_fewshot", result.few_shot},
               {"metric_list", metrics},
               {"metadata", {{"version", task.version}}}};
  if (task.kind == RequestKind::generate_until) json["generation_kwargs"] = generation_json(result);
  return json;
}

Json intervals_json(const std::vector<MetricResult>& metrics) {
  Json json = Json::object();
  for (const MetricResult& metric : metrics) {
    if (metric.interval) json[metric.name] = {metric.interval->low, metric.interval->high};
  }
  return json;
}

Json directions_json(const std::vector<MetricResult>& metrics) {
  Json json = Json::object();
  for (const MetricResult& metric : metrics) json[without_filter(metric.name)] = metric.higher_is_better;
  return json;
}

/// A metric of a group: the mean over the items of its tasks. nullopt if a task lacks it or it is not such a mean.
std::optional<MetricResult> metric_of_group(const std::string& name, const std::vector<const TaskResult*>& tasks) {
  if (evaluation_metrics().at(name).make.standard_error != StandardError::of_mean) return {};
  MetricResult metric{.name = name};
  double total = 0;
  std::vector<std::optional<double>> errors;
  std::vector<size_t> items;
  for (const TaskResult* task : tasks) {
    const MetricResult* found = find_by(task->metrics, &MetricResult::name, name);
    if (found == nullptr) return {};
    metric.score += found->score * static_cast<double>(task->items.size());
    total += static_cast<double>(task->items.size());
    errors.push_back(found->standard_error);
    items.push_back(task->items.size());
  }
  metric.score /= total;
  metric.standard_error = pooled_standard_error(errors, items);
  return metric;
}

GroupResult group_of(const std::string& name, const std::vector<const TaskResult*>& tasks) {
  GroupResult group{.name = name};
  for (const TaskResult* task : tasks) {
    group.tasks.push_back(task->task.name);
    group.items += task->items.size();
  }
  const std::vector<std::string>& reported = tasks.front()->task.group_metrics;
  for (const MetricResult& metric : tasks.front()->metrics) {
    if (!reported.empty() && !contains(reported, metric.name)) continue;
    if (auto found = metric_of_group(metric.name, tasks)) group.metrics.push_back(std::move(*found));
  }
  return group;
}

/// Four decimals, or five digits of a number that has more before the point, as the perplexity of a bad model.
std::string shown_value(double value) {
  constexpr double kLarge = 1e5;
  return std::abs(value) < kLarge ? fmt::format("{:.4f}", value) : fmt::format("{:.5g}", value);
}

void add_rows(std::vector<std::vector<std::string>>& rows, const std::string& name, size_t items, int64_t few_shot,
              const std::vector<MetricResult>& metrics) {
  for (const MetricResult& metric : metrics) {
    rows.push_back(
        {name, metric.name, fmt::format("{}", few_shot), with_thousands(static_cast<int64_t>(items)),
         shown_value(metric.score), metric.standard_error ? shown_value(*metric.standard_error) : "",
         metric.interval ? shown_value(metric.interval->low) + " … " + shown_value(metric.interval->high) : ""});
  }
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

std::vector<GroupResult> groups_of(const std::vector<TaskResult>& tasks) {
  std::vector<std::string> names;
  for (const TaskResult& task : tasks) {
    for (const std::string& name : task.task.groups) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  std::vector<GroupResult> groups;
  for (const std::string& name : names) {
    std::vector<const TaskResult*> members;
    for (const TaskResult& task : tasks) {
      const auto& own = task.task.groups;
      if (contains(own, name)) members.push_back(&task);
    }
    groups.push_back(group_of(name, members));
  }
  return groups;
}

Json evaluation_json(const std::vector<TaskResult>& tasks) {
  const std::vector<GroupResult> groups = groups_of(tasks);
  Json json = {{"results", Json::object()},          {"groups", Json::object()},    {"group_subtasks", Json::object()},
               {"configs", Json::object()},          {"versions", Json::object()},  {"n-shot", Json::object()},
               {"higher_is_better", Json::object()}, {"n-samples", Json::object()}, {"intervals", Json::object()},
               {"categories", Json::object()}};
  for (const TaskResult& task : tasks) {
    const std::string& name = task.task.name;
    json["results"][name] = metrics_json(name, task.items.size(), task.metrics);
    json["configs"][name] = config_json(task);
    json["versions"][name] = task.task.version;
    json["n-shot"][name] = task.few_shot;
    json["higher_is_better"][name] = directions_json(task.metrics);
    json["n-samples"][name] = {{"original", task.task.items.size()}, {"effective", task.items.size()}};
    json["intervals"][name] = intervals_json(task.metrics);
  }
  for (const GroupResult& group : groups) {
    json["results"][group.name] = metrics_json(group.name, group.items, group.metrics);
    json["groups"][group.name] = json["results"][group.name];
    json["group_subtasks"][group.name] = group.tasks;
    json["higher_is_better"][group.name] = directions_json(group.metrics);
  }
  if (groups.empty()) json.erase("groups");
  for (const CategoryResult& category : categories_of(tasks))
    json["categories"][category.name] = {{"tasks", category.tasks}, {"acc", category.accuracy}};
  return json;
}

std::string evaluation_text(const std::vector<TaskResult>& tasks) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "metric", "shots", "items", "value", "stderr", "95% interval"}};
  for (const TaskResult& task : tasks) add_rows(rows, task.task.name, task.items.size(), task.few_shot, task.metrics);
  const int64_t few_shot = tasks.empty() ? 0 : tasks.front().few_shot;
  for (const GroupResult& group : groups_of(tasks)) add_rows(rows, group.name, group.items, few_shot, group.metrics);
  const std::vector<CategoryResult> categories = categories_of(tasks);
  std::string text = aligned(rows, 2);
  if (categories.size() > 1) text.append("\n").append(category_text(categories));
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
    if (!asked.also_right.empty()) line["also_right"] = asked.also_right;
    for (size_t k = 0; k < item.continuations.size(); ++k) {
      const Answer& answer = item.answers[k];
      if (answer.text) {
        line["arguments"].push_back(Json::array({item.prompt, generation_json(result)}));
        line["resps"].push_back(Json::array({*answer.text}));
        continue;
      }
      const bool rolling = result.task.kind == RequestKind::rolling;
      line["arguments"].push_back(rolling ? Json::array({item.continuations[k]})
                                          : Json::array({item.context(k), item.continuations[k]}));
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
