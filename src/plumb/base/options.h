// Options of a variant: a struct declared and described in the variant's own file, and stored by the code that selects
// the variant. An optimizer with three options is thus a single file, and there is no central table of options.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "plumb/base/config.h"
#include "plumb/base/error.h"

namespace plumb {

/// A value of any struct that has a `describe(Fields&, Struct&)`; empty for a variant without options.
class Options {
 public:
  Options() = default;
  template <typename T>
  explicit Options(T value) : held_(std::make_unique<Held<T>>(std::move(value))) {}
  Options(const Options& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  Options& operator=(const Options& other) {
    held_ = other.held_ ? other.held_->copy() : nullptr;
    return *this;
  }
  Options(Options&&) noexcept = default;
  Options& operator=(Options&&) noexcept = default;
  ~Options() = default;

  [[nodiscard]] explicit operator bool() const { return held_ != nullptr; }

  void visit(Fields& field) {
    if (held_) held_->visit(field);
  }

  /// The struct if it is of this type, otherwise null.
  template <typename T>
  [[nodiscard]] T* find() {
    auto* held = dynamic_cast<Held<T>*>(held_.get());
    return held == nullptr ? nullptr : &held->value;
  }
  template <typename T>
  [[nodiscard]] const T* find() const {
    const auto* held = dynamic_cast<const Held<T>*>(held_.get());
    return held == nullptr ? nullptr : &held->value;
  }

  /// The struct. Throws Error if the options hold another type: those of another variant.
  template <typename T>
  [[nodiscard]] const T& as() const {
    const auto* held = dynamic_cast<const Held<T>*>(held_.get());
    if (held == nullptr) throw Error("the options belong to another variant");
    return held->value;
  }

  bool operator==(const Options& other) const { return text() == other.text(); }

 private:
  struct Any {
    virtual ~Any() = default;
    [[nodiscard]] virtual std::unique_ptr<Any> copy() const = 0;
    virtual void visit(Fields& field) = 0;
    [[nodiscard]] virtual std::string text() const = 0;
  };
  template <typename T>
  struct Held final : Any {
    explicit Held(T v) : value(std::move(v)) {}
    [[nodiscard]] std::unique_ptr<Any> copy() const override { return std::make_unique<Held>(value); }
    void visit(Fields& field) override { describe(field, value); }
    [[nodiscard]] std::string text() const override { return ConfigWriter().section("options", value).text(); }
    T value;
  };
  [[nodiscard]] std::string text() const { return held_ ? held_->text() : std::string(); }

  std::unique_ptr<Any> held_;
};

inline void describe(Fields& field, Options& options) { options.visit(field); }

/// Options by the name of their variant: the sections [model.favor], [train.adam] and so on.
using VariantOptions = std::map<std::string, Options>;

/// Visits the sections of all variants in a registry that have options. The section of the `chosen` variant is always
/// written, the others only if they differ from the defaults.
template <typename Registry>
void describe_options(Fields& field, const Registry& registry, const std::string& chosen, VariantOptions& options) {
  for (const auto& [name, entry] : registry.entries()) {
    if (!entry.options) continue;
    Options& own = options.try_emplace(name, entry.options).first->second;
    field.section(
        name, [&own](Fields& inner) { own.visit(inner); }, name == chosen || !(own == entry.options));
  }
}

/// The options of one variant: the given ones, or its defaults.
template <typename Entry>
[[nodiscard]] const Options& options_of(const VariantOptions& given, const std::string& name, const Entry& entry) {
  const auto found = given.find(name);
  return found == given.end() ? entry.options : found->second;
}

/// Makes a variant of a registry with its options, those in `given` or its defaults. Throws Error if there is no such
/// variant or, naming the option "SECTION.NAME.KEY", if one is not valid. `section`: with a point at its end.
template <typename Variants, typename... Arguments>
[[nodiscard]] auto make_variant(const Variants& variants, const std::string& section, const std::string& name,
                                const VariantOptions& given, Arguments&&... arguments) {
  const auto& entry = variants.at(name);
  const Options& own = options_of(given, name, entry);
  require_valid(section + name, own);
  return entry.make(std::forward<Arguments>(arguments)..., own);
}

}  // namespace plumb
