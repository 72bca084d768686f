// The keys of a described struct as a list, for documentation: `plumb list` prints it, and a test checks pages with it.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/base/toml_text.h"

namespace plumb {

/// Collects the keys named by a `describe`, with their current values and meanings.
class KeyList final : public EachField<KeyList> {
 public:
  struct Key {
    std::string name;     // in a nested section: "adam.beta1"
    std::string value;    // as TOML
    std::string meaning;  // empty if none is given
    Domain domain = {};
    bool boolean = false;
  };

  [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }

  template <typename T>
  void take(std::string_view key, const T& value) {
    add(key, toml_text(value));
    keys_.back().boolean = std::is_same_v<T, bool>;
  }
  template <typename T>
  void take(std::string_view key, const std::optional<T>&) {
    add(key, {});
  }
  void take(std::string_view key, const NamedNumbers&) { add(key, {}); }
  void section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) override;
  /// An array of sections without elements has no keys.
  void sections(std::string_view key, size_t count, const std::function<void(size_t)>& resize,
                const std::function<void(size_t, Fields&)>& visit) override;

 private:
  void add(std::string_view key, std::string value);

  std::string prefix_;
  std::vector<Key> keys_;
};

/// The keys of a struct that has a `describe`.
template <typename T>
std::vector<KeyList::Key> list_keys(T value) {
  KeyList list;
  describe(static_cast<Fields&>(list), value);
  return list.keys();
}

}  // namespace plumb
