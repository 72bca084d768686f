// Whether a generated answer is correct.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

/// A text normalized as the harness does for comparisons in BIG-bench Hard: lower case, without a period at the end,
/// and without commas, line breaks, backslashes and double quotes.
std::string comparable_text(std::string_view text);

/// The answer in a generated text, extracted as by the harness's filter "flexible-extract" of BIG-bench Hard. If
/// `target` is an option such as "(B)", the first of these that is found:
///   - the first capital letter in parentheses;
///   - the letter of the option, listed in `question` as "(A) the text", whose text comes first, compared in lower case
///     and without punctuation;
///   - the first letter of an option after a colon.
/// Otherwise, the first word True or False. "[invalid]" if none is found.
std::string extracted_answer(std::string_view written, std::string_view question, std::string_view target);

}  // namespace plumb
