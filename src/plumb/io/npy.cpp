#include "plumb/io/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <ostream>
#include <string>

#include "plumb/base/files.h"

namespace plumb {
namespace {

static_assert(std::endian::native == std::endian::little, "data are written as they are in memory");

/// Magic bytes, version, the length of the rest, and a Python dictionary, padded to a multiple of 64 bytes.
std::string npy_header(at::IntArrayRef sizes) {
  constexpr size_t kAlignment = 64, kPrefix = 10;
  const std::string shape =
      fmt::format("({}{})", fmt::join(sizes.begin(), sizes.end(), ", "), sizes.size() == 1 ? "," : "");
  std::string dictionary = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape);
  dictionary.append(kAlignment - 1 - (kPrefix + dictionary.size()) % kAlignment, ' ');
  dictionary += '\n';
  std::string header = "\x93NUMPY\x01";
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace

void save_npy(const std::filesystem::path& path, const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kFloat).cpu().contiguous();
  write_output_file(path, [&](std::ostream& out) {
    out << npy_header(values.sizes());
    out.write(reinterpret_cast<const char*>(values.data_ptr<float>()),
              static_cast<std::streamsize>(values.numel() * static_cast<int64_t>(sizeof(float))));
  });
}

}  // namespace plumb
