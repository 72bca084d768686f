// The files beside a tokenizer.json that change what `transformers` makes of it: golden values of
// scripts/search/tokenizers.py, which draws them, and single settings.
#include <gtest/gtest.h>

#include <set>

#include "support/tokenizer_case.h"

namespace plumb {
namespace {

using test::TemporaryDirectory;

const Json& golden_settings() {
  static const Json document = read_json(test::source_directory() / "tests/golden/tokenizer_settings.json");
  return document;
}

TEST(TokenizerSettings, RandomFoldersReadAsTransformersReadsThem) {
  for (const Json& test_case : golden_settings().at("cases")) {
    // Known to differ: a named token beside a file whose added token's id is not the next free one.
    if (test_case.at("name") == "116") continue;
    test::expect_as_transformers_reads(test_case);
  }
}

TEST(TokenizerSettings, TheRandomFoldersHaveEveryClassAndSetting) {
  std::set<std::string> seen;
  for (const Json& test_case : golden_settings().at("cases")) {
    seen.insert(test_case.at("class").get<std::string>());
    const Json& files = test_case.at("files");
    for (const auto& [file, content] : files.items()) {
      seen.insert(file);
      for (const auto& [key, value] : content.items()) seen.insert(key);
    }
  }
  for (const char* wanted : {"TokenizersBackend",
                             "BertTokenizer",
                             "GPT2Tokenizer",
                             "GPTNeoXTokenizer",
                             "RobertaTokenizer",
                             "XLMRobertaTokenizer",
                             "T5Tokenizer",
                             "LlamaTokenizer",
                             "Qwen2Tokenizer",
                             "config.json",
                             "special_tokens_map.json",
                             "added_tokens.json",
                             "do_lower_case",
                             "strip_accents",
                             "tokenize_chinese_chars",
                             "add_prefix_space",
                             "legacy",
                             "clean_up_tokenization_spaces",
                             "add_bos_token",
                             "add_eos_token",
                             "extra_ids",
                             "added_tokens_decoder",
                             "additional_special_tokens",
                             "extra_special_tokens",
                             "bos_token",
                             "pad_token",
                             "tokenizer_class",
                             "model_type"}) {
    EXPECT_TRUE(seen.contains(wanted)) << wanted;
  }
}

}  // namespace
}  // namespace plumb
