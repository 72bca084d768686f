#include "plumb/data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <ostream>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

static_assert(std::endian::native == std::endian::little, "splits are little-endian and mapped as they are");

// Followed by source offsets (pairs + 1), target offsets (pairs + 1), source ids and target ids.
struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t checksum;  // CRC-32 of everything after this field
  uint64_t pairs;
  uint64_t source_tokens;
  uint64_t target_tokens;
};
static_assert(sizeof(Header) == 40);

constexpr std::array<char, 8> kMagic = {'P', 'L', 'U', 'M', 'B', 'T', 'O', 'K'};
constexpr uint32_t kVersion = 1;
constexpr size_t kChecked = offsetof(Header, pairs);

Error damaged(const std::filesystem::path& path, const std::string& how) {
  return Error(fmt::format("{}: {}", path.string(), how), "recreate the data directory with `plumb data`");
}

bool well_formed(const uint64_t* offsets, int64_t pairs, int64_t tokens) {
  return offsets[0] == 0 && offsets[pairs] == static_cast<uint64_t>(tokens) &&
         std::is_sorted(offsets, offsets + pairs + 1);
}

struct Side {
  std::vector<uint64_t> offsets{0};
  std::vector<int32_t> ids;

  explicit Side(const std::vector<std::vector<int32_t>>& sequences) {
    for (const auto& sequence : sequences) {
      ids.insert(ids.end(), sequence.begin(), sequence.end());
      offsets.push_back(ids.size());
    }
  }
};

}  // namespace

struct ParallelSplit::File {
  explicit File(const std::filesystem::path& named) : path(named), mapped(named) {}
  std::filesystem::path path;
  MappedFile mapped;
  uint32_t checksum = 0;
  std::mutex mutex;
  bool verified = false;  // under the mutex
};

ParallelSplit ParallelSplit::open(const std::filesystem::path& path) {
  auto file = std::make_shared<File>(path);
  const auto bytes = file->mapped.bytes();
  Header header{};
  if (bytes.size() < sizeof header) throw damaged(path, "truncated: incomplete header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) throw damaged(path, "not a file of token sequences");
  if (header.version != kVersion) {
    throw damaged(
        path, fmt::format("unsupported format version {}; this program reads version {}", header.version, kVersion));
  }
  // Each count is compared with the size first, so that the sum below cannot overflow.
  const uint64_t size = bytes.size();
  const bool plausible = header.pairs < size && header.source_tokens < size && header.target_tokens < size;
  const uint64_t expected =
      plausible ? sizeof header + 16 * (header.pairs + 1) + 4 * (header.source_tokens + header.target_tokens) : 0;
  if (expected != size) {
    throw damaged(path, plausible ? fmt::format("{} bytes instead of {}: truncated or damaged", size, expected)
                                  : "truncated or damaged: its header does not match its size");
  }
  file->checksum = header.checksum;

  ParallelSplit split;
  split.size_ = static_cast<int64_t>(header.pairs);
  split.source_offsets_ = reinterpret_cast<const uint64_t*>(bytes.data() + sizeof header);
  split.target_offsets_ = split.source_offsets_ + header.pairs + 1;
  split.source_ids_ = reinterpret_cast<const int32_t*>(split.target_offsets_ + header.pairs + 1);
  split.target_ids_ = split.source_ids_ + header.source_tokens;
  split.source_tokens_ = static_cast<int64_t>(header.source_tokens);
  split.target_tokens_ = static_cast<int64_t>(header.target_tokens);
  split.file_ = std::move(file);
  return split;
}

void ParallelSplit::verify() const {
  const std::lock_guard lock(file_->mutex);
  if (file_->verified) return;
  if (crc32_of(file_->mapped.bytes().subspan(kChecked)) != file_->checksum) {
    throw damaged(file_->path, "damaged: its checksum is wrong");
  }
  if (!well_formed(source_offsets_, size_, source_tokens_) || !well_formed(target_offsets_, size_, target_tokens_)) {
    throw damaged(file_->path, "damaged: its offsets are out of order");
  }
  file_->verified = true;
}

void write_split(const std::filesystem::path& path, const std::vector<std::vector<int32_t>>& sources,
                 const std::vector<std::vector<int32_t>>& targets) {
  if (sources.size() != targets.size()) {
    throw Error(fmt::format("a split has {} sources but {} targets", sources.size(), targets.size()));
  }
  const Side source(sources);
  const Side target(targets);
  Header header{kMagic, kVersion, 0, sources.size(), source.ids.size(), target.ids.size()};
  const std::array<std::span<const std::byte>, 5> parts = {
      std::as_bytes(std::span(&header, 1)).subspan(kChecked), std::as_bytes(std::span(source.offsets)),
      std::as_bytes(std::span(target.offsets)), std::as_bytes(std::span(source.ids)),
      std::as_bytes(std::span(target.ids))};
  for (const auto part : parts) header.checksum = crc32_of(part, header.checksum);
  write_file_atomic(path, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(&header), kChecked);
    for (const auto part : parts) {
      out.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
    }
  });
}

}  // namespace plumb
