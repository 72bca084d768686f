// A fingerprint of the data a run is trained on, so that the run is not resumed with other data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/data/directory.h"

namespace plumb {

/// The size and checksum of each tokenizer file, by name.
Json tokenizer_marks(const DataDirectory& data);

/// Whether the model in `run`, a run or a folder with a model of another library, has the vocabulary of these data;
/// true if it has no record of its own, and no tokenizer. Its files may differ in what does not determine ids if it is
/// of another library and has a tokenizer.json.
bool has_vocabulary_of(const std::filesystem::path& run, const DataDirectory& data);

/// The size and checksum of each tokenizer file and each file of a split, by name, and of each corpus of the training
/// data if there are several; the names of the labels, by id.
Json fingerprint_of(const DataDirectory& data);

/// Throws Error unless the data in `data`, with this fingerprint, are those that the run in `run` began with; it names
/// the corpus, split or tokenizer that has changed or is missing. Added splits do not matter. A run that has not
/// recorded its data accepts any.
void require_same_data(const std::filesystem::path& run, const Json& fingerprint, const std::filesystem::path& data);

/// Writes the fingerprint to the run's data.json, unless it exists.
void record_data(const std::filesystem::path& run, Json fingerprint);

/// The names of the labels that the run in `run` was trained on, by id; empty if it did not record any.
std::vector<std::string> recorded_labels(const std::filesystem::path& run);

/// Copies data.json, if it exists, from the run `from` to `to`, a run made from it.
void copy_recorded_data(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace plumb
