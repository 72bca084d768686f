// Checksums that documents of a run carry themselves, so that damage does not pass for a result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "plumb/base/json.h"

namespace plumb {

/// The size and the CRC-32 of a file, or of its beginning.
struct FileMark {
  uint64_t bytes = 0;
  uint32_t checksum = 0;

  bool operator==(const FileMark&) const = default;
};

/// {"bytes": …, "crc32": "…"}, and the reverse.
Json to_json(const FileMark& mark);
FileMark file_mark_from_json(const Json& json);

/// The mark of a file as it is on disk, read in pieces. Throws Error if it cannot be read.
FileMark mark_of(const std::filesystem::path& file);

/// The mark of the first `bytes` bytes, or of all of them if there are fewer.
FileMark mark_of_beginning(const std::filesystem::path& file, uint64_t bytes);

/// Sets the key "checksum" of a document to the CRC-32 of everything else in it.
void seal(Json& document);

/// Reads a document. Throws Error if its checksum is wrong. Documents without one are of earlier releases, unless they
/// `always` had one: then they are damaged, too.
Json read_sealed(const std::filesystem::path& path, bool always = false);

/// A text of lines between two comments, the second of which is its checksum, and whether such a text was changed or
/// cut since. One without the comments counts as unchanged, unless it is empty.
std::string sealed_text(const std::string& text);
bool is_intact_text(const std::string& text);

}  // namespace plumb
