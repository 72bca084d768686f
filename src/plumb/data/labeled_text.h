// Labeled text as the public data sets have it: a file of lines, each with a label and a sentence or two in columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// What parts the columns of a line. `tab`: quotes are text. `comma`: a field in double quotes may hold commas and,
/// doubled, quotes. `space`: the first space parts two columns.
enum class ColumnSeparator { tab, comma, space };

enum class TextEncoding { utf_8, latin_1 };

/// Where label and text stand in a file. Columns are numbers from 1 or, with a header, names.
struct LabeledTextFormat {
  ColumnSeparator separator = ColumnSeparator::tab;
  bool header = false;                    // the first line names the columns
  std::string label = "1";                // column of the label
  std::vector<std::string> text = {"2"};  // column of the sentence, or of both sentences of a pair
  std::string label_end;                  // the label ends where this text begins: ":" takes NUM from NUM:date
  TextEncoding encoding = TextEncoding::utf_8;
};

struct LabeledExample {
  std::string label;
  std::string first, second;  // the sentences; the second is empty if there is one
  int64_t line = 0;           // in its file, from 1
};

struct LabeledText {
  std::filesystem::path file;
  std::vector<LabeledExample> examples;
};

/// Reads a file; spaces around labels and sentences are cut, blank lines are passed over. Throws Error if the file is
/// missing or has no example, or a line is not valid in the encoding, lacks a column or has an empty label (the line is
/// named).
LabeledText read_labeled_text(const std::filesystem::path& file, const LabeledTextFormat& format);

/// The different labels, sorted.
std::vector<std::string> label_set(const LabeledText& text);

/// Throws Error that names file and line if an example has a label that is not among `labels`.
void check_labels(const LabeledText& text, const std::vector<std::string>& labels);

/// Moves about `examples` examples chosen by `seed` out of `text`, of each label in proportion, and returns them.
/// Examples with the same sentences go the same way, and every label keeps one example at least. Throws Error if none
/// can be moved.
LabeledText hold_out(LabeledText& text, int64_t examples, uint64_t seed);

/// Latin-1 text as UTF-8. The bytes 80 to 9F, which Latin-1 has no characters for, are read as Windows-1252, which is
/// what files called Latin-1 hold.
std::string utf8_of_latin1(std::string_view text);

}  // namespace plumb
