#include "plumb/io/spilled_tensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr int64_t kAlignment = 64;

[[noreturn]] void refuse(const std::string& folder, const char* what) {
  const std::string reason = std::strerror(errno);
  throw Error(fmt::format("{}: {}: {}", folder, what, reason), "the state of a run is kept there until it is saved");
}

}  // namespace

SpilledTensors::SpilledTensors(const std::filesystem::path& folder) : folder_(folder.string()) {
  if (folder.empty()) return;
  std::string name = (folder / ".spilled-XXXXXX").string();
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) refuse(folder_, "no file can be created");
  ::unlink(name.c_str());
}

SpilledTensors::~SpilledTensors() {
  if (file_ >= 0) ::close(file_);
}

void SpilledTensors::add(const std::string& name, const Tensor& tensor) {
  if (file_ < 0) {
    in_memory_.emplace_back(name, tensor.detach().clone());
    return;
  }
  const Tensor here = tensor.detach().cpu().contiguous();
  places_.push_back({name, {size_, here.sizes().vec(), here.scalar_type()}});
  const char* next = static_cast<const char*>(here.data_ptr());
  for (int64_t at = size_, left = static_cast<int64_t>(here.nbytes()); left > 0;) {
    const ssize_t written = ::pwrite(file_, next, static_cast<size_t>(left), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) refuse(folder_, "a file cannot be written");
    next += written;
    at += written;
    left -= written;
  }
  size_ += (static_cast<int64_t>(here.nbytes()) + kAlignment - 1) / kAlignment * kAlignment;
}

NamedTensors SpilledTensors::all() {
  if (file_ < 0) return std::move(in_memory_);
  if (size_ > 0 && ::ftruncate(file_, size_) != 0) refuse(folder_, "a file cannot be written");
  std::shared_ptr<void> mapped;
  if (size_ > 0) {
    const auto bytes = static_cast<size_t>(size_);
    void* place = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_, 0);
    if (place == MAP_FAILED) refuse(folder_, "a file cannot be mapped");
    mapped = std::shared_ptr<void>(place, [bytes](void* begin) { ::munmap(begin, bytes); });
  }
  NamedTensors tensors;
  for (const auto& [name, place] : places_) {
    const at::TensorOptions options(place.type);
    if (size_ == 0) {
      tensors.emplace_back(name, at::empty(place.sizes, options));
      continue;
    }
    void* begin = static_cast<char*>(mapped.get()) + place.begin;
    tensors.emplace_back(name, at::from_blob(
                                   begin, place.sizes, [mapped](void*) {}, options));
  }
  return tensors;
}

}  // namespace plumb
