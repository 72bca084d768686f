#include "plumb/evaluate/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "plumb/base/error.h"
#include "plumb/decode/generate_text.h"

namespace plumb {
namespace {

constexpr size_t kTogether = 32;  // prompts per batch

GenerateOptions generation_of(const CompletionOptions& options, const TextEncoder& encoder) {
  GenerateOptions generation;
  generation.sampling.temperature = 0;
  generation.sampling.repetition_penalty = options.repetition_penalty;
  generation.max_tokens = options.max_tokens;
  generation.precision = options.precision;
  generation.batch_rows = kTogether;
  generation.whole_texts = encoder.kind() == EvaluatedText::whole;
  if (generation.whole_texts) generation.ends = ends_of_answers(encoder.tokenizer(), options.ends, options.until);
  generation.lines = generation.whole_texts ? 1 : 0;
  return generation;
}

/// The part of a text before the first stop string.
std::string before_each(std::string text, const std::vector<std::string>& until) {
  for (const std::string& stop : until) text.resize(std::min(text.find(stop), text.size()));
  return text;
}

/// The id of the special token `name`, one that decodes to no text; −1 if there is no such token.
int32_t special_token(const Tokenizer& tokenizer, const std::string& name) {
  const int32_t id = tokenizer.find(name);
  if (id < 0 || tokenizer.piece(id) != name) return -1;  // some tokenizers find the unknown token
  return tokenizer.decode(std::span(&id, 1)).empty() ? id : -1;
}

/// Indices of the prompts, longest first, so that running out of memory happens early.
std::vector<size_t> longest_first(const std::vector<std::vector<int32_t>>& prompts) {
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return prompts[a].size() > prompts[b].size(); });
  return order;
}

}  // namespace

std::vector<int32_t> ends_of_answers(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                                     const std::vector<std::string>& until) {
  ends.push_back(tokenizer.specials().eos);
  for (const std::string& stop : until) ends.push_back(special_token(tokenizer, stop));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::erase(ends, -1);
  return ends;
}

int64_t room_for_prompt(int64_t max_length, int64_t max_tokens) {
  if (max_tokens < max_length) return max_length - max_tokens;
  throw Error(fmt::format("answers of up to {} tokens leave no room for a prompt in the {} that the model reads",
                          max_tokens, max_length),
              "lower --max-tokens, or max_gen_toks of a task of lm-evaluation-harness");
}

void complete_prompts(Generates& model, const TextEncoder& encoder, const std::vector<std::vector<int32_t>>& prompts,
                      const CompletionOptions& options, const OnAnswer& on_answer, const OnBatch& on_batch) {
  const GenerateOptions generation = generation_of(options, encoder);
  const std::vector<size_t> order = longest_first(prompts);
  for (size_t begin = 0; begin < order.size(); begin += kTogether) {
    const size_t end = std::min(begin + kTogether, order.size());
    std::vector<std::vector<int32_t>> batch;
    for (size_t i = begin; i < end; ++i) batch.push_back(prompts[order[i]]);
    const std::vector<GeneratedText> written =
        generate_text_from_ids(model, encoder.tokenizer(), batch, generation, options.until);
    for (size_t i = begin; i < end; ++i) {
      const GeneratedText& text = written[i - begin];
      Answer answer;
      answer.text =
          generation.whole_texts ? before_each(encoder.tokenizer().decode(text.ids), options.until) : text.text;
      on_answer(order[i], answer);
    }
    if (on_batch) on_batch();
  }
}

}  // namespace plumb
