// Lexicon files: one entry per line, with fields separated by two or more spaces; "-" is an empty field, and a line
// that starts with "#" is a comment. A line "name = names" defines a name for a group of kinds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::corpus {

/// The content of lexicon/NAME.txt, which is compiled in. Throws Error if there is no such file.
std::string_view lexicon_text(std::string_view name);

/// The pieces between separators, without surrounding spaces; empty pieces are omitted.
std::vector<std::string> pieces(std::string_view text, std::string_view separator);

/// An entry. Methods throw an Error that names the line if a field is malformed, which is a bug, not a user error.
class Row {
 public:
  Row(std::vector<std::string> fields, std::string where) : fields_(std::move(fields)), where_(std::move(where)) {}

  /// Field i; empty if the line ends before it.
  [[nodiscard]] std::string text(size_t i) const { return i < fields_.size() ? fields_[i] : std::string(); }

  /// The pieces of field i between separators; by default, its words.
  [[nodiscard]] std::vector<std::string> list(size_t i, std::string_view separator = " ") const;

  /// The index of field i in a list of names, as an enumeration.
  template <typename Enum>
  [[nodiscard]] Enum one_of(size_t i, std::initializer_list<std::string_view> names) const {
    return static_cast<Enum>(index_of(text(i), names));
  }

  /// The index of `word` in a list of names.
  [[nodiscard]] size_t index_of(const std::string& word, std::initializer_list<std::string_view> names) const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::vector<std::string> fields_;
  std::string where_;
};

struct LexiconFile {
  std::vector<Row> rows;
  std::vector<Row> groups;  // the group's name, and its members

  explicit LexiconFile(std::string_view name);
};

/// Maps names to bits and groups of bits.
class BitNames {
 public:
  using Group = std::pair<std::string_view, uint64_t>;
  BitNames(std::span<const std::string_view> names, std::initializer_list<Group> groups);

  /// Adds the groups that a file defines.
  void define(const LexiconFile& file);

  /// All bits named in field i of a row; "-name" removes bits, "!name" is ignored.
  [[nodiscard]] uint64_t mask(const Row& row, size_t i) const;

  /// The bits after "!" in field i.
  [[nodiscard]] uint64_t excluded(const Row& row, size_t i) const;

 private:
  [[nodiscard]] uint64_t bits(const Row& row, std::string_view name) const;

  std::map<std::string, uint64_t, std::less<>> bits_;
};

}  // namespace plumb::corpus
