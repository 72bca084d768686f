#include "plumb/data/labeled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/random.h"
#include "plumb/base/text.h"
#include "plumb/base/text_encoding.h"
#include "plumb/base/utf8.h"
#include "plumb/data/trim.h"

namespace plumb {
namespace {

/// The columns of a line.
Record columns_of(std::string_view line, ColumnSeparator separator, RecordParser& parser) {
  if (separator != ColumnSeparator::space) return parser.add(line).value();
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return {std::string(line)};
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

/// The index of a column that is given by its name in `header` or its number.
size_t column_index(const std::string& column, const std::optional<Record>& header, const std::filesystem::path& file) {
  if (header) {
    const auto named = std::find(header->begin(), header->end(), column);
    if (named != header->end()) return static_cast<size_t>(named - header->begin());
  }
  if (const size_t number = parse_number<size_t>(column).value_or(0); number > 0) return number - 1;
  if (!header) {
    throw Error(fmt::format("column '{}' is not a number from 1", column), "to select columns by name, use --header");
  }
  throw Error(fmt::format("{}: no column '{}'", file.string(), column), "available: " + join(*header));
}

/// The lines of a file as UTF-8, without line ends.
std::vector<std::string> lines_of(const std::filesystem::path& file, TextEncoding encoding) {
  std::string content = read_file(file, kNamedInput);
  require_no_other_format(file.string(), content);
  if (encoding == TextEncoding::latin_1) content = utf8_of_latin1(content);
  std::vector<std::string> lines = split(without_byte_order_mark(content), '\n');
  if (lines.back().empty()) lines.pop_back();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_with('\r')) lines[i].pop_back();
    require_utf8_line(file.string(), i + 1, lines[i], "if the file is Latin-1, pass --encoding latin-1");
  }
  return lines;
}

/// How many examples of each label to hold out, for `wanted` < `total`: proportional, never all, and rounded to a sum
/// of `wanted` or, where that would take all of a label, less.
std::map<std::string, int64_t> quotas_of(const std::map<std::string, int64_t>& counts, int64_t total, int64_t wanted) {
  std::map<std::string, int64_t> quotas;
  std::vector<std::pair<int64_t, std::string>> remainders;  // of the division by `total`
  int64_t left = wanted;
  for (const auto& [label, count] : counts) {
    quotas[label] = wanted * count / total;
    left -= quotas[label];
    remainders.emplace_back(-(wanted * count % total), label);
  }
  std::sort(remainders.begin(), remainders.end());
  for (const auto& [remainder, label] : remainders) {
    if (left > 0 && quotas[label] < counts.at(label) - 1) {
      ++quotas[label];
      --left;
    }
  }
  return quotas;
}

}  // namespace

LabeledText read_labeled_text(const std::filesystem::path& file, const LabeledTextFormat& format) {
  const std::vector<std::string> lines = lines_of(file, format.encoding);
  LabeledText text{file, {}};
  RecordParser parser(file.string(), format.separator == ColumnSeparator::comma ? ',' : '\t',
                      RecordParser::AfterQuotes::error);
  std::optional<Record> header;
  if (format.header && !lines.empty()) {
    header = columns_of(lines.front(), format.separator, parser);
    for (std::string& name : *header) name = trim(name);
  }
  const size_t label_column = column_index(format.label, header, file);
  std::vector<size_t> text_columns;
  for (const std::string& column : format.text) text_columns.push_back(column_index(column, header, file));
  if (text_columns.empty() || text_columns.size() > 2) {
    throw Error(fmt::format("an example cannot have {} sentences", text_columns.size()),
                "--text names one column, or two for pairs of sentences");
  }
  size_t first_columns = header ? header->size() : 0;  // columns of the first line
  size_t wanted = label_column + 1;
  for (const size_t column : text_columns) wanted = std::max(wanted, column + 1);
  for (size_t i = header ? 1 : 0; i < lines.size(); ++i) {
    const Record fields = columns_of(lines[i], format.separator, parser);
    if (is_blank(lines[i])) continue;
    const std::string position = fmt::format("{}:{}", file.string(), i + 1);
    if (fields.size() < wanted) {
      throw Error(fmt::format("{}: {} column{}, but column {} is needed", position, fields.size(),
                              fields.size() == 1 ? "" : "s", wanted),
                  "check --separator, --label and --text");
    }
    if (first_columns == 0) first_columns = fields.size();
    if (fields.size() != first_columns && format.separator != ColumnSeparator::space) {
      throw Error(fmt::format("{}: {} columns, but the first line has {}", position, fields.size(), first_columns),
                  "check --separator; a text that contains it must be quoted (--separator comma) or changed");
    }
    const std::string& whole = fields[label_column];
    std::string label = trim(format.label_end.empty() ? whole : whole.substr(0, whole.find(format.label_end)));
    if (label.empty()) throw Error(position + ": the label is empty", "--label selects its column");
    text.examples.push_back({std::move(label), trim(fields[text_columns[0]]),
                             text_columns.size() > 1 ? trim(fields[text_columns[1]]) : std::string(),
                             static_cast<int64_t>(i) + 1});
  }
  if (text.examples.empty()) {
    throw Error(fmt::format("{}: contains no examples", file.string()), "each line must have a label and text");
  }
  return text;
}

int64_t drop_empty(LabeledText& text) {
  const auto dropped = static_cast<int64_t>(std::erase_if(
      text.examples, [](const LabeledExample& example) { return example.first.empty() && example.second.empty(); }));
  if (text.examples.empty()) throw Error(fmt::format("{}: no example has any text", text.file.string()));
  return dropped;
}

std::vector<std::string> label_set(const LabeledText& text) {
  std::set<std::string> labels;
  for (const LabeledExample& example : text.examples) labels.insert(example.label);
  return {labels.begin(), labels.end()};
}

void check_labels(const LabeledText& text, const std::vector<std::string>& labels) {
  for (const LabeledExample& example : text.examples) {
    if (std::binary_search(labels.begin(), labels.end(), example.label)) continue;
    throw Error(
        fmt::format("{}:{}: no training example has the label '{}'", text.file.string(), example.line, example.label),
        did_you_mean(example.label, labels, "the labels of the training text are: " + join(labels)));
  }
}

LabeledText hold_out(LabeledText& text, int64_t examples, uint64_t seed) {
  using Sentences = std::pair<std::string_view, std::string_view>;
  std::map<std::string, int64_t> counts;
  std::map<Sentences, size_t> group_of;
  std::vector<std::vector<size_t>> groups;  // examples with the same sentences, in order of first appearance
  for (size_t i = 0; i < text.examples.size(); ++i) {
    const LabeledExample& example = text.examples[i];
    ++counts[example.label];
    const auto [entry, is_new] = group_of.emplace(Sentences(example.first, example.second), groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(i);
  }
  std::map<std::string, int64_t> left = quotas_of(counts, std::ssize(text.examples), examples);
  Random(seed, "hold out").shuffle(groups);
  std::vector<bool> is_held(text.examples.size());
  for (const auto& group : groups) {
    std::map<std::string, int64_t> needed;
    for (const size_t i : group) ++needed[text.examples[i].label];
    const bool fits =
        std::all_of(needed.begin(), needed.end(), [&](const auto& need) { return need.second <= left[need.first]; });
    if (!fits) continue;
    for (const auto& [label, count] : needed) left[label] -= count;
    for (const size_t i : group) is_held[i] = true;
  }
  LabeledText rest{text.file, {}};
  LabeledText held{text.file, {}};
  for (size_t i = 0; i < text.examples.size(); ++i) {
    (is_held[i] ? held : rest).examples.push_back(std::move(text.examples[i]));
  }
  text = std::move(rest);
  if (held.examples.empty()) {
    throw Error("no validation examples can be held out: every label or text has too few examples",
                "give a larger --valid-size, or a validation file with --valid");
  }
  return held;
}

std::string utf8_of_latin1(std::string_view text) {
  // Windows-1252 from 80 to 9F; undefined bytes map to themselves.
  constexpr std::array<uint16_t, 32> kWindows = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                                 0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    append_character(result, byte >= 0x80 && byte < 0xA0 ? kWindows[byte - 0x80] : byte);
  }
  return result;
}

}  // namespace plumb
