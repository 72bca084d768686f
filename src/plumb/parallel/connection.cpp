#include "plumb/parallel/connection.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace plumb {

std::shared_ptr<Connection> Connection::among(const std::string& name, int64_t rank, int64_t size) {
  const BrokenPipeGuard guard;
  try {
    return std::make_shared<Connection>(c10::make_intrusive<c10d::PrefixStore>(name, store_), rank, size,
                                        gloo_->getOptions());
  } catch (const std::exception& error) {
    throw lost(error);
  }
}

Error Connection::lost(const std::exception& error) {
  const std::string text = error.what();  // followed by LibTorch's stack trace on further lines
  return Error("lost another process of this run: " + text.substr(0, text.find('\n')),
               "see that process's log; rerun to resume");
}

}  // namespace plumb
