#include "plumb/analysis/curvature/basis.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/kernels/gram_schmidt.h"

namespace plumb {
namespace {

constexpr int64_t kParts = 64;  // partial sums, so that the number of threads changes no result

/// One pass over the basis: w ← w − Σ subtract_k·v_k, then the new products v_k·w (if wanted), and last w·w.
template <typename T>
std::vector<double> pass(const std::vector<const T*>& vectors, const std::vector<double>& subtract, bool products, T* w,
                         int64_t size) {
  const size_t width = vectors.size() + 1;
  std::vector<double> parts(static_cast<size_t>(kParts) * width, 0.0);
  parallel_ranges(kParts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t part_end = size * (part + 1) / kParts;
      for (int64_t begin = size * part / kParts; begin < part_end; begin += kernels::kGramSchmidtBlock) {
        kernels::gram_schmidt<T>(vectors.data(), vectors.size(), begin,
                                 std::min(begin + kernels::kGramSchmidtBlock, part_end),
                                 subtract.empty() ? nullptr : subtract.data(), products, w,
                                 parts.data() + static_cast<size_t>(part) * width);
      }
    }
  });
  std::vector<double> total(width, 0.0);
  for (size_t i = 0; i < parts.size(); ++i) total[i % width] += parts[i];
  return total;
}

}  // namespace

/// A mapped file without a name.
class Basis::File {
 public:
  File(const std::filesystem::path& directory, size_t bytes) : bytes_(bytes) {
    std::string name = (directory / "plumb-basis-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0) {
      throw Error(fmt::format("{}: no file can be made there: {}", directory.string(), std::strerror(errno)));
    }
    ::unlink(name.c_str());
    const int full = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (full == 0) data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (full != 0 || data_ == MAP_FAILED) {
      throw Error(fmt::format("{}: no room for {:.1f} GiB of basis vectors", directory.string(),
                              static_cast<double>(bytes) / (1 << 30)),
                  "take fewer steps or another directory");
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

Basis::Basis(int64_t capacity, int64_t size, at::ScalarType type, const std::filesystem::path& directory)
    : size_(size), type_(type) {
  if (directory.empty()) return;
  const auto bytes = static_cast<size_t>(capacity * size) * c10::elementSize(type);
  file_ = std::make_shared<File>(directory, bytes);
}

void Basis::append(const Tensor& w, double scale) {
  Tensor vector;
  if (file_) {
    const size_t place = vectors_.size() * static_cast<size_t>(size_) * c10::elementSize(type_);
    vector = at::from_blob(
        file_->data() + place, {size_}, [file = file_](void*) {}, at::TensorOptions(type_));
  } else {
    vector = at::empty({size_}, at::TensorOptions(type_));
  }
  at::mul_out(vector, w, at::scalar_tensor(scale, at::TensorOptions(type_)));
  vectors_.push_back(vector);
}

Basis::Projection Basis::orthogonalize(Tensor& w) const {
  Projection result{std::vector<double>(vectors_.size()), 0};
  ops::dispatch(w, [&]<typename T>() {
    std::vector<const T*> vectors;
    for (const Tensor& vector : vectors_) vectors.push_back(vector.data_ptr<T>());
    // Three passes in place of four: the second products are taken while their block of the vectors is in cache.
    std::vector<double> sums = pass<T>(vectors, {}, true, w.data_ptr<T>(), size_);
    for (const bool again : {true, false}) {
      for (size_t k = 0; k < vectors.size(); ++k) result.coefficients[k] += sums[k];
      sums = pass<T>(vectors, sums, again, w.data_ptr<T>(), size_);
    }
    result.norm = std::sqrt(sums.back());
  });
  return result;
}

}  // namespace plumb
