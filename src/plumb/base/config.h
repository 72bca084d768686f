// Configuration: TOML files in which every key is known, with errors that name file, line, column and the closest key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/duration.h"

namespace plumb {

/// Visits the keys of one configuration section, either to read them from a file or to write them. A struct describes
/// itself once, in `describe(Fields&, Struct&)`; reading, writing and error messages are derived from that.
class Fields {
 public:
  virtual ~Fields() = default;
  virtual void operator()(std::string_view key, int64_t& value) = 0;
  virtual void operator()(std::string_view key, double& value) = 0;
  virtual void operator()(std::string_view key, bool& value) = 0;
  virtual void operator()(std::string_view key, std::string& value) = 0;
  /// An integer, which is a number of steps, or a string such as "10Mt". Steps are written as an integer.
  virtual void operator()(std::string_view key, Duration& value) = 0;
  virtual void operator()(std::string_view key, std::vector<Duration>& value) = 0;
  virtual void operator()(std::string_view key, std::vector<int64_t>& value) = 0;
  virtual void operator()(std::string_view key, std::vector<double>& value) = 0;
  virtual void operator()(std::string_view key, std::vector<std::string>& value) = 0;

  /// A section within this one, visited by `visit`. Reading visits it even if it is absent; writing skips it unless
  /// `written`.
  virtual void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) = 0;

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

  /// The same with a short `meaning` of the key, for the documentation.
  template <typename T>
  void operator()(std::string_view key, T& value, std::string_view meaning) {
    meaning_ = meaning;
    (*this)(key, value);
    meaning_ = {};
  }

 protected:
  std::string_view meaning_;  // meaning of the current key
};

/// Declares that a key has moved from one dotted path to another. Documents may still use the old one.
bool rename_key(const std::string& from, const std::string& to);

/// A parsed TOML document with the overrides of `--set` applied.
class Config {
 public:
  Config();
  /// Throws Error with file, line and column on malformed TOML.
  static Config from_file(const std::filesystem::path& path);
  static Config from_string(std::string_view toml, const std::string& name);

  Config(const Config&);
  Config& operator=(const Config&);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  /// Applies "section.key=value"; a value that is not valid TOML is taken as a string. Throws UsageError if the
  /// assignment is malformed.
  void set(const std::string& assignment);

  /// Reads section `name` (dotted for nested ones) into a struct with its `describe`. Missing keys keep their values.
  /// Throws Error on an unknown key (naming the closest) or a value of the wrong type. Returns whether the section is
  /// present.
  template <typename T>
  bool read(const std::string& name, T& target) const {
    auto reader = open(name);
    describe(*reader.fields, target);
    reader.finish();
    return reader.present;
  }

  /// The number of tables in the array of tables `[[name]]`; read them as sections "name.0", "name.1", ….
  [[nodiscard]] size_t count(const std::string& name) const;

  /// Throws Error if the document has any other top-level section or key.
  void allow_only(const std::vector<std::string>& sections) const;

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

  std::unique_ptr<Document> document_;
};

/// Builds a complete TOML file, section by section, with the same `describe` functions.
class ConfigWriter {
 public:
  template <typename T>
  ConfigWriter& section(const std::string& name, T value) {
    auto writer = begin(name);
    describe(*writer, value);
    end(*writer);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::unique_ptr<Fields> begin(const std::string& name);
  static void end(Fields& writer);
  std::string text_;
};

}  // namespace plumb
