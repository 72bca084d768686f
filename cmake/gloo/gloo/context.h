// In the place of Gloo's headers, which PyTorch's wheels leave out though c10d's ProcessGroupGloo.hpp includes them. It
// needs these names alone: everything of Gloo's is behind a pointer there, and made and used within LibTorch.
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
