// Residual schemes that are written in tensor2tensor's grammar (tensor2tensor.h), under their usual names.
#include <cmath>

#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

struct Alias {
  const char* name;
  const char* title;
  const char* preprocess;
  const char* postprocess;
  const char* summary;
  const char* reference;
  double gate_bias = 0;
};

constexpr Alias kAliases[] = {
    {"post-ln", "Post-LN", "", "dan", "x ← norm(x + dropout(f(x)))", "Vaswani et al. 2017, arXiv 1706.03762"},
    {"pre-ln", "Pre-LN", "n", "da", "x ← x + dropout(f(norm(x))), and one norm at the end of each stack",
     "Xiong et al. 2020, arXiv 2002.04745"},
    {"sandwich", "Sandwich", "n", "dna",
     "x ← x + norm(dropout(f(norm(x)))), and one norm at the end of each stack; Peri-LN's optional norm of the "
     "embeddings is `model.embedding_norm`",
     "Sandwich: Ding et al. 2021, arXiv 2105.13290; Peri-LN: Kim et al. 2025, arXiv 2502.02732"},
    {"rezero", "ReZero", "", "dz",
     "x ← x + γ·dropout(f(x)), γ a trained scalar per sub-layer, initially 0 (the authors' code: one per layer, "
     "shared by its sub-layers); no norm",
     "Bachlechner et al. 2020, arXiv 2003.04887"},
    {"highway", "Highway", "", "dh", "x ← T∘dropout(f(x)) + (1 − T)∘x, T = σ(W·x + b), b initially −1; no norm",
     "Srivastava et al. 2015, arXiv 1505.00387", -1},  // so that most of x is passed through at first
    {"plain", "no norm", "", "da", "x ← x + dropout(f(x)); no norm", "He et al. 2016, arXiv 1512.03385"},
    {"no-residual", "no residual", "", "dn", "x ← norm(dropout(f(x))): Post-LN without the residual connection", ""},
};

[[maybe_unused]] const bool kAliasesRegistered = [] {
  bool added = true;
  for (const Alias& alias : kAliases) {
    added &= add_tensor2tensor_scheme(alias.name, alias.title, alias.summary, alias.reference, alias.preprocess,
                                      [&alias](const StackShape&, int64_t, int64_t) {
                                        return SubLayerProcessing{.preprocess = alias.preprocess,
                                                                  .postprocess = alias.postprocess,
                                                                  .gate_bias = alias.gate_bias};
                                      });
  }
  return added;
}();

// LayerNorm scaling, Sun et al. 2025, "The Curse of Depth in Large Language Models", arXiv 2502.05795: Pre-LN whose
// norms are divided by the square root of the depth, x ← x + dropout(f(norm(x)/√l)) in layer l, from 1, and one norm,
// not divided, at the end of the stack. Not meant for initializations that already scale with depth, such as `gpt-2`.
const bool kLnsRegistered = add_tensor2tensor_scheme(
    "lns", "LNS",
    "x ← x + dropout(f(norm(x)/√l)) in layer l = 1, 2, …, and one norm, not divided, at the end of each stack",
    "LayerNorm scaling: Sun et al. 2025, arXiv 2502.05795", "n", [](const StackShape&, int64_t layer, int64_t) {
      return SubLayerProcessing{
          .preprocess = "n", .postprocess = "da", .divisor = std::sqrt(static_cast<double>(layer + 1))};
    });

// Mix-LN, Li et al. 2024, arXiv 2412.13795: Post-LN in the first ⌊L/4⌋ of L layers, Pre-LN in the others, and one norm
// at the end of the stack. With fewer than 4 layers none is Post-LN. In the authors' code the number of Post-LN layers
// is an option.
const bool kMixLnRegistered = add_tensor2tensor_scheme(
    "mix-ln", "Mix-LN",
    "`post-ln` in the first ⌊L/4⌋ of L layers, none of fewer than 4, `pre-ln` in the others, and one norm at the end "
    "of each stack",
    "Li et al. 2024, arXiv 2412.13795", "n", [](const StackShape& shape, int64_t layer, int64_t) {
      return layer < shape.layers / 4 ? SubLayerProcessing{"", "dan"} : SubLayerProcessing{"n", "da"};
    });

// Sub-layers in parallel, each with its own norm, as in GPT-NeoX: Black et al. 2022, arXiv 2204.06745. All sub-layers
// of a layer read the layer's input: x ← x + Σ dropout(f(norm(x))), and there is one norm at the end of the stack. For
// a single norm for both, as in GPT-J, use model.parallel, which makes them one sub-layer.
const bool kParallelLnRegistered = add_tensor2tensor_scheme(
    "parallel-ln", "Parallel-LN",
    "x ← x + Σ dropout(f(norm(x))) over the sub-layers of a layer, which all read the layer's input, each through its "
    "own norm, and one norm at the end of each stack",
    "GPT-NeoX: Black et al. 2022, arXiv 2204.06745", "n", [](const StackShape&, int64_t, int64_t) {
      return SubLayerProcessing{.preprocess = "n", .postprocess = "da", .parallel = true};
    });

}  // namespace
}  // namespace plumb
