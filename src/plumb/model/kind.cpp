#include "plumb/model/kind.h"

namespace plumb {

Registry<ModelKind>& model_kinds() {
  static Registry<ModelKind> registry(
      "kind of model",
      {.title = "Kinds of models",
       .key = "model.kind",
       .before =
           "An `awd-lstm` has `model.layers` layers of LSTM, of widths `model.embedding_size` → `model.hidden_size` → "
           "… "
           "→ `model.embedding_size`, whose output layer has a bias and shares the embedding's matrix; each sequence "
           "begins with a state of zeros, unless it continues a [stream](#tasks-taskname). With `model.labels` it is "
           "the classifier of ULMFiT (Howard & Ruder 2018, arXiv 1801.06146): states at the end of a text, pooled by "
           "`model.pooling`, go through two blocks of batch norm, dropout and a linear layer, with ReLU between them. "
           "Of the other keys of `[model]` it reads only the vocabulary, `norm_eps` and the initialization; the "
           "initialization `lstm` is made for it. In training steps it is regularized by the following; locked masks "
           "are the same for all positions of a sequence."});
  return registry;
}

const ModelKind& model_kind(const std::string& name) { return model_kinds().at(name).make; }

}  // namespace plumb
