// Labeled text as in public data sets: each line has a label and one or two sentences in columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// The column separator. `tab`: quotation marks are ordinary text. `comma`: a field in double quotes may contain commas
/// and doubled quotes. `space`: the first space separates the only two columns.
enum class ColumnSeparator { tab, comma, space };

enum class TextEncoding { utf_8, latin_1 };

/// The layout of a file. Columns are given by number, from 1, or with a header by name.
struct LabeledTextFormat {
  ColumnSeparator separator = ColumnSeparator::tab;
  bool header = false;                    // the first line names the columns
  std::string label = "1";                // column of the label
  std::vector<std::string> text = {"2"};  // column of the sentence, or of both sentences of a pair
  std::string label_end;                  // text at which the label ends: with ":", NUM:date is read as NUM
  TextEncoding encoding = TextEncoding::utf_8;
};

struct LabeledExample {
  std::string label;
  std::string first, second;  // the sentences; `second` is empty if there is only one
  int64_t line = 0;           // in the file, from 1
};

struct LabeledText {
  std::filesystem::path file;
  std::vector<LabeledExample> examples;
};

/// Reads a file; surrounding white space is removed from labels and sentences, and blank lines are skipped. Throws
/// Error if the file is missing, has no example or does not fit `format`, or if a line is not valid in the encoding,
/// lacks a column, differs in its number of columns from the first, or has an empty label (the error names the line).
LabeledText read_labeled_text(const std::filesystem::path& file, const LabeledTextFormat& format);

/// Removes examples without text and returns how many there were. Throws Error if none is left.
int64_t drop_empty(LabeledText& text);

/// The distinct labels, sorted.
std::vector<std::string> label_set(const LabeledText& text);

/// Throws Error naming file and line if an example's label is not in `labels`, which must be sorted.
void check_labels(const LabeledText& text, const std::vector<std::string>& labels);

/// Moves at most `examples` examples (less than their number) out of `text` and returns them; they are chosen by `seed`
/// and stratified by label. Examples with the same sentences stay together, and every label keeps at least one example.
/// Throws Error if none can be moved.
LabeledText hold_out(LabeledText& text, int64_t examples, uint64_t seed);

/// Converts Latin-1 text to UTF-8. Bytes 80 to 9F, control codes in Latin-1, are read as Windows-1252, since files
/// labeled Latin-1 usually mean that.
std::string utf8_of_latin1(std::string_view text);

}  // namespace plumb
