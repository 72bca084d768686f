// The registry of variants, looked up by name. A variant registers itself with one statement in its own file.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/options.h"
#include "plumb/base/text.h"

namespace plumb {

/// What the documentation says of a kind of variant.
struct About {
  std::string title = {};   // "Norms"
  std::string key = {};     // the key that selects a variant, "model.norm", or the command's option
  std::string before = {};  // above the table of variants
  std::string after = {};   // below it
};

/// Remembers a variant that was not added, "norm 'rmsnorm'", since its name is taken: load_plugin() refuses a library
/// that has one.
void note_taken_name(const std::string& variant);

/// Variants of one kind ("norm", "residual scheme", …) by name. `Factory` is any callable that makes one.
template <typename Factory>
class Registry {
 public:
  struct Entry {
    std::string summary;    // one line: the equation or idea
    std::string reference;  // the paper
    Factory make;
    Options options = {};    // with the variant's defaults; empty if it has no options
    std::string title = {};  // "Post-LN", as reports call it; empty: its name
  };

  explicit Registry(std::string kind, About about = {}) : kind_(std::move(kind)), about_(std::move(about)) {}

  /// Registers a variant; returns false if the name is taken.
  bool add(const std::string& name, std::string summary, std::string reference, Factory make, Options options = {}) {
    const bool added =
        entries_.emplace(name, Entry{std::move(summary), std::move(reference), std::move(make), std::move(options)})
            .second;
    if (!added) note_taken_name(kind_ + " '" + name + "'");
    return added;
  }

  /// Gives a registered variant a title; returns false if there is no such variant.
  bool named(const std::string& name, std::string title) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return false;
    found->second.title = std::move(title);
    return true;
  }

  /// A variant's title, or the name itself: of one without a title, or one that is not registered.
  [[nodiscard]] std::string title(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() || found->second.title.empty() ? name : found->second.title;
  }

  /// Throws Error naming the closest known variant.
  const Entry& at(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second;
    const std::string guess = did_you_mean(name, names());
    throw Error(fmt::format("unknown {} '{}'", kind_, name),
                fmt::format("{}{}known: {}", guess, guess.empty() ? "" : " ", join(names())));
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] const About& about() const { return about_; }

 private:
  std::string kind_;
  About about_;
  std::map<std::string, Entry> entries_;
};

/// A factory that passes its arguments on to the variant's constructor.
template <typename Variant>
inline constexpr auto makes =
    [](auto&&... arguments) { return std::make_unique<Variant>(std::forward<decltype(arguments)>(arguments)...); };

}  // namespace plumb
