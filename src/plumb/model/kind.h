// The kinds of models, model.kind: what each reads, how its configuration is checked, and how it is made. A kind
// registers itself in the file of its class.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/base/registry.h"
#include "plumb/model/config.h"
#include "plumb/ops/torch.h"

namespace plumb {

class Model;

struct ModelKind {
  bool reads_source = false;  // the source side of batches, with an encoder
  bool reads_target = false;  // the target side, each token of which is predicted from those before it
  bool recurrent = false;     // its layers carry a state, also across batches (ForwardContext::carry); no attention
  std::string pooling = {};   // the usual one for classifiers of this kind; empty: it cannot classify

  /// Throws Error if its keys contradict each other; each by itself has been checked.
  std::function<void(const ModelConfig&)> check;
  std::function<std::unique_ptr<Model>(const ModelConfig&, at::ScalarType)> make;

  /// Whether it predicts a target from a source.
  [[nodiscard]] bool translates() const { return reads_source && reads_target; }
  /// Whether it predicts tokens from those before them, and nothing else.
  [[nodiscard]] bool models_language() const { return reads_target && !reads_source; }
  /// Whether it reads all of a sequence at once, and nothing else.
  [[nodiscard]] bool only_encodes() const { return reads_source && !reads_target; }
  [[nodiscard]] bool classifies() const { return !pooling.empty(); }
};
Registry<ModelKind>& model_kinds();

/// The kind of this name. Throws Error on an unknown name.
const ModelKind& model_kind(const std::string& name);

/// The kind of a model with this configuration.
inline const ModelKind& kind_of(const ModelConfig& config) { return model_kind(config.kind); }

}  // namespace plumb
