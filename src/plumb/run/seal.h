// Checksums embedded in a run's documents, so that damage is noticed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "plumb/base/config.h"
#include "plumb/base/json.h"

namespace plumb {

/// The size and CRC-32 of a file, or of its beginning.
struct FileMark {
  uint64_t bytes = 0;
  uint32_t checksum = 0;

  bool operator==(const FileMark&) const = default;
};

/// {"bytes": …, "crc32": "…"}. Reading throws Error on an invalid mark.
void describe(Fields& field, FileMark& mark);

/// The mark of a file on disk, read in blocks. Throws Error if it cannot be read.
FileMark mark_of(const std::filesystem::path& file);

/// The mark of the first `bytes` bytes, or of the whole file if it is shorter.
FileMark mark_of_beginning(const std::filesystem::path& file, uint64_t bytes);

/// Sets the key "checksum" of a document to the CRC-32 of everything else in it.
void seal(Json& document);

/// Reads a JSON document. Throws Error if its checksum is wrong or missing.
Json read_sealed(const std::filesystem::path& path);

/// Encloses a text of whole lines between two comments, the second with its checksum.
std::string sealed_text(const std::string& text);

/// The content of such a file, comments included. Throws Error if it is empty or has changed; a text without the
/// comments counts as unchanged.
std::string read_sealed_text(const std::filesystem::path& path);

}  // namespace plumb
