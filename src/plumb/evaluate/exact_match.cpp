#include "plumb/evaluate/exact_match.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/utf8.h"
#include "plumb/evaluate/metrics.h"
#include "plumb/metrics/unicode.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb {
namespace {

constexpr const char* kInvalid = "[invalid]";

bool is_letter_of_option(char c) { return c >= 'A' && c <= 'Z'; }

/// Whether "(X)" begins at `place`.
bool is_option_at(std::string_view text, size_t place) {
  return place + 2 < text.size() && text[place] == '(' && is_letter_of_option(text[place + 1]) &&
         text[place + 2] == ')';
}

/// The position of the first "(X)" from `begin` on; npos if there is none.
size_t find_option(std::string_view text, size_t begin) {
  for (size_t place = begin; place + 2 < text.size(); ++place) {
    if (is_option_at(text, place)) return place;
  }
  return std::string_view::npos;
}

/// Converts to lower case and removes the characters of Unicode's category P.
std::string without_punctuation(std::string_view text) {
  constexpr std::u32string_view kSymbols = U"$+<=>^`|~";  // in ASCII, and not in category P
  std::string result;
  for (const char32_t c : to_utf32(to_lower(text))) {
    const bool symbol = kSymbols.find(c) != std::u32string_view::npos;
    if (symbol || !tokenization::is_bert_punctuation(c)) append_character(result, c);
  }
  return result;
}

/// The texts of the options that a question lists, each up to a line break, an opening parenthesis or a caret.
std::vector<std::string> options_in(std::string_view question) {
  std::vector<std::string> options;
  for (size_t place = find_option(question, 0); place != std::string_view::npos;) {
    const size_t begin = place + 3;
    const size_t end = std::min(question.find_first_of("\n^(", begin), question.size());
    options.push_back(without_punctuation(without_outer_space(question.substr(begin, end - begin))));
    place = find_option(question, end);
  }
  return options;
}

std::string letter_of(size_t option) { return {'(', static_cast<char>('A' + option), ')'}; }

/// The letter of the option whose text comes first in `written`; of several that begin there, the longest; of equal
/// texts, the last.
std::optional<std::string> option_by_text(std::string_view written, const std::vector<std::string>& options) {
  const std::string text = without_punctuation(written);
  size_t first = std::string::npos;
  std::string found;
  for (const std::string& option : options) {
    const size_t place = text.find(option);
    if (place == std::string::npos) continue;
    if (place > first || (place == first && option.size() <= found.size())) continue;
    first = place;
    found = option;
  }
  const std::string bare(without_outer_space(found));
  if (bare.empty()) return {};
  const auto same = std::find(options.rbegin(), options.rend(), bare);
  return same == options.rend() ? bare : letter_of(static_cast<size_t>(options.rend() - same) - 1);
}

/// The first letter of one of `count` options after a colon and white space.
std::optional<std::string> option_after_colon(std::string_view written, size_t count) {
  for (size_t colon = written.find(':'); colon != std::string_view::npos; colon = written.find(':', colon + 1)) {
    const std::u32string rest = to_utf32(written.substr(colon + 1));
    const auto letter = std::find_if(rest.begin(), rest.end(), [](char32_t c) { return !is_space(c); });
    if (letter == rest.end() || *letter < U'A' || *letter >= U'A' + count) continue;
    return letter_of(*letter - U'A');
  }
  return {};
}

std::string extracted_option(std::string_view written, std::string_view question) {
  const size_t place = find_option(written, 0);
  if (place != std::string_view::npos) return std::string(written.substr(place, 3));
  const std::vector<std::string> options = options_in(question);
  if (const auto option = option_by_text(written, options)) return *option;
  return option_after_colon(written, options.size()).value_or(kInvalid);
}

/// The first of the words True and False.
std::string extracted_truth(std::string_view written) {
  const std::u32string text = to_utf32(written);
  const auto is_word = [&](size_t i) { return i < text.size() && tokenization::is_word_character(text[i]); };
  for (size_t i = 0; i < text.size(); ++i) {
    for (const std::u32string_view word : {U"True", U"False"}) {
      const bool bounded = (i == 0 || !is_word(i - 1)) && !is_word(i + word.size());
      if (bounded && std::u32string_view(text).substr(i, word.size()) == word) return to_utf8(word);
    }
  }
  return kInvalid;
}

const std::string& written_text(std::span<const Answer> answers) {
  if (!answers[0].text) throw Error("exact_match of an answer that the model did not write");
  return *answers[0].text;
}

std::vector<double> trimmed_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  return {without_outer_space(written_text(answers)) == without_outer_space(item.choices[0]) ? 1.0 : 0.0};
}

std::vector<double> strict_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  return {comparable_text(written_text(answers)) == comparable_text(item.choices[0]) ? 1.0 : 0.0};
}

std::vector<double> flexible_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  const std::string found = extracted_answer(written_text(answers), item.context, item.choices[0]);
  return {comparable_text(found) == comparable_text(item.choices[0]) ? 1.0 : 0.0};
}

const bool kExactMatchRegistered = [] {
  const std::string harness = "lm-evaluation-harness";
  auto& metrics = evaluation_metrics();
  metrics.add("exact_match", "share of items whose written answer, without white space around it, is the right one",
              harness, {trimmed_terms, mean_of_sum});
  metrics.add("exact_match,strict-match",
              "share of items whose whole written answer is the right one, but for case and some punctuation", harness,
              {strict_terms, mean_of_sum});
  metrics.add("exact_match,flexible-extract",
              "share of items whose written answer contains the right option, or truth value, before others", harness,
              {flexible_terms, mean_of_sum});
  return true;
}();

}  // namespace

std::string comparable_text(std::string_view text) {
  // A period before a line break at the end counts as one at the end, as in Python's "\.$".
  const size_t last = text.size() - (text.ends_with('\n') ? 1 : 0);
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool period_at_end = text[i] == '.' && (i + 1 == text.size() || i + 1 == last);
    if (!period_at_end && std::string_view(",\n\\\"").find(text[i]) == std::string_view::npos) result += text[i];
  }
  return to_lower(result);
}

std::string extracted_answer(std::string_view written, std::string_view question, std::string_view target) {
  return target.starts_with('(') ? extracted_option(written, question) : extracted_truth(written);
}

}  // namespace plumb
