#include "plumb/ops/kernels/instruction_set.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "plumb/base/error.h"

namespace plumb::kernels {

std::vector<std::string> instruction_sets() {
  // While a selection is active, Highway reports nothing else.
  const int64_t asked_for = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  if (asked_for != hwy::SupportedTargets()) hwy::SetSupportedTargetsForTest(asked_for);
  return names;
}

void use_instruction_set(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty()) return;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(target);
  }
  std::string there;
  for (const std::string& other : instruction_sets()) there += " " + other;
  throw Error(fmt::format("instruction set {} is not available", name), "available:" + there);
}

}  // namespace plumb::kernels
