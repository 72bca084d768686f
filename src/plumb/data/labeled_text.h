// Labeled text as in public data sets: lines with a label and one or two sentences in columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// The column separator. `tab`: quotation marks are ordinary text. `comma`: a field in double quotes may contain commas
/// and doubled quotes. `space`: the first space separates two columns.
enum class ColumnSeparator { tab, comma, space };

enum class TextEncoding { utf_8, latin_1 };

/// The columns of label and text in a file. Columns are numbers from 1 or, with a header, names.
struct LabeledTextFormat {
  ColumnSeparator separator = ColumnSeparator::tab;
  bool header = false;                    // the first line names the columns
  std::string label = "1";                // column of the label
  std::vector<std::string> text = {"2"};  // column of the sentence, or of both sentences of a pair
  std::string label_end;                  // the label ends where this text begins: ":" reads NUM from NUM:date
  TextEncoding encoding = TextEncoding::utf_8;
};

struct LabeledExample {
  std::string label;
  std::string first, second;  // the sentences; the second is empty if there is only one
  int64_t line = 0;           // in its file, from 1
};

struct LabeledText {
  std::filesystem::path file;
  std::vector<LabeledExample> examples;
};

/// Reads a file; spaces around labels and sentences are removed, and blank lines are skipped. Throws Error if the file
/// is missing or has no example, or if a line is not valid in the encoding, lacks a column, has a different number
/// of columns from the first one or an empty label (the error names the line).
LabeledText read_labeled_text(const std::filesystem::path& file, const LabeledTextFormat& format);

/// Removes the examples without text, of which nothing can be learned, and returns how many there were. Throws Error if
/// no other is left.
int64_t drop_empty(LabeledText& text);

/// The distinct labels, sorted.
std::vector<std::string> label_set(const LabeledText& text);

/// Throws Error naming file and line if the label of an example is not among `labels`.
void check_labels(const LabeledText& text, const std::vector<std::string>& labels);

/// Moves about `examples` examples, chosen by `seed` and stratified by label, out of `text` and returns them. Examples
/// with the same sentences stay together, and every label keeps at least one example. Throws Error if none can be
/// moved.
LabeledText hold_out(LabeledText& text, int64_t examples, uint64_t seed);

/// Converts Latin-1 text to UTF-8. The bytes 80 to 9F, which have no characters in Latin-1, are read as Windows-1252,
/// since that is what files labeled Latin-1 usually contain.
std::string utf8_of_latin1(std::string_view text);

}  // namespace plumb
