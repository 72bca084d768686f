// Generates sequences with a language model: prompts are read at once, then continued token by token.
//
// A sequence begins with BOS (or EOS, without a BOS), like running text in training, followed by the prompt. EOS ends a
// line. A batch reads a prompt once for all of its samples; a sample that has ended leaves the batch. The result for a
// prompt depends on the prompt, the options and the index of the sample, not on the other prompts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/decode/sampling.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/text/specials.h"

namespace plumb {

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t samples = 1;                // per prompt
  int64_t max_tokens = 256;           // per sample, excluding the prompt
  int64_t lines = 1;                  // a sample ends after this many lines; 0: unlimited
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
  int64_t batch_rows = 32;            // samples generated together
  /// Whether prompts are whole texts, as imported models read them: they contain their special tokens, no BOS is added,
  /// and they have at least one token. Then every id below `vocabulary` may be output (0: every id).
  bool whole_texts = false;
  int64_t vocabulary = 0;
  std::vector<int32_t> ends{};  // tokens that end a line; empty: EOS
};

/// Throws Error on invalid values.
void validate(const GenerateOptions& options);

/// Why a sample ended: the model ended its last line; a hook ended it, for example at a stop string; or it reached
/// max_tokens or the model's maximum length.
enum class Finish { end, stop, length };

/// "end", "stop" or "length".
std::string name_of(Finish finish);

struct Generated {
  std::vector<int32_t> ids;  // the tokens after the prompt, without the final EOS
  Finish finish = Finish::length;
  double log_probability = 0;  // Σ log p of these tokens and the final EOS, as given by the model, before any filter
};

/// Called as tokens arrive, never concurrently. Samples are numbered from 0 for each prompt.
struct GenerateHooks {
  std::function<bool(size_t prompt, size_t sample, int32_t id)>
      token;  // a new token; returning false ends the sample with it
  std::function<void(size_t prompt, size_t sample, const Generated& generated)> end;
};

/// Throws Error if the model cannot generate.
Generates& generator_of(Model& model);

/// Continues prompts; unless they are whole texts, they have no special tokens except EOS between lines. Sample s of
/// prompt p is result [p·samples + s]. Except with whole texts, PAD, BOS, the unknown token and the mask are never
/// output. Throws Error on invalid options, a prompt longer than the model can read, an empty whole text, and for the
/// same reasons as Sampler.
std::vector<Generated> generate(Generates& model, const std::vector<std::vector<int32_t>>& prompts,
                                const GenerateOptions& options, const GenerateHooks& hooks = {},
                                const Specials& specials = {});

}  // namespace plumb
