#include "plumb/base/toml_text.h"

#include <fmt/format.h>

#include "plumb/base/text.h"

namespace plumb {
namespace {

template <typename T>
std::string list_text(const std::vector<T>& values) {
  std::vector<std::string> words;
  for (const T& value : values) words.push_back(toml_text(value));
  return "[" + join(words) + "]";
}

}  // namespace

std::string toml_text(int64_t value) { return std::to_string(value); }

std::string toml_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string toml_text(bool value) { return value ? "true" : "false"; }

std::string toml_text(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {  // TOML forbids other control characters
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_text(const std::vector<int64_t>& values) { return list_text(values); }
std::string toml_text(const std::vector<double>& values) { return list_text(values); }
std::string toml_text(const std::vector<std::string>& values) { return list_text(values); }

}  // namespace plumb
