// Parameters that are there only while they are needed.
#pragma once

#include "plumb/nn/layer_id.h"

namespace plumb {

/// Provides the parameters of a layer while it is computed, forward and backward: from `unshard` to `reshard`.
class LayerSource {
 public:
  LayerSource() = default;
  LayerSource(const LayerSource&) = delete;
  LayerSource& operator=(const LayerSource&) = delete;
  virtual ~LayerSource() = default;

  virtual void unshard(const LayerId& layer) = 0;
  virtual void reshard(const LayerId& layer) = 0;
};

}  // namespace plumb
