// Memory that runs out while a batch is computed, as an error that says which batch it was and what to change.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace plumb {

/// Whether an exception says that there is not enough memory: of the standard library, of LibTorch on the CPU or a GPU,
/// or of oneDNN.
bool is_out_of_memory(const std::exception& error);

/// Calls `work`. If memory runs out, throws Error instead: "memory has run out at WHERE" with `hint`.
void with_enough_memory(const std::function<void()>& work, const std::function<std::string()>& where,
                        const std::string& hint);

}  // namespace plumb
