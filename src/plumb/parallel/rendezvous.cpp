#include "plumb/parallel/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/parallel/agent_store.h"
#include "plumb/parallel/connection.h"

namespace plumb {
namespace {

struct Place {
  std::string host;
  int64_t port = 0;
};

/// Starts the register on rank 0. It listens only at the address of `host`, or at all addresses if other machines must
/// reach it but this machine resolves `host` to a loopback address, as Debian does with a machine's own name.
std::unique_ptr<Register> keep_register(const Rendezvous& rendezvous, const std::string& host) {
  Register::Settings settings{.host = host,
                              .port = rendezvous.agent_store ? 0 : rendezvous.port,
                              .size = rendezvous.size,
                              .token = rendezvous.token,
                              .timeout = rendezvous.timeout,
                              .standstill = rendezvous.standstill.value_or(10 * rendezvous.timeout),
                              .join_limit = rendezvous.join_limit};
  auto keeper = std::make_unique<Register>(settings);
  const bool alone = rendezvous.local_size == rendezvous.size || is_loopback(host);
  if (alone || !is_loopback(keeper->address())) return keeper;
  keeper.reset();
  settings.host.clear();
  return std::make_unique<Register>(settings);
}

/// The register's host and port. On rank 0, starts it first.
Place place_of_register(const Rendezvous& rendezvous, const Reception& reception, Assembly& assembly) {
  std::optional<AgentStore> agent;
  if (rendezvous.agent_store) agent.emplace(rendezvous.host, rendezvous.port, rendezvous.join_limit, reception.waiting);
  if (rendezvous.rank == 0) {
    const bool here = agent && is_loopback(agent->own_address());  // torchrun's store is on this machine
    const std::string host = agent && !here ? agent->own_address() : rendezvous.host;
    assembly.keeper = keep_register(rendezvous, host);
    if (agent) agent->set(rendezvous.agent_key, fmt::format("{} {}", assembly.keeper->port(), host));
    if (reception.listening) reception.listening(assembly.keeper->port());
    return {assembly.keeper->address(), assembly.keeper->port()};
  }
  if (!agent) return {rendezvous.host, rendezvous.port};
  const std::string told = agent->get(rendezvous.agent_key, rendezvous.join_limit, reception.waiting);
  const size_t space = told.find(' ');
  if (space == std::string::npos) throw Error("rank 0 has left no address in torchrun's store");
  return {told.substr(space + 1), std::strtoll(told.c_str(), nullptr, 10)};
}

Connection::Options gloo_options(const Rendezvous& rendezvous, const Membership& membership) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->timeout = std::chrono::milliseconds(static_cast<int64_t>(rendezvous.join_limit * 1000));
  const char* interfaces = std::getenv("GLOO_SOCKET_IFNAME");
  if (interfaces != nullptr && *interfaces != '\0') {
    for (const std::string& interface : split(interfaces, ',')) {
      try {
        options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
      } catch (const std::exception&) {
        throw Error(fmt::format("GLOO_SOCKET_IFNAME={}: this machine has no interface '{}' with an address", interfaces,
                                interface),
                    "`ip address` lists the interfaces");
      }
    }
    return options;
  }
  const std::string& known = membership.members()[static_cast<size_t>(rendezvous.rank)].address;
  const std::string& own = membership.own_address();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(is_loopback(own) ? known : own));
  return options;
}

/// Joins the register. Returns when all have joined.
std::shared_ptr<Membership> join_register(const Rendezvous& rendezvous, const Reception& reception,
                                          Assembly& assembly) {
  const Place place = place_of_register(rendezvous, reception, assembly);
  return std::make_shared<Membership>(place.host, place.port,
                                      Membership::Settings{.token = rendezvous.token,
                                                           .rank = rendezvous.rank,
                                                           .size = rendezvous.size,
                                                           .timeout = rendezvous.timeout,
                                                           .join_limit = rendezvous.join_limit},
                                      reception.waiting);
}

int64_t neighbors(const Rendezvous& rendezvous, const std::vector<Member>& members) {
  const std::string& own = members[static_cast<size_t>(rendezvous.rank)].machine;
  return std::count_if(members.begin(), members.end(), [&](const Member& each) { return each.machine == own; });
}

}  // namespace

Group meet(const Rendezvous& rendezvous, const Reception& reception) {
  if (rendezvous.size == 1) return {};
  const auto assembly = std::make_shared<Assembly>();
  const auto cannot_join = [&](const std::string& why, const std::string& hint) {
    const std::string reason = why.substr(0, why.find('\n'));
    if (assembly->membership) assembly->membership->fail(reason);
    return Error(fmt::format("process {} of {} cannot join the others at {}:{}: {}", rendezvous.rank, rendezvous.size,
                             rendezvous.host, rendezvous.port, reason),
                 hint);
  };
  std::exception_ptr thrown;  // by the caller's callback
  const auto waiting = [&] {
    if (!reception.waiting) return;
    try {
      reception.waiting();
    } catch (...) {
      thrown = std::current_exception();
      throw;
    }
  };
  try {
    const Reception watched{reception.listening, waiting};
    assembly->membership = join_register(rendezvous, watched, *assembly);
    Membership& membership = *assembly->membership;
    assembly->neighbors = neighbors(rendezvous, membership.members());
    const BrokenPipeGuard guard;
    auto options = gloo_options(rendezvous, membership);
    return Group(std::make_shared<Connection>(assembly, "all", rendezvous.rank, rendezvous.size, std::move(options)));
  } catch (const Error& error) {
    if (thrown) std::rethrow_exception(thrown);
    throw cannot_join(error.what(), error.hint());
  } catch (const std::exception& error) {
    if (thrown) std::rethrow_exception(thrown);
    throw cannot_join(error.what(), {});
  }
}

void decline(const Rendezvous& rendezvous, const std::string& reason, double limit) {
  if (rendezvous.size == 1) return;
  Rendezvous limited = rendezvous;
  limited.join_limit = limit;
  try {
    Assembly assembly;
    assembly.membership = join_register(limited, {}, assembly);
    assembly.membership->fail(reason);
  } catch (const std::exception&) {  // nobody is there, or another process has failed first
  }
}

}  // namespace plumb
