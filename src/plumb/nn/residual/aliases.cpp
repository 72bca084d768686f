// Residual schemes that are written in tensor2tensor's grammar (tensor2tensor.h), under their usual names.
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
    added &= add_tensor2tensor_scheme(
        alias.name, alias.title, alias.summary, alias.reference, alias.preprocess,
        [&alias](const StackShape&, int64_t, int64_t) {
          return SubLayerProcessing{
              .preprocess = alias.preprocess, .postprocess = alias.postprocess, .gate_bias = alias.gate_bias};
        });
  }
  return added;
}();

}  // namespace
}  // namespace plumb
