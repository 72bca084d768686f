// Greedy completion of prompts by a language model.
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
  int64_t max_tokens = 256;           // per text
  std::vector<int32_t> ends;          // tokens besides EOS that end the text of an imported model
  double repetition_penalty = 1;      // 1: none
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
};

/// The tokens that end the text of an imported model, sorted and without duplicates: `ends`; the tokenizer's EOS, at
/// which the harness stops too; and the special tokens among the strings in `until`, which decoding omits, so that they
/// cannot be found in the text.
std::vector<int32_t> ends_of_answers(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                                     const std::vector<std::string>& until);

/// How many tokens a prompt may have so that `max_tokens` more fit into `max_length`. Throws Error if that is below 1.
int64_t room_for_prompt(int64_t max_length, int64_t max_tokens);

/// Continues prompts made by TextEncoder::prompt; each answer is the generated text. For an imported model, the new
/// tokens are decoded by themselves, as in the harness: a space before the first word is kept only if the tokenizer
/// keeps it. For a model trained by Plumb, EOS becomes a line break. Throws Error for the same reasons as
/// `generate_text`.
void complete_prompts(Generates& model, const TextEncoder& encoder, const std::vector<std::vector<int32_t>>& prompts,
                      const CompletionOptions& options, const OnAnswer& on_answer, const OnBatch& on_batch = {});

}  // namespace plumb
