// The names that other tools have for Plumb's keys and variants.
#pragma once

#include <string_view>

namespace plumb {

/// What a word of fairseq, Hugging Face's Trainer and configurations, nanoGPT or Marian is called in Plumb:
/// "warmup_steps" → "warm_up". Case, "-" and "_" make no difference. Empty if the word is not known.
std::string_view name_in_plumb(std::string_view word);

}  // namespace plumb
