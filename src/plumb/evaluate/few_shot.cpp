#include "plumb/evaluate/few_shot.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/evaluate/python_random.h"

namespace plumb {
namespace {

using Examples = std::vector<const EvaluationItem*>;

/// Provides the few-shot examples of a task.
class ExampleSource {
 public:
  ExampleSource(const EvaluationTask& task, const FewShotOptions& options)
      : read_(options.examples > 0 && task.read_examples ? task.read_examples() : std::vector<EvaluationItem>()),
        apart_(!read_.empty() || !task.examples.empty()),
        pool_(!apart_         ? task.items
              : read_.empty() ? task.examples
                              : read_),
        first_(task.first_examples),
        wanted_(static_cast<size_t>(options.examples)),
        random_(options.seed) {
    const size_t needed = wanted_ + (apart_ || wanted_ == 0 ? 0 : 1);
    if (pool_.size() < needed) {
      throw Error(fmt::format("task {} has {} examples", task.name, pool_.size() - (apart_ ? 0 : 1)),
                  "lower --few-shot");
    }
  }

  /// The examples for one item.
  Examples of(const EvaluationItem& item) {
    if (wanted_ == 0) return {};
    if (first_) return first_of(others_in(pool_, item));
    if (apart_) return pick(random_.sample(pool_.size(), wanted_));
    Examples drawn = others_among(pick(random_.sample(pool_.size(), wanted_ + 1)), item);
    if (drawn.size() < wanted_) {  // more than one of them equals the item
      const Examples others = others_in(pool_, item);
      if (others.size() < wanted_) return first_of(others);  // an Error
      drawn.clear();
      for (const size_t i : random_.sample(others.size(), wanted_)) drawn.push_back(others[i]);
    }
    return first_of(std::move(drawn));
  }

 private:
  [[nodiscard]] Examples pick(const std::vector<size_t>& numbers) const {
    Examples picked;
    for (const size_t i : numbers) picked.push_back(&pool_[i]);
    return picked;
  }

  [[nodiscard]] Examples others_among(Examples examples, const EvaluationItem& item) const {
    if (!apart_) std::erase_if(examples, [&](const EvaluationItem* example) { return *example == item; });
    return examples;
  }

  [[nodiscard]] Examples others_in(const std::vector<EvaluationItem>& pool, const EvaluationItem& item) const {
    Examples all;
    for (const EvaluationItem& example : pool) all.push_back(&example);
    return others_among(std::move(all), item);
  }

  [[nodiscard]] Examples first_of(Examples examples) const {
    if (examples.size() < wanted_) throw Error("too few items differ from the one that is asked", "lower --few-shot");
    examples.resize(wanted_);
    return examples;
  }

  std::vector<EvaluationItem> read_;  // by task.read_examples
  bool apart_;                        // whether the pool is separate from the items
  const std::vector<EvaluationItem>& pool_;
  bool first_;
  size_t wanted_;
  PythonRandom random_;
};

/// An item with its answer, as it appears in the prompts of other items.
std::string example_text(const EvaluationTask& task, const EvaluationItem& item) {
  const std::string& choice = item.choices[item.gold];
  if (item.choices.size() == 1 && choice.empty()) return item.context;  // the harness leaves out the delimiters too
  const std::string answered = item.ending.empty() ? item.context + task.target_delimiter + choice
                                                   : item.context + choice + task.target_delimiter + item.ending;
  return answered + task.example_delimiter;
}

}  // namespace

std::vector<std::string> prompts_of(const EvaluationTask& task, size_t items, const FewShotOptions& options) {
  const bool rolling = task.kind == RequestKind::rolling;
  if (rolling && options.examples > 0)
    throw Error(fmt::format("task {} does not support few-shot examples", task.name), "leave out --few-shot");
  ExampleSource source(task, options);
  std::vector<std::string> prompts;
  for (size_t i = 0; i < items; ++i) {
    const EvaluationItem& item = task.items[i];
    std::string prompt = rolling ? "" : task.description;
    for (const EvaluationItem* example : source.of(item)) prompt += example_text(task, *example);
    prompts.push_back(prompt + item.context);
  }
  return prompts;
}

}  // namespace plumb
