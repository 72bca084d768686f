#include "plumb/parallel/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Clock = std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// The addresses of a name; null, with the reason, if it has none.
Addresses resolve(const std::string& host, int64_t port, std::string& reason) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (failed != 0) reason = fmt::format("{}: {}", host, ::gai_strerror(failed));
  return Addresses(failed == 0 ? found : nullptr);
}

std::string numeric(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return {};
  }
  const std::string name = text.data();
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 over an IPv6 socket
  const bool mapped = name.starts_with(kMapped) && name.find('.') != std::string::npos;
  return mapped ? name.substr(kMapped.size()) : name;
}

int64_t milliseconds_until(Clock::time_point deadline) {
  return std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count(), 0);
}

void set_option(int descriptor, int level, int name, int value) {
  ::setsockopt(descriptor, level, name, &value, sizeof value);
}

/// A socket listening at one address; not open if that fails, with errno set.
Socket listening(const sockaddr* address, socklen_t size, int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return socket;
  set_option(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) set_option(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.descriptor(), address, size) == 0 && ::listen(socket.descriptor(), SOMAXCONN) == 0) return socket;
  const int failed = errno;
  socket.close();
  errno = failed;
  return socket;
}

Socket listening_everywhere(int64_t port) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_any;
  any.sin6_port = htons(static_cast<uint16_t>(port));
  Socket socket = listening(reinterpret_cast<const sockaddr*>(&any), sizeof any, AF_INET6);
  if (socket.open() || errno == EADDRINUSE || errno == EACCES) return socket;
  sockaddr_in old{};  // a system without IPv6
  old.sin_family = AF_INET;
  old.sin_port = htons(static_cast<uint16_t>(port));
  return listening(reinterpret_cast<const sockaddr*>(&old), sizeof old, AF_INET);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool Socket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Socket::receive(void* bytes, size_t size, Clock::time_point deadline) const {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    pollfd ready{descriptor_, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(milliseconds_until(deadline), 1000)));
    if (count < 0 && errno != EINTR) return false;
    if (count <= 0) {
      if (Clock::now() >= deadline) return false;
      continue;
    }
    const ssize_t got = ::recv(descriptor_, to, size, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) {
      to += got;
      size -= static_cast<size_t>(got);
    }
  }
  return true;
}

std::string Socket::local_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? numeric(address, size) : "";
}

std::string Socket::remote_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? numeric(address, size) : "";
}

int64_t Socket::local_port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Socket listen_at(const std::string& host, int64_t port) {
  std::string ignored;
  Socket socket;
  const Addresses found = host.empty() ? nullptr : resolve(host, port, ignored);
  errno = EADDRNOTAVAIL;
  for (const addrinfo* one = found.get(); one != nullptr && !socket.open() && errno == EADDRNOTAVAIL;
       one = one->ai_next)
    socket = listening(one->ai_addr, one->ai_addrlen, one->ai_family);
  if (!socket.open() && errno == EADDRNOTAVAIL) socket = listening_everywhere(port);
  if (socket.open()) return socket;
  if (errno == EADDRINUSE)
    throw Error(fmt::format("port {} of {} is in use by another program", port, host.empty() ? "this machine" : host),
                "choose another one with MASTER_PORT, the same for all processes");
  throw Error(fmt::format("cannot listen at port {}: {}", port, std::strerror(errno)));
}

Socket connect_to(const std::string& host, int64_t port, std::chrono::milliseconds limit, std::string& reason) {
  const Addresses found = resolve(host, port, reason);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) continue;
    int failed = ::connect(socket.descriptor(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (failed == EINPROGRESS) {
      pollfd ready{socket.descriptor(), POLLOUT, 0};
      socklen_t size = sizeof failed;
      if (::poll(&ready, 1, static_cast<int>(limit.count())) <= 0) {
        failed = ETIMEDOUT;
      } else if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0) {
        failed = errno;
      }
    }
    if (failed == 0) {
      ::fcntl(socket.descriptor(), F_SETFL, ::fcntl(socket.descriptor(), F_GETFL) & ~O_NONBLOCK);
      set_option(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, 1);
      return socket;
    }
    reason = std::strerror(failed);
  }
  return {};
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

}  // namespace plumb
