// The names that other tools have for Plumb's keys and variants.
#pragma once

#include <string_view>

namespace plumb {

/// What a word of fairseq, Hugging Face's Trainer and configurations, nanoGPT or Marian is called in Plumb:
/// "warmup_steps" → "warm_up". Case, "-" and "_" make no difference. Empty if the word is not known.
std::string_view name_in_plumb(std::string_view word);

/// Whether `word` is how a paper writes the variant `name`: "Post-LN" is post-ln, "RMSNorm" rmsnorm, "ResiDual"
/// residual-dual. Case, spaces, "-" and "_" make no difference.
bool is_written(std::string_view name, std::string_view word);

}  // namespace plumb
