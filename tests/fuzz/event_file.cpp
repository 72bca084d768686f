// TensorBoard's event files, as they are and as the messages of one, each with its checksums: scalars and settings are
// read or refused. Parts of the input at "%%" are files, and within a file at "--" messages.
#include <cmath>
#include <cstdlib>

#include "folder.h"
#include "plumb/base/error.h"
#include "plumb/judge/event_files.h"
#include "plumb/report/crc32c.h"

namespace {

using namespace plumb;

template <typename Integer>
std::string bytes_of(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
  return bytes;
}

std::string sealed(std::string_view messages) {
  constexpr std::string_view kCut = "\n--\n";
  std::string file;
  while (true) {
    const std::string_view message = messages.substr(0, messages.find(kCut));
    const std::string length = bytes_of(static_cast<uint64_t>(message.size()));
    file += length + bytes_of(masked_crc32c(length));
    file.append(message) += bytes_of(masked_crc32c(message));
    if (message.size() == messages.size()) return file;
    messages.remove_prefix(message.size() + kCut.size());
  }
}

void read(const std::filesystem::path& folder) {
  try {
    EventFiles files;
    for (const auto& [metric, values] : read_event_files(folder, files).series) {
      for (const RunRecord::Value& one : values) {
        if (std::isnan(one.step)) std::abort();
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder plain, checked;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  plain.write("events.out.tfevents.1", input);
  read(plain.path());
  const auto parts = fuzz::parts_of(input, 3);
  for (size_t i = 0; i < parts.size(); ++i)
    checked.write("events.out.tfevents." + std::to_string(i), parts[i].empty() ? "" : sealed(parts[i]));
  read(checked.path());
  return 0;
}
