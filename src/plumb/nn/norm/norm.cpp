#include "plumb/nn/norm/norm.h"

namespace plumb {

Registry<NormFactory>& norms() {
  static Registry<NormFactory> registry("norm");
  return registry;
}

}  // namespace plumb
