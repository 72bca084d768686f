// Configuration: TOML files in which every key is known, with errors that name file, line, column and the closest key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plumb/base/domain.h"
#include "plumb/base/duration.h"

namespace plumb {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// A value that a key may have. A Duration is an integer, which is a number of steps, or a string such as "10Mt"; steps
/// are written as an integer. An optional value may be absent: it is not written then, and not looked for unless it
/// stands in the document. Numbers by name, in this order, are an object: results have them, configurations do not.
using FieldValue =
    std::variant<int64_t*, double*, bool*, std::string*, Duration*, std::vector<int64_t>*, std::vector<double>*,
                 std::vector<std::string>*, std::vector<Duration>*, std::optional<int64_t>*, std::optional<double>*,
                 std::optional<std::vector<double>>*, NamedNumbers*>;

/// Visits the keys of one struct: of a configuration section, or of a result. A struct describes itself once, in
/// `describe(Fields&, Struct&)`; TOML, JSON (base/json_fields.h), checks of its values, error messages, documentation
/// and completion are derived from that.
class Fields {
 public:
  virtual ~Fields() = default;
  template <typename T>
  void operator()(std::string_view key, T& value) {
    visit(key, &value);
  }

  /// The same with the values that the key may have, its unit, and its `meaning`, a phrase for the documentation.
  template <typename T>
  void operator()(std::string_view key, T& value, std::string_view meaning, const Domain& domain = {}) {
    meaning_ = meaning;
    domain_ = &domain;
    (*this)(key, value);
    meaning_ = {};
    domain_ = nullptr;
  }

  /// A section within this one, visited by `visit`. Reading visits it even if it is absent; writing skips it unless
  /// `written`.
  virtual void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) = 0;
  /// A struct with its own `describe`, which is always written.
  template <typename T>
  void section(std::string_view key, T& value) {
    section(
        key, [&value](Fields& inner) { describe(inner, value); }, true);
  }
  /// The same for a struct that may be absent: it is written if it is there, and read if it is in the document.
  template <typename T>
  void section(std::string_view key, std::optional<T>& value) {
    std::optional<T> found;
    const auto visit = [&](Fields& inner) {
      found = value.value_or(T{});
      describe(inner, *found);
    };
    section(key, visit, value.has_value());
    value = std::move(found);
  }

  /// An array of sections within this one, [[section.key]]: when reading, `resize` is called with their number; then
  /// visit(i, fields) is called for each.
  virtual void sections(std::string_view key, size_t count, const std::function<void(size_t)>& resize,
                        const std::function<void(size_t, Fields&)>& visit) = 0;
  template <typename T>
  void sections(std::string_view key, std::vector<T>& items) {
    sections(
        key, items.size(), [&items](size_t count) { items.assign(count, T{}); },
        [&items](size_t i, Fields& inner) { describe(inner, items[i]); });
  }

 protected:
  std::string_view meaning_;        // of the current key; empty if none is given
  const Domain* domain_ = nullptr;  // of the current key; null if any value will do

 private:
  virtual void visit(std::string_view key, FieldValue value) = 0;
};

/// Fields whose values are all treated by a template: `Visitor` has a public take(key, value) for every type.
template <typename Visitor>
class EachField : public Fields {
  void visit(std::string_view key, FieldValue value) final {
    std::visit([&](auto* each) { static_cast<Visitor&>(*this).take(key, *each); }, value);
  }
};

/// What becomes of the libraries that a document needs: they are loaded already or trusted, or nobody asks.
enum class Libraries { required, ignored };

/// A parsed TOML document with the overrides of `--set` applied.
class Config {
 public:
  Config();
  /// Throws Error with file, line and column on malformed TOML, and on keys of more than 64 parts or values that nest
  /// deeper. The key `load` at the top names the shared libraries whose variants other keys may mean; a document never
  /// loads them by itself (see require_plugin in base/plugins.h). Paths in a file are relative to its directory.
  static Config from_file(const std::filesystem::path& path);
  static Config from_string(std::string_view toml, const std::string& name, Libraries libraries = Libraries::required);

  /// Applies "section.key=value"; a value that is not valid TOML is taken as a string. Throws UsageError if the
  /// assignment is malformed.
  void set(const std::string& assignment);

  /// Reads section `name` (dotted for nested ones) into a struct with its `describe`. Missing keys keep their values.
  /// Throws Error on an unknown key (naming the closest), a value of the wrong type or one outside the key's domain.
  /// Returns whether the section is present.
  template <typename T>
  bool read(const std::string& name, T& target) const {
    auto reader = open(name);
    describe(*reader.fields, target);
    reader.finish();
    return reader.present;
  }

  /// Whether the document has this key (dotted: "train.steps").
  [[nodiscard]] bool has(const std::string& key) const;

  /// The number of tables in the array of tables `[[name]]`; read them as sections "name.0", "name.1", ….
  [[nodiscard]] size_t count(const std::string& name) const;

  /// Throws Error if the document has any other top-level section or key.
  void allow_only(const std::vector<std::string>& sections) const;

  /// The libraries that the document needs, as they are written.
  [[nodiscard]] const std::vector<std::string>& libraries() const;

  /// The origin of the document, for messages.
  [[nodiscard]] const std::string& name() const;

 private:
  struct Document;
  struct Reader {
    std::unique_ptr<Fields> fields;
    bool present;
    void finish() const;
  };
  [[nodiscard]] Reader open(const std::string& name) const;
  /// `folder`: what the paths of `load` are relative to.
  static Config parsed(std::string_view toml, const std::string& name, const std::filesystem::path& folder,
                       Libraries libraries);

  std::shared_ptr<const Document> document_;  // shared by copies; a change makes a new one
};

/// Builds a complete TOML file, section by section, with the same `describe` functions.
class ConfigWriter {
 public:
  template <typename T>
  ConfigWriter& section(const std::string& name, T value) {
    write(name, [&value](Fields& fields) { describe(fields, value); });
    return *this;
  }
  /// Adds the key `load`, if libraries are loaded, so that whoever reads the file knows that it needs them.
  ConfigWriter& plugins();
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void write(const std::string& name, const std::function<void(Fields&)>& visit);
  std::string text_;
};

/// The visitor behind `require_valid`.
std::unique_ptr<Fields> domain_check(const std::string& section);

/// Throws Error, naming section and key, unless every value lies in the domain that the struct's `describe` gives it.
/// Reading checks the same, so this is for structs that a program has filled.
template <typename T>
void require_valid(const std::string& section, T value) {
  describe(*domain_check(section), value);
}

}  // namespace plumb
