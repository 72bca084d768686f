// Continues text prompts with a language model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/decode/generate.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct GeneratedText : Generated {
  std::string text;  // of the ids, with the spacing that follows the prompt; ends before a stop string
};

/// Called as text arrives, never concurrently.
struct GenerateTextHooks {
  /// More of a sample's text: whole characters, and no part of a stop string.
  std::function<void(size_t prompt, size_t sample, std::string_view text)> text;
  std::function<void(size_t prompt, size_t sample)> end;
};

/// Continues prompts like `generate`; a sample's text ends before the first stop string. Throws Error if the tokenizer
/// and the model have different vocabulary sizes (with whole texts: if the tokenizer's is larger), if a stop string is
/// empty, and for the same reasons as `generate`.
std::vector<GeneratedText> generate_text(Generates& model, const Tokenizer& tokenizer,
                                         const std::vector<std::string>& prompts, const GenerateOptions& options,
                                         const std::vector<std::string>& stop = {},
                                         const GenerateTextHooks& hooks = {});

/// The same for tokenized prompts, without BOS unless they are whole texts.
std::vector<GeneratedText> generate_text_from_ids(Generates& model, const Tokenizer& tokenizer,
                                                  const std::vector<std::vector<int32_t>>& prompts,
                                                  const GenerateOptions& options,
                                                  const std::vector<std::string>& stop = {},
                                                  const GenerateTextHooks& hooks = {});

/// The ids of a prompt: its lines, with EOS between them. Empty lines are dropped, as in training.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, const std::string& prompt);

/// The ids of a prompt as a whole text, with the special tokens that the tokenizer adds; if there are none, BOS or EOS.
std::vector<int32_t> encode_whole_prompt(const Tokenizer& tokenizer, const std::string& prompt);

}  // namespace plumb
