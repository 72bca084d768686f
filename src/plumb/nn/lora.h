// Low-rank adaptation: Hu et al. 2021, "LoRA: Low-rank adaptation of large language models", arXiv 2106.09685.
//   W' = W + (alpha/rank)·B·A;  W: (out, in), B: (out, rank), A: (rank, in)
// A and B are trained instead of W. B is initially 0, so the adapted model initially equals the original.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// [model.lora]
struct LoraOptions {
  int64_t rank = 0;
  double alpha = 8;
  /// Of every attention: query, key, value, output, gate; of every feed-forward sub-layer: feed_forward_in (W₁ and, if
  /// it is gated, W₃), feed_forward_out (W₂).
  std::vector<std::string> matrices{"query", "value"};

  /// Whether this matrix has an adapter wherever it occurs.
  [[nodiscard]] bool adapts(const std::string& matrix) const;

  bool operator==(const LoraOptions&) const = default;
};
void describe(Fields& field, LoraOptions& options);

/// The term added to the product with one matrix. Parameters: prefix_lora.a (rank, in), initially N(0, 1/in), and
/// prefix_lora.b (out, rank), initially 0.
class LoraAdapter {
 public:
  LoraAdapter(Parameters& parameters, const std::string& prefix, int64_t in, int64_t out, const LoraOptions& options);

  /// (alpha/rank)·B·A·x. x: (tokens, in) → (tokens, out).
  [[nodiscard]] Tensor operator()(const Tensor& x) const;

 private:
  Tensor a_;
  Tensor b_;
  double factor_;
};

/// Whether a parameter belongs to an adapter.
bool is_of_adapter(const std::string& parameter);

}  // namespace plumb
