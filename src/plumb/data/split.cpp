#include "plumb/data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/data/split_format.h"
#include "plumb/data/split_writer.h"

namespace plumb {
namespace {

Error damaged(const std::filesystem::path& path, const std::string& how) {
  return Error(fmt::format("{}: {}", path.string(), how), "recreate the data directory with `plumb data`");
}

bool well_formed(const uint64_t* offsets, int64_t pairs, int64_t tokens) {
  return offsets[0] == 0 && offsets[pairs] == static_cast<uint64_t>(tokens) &&
         std::is_sorted(offsets, offsets + pairs + 1);
}

}  // namespace

struct Split::File {
  explicit File(const std::filesystem::path& named) : path(named), mapped(named) {}
  std::filesystem::path path;
  MappedFile mapped;
  uint32_t checksum = 0;
  std::mutex mutex;
  bool verified = false;  // guarded by the mutex
};

Split Split::open(const std::filesystem::path& path) {
  using namespace split_format;
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

  Split split;
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

void Split::verify() const {
  const std::lock_guard lock(file_->mutex);
  if (file_->verified) return;
  if (crc32_of(file_->mapped.bytes().subspan(split_format::kChecked)) != file_->checksum) {
    throw damaged(file_->path, "damaged: its checksum is wrong");
  }
  if (!well_formed(source_offsets_, size_, source_tokens_) || !well_formed(target_offsets_, size_, target_tokens_)) {
    throw damaged(file_->path, "damaged: its offsets are out of order");
  }
  file_->verified = true;
}

Split Split::with_corpora(std::vector<CorpusSize> corpora) const {
  int64_t left = size_;
  for (const CorpusSize& corpus : corpora) {
    if (corpus.size <= 0 || corpus.size > left) {
      throw damaged(file_->path,
                    fmt::format("its corpus '{}' cannot have {} of {} pairs", corpus.name, corpus.size, size_));
    }
    left -= corpus.size;
  }
  if (left > 0) throw damaged(file_->path, fmt::format("{} of {} pairs are in no corpus", left, size_));
  Split copy = *this;
  copy.corpora_ = std::move(corpora);
  return copy;
}

uint32_t Split::checksum_of(int64_t first, int64_t count) const {
  uint32_t checksum = 0;
  const auto ids_of = [&](const uint64_t* offsets, const int32_t* ids) {
    for (int64_t i = first; i < first + count; ++i) {
      const uint64_t length = offsets[i + 1] - offsets[i];
      checksum = crc32_of(std::as_bytes(std::span(&length, 1)), checksum);
    }
    checksum = crc32_of(std::as_bytes(std::span(ids + offsets[first], ids + offsets[first + count])), checksum);
  };
  ids_of(source_offsets_, source_ids_);
  ids_of(target_offsets_, target_ids_);
  return checksum;
}

void write_split(const std::filesystem::path& path, const std::vector<std::vector<int32_t>>& sources,
                 const std::vector<std::vector<int32_t>>& targets) {
  if (sources.size() != targets.size()) {
    throw Error(fmt::format("a split has {} sources but {} targets", sources.size(), targets.size()));
  }
  SplitWriter writer(path);
  for (size_t i = 0; i < sources.size(); ++i) writer.add(sources[i], targets[i]);
  writer.finish();
}

}  // namespace plumb
