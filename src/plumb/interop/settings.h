// config.json of a Hugging Face model: every key must be known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb {

/// A JSON object of settings. A key whose value is null counts as absent. Remembers which keys have been read, so that
/// `require_all_read` finds unknown ones.
class Settings {
 public:
  /// Throws Error if the file is missing or not an object.
  explicit Settings(const std::filesystem::path& file);
  /// `name`: the object's name in messages; `prefix`: precedes its keys there, as in "rope_parameters.".
  Settings(Json object, std::string name, std::string prefix = {});

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] size_t size() const { return object_.size(); }

  /// Whether both have the same keys and values.
  bool operator==(const Settings& other) const { return object_ == other.object_; }

  /// The value of a key, or `fallback` if it is absent. Throws Error, naming the key, if there is neither, or if the
  /// value has another type; an integer counts as a number.
  [[nodiscard]] int64_t integer(const std::string& key, std::optional<int64_t> fallback = {});
  [[nodiscard]] double number(const std::string& key, std::optional<double> fallback = {});
  [[nodiscard]] bool flag(const std::string& key, std::optional<bool> fallback = {});
  [[nodiscard]] std::string text(const std::string& key, const std::optional<std::string>& fallback = {});
  [[nodiscard]] std::vector<std::string> texts(const std::string& key);
  /// A list of integers, or a single integer; empty if it is absent.
  [[nodiscard]] std::vector<int64_t> integers(const std::string& key);
  /// An object; nullopt if it is absent.
  [[nodiscard]] std::optional<Settings> section(const std::string& key);

  /// Throws Error unless the key is absent or has this value, the only one that Plumb's models can compute with.
  void require(const std::string& key, const Json& value);

  /// Accepts keys that do not change what the model computes.
  void ignore(std::initializer_list<const char*> keys);

  /// Throws Error, naming the key, if one was neither read nor ignored.
  void require_all_read() const;

  [[nodiscard]] const std::string& name() const { return name_; }

  /// An error about the value of a key.
  [[nodiscard]] Error unsupported(const std::string& key, const std::string& known) const;

 private:
  /// The value; null if it is absent.
  [[nodiscard]] const Json& value(const std::string& key);
  [[nodiscard]] Error wrong(const std::string& key, const char* wanted) const;

  Json object_;
  std::string name_;
  std::string prefix_;
  std::set<std::string> asked_;
};

}  // namespace plumb
