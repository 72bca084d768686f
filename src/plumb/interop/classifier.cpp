#include "plumb/interop/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/data/sequences.h"
#include "plumb/model/embedding.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/task/direction.h"

namespace plumb {
namespace {

/// The data directory with the tokenizer of a run; none for an imported model, which has its own.
std::optional<DataDirectory> data_of(const std::string& given, const RunConfig& config) {
  const std::string& data = given.empty() ? config.data : given;
  return data.empty() ? std::nullopt : std::optional(DataDirectory::open(data));
}

/// Throws Error unless the classifier has as many labels as the model has outputs, and the vocabulary of the model.
void require_fit(const Classifier& classifier) {
  const OpenedModel& opened = *classifier.opened;
  const Classifies& model = classifier_of(*opened.model);
  const int64_t labels = std::ssize(classifier.labels), pieces = classifier.tokenizer.vocabulary();
  const int64_t vocabulary = text_vocabulary_of(opened.config.model);
  if (model.labels() != labels || vocabulary < pieces) {  // an imported model may have more rows than pieces
    throw Error(fmt::format("the model has {} labels and a vocabulary of {}, but the data have {} and {}",
                            model.labels(), vocabulary, labels, pieces),
                "give the data directory that the model was trained on");
  }
  const std::string run = opened.place.run.string();
  if (!classifier.data || has_vocabulary_of(run, *classifier.data)) return;
  throw Error(
      fmt::format("{}: its vocabulary is not the one that {} was trained with", classifier.data->path().string(), run),
      fmt::format("prepare it with `plumb data labels --tokenizer-from {}`",
                  opened.config.data.empty() ? run : opened.config.data));
}

/// The most tokens of an example, without special ones: as in training, or as many as the model has positions; 0:
/// unlimited.
int64_t length_limit_of(const Classifier& classifier, const std::vector<TextExample>& examples) {
  const int64_t trained = classifier.data ? classifier.data->info().value("length_limit", int64_t{0}) : 0;
  const int64_t positions = longest_sequence(classifier.opened->config.model);
  if (positions == std::numeric_limits<int64_t>::max()) return trained;
  const bool pair = std::any_of(examples.begin(), examples.end(), [](const auto& one) { return !one.second.empty(); });
  const int64_t second = pair ? 1 : 0;
  const int64_t specials = labeled_length(0, second, classifier.tokenizer.specials()) - second;
  const int64_t room = std::max<int64_t>(1, positions - specials);
  return trained > 0 ? std::min(trained, room) : room;
}

}  // namespace

Classifier make_classifier(std::shared_ptr<OpenedModel> opened, const std::string& data) {
  std::optional<DataDirectory> directory = data_of(data, opened->config);
  std::vector<std::string> labels = labels_of(opened->place.run);
  if (labels.empty() && directory) labels = directory->labels();  // an old run whose data have moved
  Tokenizer tokenizer = directory ? directory->source_tokenizer() : Tokenizer::from_file(opened->place.run);
  Classifier classifier{std::move(opened), std::move(labels), std::move(tokenizer), std::move(directory)};
  require_fit(classifier);
  if (classifier.data)
    classifier.outputs =
        outputs_of_labels(classifier.labels, classifier.data->labels(), classifier.data->path().string());
  return classifier;
}

bool has_pairs(const Classifier& classifier) {
  return classifier.data &&
         classifier.data->info().at("splits").at("train").at("target").at("tokens").get<int64_t>() > 0;
}

std::vector<std::vector<double>> classify(const Classifier& classifier, const std::vector<TextExample>& examples,
                                          ClassifyOptions options, const ClassifyProgress& progress) {
  options.length_limit = length_limit_of(classifier, examples);
  options.backward = reads_backward(classifier.opened->config.task);
  return classify(classifier_of(*classifier.opened->model), classifier.tokenizer, examples, options, progress);
}

}  // namespace plumb
