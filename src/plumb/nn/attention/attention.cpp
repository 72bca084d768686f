#include "plumb/nn/attention/attention.h"

namespace plumb {

Registry<AttentionFactory>& attentions() {
  static Registry<AttentionFactory> registry("attention");
  return registry;
}

}  // namespace plumb
