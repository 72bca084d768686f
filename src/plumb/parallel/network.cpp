#include "plumb/parallel/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/machine.h"

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

/// This process's sockets that listen at the port.
std::vector<int> listeners_at(int64_t port) {
  std::vector<int> listeners;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    int listens = 0;
    sockaddr_in6 address{};
    socklen_t one = sizeof listens, size = sizeof address;
    const bool server = ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) == 0 && listens != 0 &&
                        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                        ntohs(address.sin6_port) == port;  // at the same place in an address of IPv4
    if (server) listeners.push_back(descriptor);
  }
  return listeners;
}

/// The same for all processes of this user, port and network.
std::string secret_path(int64_t port) {
  const uid_t user = ::geteuid();
  const std::string own = fmt::format("/run/user/{}", user);
  struct stat folder {
  }, network{};
  const bool has_own = ::stat(own.c_str(), &folder) == 0 && folder.st_uid == user;
  ::stat("/proc/self/ns/net", &network);
  return fmt::format("{}/plumb-{}-{}-{}", has_own ? own : "/tmp", user, network.st_ino, port);
}

}  // namespace

std::optional<Route> route_to(const std::string& host, int64_t port, std::string& reason) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* results = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &results); failed != 0) {
    reason = fmt::format("{}: {}", host, ::gai_strerror(failed));
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(results, ::freeaddrinfo);
  std::optional<Route> route;
  for (const addrinfo* one = results; one != nullptr && !route; one = one->ai_next) {
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
  for (const int listener : listeners_at(port)) ::setsockopt(listener, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
}

bool stop_listening(int64_t port) {
  const std::vector<int> listeners = listeners_at(port);
  for (const int listener : listeners) {
    pollfd waiting{listener, POLLIN, 0};
    if (::poll(&waiting, 1, 0) > 0) return false;
  }
  for (const int listener : listeners) {
    // The server goes on polling this descriptor, and would end if it were closed: nothing ever comes from the new one.
    const int silent = ::eventfd(0, EFD_CLOEXEC);
    ::dup3(silent, listener, O_CLOEXEC);
    ::close(silent);
  }
  return true;
}

PortSecret::PortSecret(int64_t port) : path_(secret_path(port)) {
  ::unlink(path_.c_str());
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST)
    throw Error(path_ + " belongs to another user", "choose another port with MASTER_PORT, the same for all processes");
  if (file < 0) return;
  const std::string text = random_token();
  if (::write(file, text.data(), text.size()) != std::ssize(text)) ::unlink(path_.c_str());
  ::close(file);
}

PortSecret::~PortSecret() { ::unlink(path_.c_str()); }

std::string PortSecret::read(int64_t port) {
  const int file = ::open(secret_path(port).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat status {};
  const bool own = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
                   (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  std::array<char, 64> text{};
  const ssize_t length = own ? ::read(file, text.data(), text.size()) : 0;
  if (file >= 0) ::close(file);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace plumb
