// The instruction set that the kernels run on: the machine's best, unless a test or benchmark selects another.
#pragma once

#include <string>
#include <vector>

namespace plumb::kernels {

/// The instruction sets, by Highway's names, that the kernels are compiled for and this machine supports; the best
/// first. The last is the compiler's baseline, which every machine supports.
std::vector<std::string> instruction_sets();

/// Makes the kernels use one of instruction_sets() from now on; an empty name: the best one again. Must not be called
/// while kernels run. Throws Error if the machine does not support the instruction set.
void use_instruction_set(const std::string& name);

}  // namespace plumb::kernels
