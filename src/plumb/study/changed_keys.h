// What identifies a configuration in the settings of a measurement.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "plumb/base/key_list.h"
#include "plumb/base/options.h"

namespace plumb {

/// The keys of a described struct whose values differ from those in `usual`, one line of TOML each. Keys that the
/// struct gets in later versions of Plumb change nothing, so that stored measurements stay valid.
template <typename T>
std::string changed_keys(const T& value, const T& usual = {}) {
  std::set<std::pair<std::string, std::string>> known;
  for (const KeyList::Key& key : list_keys(usual)) known.emplace(key.name, key.value);
  std::string text;
  for (const KeyList::Key& key : list_keys(value)) {
    if (known.count({key.name, key.value}) == 0) text += key.name + " = " + key.value + '\n';
  }
  return text;
}

/// Options of the variants in a registry, as in a section of a configuration.
template <typename Registry>
struct OptionsOf {
  const Registry* registry;
  VariantOptions options{};
};
template <typename Registry>
void describe(Fields& field, OptionsOf<Registry>& section) {
  describe_options(field, *section.registry, "", section.options);
}

/// Those of a registry's options that differ from their defaults.
template <typename Registry>
std::string changed_options(const Registry& registry, const VariantOptions& options) {
  return changed_keys(OptionsOf<Registry>{&registry, options}, OptionsOf<Registry>{&registry});
}

}  // namespace plumb
