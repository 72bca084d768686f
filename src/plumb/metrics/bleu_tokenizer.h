// How BLEU cuts a sentence into words. A score is only comparable with scores of the same tokenizer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/registry.h"

namespace plumb {

/// UTF-8 line → its words.
using BleuTokenizer = std::vector<std::string> (*)(std::string_view line);

/// `13a` (mteval-v13a.pl, WMT's default), `intl` (mteval-v14.pl, punctuation and symbols of all scripts), `char`,
/// `none`.
const Registry<BleuTokenizer>& bleu_tokenizers();

}  // namespace plumb
