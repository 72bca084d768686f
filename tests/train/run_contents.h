// The files of a run, made comparable: everything except times and the command that wrote them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "plumb/base/input.h"
#include "plumb/base/json.h"

namespace plumb::test {

/// Removes times and commands from a document, and the checksums that depend on them; also the exchanged bytes, which
/// are a mean over the steps that this life has taken since the last point, and where parameters are in pieces not
/// every step exchanges the same.
inline void drop_times(Json& json) {
  if (json.is_array()) {
    for (Json& each : json) drop_times(each);
  }
  if (!json.is_object()) return;
  for (const char* key : {"seconds", "tokens_per_second", "ceiling_fraction", "data_seconds", "exchange_seconds",
                          "exchange_bytes", "checksum", "command"})
    json.erase(key);
  // The mark of metrics.jsonl; the metrics of a point have the same key, and are compared.
  if (json.contains("metrics") && json["metrics"].contains("crc32")) json.erase("metrics");
  for (auto& [key, value] : json.items()) drop_times(value);
}

/// The contents of every file of a run by relative path: JSON without times, anything else byte for byte. Omits
/// environment.jsonl, which records the interruptions, and TensorBoard's files, which are named after times.
inline std::map<std::string, std::string> contents_of_run(const std::filesystem::path& run) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    const std::string name = std::filesystem::relative(entry.path(), run).string();
    if (name == "environment.jsonl" || name.starts_with("events.out.tfevents.")) continue;
    if (entry.is_directory()) {
      contents[name] = "a directory";
      continue;
    }
    std::string content = read_file(entry.path());
    if (entry.path().extension() == ".json") {
      Json json = Json::parse(content, nullptr, /*allow_exceptions=*/false);
      drop_times(json);
      if (!json.is_discarded()) content = json.dump(1);  // damaged documents are compared as they are
    } else if (entry.path().extension() == ".jsonl") {
      std::istringstream lines(content);
      content.clear();
      for (std::string line; std::getline(lines, line);) {
        Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
        drop_times(json);
        content += (json.is_discarded() ? line : json.dump()) + "\n";
      }
    }
    contents[name] = content;
  }
  return contents;
}

/// Expects the same files with the same contents, as returned by contents_of_run.
inline void expect_same_files(const std::map<std::string, std::string>& found,
                              const std::map<std::string, std::string>& wanted) {
  for (const auto& [name, content] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name;
    ASSERT_TRUE(found.at(name) == content) << name << ":\n"
                                           << (name.ends_with(".safetensors") ? "" : found.at(name) + content);
  }
  for (const auto& [name, content] : found) ASSERT_TRUE(wanted.contains(name)) << name;
}

}  // namespace plumb::test
