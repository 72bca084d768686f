#include "plumb/base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// How durations end, and by how many digits that moves the decimal point.
struct DurationSuffix {
  std::string_view name;
  Duration::Unit unit;
  size_t digits;
};

constexpr std::array kDurationSuffixes = {
    DurationSuffix{"", Duration::Unit::steps, 0},    DurationSuffix{"u", Duration::Unit::steps, 0},
    DurationSuffix{"e", Duration::Unit::epochs, 6},  DurationSuffix{"%", Duration::Unit::runs, 4},
    DurationSuffix{"t", Duration::Unit::tokens, 0},  DurationSuffix{"kt", Duration::Unit::tokens, 3},
    DurationSuffix{"Mt", Duration::Unit::tokens, 6}, DurationSuffix{"Gt", Duration::Unit::tokens, 9},
    DurationSuffix{"Bt", Duration::Unit::tokens, 9}};

/// Amounts have at most this many digits, so that sums of them do not overflow.
constexpr size_t kMostDurationDigits = 15;

constexpr const char* kDurationExamples =
    "examples: 4000 or 4000u (steps), 10Mt or 1.5Gt (target tokens), 2e or 0.5e (epochs), 10% (of the run)";

/// The leading digits of `text`.
std::string_view leading_digits(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) { return c < '0' || c > '9'; });
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

/// An amount with the decimal point `digits` digits from the right.
std::string with_point(int64_t amount, size_t digits) {
  std::string text = fmt::format("{:0{}}", amount, digits + 1);
  if (digits == 0) return text;
  text.insert(text.size() - digits, ".");
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Duration Duration::parse(std::string_view text) {
  const std::string_view whole = leading_digits(text);
  std::string_view rest = text.substr(whole.size());
  std::string_view fraction;
  const bool has_point = rest.starts_with('.');
  if (has_point) {
    fraction = leading_digits(rest.substr(1));
    rest.remove_prefix(1 + fraction.size());
  }
  const auto* const suffix = std::find_if(kDurationSuffixes.begin(), kDurationSuffixes.end(),
                                          [&](const DurationSuffix& each) { return each.name == rest; });
  if (whole.empty() || (has_point && fraction.empty()) || suffix == kDurationSuffixes.end())
    throw Error(fmt::format("'{}' is not a duration", text), kDurationExamples);

  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  if (fraction.size() > suffix->digits) {
    const char* wanted = suffix->unit == Unit::epochs   ? "a number of epochs with at most six decimals"
                         : suffix->unit == Unit::runs   ? "a share of the run with at most four decimals"
                         : suffix->unit == Unit::tokens ? "a whole number of tokens"
                                                        : "a whole number of steps";
    throw Error(fmt::format("'{}' is not {}", text, wanted), kDurationExamples);
  }
  std::string digits = std::string(whole) + std::string(fraction);
  digits.append(suffix->digits - fraction.size(), '0');
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  if (digits.size() > kMostDurationDigits)
    throw Error(fmt::format("'{}' is too long", text), "the limit is 10^15 steps or tokens, or 10^9 epochs");

  Duration duration;
  std::from_chars(digits.data(), digits.data() + digits.size(), duration.amount_);
  if (duration.amount_ > 0) duration.unit_ = suffix->unit;
  return duration;
}

int64_t Duration::in_steps() const {
  if (unit_ != Unit::steps)
    throw Error(fmt::format("'{}' is not a number of steps", text()), "how many it is depends on a run and its data");
  return amount_;
}

std::string Duration::text() const {
  if (unit_ == Unit::steps) return std::to_string(amount_);
  if (unit_ == Unit::epochs) return with_point(amount_, 6) + "e";
  if (unit_ == Unit::runs) return with_point(amount_, 4) + "%";
  if (amount_ >= 1'000'000'000) return with_point(amount_, 9) + "Gt";
  if (amount_ >= 1'000'000) return with_point(amount_, 6) + "Mt";
  if (amount_ >= 1000) return with_point(amount_, 3) + "kt";
  return std::to_string(amount_) + "t";
}

}  // namespace plumb
