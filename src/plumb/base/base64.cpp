#include "plumb/base/base64.h"

#include <array>
#include <cstdint>

namespace plumb {
namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text.push_back(kBase64Digits[(bits >> (count - 6)) & 63]);
  }
  if (count > 0) text.push_back(kBase64Digits[(bits << (6 - count)) & 63]);
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  std::array<int, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kBase64Digits.size(); ++i)
    values[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<int>(i);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const int value = values[static_cast<unsigned char>(c)];
    if (value < 0) return {};
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>((bits >> count) & 0xFF));
    }
  }
  return bytes;
}

}  // namespace plumb
