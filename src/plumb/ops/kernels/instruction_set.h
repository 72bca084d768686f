// Which instructions the kernels run on: the machine's best, unless a test or a benchmark asks for others.
#pragma once

#include <string>
#include <vector>

namespace plumb::kernels {

/// The instruction sets, by Highway's names, that the kernels are compiled for and this machine has; the best first.
/// The last is the compiler's baseline, which every machine has.
std::vector<std::string> instruction_sets();

/// Makes the kernels use one of instruction_sets() from now on; an empty name: the best again. Not to be called while
/// kernels run. Throws Error if the machine has no such instruction set.
void use_instruction_set(const std::string& name);

}  // namespace plumb::kernels
