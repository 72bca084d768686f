#include "plumb/nn/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/ops/linear.h"

namespace plumb {
namespace {

const std::vector<std::string> kAdaptedMatrices = {"query", "key", "value", "output"};

}  // namespace

bool LoraOptions::adapts(const std::string& matrix) const {
  return rank > 0 && std::find(matrices.begin(), matrices.end(), matrix) != matrices.end();
}

void LoraOptions::validate() const {
  constexpr int64_t kLargestRank = int64_t{1} << 20;
  if (rank < 0 || rank > kLargestRank)
    throw Error(fmt::format("lora.rank = {} must lie between 0 and {}", rank, with_thousands(kLargestRank)));
  if (!(alpha > 0) || !std::isfinite(alpha)) throw Error(fmt::format("lora.alpha = {} must be positive", alpha));
  if (rank > 0 && matrices.empty()) throw Error("lora.matrices names no matrix", "known: " + join(kAdaptedMatrices));
  for (const std::string& matrix : matrices) {
    if (std::find(kAdaptedMatrices.begin(), kAdaptedMatrices.end(), matrix) == kAdaptedMatrices.end())
      throw Error(fmt::format("lora.matrices: \"{}\" is unknown", matrix), "known: " + join(kAdaptedMatrices));
    if (std::count(matrices.begin(), matrices.end(), matrix) > 1)
      throw Error(fmt::format("lora.matrices: \"{}\" is given twice", matrix));
  }
}

void describe(Fields& field, LoraOptions& options) {
  field("rank", options.rank);
  field("alpha", options.alpha);
  field("matrices", options.matrices);
}

LoraAdapter::LoraAdapter(Parameters& parameters, const std::string& prefix, int64_t in, int64_t out,
                         const LoraOptions& options)
    : a_(parameters.add_adapter(prefix + "_lora.a", {options.rank, in}, 1 / std::sqrt(static_cast<double>(in)))),
      b_(parameters.add_adapter(prefix + "_lora.b", {out, options.rank}, 0)),
      factor_(options.alpha / static_cast<double>(options.rank)) {}

Tensor LoraAdapter::operator()(const Tensor& x) const { return ops::linear(ops::linear(x, a_, {}) * factor_, b_, {}); }

bool is_of_adapter(const std::string& parameter) {
  return parameter.ends_with("_lora.a") || parameter.ends_with("_lora.b");
}

}  // namespace plumb
