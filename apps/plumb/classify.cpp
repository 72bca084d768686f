// plumb classify: a label and its probability for every line of standard input.
#include "plumb/decode/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/directory.h"
#include "plumb/train/run.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ClassifyArguments {
  std::string model;  // a run directory or a checkpoint in one
  std::string data;
  bool pair = false;
  ClassifyOptions options;
};

/// Whether the training examples have a second sentence.
bool has_pairs(const DataDirectory& data) {
  return data.info().at("splits").at("train").at("target").at("tokens").get<int64_t>() > 0;
}

std::vector<TextExample> examples_of(const std::vector<std::string>& lines, bool pair) {
  std::vector<TextExample> examples;
  for (const std::string& line : lines) {
    const size_t tab = pair ? line.find('\t') : std::string::npos;
    if (pair && tab == std::string::npos) {
      throw Error(fmt::format("standard input:{}: expected a pair of sentences, found one", examples.size() + 1),
                  "write both on one line, separated by a TAB");
    }
    examples.push_back({line.substr(0, tab), pair ? line.substr(tab + 1) : std::string()});
  }
  return examples;
}

/// The id of the most probable label.
size_t best_of(const std::vector<double>& probabilities) {
  return static_cast<size_t>(std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
}

Json document(const RunAndCheckpoint& place, const std::vector<std::string>& labels,
              const std::vector<TextExample>& examples, const std::vector<std::vector<double>>& probabilities) {
  Json json = make_document("classify", 1);
  json["run"] = place.run.string();
  json["checkpoint"] = place.checkpoint.string();
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

void classify_input(ClassifyArguments arguments, const Globals& globals) {
  const RunAndCheckpoint place = locate_run(arguments.model);
  const RunConfig config = load_run_config(place.run);
  const std::unique_ptr<Model> model = load_model(place.run, place.checkpoint);
  Classifies& classifier = classifier_of(*model);
  const DataDirectory data = DataDirectory::open(arguments.data.empty() ? config.data : arguments.data);
  const std::vector<std::string>& labels = data.labels();
  const Tokenizer& tokenizer = data.source_tokenizer();
  const int64_t vocabulary =
      classifier.reads_target() ? config.model.target_vocabulary : source_vocabulary_of(config.model);
  if (classifier.labels() != std::ssize(labels) || vocabulary != tokenizer.vocabulary()) {
    throw Error(fmt::format("the model has {} labels and a vocabulary of {}, but the data have {} and {}",
                            classifier.labels(), vocabulary, labels.size(), tokenizer.vocabulary()),
                "give the data directory that the model was trained on");
  }
  arguments.options.length_limit = data.info().value("length_limit", int64_t{0});
  const std::vector<TextExample> examples = examples_of(read_standard_input(), arguments.pair || has_pairs(data));

  std::vector<std::vector<double>> probabilities;
  {
    Progress progress("classifying", std::ssize(examples));
    probabilities = classify(classifier, tokenizer, examples, arguments.options,
                             [&progress](int64_t done) { progress.update(done); });
  }
  std::string text;
  for (const std::vector<double>& of_labels : probabilities) {
    const size_t best = best_of(of_labels);
    text += fmt::format("{}\t{:.4f}\n", labels[best], of_labels[best]);
  }
  emit(globals, document(place, labels, examples, probabilities), text);
}

}  // namespace

void add_classify(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ClassifyArguments>();
  CLI::App* verb = add_verb(app, globals, "classify", "Label standard input, one text per line, with a trained model",
                            "plumb classify runs/trec < questions.txt",
                            [arguments, &globals] { classify_input(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("MODEL", arguments->model, "A run directory (its latest checkpoint), or a checkpoint in one")
      ->type_name("RUN_OR_CHECKPOINT")
      ->required();
  verb->add_option("--data", arguments->data, "Data directory with the tokenizer and labels (default: the run's)")
      ->type_name("DIR");
  verb->add_flag("--pair", arguments->pair,
                 "Each line is a pair of sentences separated by a TAB (default: as in training)");
  verb->add_option("--precision", arguments->options.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}))
      ->capture_default_str();
  verb->add_option("--batch-tokens", arguments->options.batch_tokens, "Tokens per batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace plumb::app
