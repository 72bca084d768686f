#include "plumb/parallel/rendezvous.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/parallel/connection.h"
#include "plumb/parallel/gloo.h"
#include "plumb/parallel/membership.h"

namespace plumb {
namespace {

/// Makes groups that are connected by Gloo.
MakeBackend gloo_backends(const Rendezvous& rendezvous, const Membership& membership) {
  GlooDevices devices;
  const char* interfaces = std::getenv("GLOO_SOCKET_IFNAME");
  if (interfaces != nullptr && *interfaces != '\0') {
    for (const std::string& interface : split(interfaces, ',')) {
      try {
        devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
      } catch (const std::exception&) {
        throw Error(fmt::format("GLOO_SOCKET_IFNAME={}: this machine has no interface '{}' with an address", interfaces,
                                interface),
                    "`ip address` lists the interfaces");
      }
    }
  }
  if (devices.empty()) devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(membership.own_address()));
  return make_gloo(std::move(devices), std::chrono::milliseconds(static_cast<int64_t>(rendezvous.join_limit * 1000)));
}

}  // namespace

Group join_group(const Rendezvous& rendezvous, const JoinEvents& events) {
  if (rendezvous.size == 1) return {};
  const auto membership = std::make_shared<Membership>(rendezvous);
  std::exception_ptr callback_error;  // by the caller's callback
  const auto waiting = [&] {
    if (!events.waiting) return;
    try {
      events.waiting();
    } catch (...) {
      callback_error = std::current_exception();
      throw;
    }
  };
  try {
    membership->connect({events.listening, waiting});
    membership->join(waiting);
    const BrokenPipeGuard guard;
    return Group(std::make_shared<Connection>(membership, "all", rendezvous.rank, rendezvous.size,
                                              gloo_backends(rendezvous, *membership)));
  } catch (const std::exception& error) {
    if (callback_error) std::rethrow_exception(callback_error);
    const auto* own = dynamic_cast<const Error*>(&error);
    const std::string what = error.what(), reason = what.substr(0, what.find('\n'));
    membership->fail(reason);
    throw Error(fmt::format("process {} of {} cannot join the others at {}:{}: {}", rendezvous.rank, rendezvous.size,
                            rendezvous.host, rendezvous.port, reason),
                own == nullptr ? "" : own->hint());
  }
}

void refuse_to_join(const Rendezvous& rendezvous, const std::string& reason, double limit) {
  if (rendezvous.size == 1) return;
  Rendezvous limited = rendezvous;
  limited.join_limit = limit;
  try {
    Membership membership(limited);
    membership.connect({});
    membership.fail(reason);
    if (rendezvous.rank == 0)
      membership.wait_for_others(true, std::chrono::milliseconds(static_cast<int64_t>(limit * 1000)));
  } catch (const std::exception&) {  // nobody is there, or another process has failed first
  }
}

}  // namespace plumb
