#include "plumb/evaluate/item_files.h"

#include <fmt/format.h>

#include "plumb/base/input.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

/// Throws Error if an item has no choices or its right choice is not one of them.
void check_item(const EvaluationItem& item) {
  if (item.choices.empty()) throw Error("there is nothing to choose from");
  if (item.gold >= item.choices.size())
    throw Error(fmt::format("the right choice is number {} of {}, counted from 0", item.gold, item.choices.size()));
}

}  // namespace

size_t gold_of(const Json& line) {
  const Json& gold = line.at("gold");
  if (gold.is_number_integer() && (gold.is_number_unsigned() || gold.get<int64_t>() >= 0)) return gold.get<size_t>();
  throw Error(fmt::format("gold = {} is not the number of a choice, counted from 0", gold.dump()));
}

int64_t words_between_spaces(std::string_view text) {
  const int64_t inner = std::ssize(split_words(text));
  if (inner == 0) return text.empty() ? 1 : 2;
  const std::u32string characters = to_utf32(text);
  return inner + (is_space(characters.front()) ? 1 : 0) + (is_space(characters.back()) ? 1 : 0);
}

Error error_in_line(const std::filesystem::path& file, int64_t line, const std::string& what) {
  return Error(fmt::format("{}, line {}: {}", file.string(), line, what), "docs/evaluation.md describes the files");
}

std::vector<EvaluationItem> read_items(const std::filesystem::path& file,
                                       const std::function<EvaluationItem(const Json& line)>& take) {
  std::vector<EvaluationItem> items;
  LineReader reader(file);
  while (const auto line = reader.next()) {
    if (without_outer_space(*line).empty()) continue;
    const Json json = parse_or_discard(*line);
    if (!json.is_object()) throw error_in_line(file, reader.count(), "is not a JSON object");
    try {
      items.push_back(take(json));
      check_item(items.back());
    } catch (const nlohmann::json::exception& error) {
      const std::string what = error.what();  // "[json.exception.…] type must be string, but is number"
      throw error_in_line(file, reader.count(), "a value of the wrong type: " + what.substr(what.find("] ") + 2));
    } catch (const Error& error) {
      throw error_in_line(file, reader.count(), error.what());
    }
  }
  return items;
}

}  // namespace plumb
