#include "plumb/base/text_encoding.h"

#include <fmt/format.h>

#include <array>

#include "plumb/base/error.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace {

struct OtherFormat {
  std::string_view beginning;
  const char* name;
  const char* hint;
};

using std::string_view_literals::operator""sv;
constexpr std::array kOtherFormats = {
    OtherFormat{"\x1F\x8B"sv, "compressed by gzip", "decompress it first: gunzip"},
    OtherFormat{"BZh91AY&SY"sv, "compressed by bzip2", "decompress it first: bunzip2"},
    OtherFormat{"\xFD"
                "7zXZ"sv,
                "compressed by xz", "decompress it first: unxz"},
    OtherFormat{"\x28\xB5\x2F\xFD"sv, "compressed by Zstandard", "decompress it first: unzstd"},
    OtherFormat{"PK\x03\x04"sv, "a zip archive", "extract its files first: unzip"},
    OtherFormat{"\xFF\xFE"sv, "text in UTF-16", "convert it: iconv -f utf16 -t utf8"},
    OtherFormat{"\xFE\xFF"sv, "text in UTF-16", "convert it: iconv -f utf16 -t utf8"}};

}  // namespace

void require_no_other_format(const std::string& name, std::string_view beginning) {
  for (const OtherFormat& format : kOtherFormats) {
    if (!beginning.starts_with(format.beginning)) continue;
    throw Error(fmt::format("{}: is {}, not text in UTF-8", name, format.name), format.hint);
  }
}

void require_utf8_line(const std::string& name, size_t number, std::string_view line, const std::string& hint) {
  if (is_valid_utf8(line)) return;
  if (number == 1) require_no_other_format(name, line);
  throw Error(fmt::format("{}:{}: not valid UTF-8", name, number), hint);
}

}  // namespace plumb
