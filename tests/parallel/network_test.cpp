#include "plumb/parallel/network.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace plumb {
namespace {

/// Whether this process now has a network of its own, whose loopback interface gives this port to every new socket.
bool enter_network_with_one_port(int port) {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (::ioctl(socket, SIOCSIFFLAGS, &loopback) != 0) return false;
  ::close(socket);
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << port << ' ' << port << std::flush;
  return range.good();
}

// Linux connects a socket to itself if the wanted port is the one that it gets: polling a server that is not there yet
// would find one.
TEST(Network, ASocketThatIsConnectedToItselfIsNoServer) {
  enum { kRefused, kFound, kNoNamespace };
  const pid_t child = ::fork();
  if (child == 0) {
    if (!enter_network_with_one_port(40000)) ::_exit(kNoNamespace);
    std::string reason;
    const bool found = route_to("127.0.0.1", 40000, reason).has_value();
    ::_exit(!found && reason == std::strerror(ECONNREFUSED) ? kRefused : kFound);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "network namespaces are not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), kRefused);
}

}  // namespace
}  // namespace plumb
