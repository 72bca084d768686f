// Sequences from a language model: prompts are read at once, then continued token by token.
//
// A sequence begins with BOS, as running text does in training, and goes on with the prompt; an empty prompt is BOS
// alone. EOS ends a line. Samples of one prompt share its reading; a sample that has ended leaves the batch. What comes
// out for a prompt depends on the prompt, the options and the number of the sample, not on the other prompts.
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
  int64_t samples = 1;                // of each prompt
  int64_t max_tokens = 256;           // of a sample, those of the prompt not counted
  int64_t lines = 1;                  // a sample ends at the end of this line; 0: at max_tokens alone
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
  int64_t batch_rows = 32;            // samples that are continued together
};

/// Throws Error on values that generate nothing.
void validate(const GenerateOptions& options);

/// Why a sample ended: the model ended its last line; a hook ended it, at a stop string say; it has max_tokens tokens,
/// or as many positions as the model can read.
enum class Finish { end, stop, length };

/// "end", "stop" or "length".
std::string name_of(Finish finish);

struct Generated {
  std::vector<int32_t> ids;  // what follows the prompt, without the EOS that ended it
  Finish finish = Finish::length;
  double log_probability = 0;  // Σ log p of these tokens, and of that EOS, as the model gives them: before any filter
};

/// Called as tokens come, never by two threads at once. Samples are numbered from 0 for each prompt.
struct GenerateHooks {
  std::function<bool(size_t prompt, size_t sample, int32_t id)> token;  // one more; false: the sample ends with it
  std::function<void(size_t prompt, size_t sample, const Generated& generated)> end;
};

/// Throws Error if the model does not generate, naming what does.
Generates& generator_of(Model& model);

/// Continues prompts, given without specials but for EOS between lines; sample s of prompt p is result
/// [p·samples + s]. PAD, BOS and the unknown token are never put out. Throws Error on a prompt longer than the model
/// can read, and as Sampler does.
std::vector<Generated> generate(Generates& model, const std::vector<std::vector<int32_t>>& prompts,
                                const GenerateOptions& options, const GenerateHooks& hooks = {},
                                const Specials& specials = {});

}  // namespace plumb
