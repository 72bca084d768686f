// Replaces the function that knows the variants named in a model's configuration, which needs the whole library; the
// tests use the real one.
#include "plumb/model/config.h"

namespace plumb {

void validate(const ModelConfig&) {}

}  // namespace plumb
