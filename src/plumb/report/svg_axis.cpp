#include "plumb/report/svg_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/text.h"

namespace plumb {
namespace {

std::string signed_text(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

std::string power_of_ten(int exponent) {
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

/// `factor`·10^exponent, as a power of ten unless `plain`.
std::string decade_label(int factor, int exponent, bool plain) {
  if (plain && exponent >= 0) return with_thousands(std::llround(factor * std::pow(10, exponent)));
  if (plain) return fmt::format("{:.{}f}", factor * std::pow(10, exponent), -exponent);
  return (factor == 1 ? "" : fmt::format("{}·", factor)) + power_of_ten(exponent);
}

/// A label with as many decimals as multiples of `step` need; `largest` is the largest size of an axis.
std::string linear_label(double value, double step, double largest) {
  if (std::abs(value) < 1e-6 * step) return "0";
  if (largest >= 1e6 || largest < 1e-3) {
    const int exponent = static_cast<int>(std::floor(std::log10(largest) + 1e-9));
    const double unit = std::pow(10, exponent);
    return linear_label(value / unit, step / unit, largest / unit) + "·" + power_of_ten(exponent);
  }
  int decimals = 0;
  const auto remainder = [&] { return step * std::pow(10, decimals) - std::round(step * std::pow(10, decimals)); };
  while (decimals < 12 && std::abs(remainder()) > 1e-6 * step * std::pow(10, decimals)) ++decimals;
  if (decimals == 0) return signed_text(with_thousands(std::llround(value)));
  return signed_text(fmt::format("{:.{}f}", value, decimals));
}

double round_step(double span, int count) {
  const double rough = span / std::max(count, 1);
  const double magnitude = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * magnitude >= 0.999 * rough) return factor * magnitude;
  }
  return 10 * magnitude;
}

}  // namespace

SvgAxis::SvgAxis(const Json& axis, const std::vector<double>& values, bool from_zero) {
  const auto number = [&](const char* key) {
    const auto found = axis.find(key);
    return found != axis.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  };
  double largest = 0;
  for (const double value : values) largest = std::max(largest, value);
  log_ = axis.value("log", false) && largest > 0;
  whole_ = !values.empty() && std::all_of(values.begin(), values.end(), [](double v) { return v == std::round(v); });
  std::vector<double> places;
  const double floor = number("floor").value_or(1e-12 * largest);
  for (const double value : values) {
    if (log_ && value < floor) continue;
    if (const std::optional<double> place = forward(value)) places.push_back(*place);
  }
  if (places.empty()) places = {0, 1};
  if (from_zero && !log_) places.push_back(0);
  const auto [least, most] = std::minmax_element(places.begin(), places.end());
  const double room = 0.04 * (*most - *least);
  const bool keeps_zero = from_zero && !log_;
  low_ = keeps_zero && *least == 0 ? 0 : *least - room;
  high_ = keeps_zero && *most == 0 ? 0 : *most + room;
  if (number("min")) low_ = forward(*number("min")).value_or(low_);
  if (number("max")) high_ = forward(*number("max")).value_or(high_);
  const double size = std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ > 1e-9 * size) return;
  const double half = size == 0 ? 0.5 : 0.1 * size;  // around a single value
  low_ -= half;
  high_ = low_ + 2 * half;
}

SvgAxis::SvgAxis(size_t categories) : low_(-0.5), high_(static_cast<double>(categories) - 0.5) {}

std::optional<double> SvgAxis::forward(double value) const {
  if (!log_) return value;
  return value > 0 ? std::optional(std::log10(value)) : std::nullopt;
}

std::optional<double> SvgAxis::at(double value) const {
  const std::optional<double> place = forward(value);
  if (!place) return std::nullopt;
  return share(log_ ? std::max(*place, low_) : *place);
}

std::vector<Tick> SvgAxis::ticks(int count) const { return log_ ? log_ticks(count) : linear_ticks(low_, high_, count); }

std::vector<Tick> SvgAxis::linear_ticks(double low, double high, int count) const {
  double step = round_step(high - low, count);
  if (whole_) step = std::max(step == 2.5 ? 2.0 : step, 1.0);
  const double largest = std::max(std::abs(low), std::abs(high));
  std::vector<Tick> ticks;
  for (double k = std::ceil(low / step - 1e-9); k <= std::floor(high / step + 1e-9); ++k) {
    if (const std::optional<double> place = at(k * step))
      ticks.push_back({*place, linear_label(k * step, step, largest)});
  }
  return ticks;
}

std::vector<Tick> SvgAxis::log_ticks(int count) const {
  const double span = high_ - low_;
  if (span < 0.67) return linear_ticks(std::pow(10, low_), std::pow(10, high_), count);
  const bool plain = low_ > -3.05 && high_ < 5.05;
  const int stride = std::max(1, static_cast<int>(std::ceil(span / std::max(count, 2))));
  const auto labeled = [&](int factor, int exponent) {
    return factor == 1 ? exponent % stride == 0 : span < 2.2 && (factor == 2 || factor == 5);
  };
  std::vector<Tick> ticks;
  for (int exponent = static_cast<int>(std::floor(low_)); exponent <= high_; ++exponent) {
    for (int factor = 1; factor < 10; ++factor) {
      const double place = share(exponent + std::log10(factor));
      if (place < -1e-9 || place > 1 + 1e-9 || (span > 6 && factor > 1)) continue;
      ticks.push_back({place, labeled(factor, exponent) ? decade_label(factor, exponent, plain) : ""});
    }
  }
  return ticks;
}

}  // namespace plumb
