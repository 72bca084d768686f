// TCP sockets for the rendezvous. Only used in this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace plumb {

/// A socket (or another file descriptor), closed by the destructor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(); }

  [[nodiscard]] bool open() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void close();

  /// Sends everything; false if the connection is lost. Never raises SIGPIPE.
  [[nodiscard]] bool send(std::string_view bytes) const;

  /// Receives exactly `size` bytes; false if the connection ends early, or at the deadline.
  [[nodiscard]] bool receive(void* bytes, size_t size, std::chrono::steady_clock::time_point deadline) const;

  /// The numeric addresses of this end and of the other one.
  [[nodiscard]] std::string local_address() const;
  [[nodiscard]] std::string remote_address() const;
  [[nodiscard]] int64_t local_port() const;

 private:
  int descriptor_ = -1;
};

/// A socket that listens at a port of this machine (0: any free one): at the address of `host`, or at all addresses if
/// that is not one of its own or `host` is empty. Throws Error if the port is taken or cannot be used.
Socket listen_at(const std::string& host, int64_t port);

/// One attempt to connect; not open if it fails, with the reason in `reason`.
Socket connect_to(const std::string& host, int64_t port, std::chrono::milliseconds limit, std::string& reason);

/// Whether a numeric address, or the name "localhost", is a loopback address.
bool is_loopback(const std::string& address);

}  // namespace plumb
