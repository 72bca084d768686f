#include "plumb/data/directory.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

constexpr const char* kRemake = "recreate the data directory with `plumb data`";

Tokenizer load_tokenizer(const std::filesystem::path& path, int64_t vocabulary) {
  Tokenizer tokenizer = Tokenizer::from_file(path);
  if (tokenizer.vocabulary() != vocabulary) {
    throw Error(fmt::format("{}: {} pieces, but data.json says {}", path.string(), tokenizer.vocabulary(), vocabulary),
                kRemake);
  }
  return tokenizer;
}

/// Older directories do not record the task; it is inferred from their kind of text.
std::string task_of(const Json& info) {
  if (info.contains("task")) return info["task"];
  return info.contains("text") ? "language-modeling" : "translation";
}

/// The corpora of a split, from its entry in data.json.
std::vector<CorpusSize> corpora_of(const Json& list) {
  std::vector<CorpusSize> corpora;
  for (const Json& each : list) corpora.push_back({each.at("name"), each.at("pairs")});
  return corpora;
}

}  // namespace

DataDirectory::DataDirectory(std::filesystem::path path, Json info, bool joint, Tokenizer source, Tokenizer target)
    : path_(std::move(path)),
      info_(std::move(info)),
      task_(task_of(info_)),
      labels_(info_.value("labels", std::vector<std::string>())),
      joint_(joint),
      source_tokenizer_(std::move(source)),
      target_tokenizer_(std::move(target)) {}

DataDirectory DataDirectory::open(const std::filesystem::path& path) {
  require_directory(path, "data");
  Json info = read_json(path / "data.json");
  try {
    if (info.at("schema") != "plumb.data/1") {
      throw Error(fmt::format("{}: unsupported schema {}", (path / "data.json").string(), info.at("schema").dump()),
                  kRemake);
    }
    const Json about = info.at("tokenizer");
    const bool joint = about.at("joint");
    const Tokenizer source =
        load_tokenizer(path / (joint ? "tokenizer.model" : "source.model"), about.at("source_vocabulary"));
    const Tokenizer target = joint ? source : load_tokenizer(path / "target.model", about.at("target_vocabulary"));
    DataDirectory directory(path, std::move(info), joint, source, target);
    for (const auto& [name, facts] : directory.info_.at("splits").items()) {
      if (name.empty() || name.find('/') != std::string::npos)
        throw Error(fmt::format("{}: '{}' names no split", (path / "data.json").string(), name), kRemake);
      const auto file = path / "splits" / (name + ".tokens");
      const Split split = Split::open(file);
      const int64_t pairs = facts.at("pairs");
      if (split.size() != pairs) {
        throw Error(fmt::format("{}: {} pairs, but data.json says {}", file.string(), split.size(), pairs), kRemake);
      }
      const bool blocks = directory.info_.contains("text") && directory.info_["text"].at("block") > 0;
      const Split read = blocks ? split.as_running_text() : split;
      directory.splits_.emplace(name,
                                facts.contains("corpora") ? read.with_corpora(corpora_of(facts["corpora"])) : read);
    }
    return directory;
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: malformed: {}", (path / "data.json").string(), error.what()), kRemake);
  }
}

std::vector<std::string> DataDirectory::split_names() const {
  std::vector<std::string> names;
  for (const auto& [name, facts] : info_.at("splits").items()) names.push_back(name);
  return names;
}

const Split& DataDirectory::split(const std::string& name) const {
  const Split& found = mapped(name);
  found.verify();
  return found;
}

const Split& DataDirectory::mapped(const std::string& name) const {
  if (const auto place = splits_.find(name); place != splits_.end()) return place->second;
  throw Error(fmt::format("{}: no split '{}'", path_.string(), name), "available: " + join(split_names()));
}

std::vector<int32_t> DataDirectory::labels_of(const std::string& name) const {
  if (labels_.empty()) {
    throw Error(fmt::format("{}: data for {} has no labels", path_.string(), task_),
                "create data for classification with `plumb data labels`");
  }
  const std::vector<std::string> lines = lines_of(name, "labels");
  std::unordered_map<std::string_view, int32_t> id_of;
  for (const std::string& label : labels_) id_of.emplace(label, static_cast<int32_t>(id_of.size()));
  std::vector<int32_t> ids;
  ids.reserve(lines.size());
  for (const std::string& line : lines) {
    const auto label = id_of.find(line);
    if (label == id_of.end()) {
      throw Error(fmt::format("{}:{}: '{}' is not among the labels of data.json",
                              (path_ / "splits" / (name + ".labels")).string(), ids.size() + 1, line),
                  kRemake);
    }
    ids.push_back(label->second);
  }
  return ids;
}

std::vector<std::string> DataDirectory::lines_of(const std::string& name, const std::string& ending) const {
  const int64_t pairs = mapped(name).size();
  const auto file = path_ / "splits" / (name + "." + ending);
  std::vector<std::string> lines = read_lines(file, kLogFile);
  if (std::ssize(lines) != pairs) {
    throw Error(fmt::format("{}: {} lines, but {} pairs of tokens", file.string(), lines.size(), pairs), kRemake);
  }
  return lines;
}

}  // namespace plumb
