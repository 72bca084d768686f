// Running out of memory while computing a batch, as an Error that names the batch and what to change.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace plumb {

/// Whether an exception from the standard library, LibTorch (CPU or GPU) or oneDNN means that memory has run out.
bool is_out_of_memory(const std::exception& error);

/// Calls `work`. If memory runs out, throws Error instead: "memory has run out at WHERE" with `hint`.
void with_enough_memory(const std::function<void()>& work, const std::function<std::string()>& where,
                        const std::string& hint);

}  // namespace plumb
