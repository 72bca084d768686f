#include "plumb/base/config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <sstream>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/glossary.h"
#include "plumb/base/input.h"
#include "plumb/base/plugins.h"
#include "plumb/base/text.h"
#include "plumb/base/toml_text.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace {

constexpr const char* kOverride = "--set ";

/// Throws an error at a location: a UsageError if the location is a `--set` on the command line.
[[noreturn]] void fail(const std::string& place, const std::string& message, const std::string& hint = {}) {
  const std::string what = fmt::format("{}: {}", place, message);
  if (place.starts_with(kOverride)) throw UsageError(what, hint);
  throw Error(what, hint);
}

/// A location for messages: file, line and column, or the override it came from.
std::string place(const std::string& name, const toml::source_region& source) {
  if (source.path && source.path->starts_with(kOverride)) return *source.path;
  if (source.begin.line == 0) return name;
  return fmt::format("{}:{}:{}", name, source.begin.line, source.begin.column);
}

/// The end of a string of TOML that begins at `begin`.
size_t end_of_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const std::string_view rest = text.substr(begin);
  const std::string mark(rest.starts_with(std::string(3, quote)) ? 3 : 1, quote);
  for (size_t i = begin + mark.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text.substr(i).starts_with(mark)) {
      return i + mark.size();
    }
  }
  return text.size();
}

/// Whether a key has more than 64 parts, or values nest deeper than that: toml++ reads both by recursion.
bool nests_too_deeply_in_toml(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0, dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(text, i) - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == '.' && ++dots > kDeepest) return true;
    if (c == '\n' || c == '=' || c == ',' || c == '#') dots = 0;
  }
  return false;
}

toml::table parse(std::string_view text, const std::string& name) {
  if (nests_too_deeply_in_toml(text)) throw Error(fmt::format("{}: nested too deeply", name));
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}: {}", place(name, error.source()), error.description()), "the file must be TOML");
  }
}

const toml::node* descend(const toml::table& root, const std::string& path) {
  const toml::node* node = &root;
  for (const std::string& part : split(path, '.')) {
    if (const toml::table* table = node->as_table()) {
      node = table->get(part);
    } else if (const toml::array* array = node->as_array()) {
      size_t index = 0;
      std::from_chars(part.data(), part.data() + part.size(), index);
      node = array->get(index);
    } else {
      node = nullptr;
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

/// A value as it is in the file, text in quotes; "a list" or "a table".
std::string shown(const toml::node& node) {
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  if (const auto text = node.value_exact<std::string>()) return fmt::format("'{}'", *text);
  std::ostringstream text;
  text << toml::node_view<const toml::node>(node);
  return text.str();
}

template <typename T>
constexpr const char* kWanted = "";
template <>
constexpr const char* kWanted<int64_t> = "a whole number";
template <>
constexpr const char* kWanted<double> = "a number";
template <>
constexpr const char* kWanted<bool> = "true or false";
template <>
constexpr const char* kWanted<std::string> = "a string";

/// The violation of a domain by a value of any described type.
template <typename T>
std::optional<Violation> violation(const Domain& domain, const std::string& key, const T& value) {
  if constexpr (std::same_as<T, bool> || std::same_as<T, NamedNumbers>) {
    return {};
  } else {
    return violation_of(domain, key, value);
  }
}
template <typename T>
std::optional<Violation> violation(const Domain& domain, const std::string& key, const std::optional<T>& value) {
  return value ? violation_of(domain, key, *value) : std::nullopt;
}

class TableReader final : public EachField<TableReader> {
 public:
  TableReader(const toml::table* table, std::string section, std::string file)
      : table_(table), section_(std::move(section)), file_(std::move(file)) {}

  template <typename T>
  void take(std::string_view key, T& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    read(*node, key, value);
    if (domain_ == nullptr) return;
    if (const auto found = violation(*domain_, fmt::format("{}.{}", section_, key), value))
      fail(place(file_, node->source()), found->message, found->hint);
  }

  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool) override {
    const toml::node* node = find(key);
    if (node != nullptr && !node->is_table())
      fail(place(file_, node->source()), fmt::format("'{0}' must be a section, [{1}.{0}]", key, section_));
    TableReader inner(node == nullptr ? nullptr : node->as_table(), fmt::format("{}.{}", section_, key), file_);
    visit(inner);
    inner.finish();
  }

  void sections(std::string_view key, size_t, const std::function<void(size_t)>& resize,
                const std::function<void(size_t, Fields&)>& visit) override {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr || !(array->empty() || array->is_homogeneous<toml::table>())) {
      fail(place(file_, node->source()), fmt::format("'{0}' must be sections, [[{1}.{0}]]", key, section_));
    }
    resize(array->size());
    for (size_t i = 0; i < array->size(); ++i) {
      TableReader inner(array->get(i)->as_table(), fmt::format("{}.{}", section_, key), file_);
      visit(i, inner);
      inner.finish();
    }
  }

  void finish() const {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      const std::string name(key.str());
      if (contains(known_, name)) continue;
      fail(place(file_, key.source()),
           fmt::format("unknown {} '{}' in [{}]", node.is_table() ? "section" : "key", name, section_),
           did_you_mean(name, known_, "known keys: " + join(known_)));
    }
  }

 private:
  template <std::same_as<Duration>>
  Duration convert(const toml::node& node, std::string_view key) const {
    const auto text = node.value_exact<std::string>();
    if (!text) return convert<int64_t>(node, key);
    try {
      return Duration::parse(*text);
    } catch (const Error& error) {
      fail(place(file_, node.source()), fmt::format("'{}': {}", key, error.what()), error.hint());
    }
  }

  template <typename T>
  T convert(const toml::node& node, std::string_view key) const {
    if (auto value = node.value_exact<T>()) {
      if constexpr (std::same_as<T, double>) {
        if (!std::isfinite(*value))
          fail(place(file_, node.source()), fmt::format("'{}' must be a finite number, not {}", key, *value));
      }
      return *value;
    }
    if constexpr (std::same_as<T, double>) {
      if (auto integer = node.value_exact<int64_t>()) return static_cast<double>(*integer);
    }
    if constexpr (std::same_as<T, std::string>) {
      if (domain_ != nullptr && domain_->any_type && node.is_value()) {
        std::ostringstream text;
        text << toml::node_view<const toml::node>(node);
        return text.str();
      }
    }
    fail(place(file_, node.source()), fmt::format("'{}' must be {}, not {}", key, kWanted<T>, shown(node)));
  }

  /// A value as the domain's choices write it, "post-ln" for "Post-LN"; the value itself if it means none of them.
  template <typename T>
  T in_choices(T value) const {
    if constexpr (std::same_as<T, std::string>) {
      if (domain_ == nullptr || contains(domain_->choices, value)) return value;
      for (const std::string& choice : domain_->choices)
        if (is_written(choice, value)) return choice;
    }
    return value;
  }

  const toml::node* find(std::string_view key) {
    known_.emplace_back(key);
    return table_ == nullptr ? nullptr : table_->get(key);
  }

  template <typename T>
  void read(const toml::node& node, std::string_view key, T& value) const {
    value = in_choices(convert<T>(node, key));
  }
  template <typename T>
  void read(const toml::node& node, std::string_view key, std::optional<T>& value) const {
    read(node, key, value.emplace());
  }
  template <typename T>
  void read(const toml::node& node, std::string_view key, std::vector<T>& value) const {
    value.clear();
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& element : *array) value.push_back(in_choices(convert<T>(element, key)));
    } else {
      value.push_back(in_choices(convert<T>(node, key)));  // a single value counts as a list of one
    }
  }
  void read(const toml::node& node, std::string_view key, NamedNumbers& value) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(place(file_, node.source()), fmt::format("'{}' must be a table of numbers", key));
    value.clear();
    for (const auto& [name, number] : *table) value.emplace_back(name.str(), convert<double>(number, name.str()));
  }

  const toml::table* table_;
  std::string section_;
  std::string file_;
  std::vector<std::string> known_;
};

class TextWriter final : public EachField<TextWriter> {
 public:
  TextWriter(std::string& text, std::string section) : text_(text), section_(std::move(section)) {}

  template <typename T>
  void take(std::string_view key, const T& value) {
    text_ += fmt::format("{} = {}\n", key, toml_text(value));
  }
  template <typename T>
  void take(std::string_view key, const std::optional<T>& value) {
    if (value) take(key, *value);
  }
  void take(std::string_view key, NamedNumbers& value) {
    inner(key, "[", "]", [&value](Fields& numbers) {
      for (auto& [name, number] : value) numbers(name, number);
    });
  }

  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) override {
    if (written) inner(key, "[", "]", visit);
  }
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>&,
                const std::function<void(size_t, Fields&)>& visit) override {
    for (size_t i = 0; i < count; ++i) inner(key, "[[", "]]", [&](Fields& fields) { visit(i, fields); });
  }

  /// In TOML, nested sections follow all keys of their section.
  void finish() {
    text_ += nested_;
    nested_.clear();
  }

 private:
  void inner(std::string_view key, const char* open, const char* close, const std::function<void(Fields&)>& visit) {
    const std::string name = fmt::format("{}.{}", section_, key);
    nested_ += fmt::format("\n{}{}{}\n", open, name, close);
    TextWriter writer(nested_, name);
    visit(writer);
    writer.finish();
  }

  std::string& text_;
  std::string section_;
  std::string nested_;
};

struct LoadSection {
  std::vector<std::string> load;
};
void describe(Fields& field, LoadSection& libraries) { field("load", libraries.load); }

/// The table at a dotted path, created if missing; null if something other than a table is there.
toml::table* table_at(toml::table& root, const std::string& path, const toml::source_region& source) {
  toml::table* table = &root;
  for (const std::string& part : split(path, '.')) {
    if (!table->contains(part)) table->insert(toml::key(part, toml::source_region(source)), toml::table{});
    table = table->get(part)->as_table();
    if (table == nullptr) return nullptr;
  }
  return table;
}

/// Applies "section.key=value".
void assign(toml::table& root, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  const size_t dot = assignment.substr(0, equals).rfind('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 == equals) {
    throw UsageError(fmt::format("--set {}: expected section.key=value", assignment),
                     "for example --set model.residual=pre-ln");
  }
  if (!is_valid_utf8(assignment)) throw UsageError(fmt::format("--set {}: not valid UTF-8", assignment));
  const std::string path = assignment.substr(0, dot), key = assignment.substr(dot + 1, equals - dot - 1);
  const std::string value = assignment.substr(equals + 1);
  const std::string origin = kOverride + assignment;
  toml::table parsed;
  try {
    parsed = toml::parse("value = " + value, origin);
  } catch (const toml::parse_error&) {
    parsed = toml::parse("value = " + toml_text(value), origin);
  }
  const toml::source_region source{.begin = {1, 1}, .end = {1, 1}, .path = std::make_shared<const std::string>(origin)};
  toml::table* table = table_at(root, path, source);
  if (table == nullptr) throw UsageError(fmt::format("{}: '{}' is not a section", origin, path));
  table->insert_or_assign(toml::key(key, toml::source_region(source)), std::move(*parsed.get("value")));
}

class DomainCheck final : public EachField<DomainCheck> {
 public:
  explicit DomainCheck(std::string section) : section_(std::move(section)) {}

  template <typename T>
  void take(std::string_view key, const T& value) const {
    static const Domain any;
    if (const auto found = violation(domain_ == nullptr ? any : *domain_, fmt::format("{}.{}", section_, key), value))
      throw Error(found->message, found->hint);
  }
  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool) override {
    DomainCheck inner(fmt::format("{}.{}", section_, key));
    visit(inner);
  }
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>&,
                const std::function<void(size_t, Fields&)>& visit) override {
    DomainCheck inner(fmt::format("{}.{}", section_, key));
    for (size_t i = 0; i < count; ++i) visit(i, inner);
  }

 private:
  std::string section_;
};

}  // namespace

/// A copy of a node forgets where it stood, so a document is read again for each assignment.
struct Config::Document {
  std::string text, name;
  std::vector<std::string> libraries;
  std::vector<std::string> assignments;
  toml::table root;
};

Config::Config() : document_(std::make_shared<Document>()) {}

Config Config::parsed(std::string_view toml, const std::string& name, const std::filesystem::path& folder,
                      Libraries libraries) {
  Config config;
  Document document{.text = std::string(toml), .name = name, .root = parse(toml, name)};
  if (const toml::node* load = document.root.get("load")) {
    LoadSection section;
    toml::table only;
    only.insert("load", *load);
    describe(*std::make_unique<TableReader>(&only, "", name), section);
    document.libraries = section.load;
    for (const std::string& library : section.load) {
      try {
        if (libraries == Libraries::required) require_plugin(folder / library);
      } catch (const Error& error) {
        fail(place(name, load->source()), error.what(), error.hint());
      }
    }
    document.root.erase("load");
  }
  config.document_ = std::make_shared<Document>(std::move(document));
  return config;
}

Config Config::from_string(std::string_view toml, const std::string& name, Libraries libraries) {
  return parsed(toml, name, {}, libraries);
}

Config Config::from_file(const std::filesystem::path& path) {
  constexpr InputLimits kLimits{.bytes = kSettingsFile.bytes, .pipes = true};
  return parsed(read_file(path, kLimits), path.string(), path.parent_path(), Libraries::required);
}

void Config::set(const std::string& assignment) {
  const auto changed = std::make_shared<Document>(*document_);
  changed->root = parse(document_->text, document_->name);
  changed->root.erase("load");
  changed->assignments.push_back(assignment);
  for (const std::string& each : changed->assignments) assign(changed->root, each);
  document_ = changed;
}

Config::Reader Config::open(const std::string& name) const {
  const toml::node* node = descend(document_->root, name);
  if (node != nullptr && !node->is_table()) {
    fail(place(document_->name, node->source()), fmt::format("[{}] must be a section", name));
  }
  const toml::table* table = node == nullptr ? nullptr : node->as_table();
  return {std::make_unique<TableReader>(table, name, document_->name), table != nullptr};
}

void Config::Reader::finish() const { static_cast<const TableReader&>(*fields).finish(); }

bool Config::has(const std::string& key) const { return descend(document_->root, key) != nullptr; }

size_t Config::count(const std::string& name) const {
  const toml::node* node = descend(document_->root, name);
  return node != nullptr && node->is_array_of_tables() ? node->as_array()->size() : 0;
}

void Config::allow_only(const std::vector<std::string>& sections) const {
  for (const auto& [key, node] : document_->root) {
    const std::string name(key.str());
    if (contains(sections, name)) continue;
    fail(place(document_->name, key.source()),
         fmt::format("unknown {} '{}'", node.is_table() || node.is_array_of_tables() ? "section" : "key", name),
         did_you_mean(name, sections, "known sections: " + join(sections)));
  }
}

const std::vector<std::string>& Config::libraries() const { return document_->libraries; }

const std::string& Config::name() const { return document_->name; }

ConfigWriter& ConfigWriter::plugins() {
  if (!loaded_plugins().empty()) text_ += fmt::format("load = {}\n", toml_text(loaded_plugins()));
  return *this;
}

void ConfigWriter::write(const std::string& name, const std::function<void(Fields&)>& visit) {
  text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", name);
  TextWriter writer(text_, name);
  visit(writer);
  writer.finish();
}

std::unique_ptr<Fields> domain_check(const std::string& section) { return std::make_unique<DomainCheck>(section); }

}  // namespace plumb
