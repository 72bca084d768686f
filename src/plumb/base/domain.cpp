#include "plumb/base/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/text.h"
#include "plumb/base/toml_text.h"

namespace plumb {

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return with_thousands(static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

namespace {

/// "at least 1", "above 0", "at most 1", "in [0, 1)"; empty without bounds.
std::string bounds(const Domain& domain) {
  const bool from = std::isfinite(domain.smallest), to = std::isfinite(domain.largest);
  if (from && to) {
    if (domain.largest == static_cast<double>(kLargestCount) && !domain.above)
      return "at least " + number_text(domain.smallest);
    return fmt::format("in {}{}, {}{}", domain.above ? "(" : "[", number_text(domain.smallest),
                       number_text(domain.largest), domain.below ? ")" : "]");
  }
  if (from) return fmt::format("{} {}", domain.above ? "above" : "at least", number_text(domain.smallest));
  if (to) return fmt::format("{} {}", domain.below ? "below" : "at most", number_text(domain.largest));
  return {};
}

std::optional<Violation> about_number(const Domain& domain, std::string_view key, double value,
                                      const std::string& text) {
  const auto complain = [&](const std::string& rest) {
    return Violation{fmt::format("{} = {} must {}", key, text, rest), {}};
  };
  if (!std::isfinite(value)) return complain("be finite");
  const bool too_small = domain.above ? !(value > domain.smallest) : !(value >= domain.smallest);
  const bool too_large = domain.below ? !(value < domain.largest) : !(value <= domain.largest);
  if (!too_small && !too_large) return {};
  if (too_large && domain.largest == static_cast<double>(kLargestCount))
    return complain("be at most " + number_text(domain.largest));
  const std::string words = bounds(domain);
  return complain(words.starts_with("in ") ? "lie " + words : "be " + words);
}

template <typename T>
Domain with(Domain domain, T Domain::*member, T value) {
  domain.*member = value;
  return domain;
}

}  // namespace

Domain Domain::in(std::string_view the_unit) const { return with(*this, &Domain::unit, the_unit); }
Domain Domain::each_once() const { return at_least_one().no_two_equal(); }
Domain Domain::at_least_one() const { return with(*this, &Domain::filled, true); }
Domain Domain::no_two_equal() const { return with(*this, &Domain::distinct, true); }
Domain Domain::of_any_type() const { return with(*this, &Domain::any_type, true); }
Domain Domain::open_choices(std::string_view the_sign) const {
  return with(with(*this, &Domain::open, true), &Domain::sign, the_sign);
}
Domain Domain::or_value(std::string choice) const {
  Domain changed = *this;
  changed.choices.push_back(std::move(choice));
  return changed;
}

Domain at_least(double smallest) { return {.smallest = smallest}; }
Domain above(double bound) { return {.smallest = bound, .above = true}; }
Domain within(double smallest, double largest) { return {.smallest = smallest, .largest = largest}; }
Domain below_one() { return {.smallest = 0, .largest = 1, .below = true}; }
Domain epsilon() { return within(std::numeric_limits<float>::min(), std::numeric_limits<float>::max()); }
Domain count_from(int64_t smallest) {
  return within(static_cast<double>(smallest), static_cast<double>(kLargestCount));
}
Domain one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

std::optional<Violation> violation_of(const Domain& domain, std::string_view key, int64_t value) {
  return about_number(domain, key, static_cast<double>(value), std::to_string(value));
}

std::optional<Violation> violation_of(const Domain& domain, std::string_view key, double value) {
  return about_number(domain, key, value, fmt::format("{}", value));
}

std::optional<Violation> violation_of(const Domain& domain, std::string_view key, const Duration& value) {
  if (value.unit() == Duration::Unit::steps)
    return about_number(domain, key, static_cast<double>(value.in_steps()), value.text());
  return {};  // tokens and epochs are positive
}

std::optional<Violation> violation_of(const Domain& domain, std::string_view key, const std::string& value) {
  const std::vector<std::string>& choices = domain.choices;
  if (choices.empty() || (domain.open && value.find(domain.sign) != std::string::npos)) return {};
  if (contains(choices, value)) return {};
  const std::string guess = did_you_mean(value, choices);
  if (!domain.kind.empty()) {
    return Violation{fmt::format("unknown {} '{}'", domain.kind, value),
                     fmt::format("{}{}known: {}", guess, guess.empty() ? "" : " ", join(choices))};
  }
  std::vector<std::string> quoted;
  for (const std::string& choice : choices) quoted.push_back(toml_text(choice));
  const std::string last = quoted.back();
  quoted.pop_back();
  return Violation{
      fmt::format("{} = {} must be {}", key, toml_text(value), quoted.empty() ? last : join(quoted) + " or " + last),
      guess};
}

template <typename T>
std::optional<Violation> violation_of(const Domain& domain, std::string_view key, const std::vector<T>& values) {
  if (domain.filled && values.empty()) return Violation{fmt::format("{} is empty", key), "list at least one"};
  for (const T& value : values)
    if (auto violation = violation_of(domain, key, value)) return violation;
  if (!domain.distinct) return {};
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (std::find(values.begin(), value, *value) != value)
      return Violation{fmt::format("{} lists {} twice", key, toml_text(*value)), {}};
  }
  return {};
}
template std::optional<Violation> violation_of(const Domain&, std::string_view, const std::vector<int64_t>&);
template std::optional<Violation> violation_of(const Domain&, std::string_view, const std::vector<double>&);
template std::optional<Violation> violation_of(const Domain&, std::string_view, const std::vector<std::string>&);
template std::optional<Violation> violation_of(const Domain&, std::string_view, const std::vector<Duration>&);

std::string in_words(const Domain& domain) {
  if (!domain.choices.empty() && domain.kind.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& choice : domain.choices) quoted.push_back("`" + choice + "`");
    return join(quoted);
  }
  return bounds(domain);
}

}  // namespace plumb
