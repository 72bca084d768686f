// Results as JSON, from the same `describe` that names the keys of a configuration.
#pragma once

#include <string>

#include "plumb/base/config.h"
#include "plumb/base/json.h"

namespace plumb {

/// Writes a described struct into a JSON object. Numbers that are not finite become null, and absent values have no
/// key.
class JsonWriter final : public EachField<JsonWriter> {
 public:
  explicit JsonWriter(Json& object) : object_(object) {}
  template <typename T>
  void take(std::string_view key, const T& value) {
    object_[std::string(key)] = json_of(value);
  }
  template <typename T>
  void take(std::string_view key, const std::optional<T>& value) {
    if (value) take(key, *value);
  }
  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) override;
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>& resize,
                const std::function<void(size_t, Fields&)>& visit) override;

 private:
  template <typename T>
  static Json json_of(const T& value) {
    return value;
  }
  template <typename T>
  static Json json_of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& each : values) list.push_back(json_of(each));
    return list;
  }
  static Json json_of(double value);
  static Json json_of(const Duration& value);
  static Json json_of(const NamedNumbers& values);

  Json& object_;
};

/// Reads what JsonWriter wrote: null is NaN, and an absent optional value stays empty. Keys that the struct does not
/// have are left alone. Throws Error, naming the key, if any other key is missing or has a value of another type.
class JsonReader final : public EachField<JsonReader> {
 public:
  explicit JsonReader(const Json& object) : object_(object) {}
  template <typename T>
  void take(std::string_view key, T& value) {
    read(key, at(key), value);
  }
  template <typename T>
  void take(std::string_view key, std::optional<T>& value) {
    value.reset();
    if (const Json* found = find(key)) read(key, *found, value.emplace());
  }
  /// An absent section is not visited.
  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) override;
  /// Absent sections are none.
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>& resize,
                const std::function<void(size_t, Fields&)>& visit) override;

 private:
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  static void read(std::string_view key, const Json& json, int64_t& value);
  static void read(std::string_view key, const Json& json, double& value);
  static void read(std::string_view key, const Json& json, bool& value);
  static void read(std::string_view key, const Json& json, std::string& value);
  static void read(std::string_view key, const Json& json, Duration& value);
  static void read(std::string_view key, const Json& json, NamedNumbers& value);
  template <typename T>
  static void read(std::string_view key, const Json& json, std::vector<T>& values) {
    if (!json.is_array()) refuse(key, "a list", json);
    values.clear();
    for (const Json& each : json) read(key, each, values.emplace_back());
  }
  [[noreturn]] static void refuse(std::string_view key, const char* wanted, const Json& entry);

  const Json& object_;
};

/// A described struct as a JSON object.
template <typename T>
Json described_json(T value) {
  Json object = Json::object();
  JsonWriter writer(object);
  describe(static_cast<Fields&>(writer), value);
  return object;
}

/// The struct that described_json wrote. Throws Error on anything else.
template <typename T>
T from_described_json(const Json& object) {
  T value{};
  JsonReader reader(object);
  describe(static_cast<Fields&>(reader), value);
  return value;
}

}  // namespace plumb
