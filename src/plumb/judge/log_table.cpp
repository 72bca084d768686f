#include "plumb/judge/log_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/parse_number.h"

namespace plumb {
namespace {

/// What programs call the place in a history, in any case and after any path: "Step", "trainer/global_step".
constexpr std::array<std::string_view, 10> kSteps = {"step", "_step",      "global_step",        "steps",  "iteration",
                                                     "iter", "iterations", "training_iteration", "update", "epoch"};
constexpr std::array<std::string_view, 6> kRuns = {"run", "run_name", "run_id", "name", "id", "experiment"};
constexpr std::array<std::string_view, 5> kRates = {"learning_rate", "lr", "rate", "max_lr", "base_lr"};

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::string_view after_path(std::string_view key) { return key.substr(key.find_last_of("./") + 1); }

/// Whether JSON may have a number that is written so, if it is one.
bool is_written_as_in_json(std::string_view number) {
  const std::string_view digits = number.substr(number.starts_with('-') ? 1 : 0);
  const size_t point = digits.find('.');
  return !digits.empty() && is_decimal(digits[0]) &&
         (digits[0] != '0' || digits.size() == 1 || !is_decimal(digits[1])) &&
         (point == std::string_view::npos || (point + 1 < digits.size() && is_decimal(digits[point + 1])));
}

/// The same JSON with quotes around what stands for a number that is not finite; empty if nothing does.
std::string with_quoted_numbers(std::string_view json) {
  std::string quoted;
  size_t copied = 0;
  for (size_t begin = 0, end = 0; begin < json.size(); begin = end) {
    end = std::min(json.find_first_of("\"{}[]:, \t\r\n", begin), json.size());
    const std::string word(json.substr(begin, end - begin));
    if (const auto number = number_in(word); number && !std::isfinite(*number)) {
      quoted.append(json.substr(copied, begin - copied)).append("\"" + word + "\"");
      copied = end;
    }
    if (end < json.size() && json[end++] == '"') {  // a text, to its end
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      ++end;
    }
  }
  return copied == 0 ? "" : quoted.append(json.substr(copied));
}

}  // namespace

Json parse_log(std::string_view text) {
  Json json = parse_or_discard(text);
  if (!json.is_discarded()) return json;
  const std::string quoted = with_quoted_numbers(text);
  return quoted.empty() ? json : parse_or_discard(quoted);
}

std::optional<double> number_in(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(kBlanks) + 1));
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (!digits.empty() && is_decimal(digits[0])) {
    if (const auto number = parse_number<double>(text)) return number;
  } else if (digits.empty() || std::string_view("+.iInN\n\v\f\r").find(digits[0]) == std::string_view::npos) {
    return {};
  }
  // A Python program may have set a locale in which numbers have a comma.
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string copy(text);
  char* end = nullptr;
  const double value = ::strtod_l(copy.c_str(), &end, plain);
  return end == copy.c_str() + copy.size() ? std::optional(value) : std::nullopt;
}

bool is_missing(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kMissing = {"", "none", "null", "n/a", "na", "-"};
  return text.size() <= 4 && contains(kMissing, lower(text));
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

std::string last_part(std::string_view key) { return lower(after_path(key)); }

bool is_seed_key(std::string_view key) { return after_path(key) == "seed" || after_path(key) == "random_seed"; }

bool is_rate_key(std::string_view key) { return contains(kRates, after_path(key)); }

bool is_run_key(std::string_view key) {
  std::string name = lower(key);
  std::replace(name.begin(), name.end(), ' ', '_');
  return contains(kRuns, name);
}

bool is_state_key(std::string_view key) { return last_part(key) == "state" || last_part(key) == "status"; }

std::optional<size_t> rank_of_step(std::string_view key) {
  const auto* const found = std::find(kSteps.begin(), kSteps.end(), last_part(key));
  return found == kSteps.end() ? std::nullopt : std::optional<size_t>(found - kSteps.begin());
}

/// Reads an object as programs usually write one into a line of a log. Lists, escapes, letters beyond ASCII and
/// mistakes are left to the reader of any JSON.
class LogTable::ObjectReader {
 public:
  ObjectReader(LogTable& table, std::string_view text) : table_(table), text_(text) {}

  bool read() { return object() && next() == '\0' && at_ == text_.size(); }

 private:
  /// The next byte that is no blank; 0 at the end.
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char wanted) {
    const bool found = next() == wanted && at_ < text_.size();
    at_ += found ? 1 : 0;
    return found;
  }

  /// A text in quotes; nothing for one that is not plain.
  std::optional<std::string_view> quoted() {
    if (!take('"')) return {};
    const size_t begin = at_;
    while (at_ < text_.size() && static_cast<signed char>(text_[at_]) >= ' ' && text_[at_] != '\\') {
      if (text_[at_++] == '"') return text_.substr(begin, at_ - 1 - begin);
    }
    return {};
  }

  bool object() {
    constexpr size_t kDeepest = 16;
    if (!take('{') || ++depth_ > kDeepest) return false;
    const size_t prefix = path_.size();
    if (!take('}')) {
      do {
        const auto key = quoted();
        if (!key || !take(':')) return false;
        path_.append(*key);
        if (next() == '{' ? !(path_ += '.', object()) : !leaf()) return false;
        path_.resize(prefix);
      } while (take(','));
      if (!take('}')) return false;
    }
    --depth_;
    return true;
  }

  bool leaf() {
    const uint32_t column = table_.column(path_);
    const size_t latest = table_.columns_[column].latest_cell;
    if (latest >= table_.begin_of_line() && latest < table_.cells_.size() && table_.cells_[latest].column == column)
      return false;  // one key twice
    if (next() == '"') {
      const auto text = quoted();
      if (text) table_.add(column, *text);
      return text.has_value();
    }
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '-' ||
                                  text_[at_] == '+' || text_[at_] == '.'))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "null") return true;
    if (word == "true" || word == "false") {
      table_.add(column, word, {});
      return true;
    }
    const bool is_json = is_written_as_in_json(word);
    const std::optional<double> number = is_json ? parse_number<double>(word) : number_in(word);
    if (!number || is_json != std::isfinite(*number)) return false;
    constexpr size_t kExact = 18;  // digits that any integer may have
    const bool as_written = !is_json || !table_.keeps_text(column) ||
                            (word.size() <= kExact && std::all_of(word.begin(), word.end(), is_decimal));
    table_.add(column, as_written ? word : std::string_view(Json::parse(word).dump()), number);
    return true;
  }

  LogTable& table_;
  std::string_view text_;
  size_t at_ = 0, depth_ = 0;
  std::string path_;
};

uint32_t LogTable::column(std::string_view name) {
  const bool first = cells_.size() == begin_of_line();
  uint32_t* expected = first ? &first_ : &columns_[cells_.back().column].next;
  if (*expected < columns_.size() && columns_[*expected].name == name) return *expected;
  const auto [place, added] = by_name_.try_emplace(std::string(name), static_cast<uint32_t>(columns_.size()));
  *expected = place->second;
  if (!added) return place->second;
  if (columns_.size() == kMost) refuse();
  columns_.push_back(
      {.name = place->first,
       .tells_runs = is_run_key(name) || is_seed_key(name) || is_state_key(name) || contains(keys_, name),
       .is_step = rank_of_step(name).has_value(),
       .is_time = lower(name).find("time") != std::string::npos});
  return place->second;
}

uint32_t LogTable::place_of(Column& column, std::string_view text) {
  if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
  ++column.texts;
  const auto place = static_cast<uint32_t>(texts_.size());
  by_text_.emplace(texts_.emplace_back(text), place);
  return place;
}

void LogTable::add(uint32_t column, std::string_view text, std::optional<double> number) {
  Column& to = columns_[column];
  const bool tells = keeps_text(column) || (!number && !to.is_time && to.texts <= kMost);
  const uint32_t place = tells ? place_of(to, text) : 0;
  to.latest_cell = cells_.size();
  cells_.push_back({.column = column, .is_number = number.has_value(), .text = place, .number = number.value_or(0)});
}

void LogTable::end_line() {
  for (size_t i = begin_of_line(); !has_steps_ && i < cells_.size(); ++i)
    has_steps_ = columns_[cells_[i].column].is_step;
  ends_.push_back(cells_.size());
  if (!has_steps_ && ends_.size() > kMost) refuse();
}

void LogTable::add_leaves(const std::string& prefix, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      add_leaves(name + ".", value);
    } else if (value.is_string()) {
      add(column(name), value.get_ref<const std::string&>());
    } else if (value.is_number()) {
      add(column(name), value.dump(), value.get<double>());
    } else if (value.is_boolean()) {
      add(column(name), value.dump(), {});
    }
  }
}

void LogTable::add_object(const Json& object) {
  add_leaves("", object);
  end_line();
}

bool LogTable::add_json(std::string_view text) {
  if (ObjectReader(*this, text).read()) {
    end_line();
    return true;
  }
  cells_.resize(begin_of_line());
  const Json json = parse_log(text);
  if (json.is_object()) add_object(json);
  return json.is_object();
}

void LogTable::keep_lines(size_t count) {
  ends_.resize(std::min(count, ends_.size()));
  cells_.resize(begin_of_line());
}

std::span<const LogTable::Cell> LogTable::line(size_t i) const {
  const size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::span(cells_).subspan(begin, ends_[i] - begin);
}

void LogTable::refuse() const {
  throw Error(fmt::format("{}: has more than {} columns or runs", name_, kMost),
              "lines are points of a run if a column is called \"step\"");
}

}  // namespace plumb
