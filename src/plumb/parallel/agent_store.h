// A client of the key-value store that torchrun serves to the processes it starts. Only used in this folder.
#pragma once

#include <functional>
#include <string>

#include "plumb/parallel/socket.h"

namespace plumb {

/// LibTorch's own client works only with a store of a similar version, so this one speaks both dialects: that of
/// PyTorch 1, and that of PyTorch 2, in which a client introduces itself first.
class AgentStore {
 public:
  /// Connects within `limit` seconds, calling `waiting` repeatedly until then if it is not empty. Throws Error if the
  /// store cannot be reached or speaks neither dialect.
  AgentStore(const std::string& host, int64_t port, double limit, const std::function<void()>& waiting);

  /// This process's address on its connection to the store.
  [[nodiscard]] std::string own_address() const { return socket_.local_address(); }

  void set(const std::string& key, const std::string& value);
  /// Waits for the key. Throws Error if it is not set within `limit` seconds.
  std::string get(const std::string& key, double limit, const std::function<void()>& waiting);

 private:
  [[nodiscard]] bool has(const std::string& key);
  void request(std::string_view bytes);
  void receive(void* bytes, size_t size);

  Socket socket_;
  bool introduced_ = false;  // the dialect of PyTorch 2
};

}  // namespace plumb
