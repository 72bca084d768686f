#include "plumb/nn/position/position.h"

namespace plumb {

Registry<PositionsFactory>& positions() {
  static Registry<PositionsFactory> registry("position encoding");
  return registry;
}

}  // namespace plumb
