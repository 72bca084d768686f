// The instruction set that the kernels run on: the machine's best, unless a test or benchmark selects another.
#pragma once

#include <string>
#include <vector>

namespace plumb::kernels {

/// Highway's names of the instruction sets that the kernels are compiled for and this machine supports, best first. The
/// last is the compiler's baseline, which every machine supports.
std::vector<std::string> instruction_sets();

/// Makes the kernels use one of instruction_sets(); an empty name restores the best one. Must not be called while
/// kernels run. Throws Error if the instruction set is not among them.
void use_instruction_set(const std::string& name);

}  // namespace plumb::kernels
