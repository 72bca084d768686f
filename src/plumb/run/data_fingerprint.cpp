#include "plumb/run/data_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json_fields.h"
#include "plumb/run/foreign_models.h"
#include "plumb/run/seal.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "data.json";
constexpr const char* kJoint = "tokenizer.model";     // used if both sides share one vocabulary
constexpr const char* kPublished = "tokenizer.json";  // of an imported model

/// The sizes and checksums of a split's corpora, by name; empty if there is only one.
Json corpora_of(const Split& split) {
  Json corpora = Json::object();
  int64_t first = 0;
  for (const CorpusSize& corpus : split.corpora()) {
    corpora[corpus.name] = {{"pairs", corpus.size}, {"crc32", crc32_text(split.checksum_of(first, corpus.size))}};
    first += corpus.size;
  }
  return corpora;
}

/// Throws Error if a corpus is missing from `found`, differs, or is new, since epochs would have other examples.
void compare_corpora(const Json& stored, const Json& found, const fs::path& data) {
  const auto differs = [&](const std::string& name, const char* how) {
    throw Error(fmt::format("{}: corpus '{}' of split 'train' {} since the run was started", data.string(), name, how),
                "give the original data, wherever they are now, with --data DIR, or choose another --out");
  };
  for (const auto& [name, mark] : stored.items()) {
    if (!found.contains(name)) differs(name, "has been removed");
    if (found[name] != mark) differs(name, "has changed");
  }
  for (const auto& [name, mark] : found.items()) {
    if (!stored.contains(name)) differs(name, "has been added");
  }
}

/// Throws Error if a file listed in `stored` is missing from `found` or differs.
void compare_files(const Json& stored, const Json& found, const std::string& what, const fs::path& data) {
  for (const auto& [file, mark] : stored.items()) {
    if (found.contains(file) && found[file] == mark) continue;
    throw Error(fmt::format("{}: {} {} since the run was started: {}", data.string(), what,
                            found.contains(file) ? "has changed" : "is incomplete", file),
                "give the original data, wherever they are now, with --data DIR, or choose another --out");
  }
}

}  // namespace

Json tokenizer_marks(const DataDirectory& data) {
  std::map<std::string, FileMark> tokenizers;  // sorted: independent of the file system's order
  for (const auto& entry : fs::directory_iterator(data.path())) {
    if (entry.path().extension() == ".model") tokenizers[entry.path().filename().string()] = mark_of(entry.path());
  }
  Json marks = Json::object();
  for (const auto& [file, mark] : tokenizers) marks[file] = described_json(mark);
  return marks;
}

bool has_vocabulary_of(const fs::path& run, const DataDirectory& data) {
  const ForeignModel* foreign = foreign_model_at(run);
  if (foreign == nullptr && !fs::exists(run / kFile)) return true;
  const Json stored =
      foreign != nullptr ? foreign->tokenizer(run) : read_sealed(run / kFile).value("tokenizer", Json::object());
  if (foreign != nullptr && stored.empty()) return true;
  const Json own = tokenizer_marks(data);
  if (!data.joint()) return stored == own;
  const bool has_same_file = std::any_of(stored.begin(), stored.end(),
                                         [&](const Json& mark) { return own.contains(kJoint) && mark == own[kJoint]; });
  if (has_same_file || !fs::is_regular_file(run / kPublished)) return has_same_file;
  return Tokenizer::from_file(run).definition() == data.source_tokenizer().definition();
}

Json fingerprint_of(const DataDirectory& data) {
  std::map<std::string, std::map<std::string, FileMark>> splits;
  for (const std::string& name : data.split_names()) splits[name];
  for (const auto& entry : fs::directory_iterator(data.path() / "splits")) {
    const auto split = splits.find(entry.path().stem().string());
    if (split != splits.end()) split->second[entry.path().filename().string()] = mark_of(entry.path());
  }
  Json fingerprint = make_document("fingerprint", 1);
  fingerprint["tokenizer"] = tokenizer_marks(data);
  if (data.has_split("train")) {
    if (Json corpora = corpora_of(data.split("train")); !corpora.empty()) fingerprint["corpora"] = std::move(corpora);
  }
  if (!data.labels().empty()) fingerprint["labels"] = data.labels();
  fingerprint["splits"] = Json::object();
  for (const auto& [name, files] : splits) {
    Json& split = fingerprint["splits"][name] = Json::object();
    for (const auto& [file, mark] : files) split[file] = described_json(mark);
  }
  return fingerprint;
}

void require_same_data(const fs::path& run, const Json& fingerprint, const fs::path& data) {
  if (!fs::exists(run / kFile)) return;
  const Json stored = read_sealed(run / kFile);
  try {
    const Json none = Json::object();
    compare_corpora(stored.value("corpora", none), fingerprint.value("corpora", none), data);
    for (const auto& [name, files] : stored.at("splits").items()) {
      if (!fingerprint.at("splits").contains(name)) {
        throw Error(fmt::format("{}: split '{}' is missing; the run was started with it", data.string(), name),
                    "give the original data with --data DIR, or choose another --out");
      }
      compare_files(files, fingerprint["splits"][name], fmt::format("split '{}'", name), data);
    }
    compare_files(stored.at("tokenizer"), fingerprint.at("tokenizer"), "the tokenizer", data);
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_shape(run / kFile, error);
  }
}

void record_data(const fs::path& run, Json fingerprint) {
  if (fs::exists(run / kFile)) return;
  seal(fingerprint);
  write_json(run / kFile, fingerprint);
}

std::vector<std::string> recorded_labels(const fs::path& run) {
  if (!fs::exists(run / kFile)) return {};
  const Json stored = read_sealed(run / kFile);
  try {
    return stored.value("labels", std::vector<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_shape(run / kFile, error);
  }
}

void copy_recorded_data(const fs::path& from, const fs::path& to) {
  if (fs::exists(from / kFile)) write_file_atomic(to / kFile, read_file(from / kFile));
}

}  // namespace plumb
