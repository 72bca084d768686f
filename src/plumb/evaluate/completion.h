// What a language model writes after prompts, token by token the most probable one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/evaluate/scoring.h"
#include "plumb/evaluate/text_encoder.h"
#include "plumb/model/capabilities.h"

namespace plumb {

struct CompletionOptions {
  std::vector<std::string> until;     // the text ends before the first of these strings
  int64_t max_tokens = 256;           // of a text
  std::vector<int32_t> ends;          // tokens of which each ends a text of an imported model, besides EOS
  double repetition_penalty = 1;      // 1: none
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
};

/// The tokens of which each ends what an imported model writes: `ends`; the end of a text that its tokenizer names, at
/// which the harness stops too; and the special tokens among the strings in `until`, which decoding leaves out of the
/// text, so that they are not found there. In order, each once.
std::vector<int32_t> ends_of_answers(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                                     const std::vector<std::string>& until);

/// The tokens that prompts may have so that `max_tokens` more fit into `max_length`. Throws Error if there are none.
int64_t room_for_prompt(int64_t max_length, int64_t max_tokens);

/// Continues prompts, made by TextEncoder::prompt, and answers each with its text. Of an imported model this is the
/// text of the new tokens alone, as the harness decodes them: a space before the first word is there only if the
/// tokenizer keeps it. A model trained by Plumb writes line breaks where it ends a line. Throws Error for the reasons
/// of `generate_text`.
void complete_prompts(Generates& model, const TextEncoder& encoder, const std::vector<std::vector<int32_t>>& prompts,
                      const CompletionOptions& options, const OnAnswer& on_answer, const OnBatch& on_batch = {});

}  // namespace plumb
