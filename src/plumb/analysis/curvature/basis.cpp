#include "plumb/analysis/curvature/basis.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/ops/gram_schmidt.h"

namespace plumb {
namespace {

/// Asks for large pages where the system gives them on request: reading many long vectors side by side needs more small
/// ones than the processor can remember. Without them, the vector is the same.
void ask_for_large_pages(const Tensor& vector) {
  constexpr uintptr_t kLarge = uintptr_t{1} << 21;
  if (!vector.is_cpu()) return;
  const auto begin = reinterpret_cast<uintptr_t>(vector.data_ptr());
  const uintptr_t first = (begin + kLarge - 1) / kLarge * kLarge, last = (begin + vector.nbytes()) / kLarge * kLarge;
  if (first < last) static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
}

}  // namespace

/// An anonymous mapped file.
class Basis::File {
 public:
  File(const std::filesystem::path& directory, size_t bytes) : bytes_(bytes) {
    std::string name = (directory / "plumb-basis-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0) {
      throw Error(fmt::format("{}: cannot create a file there: {}", directory.string(), std::strerror(errno)));
    }
    ::unlink(name.c_str());
    const int full = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (full == 0) data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (full != 0 || data_ == MAP_FAILED) {
      throw Error(fmt::format("{}: not enough space for {:.1f} GiB of basis vectors", directory.string(),
                              static_cast<double>(bytes) / (1 << 30)),
                  "use fewer steps or another directory");
    }
  }
  ~File() { ::munmap(data_, bytes_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = MAP_FAILED;
  size_t bytes_;
};

Basis::Basis(int64_t capacity, int64_t size, const at::TensorOptions& options, const std::filesystem::path& directory,
             SumOfParts sum_of_parts)
    : size_(size), options_(options), sum_of_parts_(std::move(sum_of_parts)) {
  if (directory.empty() || size == 0) return;
  if (!options.device().is_cpu()) {
    throw Error(fmt::format("the vectors of a basis on {} cannot be in a file", options.device().str()),
                "leave the directory of the basis out, or measure on the CPU");
  }
  const auto bytes = static_cast<size_t>(capacity * size) * options.dtype().itemsize();
  file_ = std::make_shared<File>(directory, bytes);
}

void Basis::append(const Tensor& w, double scale) {
  Tensor vector;
  if (file_) {
    const size_t place = vectors_.size() * static_cast<size_t>(size_) * options_.dtype().itemsize();
    vector = at::from_blob(
        file_->data() + place, {size_}, [file = file_](void*) {}, options_);
  } else {
    vector = at::empty({size_}, options_);
    ask_for_large_pages(vector);
  }
  at::mul_out(vector, w, at::scalar_tensor(scale, options_));
  vectors_.push_back(vector);
}

Basis::Projection Basis::orthogonalize(Tensor& w) const {
  Projection result{std::vector<double>(vectors_.size()), 0};
  const auto pass = [&](const std::vector<double>& subtract, bool products) {
    const std::vector<double> sums = ops::gram_schmidt(vectors_, subtract, products, w);
    return sum_of_parts_ ? sum_of_parts_(sums) : sums;
  };
  // Three passes instead of four: the second products are computed while their block of vectors is in the cache.
  std::vector<double> sums = pass({}, true);
  for (const bool again : {true, false}) {
    for (size_t k = 0; k < vectors_.size(); ++k) result.coefficients[k] += sums[k];
    sums.resize(vectors_.size());
    sums = pass(sums, again);
  }
  result.norm = std::sqrt(sums.back());
  return result;
}

}  // namespace plumb
