// The backends that exchange data between processes. Only used in this folder.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace plumb {

/// The base class of all of them, which depends on LibTorch's version.
using Backend = std::conditional_t<std::is_base_of_v<c10d::ProcessGroup, c10d::ProcessGroupGloo>, c10d::ProcessGroup,
                                   c10d::Backend>;

/// Connects the ranks of a group, which find each other in the store; returns when all are connected.
using MakeBackend = std::function<c10::intrusive_ptr<Backend>(const c10::intrusive_ptr<c10d::Store>& store,
                                                              int64_t rank, int64_t size)>;

/// Makes groups that are connected by Gloo over these devices; the time-out is that of connecting.
using GlooDevices = decltype(c10d::ProcessGroupGloo::Options::devices);
MakeBackend make_gloo(GlooDevices devices, std::chrono::milliseconds timeout);

/// Closes the connections to the other ranks, and leaks the backend: an operation that has failed may block one of its
/// threads, for which its destructor would wait.
void abandon(c10::intrusive_ptr<Backend> backend);

}  // namespace plumb
