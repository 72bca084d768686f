#include "plumb/metrics/mteval_rules.h"

#include "plumb/base/text.h"
#include "plumb/metrics/substitution.h"

namespace plumb {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_not_digit(char c) { return !is_digit(c); }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }
bool is_dash(char c) { return c == '-'; }

// ASCII punctuation and the space, except the apostrophe and . , - which have their own rules.
bool is_separator(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

}  // namespace

void replace_entities(std::string& text) {
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string separate_marks(const std::string& text) { return space_around(text, is_separator); }

std::string separate_periods_commas_and_dashes(std::string text) {
  text = space_pairs(text, is_not_digit, is_period_or_comma, Detach::second);
  text = space_pairs(text, is_period_or_comma, is_not_digit, Detach::first);
  return space_pairs(text, is_digit, is_dash, Detach::second);
}

}  // namespace plumb
