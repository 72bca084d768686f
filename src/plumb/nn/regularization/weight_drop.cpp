#include "plumb/nn/regularization/weight_drop.h"

namespace plumb {

Tensor weight_drop(const Tensor& weight, double p, const ops::DropoutKey& key) { return ops::dropout(weight, p, key); }

}  // namespace plumb
