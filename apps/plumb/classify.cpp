// plumb classify: a label and its probability for every line of standard input or of a split, by one model or the mean
// of several.
#include "plumb/interop/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/directory.h"
#include "plumb/interop/opened_model.h"
#include "plumb/task/classification_metrics.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ClassifyArguments {
  std::vector<std::string> models;  // run directories, checkpoints in them, or Hugging Face folders
  std::string data, split, text = "-";
  bool pair = false;
  ClassifyOptions options;
};

using Probabilities = std::vector<std::vector<double>>;  // [example][label]

/// Throws Error unless all classifiers have the same set of labels, so that their probabilities can be averaged.
void require_equal_labels(const std::vector<Classifier>& classifiers) {
  const auto set_of = [](const Classifier& classifier) {
    return std::set(classifier.labels.begin(), classifier.labels.end());
  };
  for (const Classifier& classifier : classifiers) {
    if (set_of(classifier) == set_of(classifiers.front())) continue;
    throw Error(
        fmt::format("{} has the labels {}, but {} has {}", classifiers.front().opened->place.run.string(),
                    join(classifiers.front().labels), classifier.opened->place.run.string(), join(classifier.labels)),
        "give models that were trained on the same labels");
  }
}

/// `name`: of the lines' file, for messages.
std::vector<TextExample> examples_of(const std::vector<std::string>& lines, bool pair, const std::string& name) {
  std::vector<TextExample> examples;
  for (const std::string& line : lines) {
    const size_t tab = pair ? line.find('\t') : std::string::npos;
    if (pair && tab == std::string::npos) {
      throw Error(fmt::format("{}:{}: expected a pair of sentences, found one", name, examples.size() + 1),
                  "write both on one line, separated by a TAB");
    }
    examples.push_back({line.substr(0, tab), pair ? line.substr(tab + 1) : std::string()});
  }
  return examples;
}

std::vector<TextExample> examples_of(const DataDirectory& data, const std::string& split) {
  const std::vector<std::string> first = data.raw_source(split), second = data.raw_target(split);
  std::vector<TextExample> examples;
  for (size_t i = 0; i < first.size(); ++i) examples.push_back({first[i], second[i]});
  return examples;
}

/// The probabilities that one model predicts for the examples, in the order of `labels`.
Probabilities probabilities_of(const Classifier& classifier, const std::vector<std::string>& labels,
                               const std::vector<TextExample>& examples, const ClassifyOptions& options) {
  Progress progress("classifying", std::ssize(examples));
  Probabilities found = classify(classifier, examples, options, [&progress](int64_t done) { progress.update(done); });
  const std::vector<int64_t> outputs =
      outputs_of_labels(classifier.labels, labels, classifier.opened->place.run.string());
  for (std::vector<double>& row : found) {
    const std::vector<double> own = row;
    for (size_t i = 0; i < row.size(); ++i) row[i] = own[static_cast<size_t>(outputs[i])];
  }
  return found;
}

/// p(label), averaged over the classifiers; the labels are in the order of the first.
Probabilities mean_over(const std::vector<Classifier>& classifiers, const std::vector<TextExample>& examples,
                        const ClassifyOptions& options) {
  Probabilities sum;
  for (const Classifier& classifier : classifiers) {
    const Probabilities more = probabilities_of(classifier, classifiers.front().labels, examples, options);
    if (sum.empty()) {
      sum = more;
      continue;
    }
    for (size_t i = 0; i < sum.size(); ++i)
      std::transform(sum[i].begin(), sum[i].end(), more[i].begin(), sum[i].begin(), std::plus());
  }
  for (std::vector<double>& of_labels : sum) {
    for (double& probability : of_labels) probability /= static_cast<double>(classifiers.size());
  }
  return sum;
}

/// The id of the most probable label.
size_t best_of(const std::vector<double>& probabilities) {
  return static_cast<size_t>(std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
}

/// How well the labels of a split are predicted: accuracy, F1 and so on.
Metrics metrics_on(const Classifier& classifier, const std::string& split, const Probabilities& probabilities) {
  const std::vector<int32_t> labels = classifier.data->labels_of(split);
  Confusion confusion{std::ssize(classifier.labels), {}};
  confusion.counts.assign(static_cast<size_t>(confusion.classes * confusion.classes), 0);
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t right = classifier.outputs[static_cast<size_t>(labels[i])];
    confusion.counts[static_cast<size_t>(right * confusion.classes) + best_of(probabilities[i])] += 1;
  }
  return classification_metrics(confusion);
}

std::string text_of(const Metrics& metrics) {
  std::string text;
  for (const std::string name : {"accuracy", "f1", "mcc"}) {
    text += fmt::format("{}\t{:.4f}", name, *metrics.get(name));
    const auto low = metrics.get(name + "_low"), high = metrics.get(name + "_high");
    if (low && high) text += fmt::format("\t{:.4f} to {:.4f}", *low, *high);
    text += '\n';
  }
  return text;
}

Json document(const std::vector<Classifier>& classifiers, const std::vector<TextExample>& examples,
              const Probabilities& probabilities) {
  Json json = make_document("classify", 1);
  json["run"] = classifiers.front().opened->place.run.string();
  json["checkpoint"] = classifiers.front().opened->place.checkpoint.string();
  if (classifiers.size() > 1) {
    json["mean_of"] = Json::array();
    for (const Classifier& classifier : classifiers) {
      const RunAndCheckpoint& place = classifier.opened->place;
      json["mean_of"].push_back({{"run", place.run.string()}, {"checkpoint", place.checkpoint.string()}});
    }
  }
  const std::vector<std::string>& labels = classifiers.front().labels;
  json["labels"] = labels;
  json["examples"] = Json::array();
  for (size_t i = 0; i < examples.size(); ++i) {
    const size_t best = best_of(probabilities[i]);
    Json example = {{"text", examples[i].first}};
    if (!examples[i].second.empty()) example["second"] = examples[i].second;
    example["label"] = labels[best];
    example["probability"] = probabilities[i][best];
    example["probabilities"] = probabilities[i];
    json["examples"].push_back(std::move(example));
  }
  return json;
}

void classify_input(const ClassifyArguments& arguments, const Globals& globals) {
  std::vector<Classifier> classifiers;
  for (const std::string& name : arguments.models)
    classifiers.push_back(make_classifier(std::make_shared<OpenedModel>(open_model(name)), arguments.data));
  require_equal_labels(classifiers);
  const Classifier& first = classifiers.front();
  if (!arguments.split.empty() && !first.data)
    throw UsageError("--split: no data directory given", "give one as --data DIR; an imported model has none");
  const std::vector<TextExample> examples =
      arguments.split.empty() ? examples_of(read_texts(arguments.text), arguments.pair || has_pairs(first),
                                            arguments.text == "-" ? "standard input" : arguments.text)
                              : examples_of(*first.data, arguments.split);
  const Probabilities probabilities = mean_over(classifiers, examples, arguments.options);
  Json json = document(classifiers, examples, probabilities);
  if (!arguments.split.empty()) {
    const Metrics metrics = metrics_on(first, arguments.split, probabilities);
    json["split"] = arguments.split;
    for (const auto& [name, value] : metrics) json["metrics"][name] = value;
    emit(globals, json, text_of(metrics));
    return;
  }
  std::string text;
  for (const std::vector<double>& of_labels : probabilities) {
    const size_t best = best_of(of_labels);
    text += fmt::format("{}\t{:.4f}\n", first.labels[best], of_labels[best]);
  }
  emit(globals, json, text);
}

void add_classify(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ClassifyArguments>();
  CLI::App* verb = add_verb(app, globals, "classify", "Label standard input, one text per line, with a trained model",
                            "plumb classify runs/trec < questions.txt",
                            [arguments, &globals] { classify_input(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("MODEL", arguments->models,
                   "A run directory (its latest checkpoint), a checkpoint in one, or a folder of a Hugging Face "
                   "model; with several, their probabilities are averaged")
      ->type_name("RUN_OR_FOLDER")
      ->required();
  verb->add_option("--data", arguments->data,
                   "Data directory with the tokenizer and the labels, by name (default: the run's, or those of an "
                   "imported model)")
      ->type_name("DIR");
  CLI::Option* text = verb->add_option("--text", arguments->text, kTextHelp)->type_name("FILE");
  verb->add_option("--split", arguments->split,
                   "Instead of standard input, label this split of the data directory, and report accuracy, F1 and "
                   "Matthews' coefficient with 95% intervals")
      ->type_name("NAME")
      ->excludes(text);
  verb->add_flag("--pair", arguments->pair,
                 "Each line is a pair of sentences separated by a TAB (default: as in training)");
  verb->add_option("--precision", arguments->options.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  verb->add_option("--batch-tokens", arguments->options.batch_tokens, "Tokens per batch")->check(positive());
}

const bool kClassifyRegistered = register_verb({Heading::models, 90, add_classify});

}  // namespace
}  // namespace plumb::app
