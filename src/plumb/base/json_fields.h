// Results as JSON, from the same `describe` that names the keys of a configuration.
#pragma once

#include <string>
#include <utility>

#include "plumb/base/config.h"
#include "plumb/base/json.h"

namespace plumb {

/// Writes a described struct into a JSON object. Numbers that are not finite become null, and absent values have no
/// key.
class JsonWriter final : public Fields {
 public:
  explicit JsonWriter(Json& object) : object_(object) {}
  using Fields::operator();
  void operator()(std::string_view key, int64_t& value) override { put(key, value); }
  void operator()(std::string_view key, double& value) override;
  void operator()(std::string_view key, bool& value) override { put(key, value); }
  void operator()(std::string_view key, std::string& value) override { put(key, value); }
  void operator()(std::string_view key, Duration& value) override;
  void operator()(std::string_view key, std::vector<Duration>& value) override;
  void operator()(std::string_view key, std::vector<int64_t>& value) override { put(key, value); }
  void operator()(std::string_view key, std::vector<double>& value) override;
  void operator()(std::string_view key, std::vector<std::string>& value) override { put(key, value); }
  void operator()(std::string_view key, std::optional<int64_t>& value) override;
  void operator()(std::string_view key, std::optional<double>& value) override;
  void operator()(std::string_view key, NamedNumbers& value) override;
  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) override;
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>& resize,
                const std::function<void(size_t, Fields&)>& visit) override;

 private:
  void put(std::string_view key, Json value) { object_[std::string(key)] = std::move(value); }
  Json& object_;
};

/// Reads what JsonWriter wrote: null is NaN, and an absent optional value stays empty. Keys that the struct does not
/// have are left alone. Throws Error, naming the key, if any other key is missing or has a value of another type.
class JsonReader final : public Fields {
 public:
  explicit JsonReader(const Json& object) : object_(object) {}
  using Fields::operator();
  void operator()(std::string_view key, int64_t& value) override;
  void operator()(std::string_view key, double& value) override;
  void operator()(std::string_view key, bool& value) override;
  void operator()(std::string_view key, std::string& value) override;
  void operator()(std::string_view key, Duration& value) override;
  void operator()(std::string_view key, std::vector<Duration>& value) override;
  void operator()(std::string_view key, std::vector<int64_t>& value) override;
  void operator()(std::string_view key, std::vector<double>& value) override;
  void operator()(std::string_view key, std::vector<std::string>& value) override;
  void operator()(std::string_view key, std::optional<int64_t>& value) override;
  void operator()(std::string_view key, std::optional<double>& value) override;
  void operator()(std::string_view key, NamedNumbers& value) override;
  /// An absent section is not visited.
  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) override;
  /// Absent sections are none.
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>& resize,
                const std::function<void(size_t, Fields&)>& visit) override;

 private:
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
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
