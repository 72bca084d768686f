// The corpora of the training data, drawn from as train.corpora and train.corpus_temperature say.
#pragma once

#include <optional>
#include <string>

#include "plumb/data/corpus_mixture.h"
#include "plumb/task/dataset.h"
#include "plumb/train/config.h"

namespace plumb {

/// What each epoch of this training set consists of; nothing if that is every example once, as with equal weights and
/// temperature 1. Throws Error if a weight is for a corpus that the set does not have, if there is a weight or a
/// temperature other than 1 for a set of one corpus, or as CorpusMixture does.
std::optional<CorpusMixture> mixture_of(const TrainConfig& config, const Dataset& dataset);

/// For people: "an epoch draws 1,500 of 2,000 examples of europarl, 1,000 of 500 of news".
std::string mixture_summary(const CorpusMixture& mixture);

}  // namespace plumb
