// [scale] with tasks: scores of models of growing size, by category.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "plumb/analysis/statistics.h"
#include "plumb/base/contains.h"
#include "plumb/base/text.h"
#include "plumb/plan/model_cost.h"
#include "plumb/report/display_name.h"
#include "plumb/study/scale_answers.h"

namespace plumb {
namespace {

/// The categories, as scripts/capability_tasks.py names them, whose gains Rae et al. compare.
constexpr const char* kComprehension = "reading comprehension";
constexpr const char* kReasoning = "BIG-bench Hard";
using PlannedAnswers = Planned<std::optional<ScaleAnswers>>;  // empty if the run diverged

/// The tasks of a category and the models' mean accuracies on them; or a text, which has no accuracy.
struct Category {
  std::string name;
  bool is_text = false;
  std::vector<std::string> tasks;
  size_t items = 0;
  double chance = 0;
  std::vector<std::vector<double>> accuracies;  // [size][seed]; NaN if the run diverged
  std::vector<std::vector<double>> right;       // the same, of log-probabilities of right answers
  std::vector<std::vector<double>> margins;     // the same, against wrong choices and per byte, of tasks that have them

  [[nodiscard]] bool has_choices() const {
    return std::any_of(margins.begin(), margins.end(),
                       [](const auto& by_seed) { return !finite_values(by_seed).empty(); });
  }

  /// Why accuracies cannot show a difference in ability: no model of any size answers any item. "" if some do.
  [[nodiscard]] std::string floor() const {
    for (const std::vector<double>& by_seed : accuracies) {
      if (std::any_of(by_seed.begin(), by_seed.end(), [](double accuracy) { return accuracy > 0; })) return {};
    }
    return fmt::format("no model answers any item of {}", name);
  }
  /// From the smallest to the largest model, by seed.
  [[nodiscard]] std::vector<double> gains() const {
    return seed_by_seed(accuracies.back(), accuracies.front(), std::minus<>());
  }
  [[nodiscard]] std::vector<double> gains_in_right() const {
    return seed_by_seed(right.back(), right.front(), std::minus<>());
  }
};

/// The mean of a number of one model's answers over the tasks that have it; NaN if none has, or if the run diverged.
template <typename Number>
double mean_over(const std::vector<std::string>& tasks, const std::optional<ScaleAnswers>& answers,
                 Number TaskAnswers::*number) {
  if (!answers) return std::nan("");
  std::vector<double> numbers;
  for (const std::string& task : tasks) {
    if (const std::optional<double> of_task = answers->at(task).*number) numbers.push_back(*of_task);
  }
  return numbers.empty() ? std::nan("") : mean_of(numbers);
}

/// The categories of all tasks, then the texts.
std::vector<TaskCategory> categories_of(const EvaluationTasks& tasks) {
  std::vector<const EvaluationTask*> asked;
  for (const EvaluationTask& task : tasks) asked.push_back(&task);
  std::vector<TaskCategory> all = task_categories(asked);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (is_text(tasks[i])) all.push_back({tasks[i].name, {i}});
  }
  return all;
}

std::vector<Category> measured_categories(const EvaluationTasks& tasks, const ScaleStudy& part,
                                          const std::vector<std::vector<PlannedAnswers>>& answers) {
  std::vector<Category> categories;
  for (const TaskCategory& named : categories_of(tasks)) {
    Category& category = categories.emplace_back(Category{named.name, is_text(tasks[named.tasks.front()])});
    for (const size_t i : named.tasks) {
      const size_t items = asked_items(tasks[i], part.items);
      category.tasks.push_back(tasks[i].name);
      category.items += items;
      category.chance += chance_accuracy(tasks[i], items) / static_cast<double>(named.tasks.size());
    }
    for (const std::vector<PlannedAnswers>& by_seed : answers) {
      const auto add = [&](std::vector<std::vector<double>>& numbers, auto number) {
        numbers.push_back(
            numbers_in(by_seed, [&](const PlannedAnswers& each) { return mean_over(category.tasks, *each, number); }));
      };
      add(category.accuracies, &TaskAnswers::accuracy);
      add(category.right, &TaskAnswers::right);
      add(category.margins, &TaskAnswers::margin);
    }
  }
  return categories;
}

/// Accuracies by category and size, as a figure and a table.
void report_accuracies(const std::vector<Category>& categories, const std::vector<int64_t>& parameters,
                       const ScaleStudy& part, const std::string& arm, PartResult& result) {
  Figure figure{"scale_evaluation",
                "Accuracy by category and parameters",
                fmt::format("Mean accuracy of the tasks of each category, minus that of a random choice; {}; {}.",
                            display_name(arm), seeds_in_words(part.seeds)),
                "line",
                {"parameters", true},
                {"accuracy above chance"}};
  Table table{"scale_evaluation",
              "Accuracy by category and parameters",
              fmt::format("Mean over the tasks of a category; {}, which reflect the training run and not the choice of "
                          "items.",
                          seeds_in_words(part.seeds)),
              {"category", "tasks", "items", "chance", "parameters", "accuracy", "low", "high"}};
  for (const Category& category : categories) {
    Series& line = figure.add(category.name, category.name);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Interval accuracy = judge(category.accuracies[i], {}).effect;
      line.point(parameters[i], accuracy.mean - category.chance, accuracy.low - category.chance,
                 accuracy.high - category.chance);
      table.row(category.name, join(category.tasks, ", "), category.items, category.chance, parameters[i], accuracy);
    }
  }
  result.figures.push_back(figure);
  result.tables.push_back(table);
}

/// A number by category and size, as a figure and a table with the same id.
void report_by_size(Figure figure, const char* column, const std::vector<Category>& categories,
                    std::vector<std::vector<double>> Category::*numbers, const std::vector<int64_t>& parameters,
                    PartResult& result) {
  Table table{figure.id, figure.title, figure.caption, {"category", "parameters", column, "low", "high"}};
  for (const Category& category : categories) {
    Series& line = figure.add(category.name, category.name);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Interval number = judge((category.*numbers)[i], {}).effect;
      line.point(parameters[i], number);
      table.row(category.name, parameters[i], number);
    }
  }
  result.figures.push_back(std::move(figure));
  result.tables.push_back(std::move(table));
}

/// How probable right answers are: it rises before the first item is answered right.
void report_right_answers(const std::vector<Category>& categories, const std::vector<int64_t>& parameters,
                          const std::string& about, PartResult& result) {
  report_by_size({"scale_right_answers",
                  "Log-probability of the right answer by category and parameters",
                  "In nats, among the choices of a task with choices, of the text itself in others, and per byte of a "
                  "text that is only read; mean over the tasks of each category; " +
                      about + " Compare lines of one kind.",
                  "line",
                  {"parameters", true},
                  {"log-probability of the right answer"}},
                 "log-probability", categories, &Category::right, parameters, result);
  std::vector<Category> choices;
  std::copy_if(categories.begin(), categories.end(), std::back_inserter(choices), std::mem_fn(&Category::has_choices));
  if (choices.empty()) return;
  report_by_size({"scale_margins",
                  "Right choices against wrong ones by category and parameters",
                  "Log-probability per byte of the right choice minus the mean of the wrong ones, in nats; mean over "
                  "the tasks of each category; " +
                      about,
                  "line",
                  {"parameters", true},
                  {"right minus wrong (nats per byte)"}},
                 "right minus wrong", choices, &Category::margins, parameters, result);
}

/// [seed]: the slope of log-probabilities or of their differences over x, [size][seed]; NaN unless all sizes have both.
std::vector<double> slopes_over(const std::vector<std::vector<double>>& x,
                                const std::vector<std::vector<double>>& right) {
  std::vector<double> slopes;
  for (size_t seed = 0; seed < right.front().size(); ++seed) {
    std::vector<double> sizes, values;
    for (size_t i = 0; i < right.size(); ++i) {
      sizes.push_back(x[i][seed]);
      values.push_back(right[i][seed]);
    }
    const bool known = finite_values(sizes).size() == sizes.size() && finite_values(values).size() == values.size();
    slopes.push_back(known ? fit_line(sizes, values).slope : std::nan(""));
  }
  return slopes;
}

/// How fast right answers become probable, by category: with size, and with the loss, which tells whether a category
/// gains more than the text that the models learn.
void report_slopes(const std::vector<Category>& categories, const std::vector<int64_t>& parameters,
                   const LossesBySize& losses, const ScaleStudy& part, PartResult& result) {
  std::vector<std::vector<double>> doublings, falls;  // [size][seed]
  for (size_t i = 0; i < parameters.size(); ++i) {
    doublings.emplace_back(losses[i].size(), std::log2(static_cast<double>(parameters[i])));
    falls.push_back(losses[i]);
    for (double& loss : falls.back()) loss = -loss;
  }
  Table table{
      "scale_slopes",
      "Gain of the right answer by category",
      fmt::format("In nats, of a text per byte; the slope of a line through all sizes, for each doubling of the "
                  "parameters and for each nat by which the validation loss falls; {}. Where losses differ "
                  "little, slopes over them mean little. Among choices of unequal length, what is gained may be the "
                  "loss of a token alone; per byte against the wrong choices, length counts less.",
                  seeds_in_words(part.seeds)),
      {"category", "measure", "for each", "slope", "low", "high"}};
  for (const Category& category : categories) {
    for (const auto& [unit, x] : {std::pair{"doubling of the parameters", &doublings}, {"nat of loss", &falls}}) {
      table.row(category.name, "right answer", unit, judge(slopes_over(*x, category.right), {}).effect);
      if (!category.has_choices()) continue;
      table.row(category.name, "right minus wrong, per byte", unit,
                judge(slopes_over(*x, category.margins), {}).effect);
    }
  }
  result.tables.push_back(table);
}

/// How much more accuracy reading comprehension gains from size than reasoning, for claims. `both`: the two, measured.
void add_gains(PartPlan& plan, const StudyContext& context, const ScaleMember& largest,
               const std::function<std::pair<Category, Category>()>& both) {
  Quantity& added =
      plan.quantity("comprehension_gain_over_reasoning",
                    fmt::format("gain in accuracy from the smallest to the largest model: that in {} − that in {}",
                                kComprehension, kReasoning),
                    Scale::linear, largest.arm, [both] {
                      const auto [comprehension, reasoning] = both();
                      return seed_by_seed(comprehension.gains(), reasoning.gains(), std::minus<>());
                    });
  added.in_comparison_table = false;
  added.figure = "scale_evaluation";
  added.untestable = [&context, both] {
    const auto [comprehension, reasoning] = both();
    std::vector<std::string> reasons = {training_not_testable(context),
                                        comprehension.floor().empty() ? reasoning.floor() : comprehension.floor()};
    std::erase(reasons, "");
    return join(reasons, "; ");
  };
  added.setting = [&context, largest](const std::string&) {
    return setting_of(context, scale_model(context, largest));
  };
  added.evidence = [both](const std::string&) {
    const auto [comprehension, reasoning] = both();
    return fmt::format("Gain in {}: {}; in {}: {}.", kComprehension,
                       with_interval(judge(comprehension.gains(), {}).effect), kReasoning,
                       with_interval(judge(reasoning.gains(), {}).effect));
  };
}

void report_evaluation(const StudyContext& context, const ScaleStudy& part, const EvaluationTasks& tasks,
                       const std::vector<ScaleMember>& members, const std::vector<std::vector<PlannedAnswers>>& answers,
                       const LossesBySize& losses, PartResult& result) {
  const std::string& arm = context.arms.front().name;
  std::vector<int64_t> parameters;
  for (const ScaleMember& member : members)
    parameters.push_back(plan::cost_of(scale_model(context, member)).parameters);
  result.measurements["evaluation"] = result_json(answers);

  const std::vector<Category> categories = measured_categories(tasks, part, answers);
  std::vector<Category> questions;
  std::copy_if(categories.begin(), categories.end(), std::back_inserter(questions),
               [](const Category& category) { return !category.is_text; });
  if (!questions.empty()) report_accuracies(questions, parameters, part, arm, result);
  report_right_answers(categories, parameters, fmt::format("{}; {}.", display_name(arm), seeds_in_words(part.seeds)),
                       result);
  report_slopes(categories, parameters, losses, part, result);
  std::vector<std::pair<std::string, Interval>> gains, in_right, of_bytes;
  for (const Category& category : categories) {
    const Interval gain = judge(category.gains_in_right(), {}).effect;
    (category.is_text ? of_bytes : in_right).emplace_back(category.name, gain);
  }
  for (const Category& category : questions) gains.emplace_back(category.name, judge(category.gains(), {}).effect);
  const auto say = [&](const char* what, const std::vector<std::pair<std::string, Interval>>& numbers) {
    if (!numbers.empty())
      result.summary.push_back(
          fmt::format("Gain in {}, from the smallest model to the largest: {}.", what, with_intervals(numbers)));
  };
  say("accuracy", gains);
  say("the log-probability of a text's byte, in nats", of_bytes);
  say("the log-probability of the right answer, in nats", in_right);
}

}  // namespace

ReportAnswers plan_scale_evaluation(PartPlan& plan, StudyContext& context, const ScaleStudy& part,
                                    const std::vector<ScaleMember>& members) {
  if (part.tasks.empty()) return [](const LossesBySize&, PartResult&) {};
  const std::shared_ptr<const EvaluationTasks> tasks = load_scale_tasks(part);
  const RunQuestion question = answers_question(context, part, tasks);
  check_scale_tasks(context, part, *tasks, scale_model(context, members.front()));
  std::vector<std::vector<PlannedAnswers>> answers;  // [size][seed]
  for (const ScaleMember& member : members) {
    auto& by_seed = answers.emplace_back();
    for (int64_t seed = 0; seed < part.seeds; ++seed) {
      MeasurementRequest request = question_measurement(context, scale_run(context, member).with_seed(seed), question);
      request.label = "evaluation, " + request.label;
      request.work /= 10;  // the run itself is another measurement
      request.stage = 1;   // after all runs
      by_seed.push_back(plan.add<std::optional<ScaleAnswers>>(request));
    }
  }
  const std::vector<TaskCategory> named = categories_of(*tasks);
  const auto has = [&](const char* name) { return find_by(named, &TaskCategory::name, name) != nullptr; };
  if (has(kComprehension) && has(kReasoning)) {
    add_gains(plan, context, members.back(), [tasks, part, answers] {
      const std::vector<Category> all = measured_categories(*tasks, part, answers);
      return std::pair(*find_by(all, &Category::name, kComprehension), *find_by(all, &Category::name, kReasoning));
    });
  }
  return [&context, part, tasks, members, answers](const LossesBySize& losses, PartResult& result) {
    report_evaluation(context, part, *tasks, members, answers, losses, result);
  };
}

}  // namespace plumb
