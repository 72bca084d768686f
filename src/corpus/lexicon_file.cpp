#include "corpus/lexicon_file.h"

#include <algorithm>

#include "plumb/base/error.h"

namespace plumb::corpus {

std::vector<std::string> pieces(std::string_view text, std::string_view separator) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view piece = text.substr(0, end);
    text.remove_prefix(std::min(end + separator.size(), text.size()));
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    if (!piece.empty()) result.emplace_back(piece);
  }
  return result;
}

std::vector<std::string> Row::list(size_t i, std::string_view separator) const { return pieces(text(i), separator); }

size_t Row::index_of(const std::string& word, std::initializer_list<std::string_view> names) const {
  const auto* found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) fail("'" + word + "' is not among the names that may stand here");
  return static_cast<size_t>(found - names.begin());
}

void Row::fail(const std::string& what) const { throw Error(where_ + ": " + what); }

LexiconFile::LexiconFile(std::string_view name) {
  std::string_view rest = lexicon_text(name);
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.empty() || text.starts_with('#')) continue;
    const std::string where = "lexicon/" + std::string(name) + ".txt:" + std::to_string(line);
    if (const size_t equals = text.find(" = "); equals != std::string_view::npos) {
      groups.emplace_back(std::vector{std::string(text.substr(0, equals)), std::string(text.substr(equals + 3))},
                          where);
      continue;
    }
    std::vector<std::string> fields = pieces(text, "  ");
    for (std::string& field : fields) {
      if (field == "-") field.clear();
    }
    rows.emplace_back(std::move(fields), where);
  }
}

BitNames::BitNames(std::span<const std::string_view> names, std::initializer_list<Group> groups) {
  for (size_t i = 0; i < names.size(); ++i) bits_.emplace(names[i], uint64_t{1} << i);
  for (const auto& [name, mask] : groups) bits_.emplace(name, mask);
}

void BitNames::define(const LexiconFile& file) {
  for (const Row& group : file.groups) bits_[group.text(0)] = mask(group, 1);
}

uint64_t BitNames::mask(const Row& row, size_t i) const {
  uint64_t included = 0;
  uint64_t taken_out = 0;
  for (const std::string& word : row.list(i)) {
    if (word.starts_with('!')) continue;
    if (word.starts_with('-')) {
      taken_out |= bits(row, std::string_view(word).substr(1));
    } else {
      included |= bits(row, word);
    }
  }
  return included & ~taken_out;
}

uint64_t BitNames::excluded(const Row& row, size_t i) const {
  uint64_t mask = 0;
  for (const std::string& word : row.list(i)) {
    if (word.starts_with('!')) mask |= bits(row, std::string_view(word).substr(1));
  }
  return mask;
}

uint64_t BitNames::bits(const Row& row, std::string_view name) const {
  const auto found = bits_.find(name);
  if (found == bits_.end()) row.fail("'" + std::string(name) + "' is no known name");
  return found->second;
}

}  // namespace plumb::corpus
