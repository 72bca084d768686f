// Attention residuals, Kimi Team 2026, arXiv 2603.15031: instead of the sum of all earlier outputs, a sub-layer reads
// their mean weighted by softmax attention over depth, separately for each token:
//   h_l = Σ_i softmax_i(w_l·rms_l(v_i))·v_i;  v_l = dropout(f(norm(h_l)));  v₀ = the input
// w_l (d) is a trained query, initially 0, so that all weights are equal; rms_l is RMSNorm with its own gains, whatever
// the model's norm. The end of the stack reads in the same way: output = norm(h_(L+1)). The first sub-layer has no
// query, because it reads only v₀. In blocks of S sub-layers, the sources are the input, the sum of the outputs of each
// complete block, and the sum so far of the current one; S = 1 is the full form above.
#include <fmt/format.h>

#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {
namespace {

/// [model.attnres]
struct AttnResOptions {
  int64_t block = 1;
};

void describe(Fields& field, AttnResOptions& options) {
  field("block", options.block, "S, the number of sub-layers whose outputs are added to one source; 1: none are added",
        at_least(1));
}

class AttnResScheme final : public ResidualScheme {
 public:
  AttnResScheme(Parameters& parameters, const StackShape& shape, const AttnResOptions& options)
      : shape_(shape), block_(options.block), norms_(parameters, shape, "norm") {
    const int64_t count = shape.layers * shape.sub_layers;
    for (int64_t index = 1; index <= count; ++index) {
      const int64_t layer = index / shape.sub_layers, position = index % shape.sub_layers;
      const std::string prefix = index == count ? to_string(shape.stack) + ".depth"
                                                : fmt::format("{}depth{}", layer_prefix(shape, layer), position + 1);
      Reader reader;
      reader.query = parameters.add_constant(prefix + ".query", {shape.d_model}, 0);
      reader.norm = plumb::norms().at("rmsnorm").make(parameters, prefix + ".norm", shape.d_model, shape.norm_eps);
      readers_.push_back(std::move(reader));
    }
    add_final_norm(parameters, shape);
  }

  Stream enter(const Tensor& x, ForwardContext&) const override { return {x, {}, {x}}; }

  /// stream.x is what the next sub-layer reads; the sum so far of an incomplete block is in stream.second.
  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const override {
    const int64_t index = index_of(f, shape_);
    const Tensor y = context.dropout(watched_forward(f, norms_.at(f)(stream.x, context), context));
    const Tensor sum = index % block_ == 0 ? y : stream.second + y;
    if ((index + 1) % block_ == 0) {
      stream.sources.push_back(sum);
      stream.x = read(readers_[static_cast<size_t>(index)], stream.sources, context);
    } else {
      stream.second = sum;
      std::vector<Tensor> sources = stream.sources;
      sources.push_back(sum);
      stream.x = read(readers_[static_cast<size_t>(index)], sources, context);
    }
    context.show({f.id, Point::stream}, stream.x);
  }

 private:
  struct Reader {
    Tensor query;  // (d)
    std::unique_ptr<Norm> norm;
  };

  /// Sources: (tokens, d) each → (tokens, d).
  [[nodiscard]] Tensor read(const Reader& reader, const std::vector<Tensor>& sources,
                            const ForwardContext& context) const {
    const Tensor values = at::stack(sources);  // (sources, tokens, d)
    const Tensor keys = (*reader.norm)(values.view({-1, shape_.d_model}), context);
    const Tensor weights = at::softmax((keys * reader.query).sum(1).view({values.size(0), values.size(1)}), 0);
    return (weights.unsqueeze(2) * values).sum(0);
  }

  StackShape shape_;
  int64_t block_;
  SubLayerNorms norms_;
  std::vector<Reader> readers_;  // [sub-layer]: for the next one, or the end of the stack
};

const bool kAttnResRegistered = add_residual_scheme<AttnResScheme, AttnResOptions>(
    "attnres", "AttnRes",
    "h = Σ_i softmax_i(w·rmsnorm(v_i))·v_i over the stack's input v₀ and the outputs v of all earlier sub-layers; v ← "
    "dropout(f(norm(h))); a stack returns norm(h); w a trained vector for each h, initially 0",
    "Attention residuals: Kimi Team 2026, arXiv 2603.15031");

}  // namespace
}  // namespace plumb
