#include "plumb/base/toml_text.h"

#include <fmt/format.h>

#include <map>

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

std::string toml_text(const Duration& value) {
  return value.unit() == Duration::Unit::steps ? value.text() : toml_text(value.text());
}

std::string toml_text(const std::vector<Duration>& values) { return list_text(values); }
std::string toml_text(const std::vector<int64_t>& values) { return list_text(values); }
std::string toml_text(const std::vector<double>& values) { return list_text(values); }
std::string toml_text(const std::vector<std::string>& values) { return list_text(values); }

std::vector<std::pair<std::string, std::string>> key_values(const std::string& toml) {
  std::vector<std::pair<std::string, std::string>> entries;
  std::map<std::string, int> members;  // indices within arrays of sections
  std::string section;
  for (const std::string& line : split(toml, '\n')) {
    if (line.starts_with("[[") && line.ends_with("]]")) {
      section = line.substr(2, line.size() - 4);
      section += fmt::format(".{}", members[section]++);
    } else if (line.starts_with("[") && line.ends_with("]")) {
      section = line.substr(1, line.size() - 2);
    } else if (const size_t equals = line.find(" = "); equals != std::string::npos) {
      entries.emplace_back(section + "." + line.substr(0, equals), line.substr(equals + 3));
    }
  }
  return entries;
}

}  // namespace plumb
