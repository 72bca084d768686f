#include "plumb/parallel/network.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

namespace plumb {
namespace {

constexpr time_t kAttempt = 3;     // seconds
constexpr int kGreetingTime = 20;  // milliseconds

std::string numeric(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text.data(), text.size(), nullptr, 0,
                NI_NUMERICHOST);
  return text.data();
}

}  // namespace

std::optional<Route> route_to(const std::string& host, int64_t port, std::string& reason) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); failed != 0) {
    reason = fmt::format("{}: {}", host, ::gai_strerror(failed));
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  std::optional<Route> route;
  for (const addrinfo* one = found; one != nullptr && !route; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval time{kAttempt, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);  // also of connecting
    sockaddr_storage own{}, other{};
    socklen_t own_size = sizeof own, other_size = sizeof other;
    if (::connect(socket, one->ai_addr, one->ai_addrlen) != 0) {
      reason = std::strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
    } else if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
               ::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &other_size) == 0) {
      if (own_size == other_size && std::memcmp(&own, &other, own_size) == 0) {
        // Nobody listens: the kernel chose the wanted port as this socket's own, which TCP then connects to itself.
        reason = std::strerror(ECONNREFUSED);
        ::close(socket);
        continue;
      }
      pollfd unasked{socket, POLLIN, 0};
      const bool speaks_first = ::poll(&unasked, 1, kGreetingTime) > 0;
      route = {numeric(own, own_size), numeric(other, other_size), speaks_first};
    }
    if (socket >= 0) ::close(socket);
  }
  return route;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

void keep_on_loopback(int64_t port) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    int listens = 0;
    sockaddr_in6 address{};
    socklen_t one = sizeof listens, size = sizeof address;
    const bool server = ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) == 0 && listens != 0 &&
                        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                        ntohs(address.sin6_port) == port;  // at the same place in an address of IPv4
    if (server) ::setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
  }
}

}  // namespace plumb
