// Addresses of machines, and who may connect to a server. Only used in this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace plumb {

/// A TCP connection to a server.
struct Route {
  std::string own, other;     // the numeric addresses of its ends
  bool speaks_first = false;  // whether the server sends something unasked, or closes the connection
};

/// The route to a server that listens there, found by connecting once; nullopt, with the reason, if it cannot be
/// reached.
std::optional<Route> route_to(const std::string& host, int64_t port, std::string& reason);

/// Whether a numeric address, or the name "localhost", is a loopback address.
bool is_loopback(const std::string& address);

/// Makes this process's server at the port accept connections over the loopback interface only. Without effect before
/// Linux 5.7.
void keep_on_loopback(int64_t port);

/// Closes this process's server at the port to further connections; those that it has accepted stay. Returns false, and
/// does nothing, while some wait to be accepted.
bool stop_listening(int64_t port);

/// A random text that the processes of one user on one machine share: a file that only this user can read, named after
/// the port of a server, in /run/user/UID or /tmp.
class PortSecret {
 public:
  /// Makes it, in place of what a killed process has left. Throws Error if another user's file has its name.
  explicit PortSecret(int64_t port);
  /// Removes the file.
  ~PortSecret();
  PortSecret(const PortSecret&) = delete;
  PortSecret& operator=(const PortSecret&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// What the process that has the server has made; empty if it could not write the file.
  [[nodiscard]] static std::string read(int64_t port);

 private:
  std::string path_;
};

}  // namespace plumb
