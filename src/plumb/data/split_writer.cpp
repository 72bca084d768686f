#include "plumb/data/split_writer.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/crc32.h"
#include "plumb/base/descriptor.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/data/split_format.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// "DIR/train.tokens" → "DIR/train.tokens.source", after creating DIR.
fs::path spill_prefix(const fs::path& path, const char* side) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  return fs::path(path).concat(std::string(".") + side);
}

}  // namespace

SpillFile::SpillFile(fs::path path) : path_(std::move(path)), out_(path_, std::ios::binary | std::ios::trunc) {
  if (!out_) {
    throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)),
                "check the directory's permissions");
  }
}

SpillFile::~SpillFile() {
  out_.close();
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void SpillFile::append(std::span<const std::byte> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  if (!out_) throw write_failure(path_.string());
  size_ += bytes.size();
}

void SpillFile::read(const std::function<void(std::span<const std::byte>)>& take) {
  out_.flush();
  if (!out_) throw write_failure(path_.string());
  require_regular_file(path_, {.bytes = std::numeric_limits<uint64_t>::max()});
  std::ifstream in(path_, std::ios::binary);
  std::vector<char> block(size_t{1} << 20);
  uint64_t found = 0;
  while (in.read(block.data(), std::ssize(block)) || in.gcount() > 0) {
    const auto count = static_cast<size_t>(in.gcount());
    take(std::as_bytes(std::span(block).first(count)));
    found += count;
  }
  if (found != size_) throw Error(fmt::format("{}: reading failed: {}", path_.string(), std::strerror(errno)));
}

SplitWriter::Side::Side(const fs::path& prefix)
    : offsets(fs::path(prefix).concat(".offsets")), ids(fs::path(prefix).concat(".ids")) {
  const uint64_t first = 0;
  offsets.append(std::as_bytes(std::span(&first, 1)));
}

void SplitWriter::Side::add(std::span<const int32_t> sequence) {
  ids.append(std::as_bytes(sequence));
  tokens += sequence.size();
  offsets.append(std::as_bytes(std::span(&tokens, 1)));
}

SplitWriter::SplitWriter(fs::path path)
    : path_(std::move(path)), source_(spill_prefix(path_, "source")), target_(spill_prefix(path_, "target")) {}

void SplitWriter::add(std::span<const int32_t> source, std::span<const int32_t> target) {
  source_.add(source);
  target_.add(target);
  ++pairs_;
}

void SplitWriter::finish() {
  using namespace split_format;
  Header header{kMagic, kVersion, 0, pairs_, source_.tokens, target_.tokens};
  const auto counts = std::as_bytes(std::span(&header, 1)).subspan(kChecked);
  const std::array<SpillFile*, 4> parts = {&source_.offsets, &target_.offsets, &source_.ids, &target_.ids};
  uint32_t checksum = crc32_of(counts);
  for (SpillFile* part : parts) {
    part->read([&](std::span<const std::byte> block) { checksum = crc32_of(block, checksum); });
  }
  header.checksum = checksum;
  write_file_atomic(path_, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    for (SpillFile* part : parts) {
      part->read([&](std::span<const std::byte> block) {
        out.write(reinterpret_cast<const char*>(block.data()), std::ssize(block));
      });
    }
  });
}

}  // namespace plumb
