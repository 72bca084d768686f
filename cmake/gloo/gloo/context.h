// Replaces Gloo's headers, which PyTorch's wheels omit although c10d's ProcessGroupGloo.hpp includes them. That header
// needs only these names: it refers to Gloo's objects through pointers, and LibTorch creates and uses them.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
  void closeConnections();
};
namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport
}  // namespace gloo
