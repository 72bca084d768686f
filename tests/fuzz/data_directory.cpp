// A data directory: data.json, the labels and the text of a split, and its tokens, with the right checksum. An accepted
// directory can be read in full.
#include "plumb/data/directory.h"

#include <cstring>
#include <string>

#include "folder.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"

namespace {

constexpr const char* kTokenizer =
    R"({"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}})";

std::string with_checksum(std::string_view tokens) {
  constexpr size_t kBeforeChecksum = 12, kChecked = 16;
  std::string bytes(tokens);
  if (bytes.size() > kChecked) {
    const uint32_t sum = plumb::crc32_of(std::string_view(bytes).substr(kChecked));
    std::memcpy(bytes.data() + kBeforeChecksum, &sum, sizeof sum);
  }
  return bytes;
}

void read_all(const plumb::DataDirectory& directory) {
  int64_t sum = static_cast<int64_t>(directory.task().size()) + directory.source_vocabulary();
  for (const std::string& name : directory.split_names()) {
    const plumb::Split& split = directory.split(name);
    for (int64_t i = 0; i < split.size(); ++i) {
      for (const int32_t id : split.source(i)) sum += id;
      for (const int32_t id : split.target(i)) sum += id;
    }
    sum += std::ssize(directory.raw_source(name));
    if (!directory.labels().empty()) sum += std::ssize(directory.labels_of(name));
  }
  const volatile int64_t used = sum;
  (void)used;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of({reinterpret_cast<const char*>(data), size}, 4);
  folder.write("plumb.json", R"({"kind": "data"})");
  for (const char* tokenizer : {"tokenizer.model", "source.model", "target.model"}) folder.write(tokenizer, kTokenizer);
  folder.write("data.json", parts[0]);
  folder.write("splits/train.labels", parts[1]);
  folder.write("splits/train.source", parts[2]);
  folder.write("splits/train.tokens", with_checksum(parts[3]));
  try {
    read_all(DataDirectory::open(folder.path()));
  } catch (const Error&) {
  }
  return 0;
}
