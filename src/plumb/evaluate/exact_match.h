// Whether a written answer is the right one.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

/// A text as the harness compares those of BIG-bench Hard: in lower case, without a period at its end, and without
/// commas, line breaks, backslashes and double quotes.
std::string comparable_text(std::string_view text);

/// The answer that a text of a model contains, as the harness's filter "flexible-extract" of BIG-bench Hard finds it.
/// If `target` is an option, "(B)", the first of these that there is:
///   - the first letter in parentheses;
///   - the first text of an option that `question` lists, by its letter: "(A) the text", in lower case and without
///     punctuation;
///   - the first letter of an option after a colon.
/// Otherwise the first word True or False. "[invalid]" if there is nothing of the kind.
std::string extracted_answer(std::string_view written, std::string_view question, std::string_view target);

}  // namespace plumb
