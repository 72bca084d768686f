#include "plumb/train/corpora.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {

std::optional<CorpusMixture> mixture_of(const TrainConfig& config, const Dataset& dataset) {
  std::vector<WeightedCorpus> corpora;
  std::vector<std::string> names;
  for (const auto& [name, size] : dataset.corpora()) {
    corpora.push_back({name, size, 1});
    names.push_back(name);
  }
  if (corpora.empty()) {
    if (config.corpora.empty() && config.corpus_temperature == 1) return std::nullopt;
    if (dataset.stream()) {
      throw Error(fmt::format("{} is set, but a stream reads all of its text in order",
                              config.corpora.empty() ? "train.corpus_temperature" : "[[train.corpora]]"),
                  "leave it out, or set task.language-modeling.stream = 0");
    }
    throw Error(fmt::format("{} is set, but the training data are one corpus",
                            config.corpora.empty() ? "train.corpus_temperature" : "[[train.corpora]]"),
                "prepare the data with --corpus NAME=… for each of several corpora, instead of --train");
  }
  for (const auto& [name, weight] : config.corpora) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw Error(fmt::format("[[train.corpora]]: the training data have no corpus '{}'", name),
                  "available: " + join(names));
    corpora[static_cast<size_t>(found - names.begin())].weight = weight;
  }
  CorpusMixture mixture(std::move(corpora), config.corpus_temperature, static_cast<uint64_t>(config.seed));
  if (mixture.every_example_once()) return std::nullopt;
  return mixture;
}

std::string mixture_summary(const CorpusMixture& mixture) {
  std::vector<std::string> parts;
  for (size_t c = 0; c < mixture.corpora().size(); ++c) {
    const WeightedCorpus& corpus = mixture.corpora()[c];
    parts.push_back(fmt::format("{} of {}{} of {}", with_thousands(mixture.shares()[c]), with_thousands(corpus.size),
                                c == 0 ? " examples" : "", corpus.name));
  }
  return "an epoch draws " + join(parts);
}

}  // namespace plumb
