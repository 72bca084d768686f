// The contents of the data that a run is trained on, so that it is not resumed with other data.
#pragma once

#include <filesystem>

#include "plumb/base/json.h"
#include "plumb/data/directory.h"

namespace plumb {

/// The size and checksum of each file of the tokenizers, by name.
Json tokenizer_marks(const DataDirectory& data);

/// Whether the run in `run` was trained with the vocabulary of these data, as far as it has recorded its own.
bool has_vocabulary_of(const std::filesystem::path& run, const DataDirectory& data);

/// The size and checksum of each file of the tokenizers and of each split, by name, and of each corpus of the training
/// data, if they come from several.
Json fingerprint_of(const DataDirectory& data);

/// Throws Error if the data in `data`, with this fingerprint, are not those that the run in `run` began with: it names
/// the corpus, the split, or the tokenizer, whose contents have changed or are missing. Splits that have been added are
/// no difference. A run that has not recorded its data accepts any.
void require_same_data(const std::filesystem::path& run, const Json& fingerprint, const std::filesystem::path& data);

/// Records the fingerprint as data.json of the run, unless it has one.
void record_data(const std::filesystem::path& run, Json fingerprint);

/// Gives `to`, a run that was made from the run `from`, the same data.json, if there is one.
void copy_recorded_data(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace plumb
