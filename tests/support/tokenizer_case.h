// Folders with tokenizers and what `transformers` makes of them, as scripts/search/tokenizers.py writes them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/text/tokenizer_model.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb::test {

/// The tokenizer.json files from which the script draws, by name.
inline const Json& base_tokenizers() {
  static const Json bases = [] {
    const Json document = read_json(source_directory() / "tests/golden/tokenizers.json");
    Json all = Json::object();
    for (const Json& each : document.at("cases")) all[each.at("name").get<std::string>()] = each.at("tokenizer");
    return all;
  }();
  return bases;
}

/// Writes the folder of a case.
inline void write_tokenizer_folder(const Json& test_case, const std::filesystem::path& folder) {
  Json document = base_tokenizers().at(test_case.at("base").get<std::string>());
  for (const auto& [name, section] : test_case.at("sections").items()) document[name] = section;
  for (const auto& [name, value] : test_case.at("model").items()) document["model"][name] = value;
  std::ofstream(folder / "tokenizer.json", std::ios::binary) << document.dump();
  for (const auto& [name, content] : test_case.at("files").items())
    std::ofstream(folder / name, std::ios::binary) << content.dump();
}

/// What the case is, for messages.
inline std::string described(const Json& test_case) {
  return "case " + test_case.at("name").dump() + " (" + test_case.value("class", "refused") + " of " +
         test_case.at("base").dump() + ")\n sections: " + test_case.at("sections").dump() +
         "\n model: " + test_case.at("model").dump() + "\n files: " + test_case.at("files").dump();
}

inline void expect_equal_line(const TokenizerModel& tokenizer, const Json& line) {
  using Ids = std::vector<int32_t>;
  const auto text = line.at("text").get<std::string>();
  EXPECT_EQ(tokenizer.encode(text), line.at("ids").get<Ids>()) << "ids of " << line.at("text");
  EXPECT_EQ(tokenizer.decode(line.at("ids").get<Ids>()), line.at("decoded").get<std::string>())
      << "decoded text of " << line.at("text") << ", ids " << line.at("ids");
  EXPECT_EQ(tokenizer.as_input(tokenizer.encode(text)), line.at("input").get<Ids>()) << "input of " << line.at("text");
}

/// Reads the folder of a case and compares everything. What `transformers` refuses may be refused or read; where it has
/// results, only settings that Plumb does not support may be refused, with a hint.
inline void expect_as_transformers_reads(const Json& test_case) {
  SCOPED_TRACE(described(test_case));
  const TemporaryDirectory folder;
  write_tokenizer_folder(test_case, folder.path());
  std::shared_ptr<const TokenizerModel> tokenizer;
  try {
    tokenizer = load_tokenizer_model(folder.path());
  } catch (const Error& error) {
    if (test_case.contains("error")) return;
    EXPECT_CONTAINS(error.what(), "split_special_tokens");
    EXPECT_NE(error.hint(), "");
    return;
  }
  if (test_case.contains("size")) {
    EXPECT_EQ(tokenizer->vocabulary(), test_case.at("size").get<int64_t>());
  }
  for (const Json& line : test_case.value("lines", Json::array({{{"text", "The ships <s> 船"}, {"error", ""}}}))) {
    try {
      if (line.contains("error")) {
        (void)tokenizer->as_input(tokenizer->encode(line.at("text").get<std::string>()));
      } else {
        expect_equal_line(*tokenizer, line);
      }
    } catch (const Error& error) {
      EXPECT_TRUE(line.contains("error")) << error.what();
    }
  }
}

}  // namespace plumb::test
