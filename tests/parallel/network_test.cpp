#include "plumb/parallel/network.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

TEST(Network, AServerThatIsClosedKeepsItsConnections) {
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  ASSERT_TRUE(::bind(server, place, size) == 0 && ::listen(server, 5) == 0 && ::getsockname(server, place, &size) == 0);
  const int64_t port = ntohs(address.sin_port);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(client, place, size), 0);
  EXPECT_FALSE(stop_listening(port)) << "would have lost a connection";
  const int accepted = ::accept(server, nullptr, nullptr);
  EXPECT_TRUE(stop_listening(port));
  std::string reason;
  EXPECT_FALSE(route_to("127.0.0.1", port, reason));
  char byte = 0;
  EXPECT_EQ(::write(client, "x", 1), 1);
  EXPECT_EQ(::read(accepted, &byte, 1), 1);
  pollfd silent{server, POLLIN, 0};
  EXPECT_EQ(::poll(&silent, 1, 0), 0);
  for (const int descriptor : {server, client, accepted}) ::close(descriptor);
}

/// What a user may read who is not this one.
mode_t rights_of_others(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & (S_IRWXG | S_IRWXO) : ~mode_t{0};
}

TEST(Network, ASecretOfAPortIsForOneUser) {
  constexpr int64_t kPort = 1;  // at which no run listens
  std::string first;
  {
    const PortSecret secret(kPort);
    first = PortSecret::read(kPort);
    EXPECT_EQ(first.size(), 32U);
    EXPECT_EQ(rights_of_others(secret.path()), 0U);
    ::chmod(secret.path().c_str(), 0644);
    EXPECT_EQ(PortSecret::read(kPort), "") << "others could read it";
    const PortSecret later(kPort);
    EXPECT_EQ(PortSecret::read(kPort).size(), 32U);
    EXPECT_NE(PortSecret::read(kPort), first);
    // A link in its place leads nowhere.
    const std::string target = secret.path() + "-target";
    ASSERT_EQ(::rename(secret.path().c_str(), target.c_str()), 0);
    ASSERT_EQ(::symlink(target.c_str(), secret.path().c_str()), 0);
    EXPECT_EQ(PortSecret::read(kPort), "");
    EXPECT_NO_THROW(const PortSecret anew(kPort));
    EXPECT_EQ(::unlink(target.c_str()), 0);
  }
  EXPECT_EQ(PortSecret::read(kPort), "");
}

}  // namespace
}  // namespace plumb
