#include "plumb/optim/step_counts.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/optim/parameter_set.h"

namespace plumb {

void StepCounts::append(NamedTensors& tensors) const { tensors.emplace_back("step", at::tensor(steps_, at::kLong)); }

void StepCounts::load(const NamedTensors& tensors, const std::string& origin) {
  const Tensor found = find_tensor(tensors, "step", origin).to(at::kCPU, at::kLong).contiguous();
  const auto count = static_cast<int64_t>(steps_.size());
  // A single number applies to every parameter.
  if (found.numel() != count && found.numel() != 1) {
    throw Error(fmt::format("{}: tensor 'step' has {} elements, not {}", origin, found.numel(), count),
                "the file belongs to another configuration");
  }
  const int64_t* steps = found.data_ptr<int64_t>();
  for (size_t k = 0; k < steps_.size(); ++k) steps_[k] = steps[found.numel() == 1 ? 0 : k];
}

}  // namespace plumb
