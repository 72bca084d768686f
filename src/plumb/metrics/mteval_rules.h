// The rules of NIST's mteval-v13a.pl for Western languages, as the tokenizer of BLEU applies them. All concern
// ASCII, so they operate on bytes: no byte of a longer UTF-8 sequence is ASCII.
#pragma once

#include <string>

namespace plumb {

/// Replaces &quot; &amp; &lt; and &gt;, in this order: "&amp;lt;" becomes "<".
void replace_entities(std::string& text);

/// Puts spaces around ASCII punctuation except ' , - and .
std::string separate_marks(const std::string& text);

/// Puts spaces around periods and commas unless there are digits on both sides, and around a dash after a digit.
std::string separate_periods_commas_and_dashes(std::string text);

}  // namespace plumb
