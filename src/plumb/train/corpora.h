// Sampling from the corpora of the training data, by train.corpora and train.corpus_temperature.
#pragma once

#include <optional>
#include <string>

#include "plumb/data/corpus_mixture.h"
#include "plumb/run/config.h"
#include "plumb/task/dataset.h"

namespace plumb {

/// The composition of each epoch of this training set; empty if every example occurs once, as with equal weights and
/// temperature 1. Throws Error if a weight names a corpus that the set does not have, if weights or a temperature other
/// than 1 are given for a stream or a set of one corpus, and as CorpusMixture does.
std::optional<CorpusMixture> mixture_of(const TrainConfig& config, const Dataset& dataset);

/// A message for the user: "an epoch draws 1,500 of 2,000 examples of europarl, 1,000 of 500 of news".
std::string mixture_summary(const CorpusMixture& mixture);

}  // namespace plumb
