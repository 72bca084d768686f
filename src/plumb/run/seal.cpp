#include "plumb/run/seal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/parse_number.h"
#include "plumb/trouble/record_fields.h"

namespace plumb {
namespace {

constexpr const char* kChecksum = "checksum";
constexpr std::string_view kOpening =
    "# The last line is a checksum of the others; to accept changes, remove it and this line.\n";
constexpr std::string_view kComment = "# checksum of the lines above: ";

std::string checksum_without_its_own(Json document) {
  document.erase(kChecksum);
  return crc32_text(crc32_of(document.dump()));
}

}  // namespace

void describe(Fields& field, FileMark& mark) {
  auto bytes = static_cast<int64_t>(mark.bytes);
  std::string text = crc32_text(mark.checksum);
  count(field, "bytes", bytes);
  field("crc32", text);
  mark.bytes = static_cast<uint64_t>(bytes);
  const auto checksum = parse_number<uint32_t>(text, 16);
  if (!checksum) throw Error(fmt::format("'{}' is not a checksum", text));
  mark.checksum = *checksum;
}

FileMark mark_of_beginning(const std::filesystem::path& file, uint64_t bytes) {
  const Descriptor in = open_input(file, {.bytes = std::numeric_limits<uint64_t>::max()});
  FileMark mark;
  std::vector<char> block(size_t{1} << 20);
  while (mark.bytes < bytes) {
    const ssize_t count = in.read(block.data(), std::min<uint64_t>(block.size(), bytes - mark.bytes));
    if (count < 0) throw Error(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
    if (count == 0) break;
    mark.checksum = crc32_of(std::string_view(block.data(), static_cast<size_t>(count)), mark.checksum);
    mark.bytes += static_cast<uint64_t>(count);
  }
  return mark;
}

FileMark mark_of(const std::filesystem::path& file) {
  return mark_of_beginning(file, std::numeric_limits<uint64_t>::max());
}

void seal(Json& document) { document[kChecksum] = checksum_without_its_own(document); }

Json read_sealed(const std::filesystem::path& path) {
  Json document = read_json(path);
  const bool sealed = document.is_object() && document.contains(kChecksum);
  if (!sealed || document[kChecksum] != checksum_without_its_own(document))
    throw Error(fmt::format("{}: damaged: its checksum is wrong", path.string()));
  return document;
}

std::string sealed_text(const std::string& text) {
  return fmt::format("{}{}{}{}\n", kOpening, text, kComment, crc32_text(crc32_of(text)));
}

namespace {

/// Whether a text between the comments of sealed_text is unchanged; true without them.
bool is_intact_text(const std::string& text) {
  const size_t begin = text.rfind(kComment);
  const bool opens = text.starts_with(kOpening);
  if (!opens && begin == std::string::npos) return true;
  if (!opens || begin == std::string::npos || begin < kOpening.size()) return false;
  return text == sealed_text(text.substr(kOpening.size(), begin - kOpening.size()));
}

}  // namespace

std::string read_sealed_text(const std::filesystem::path& path) {
  std::string text = read_file(path);
  if (text.empty()) throw Error(fmt::format("{}: is empty", path.string()));
  if (is_intact_text(text)) return text;
  throw Error(fmt::format("{}: was changed: its checksum is wrong", path.string()),
              "undo the change; to accept it, remove the first and the last line, which are about the checksum");
}

}  // namespace plumb
