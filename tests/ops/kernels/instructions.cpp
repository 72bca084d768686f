// Runs one kernel on fixed sizes with AVX2, so that its instructions can be counted: instructions
// norm|attention|cross-entropy. Exit status 77: the machine has no AVX2.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plumb/base/contains.h"
#include "plumb/ops/kernels/attention.h"
#include "plumb/ops/kernels/cross_entropy.h"
#include "plumb/ops/kernels/instruction_set.h"
#include "plumb/ops/kernels/norm.h"

namespace {

std::vector<float> values(int64_t count) {
  std::vector<float> all(static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); ++i) all[i] = std::sin(static_cast<float>(i));
  return all;
}

std::function<void()> norm() {
  constexpr int64_t kRows = 64, kWidth = 512;
  return [x = values(kRows * kWidth), gamma = values(kWidth), beta = values(kWidth), y = values(kRows * kWidth),
          statistics = values(2 * kRows)]() mutable {
    plumb::kernels::norm<float>().forward(
        {kWidth, true, 1e-5F, x.data(), gamma.data(), beta.data(), y.data(), statistics.data()}, 0, kRows);
  };
}

std::function<void()> attention() {
  constexpr int64_t kTokens = 61, kSize = 64, kStride = 3 * kSize;
  return [packed = values(kTokens * kStride), out = values(kTokens * kSize)]() mutable {
    plumb::kernels::attention<float>().forward({kTokens, kTokens, kSize, true, 0.125F, packed.data(), kStride,
                                                packed.data() + kSize, packed.data() + 2 * kSize, kStride},
                                               out.data(), kSize);
  };
}

std::function<void()> cross_entropy() {
  constexpr int64_t kVocabulary = 10000;
  return [logits = values(kVocabulary)]() mutable {
    const plumb::kernels::CrossEntropyRow<float> row{kVocabulary, 7, 0.1F};
    plumb::kernels::cross_entropy<float>().with_gradient(row, 1.0F, logits.data());
  };
}

}  // namespace

/// The function to count; extern "C", so that callgrind finds it by name.
extern "C" __attribute__((noinline)) void counted(const std::function<void()>& kernel) { kernel(); }

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> kernels = {
      {"norm", norm()}, {"attention", attention()}, {"cross-entropy", cross_entropy()}};
  const auto kernel = kernels.find(argc == 2 ? argv[1] : "");
  if (kernel == kernels.end()) return 2;
  const auto sets = plumb::kernels::instruction_sets();
  if (!plumb::contains(sets, "AVX2")) return 77;
  plumb::kernels::use_instruction_set("AVX2");
  kernel->second();  // warm-up: selects the instruction set and allocates the kernels' memory
  counted(kernel->second);
}
