// Addresses of machines. Only used in this folder.
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

}  // namespace plumb
