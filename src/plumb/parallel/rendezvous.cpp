#include "plumb/parallel/rendezvous.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/parallel/connection.h"

namespace plumb {
namespace {

constexpr std::chrono::milliseconds kJoin = std::chrono::minutes(5);
// One process may score or save while the others wait; one that has died is noticed by its closed connection at once.
constexpr std::chrono::milliseconds kExchange = std::chrono::hours(24 * 7);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == 0) {
    throw Error(fmt::format("WORLD_SIZE is set, but {} is not", name),
                "a rendezvous through the environment needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  return value;
}

int64_t integer(const char* name, int64_t smallest, int64_t largest) {
  const std::string text = variable(name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < smallest || value > largest)
    throw Error(fmt::format("{}={} must be an integer from {} to {}", name, text, smallest, largest));
  return value;
}

/// Keeps the store on plain sockets: LibTorch 2.4 and later ask for libuv, which not every build of it has.
template <typename Options>
void choose_plain_sockets(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

/// The key-value store that rank 0 serves, by which the ranks learn each other's addresses.
c10::intrusive_ptr<c10d::TCPStore> open_store(const Rendezvous& rendezvous) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(rendezvous.port);
  options.isServer = rendezvous.rank == 0;
  options.numWorkers = static_cast<size_t>(rendezvous.size);
  options.waitWorkers = false;
  options.timeout = kJoin;
  choose_plain_sockets(options);
  return c10::make_intrusive<c10d::TCPStore>(rendezvous.host, options);
}

/// Waits for every rank, before any waits inside of Gloo, which could not call `reception.waiting`.
void wait_for_all(c10d::TCPStore& store, const Rendezvous& rendezvous, const Reception& reception) {
  store.add("joined", 1);
  const Stopwatch watch;
  while (store.add("joined", 0) < rendezvous.size) {
    if (reception.waiting) reception.waiting();
    if (watch.seconds() > std::chrono::duration<double>(kJoin).count())
      throw Error("the other processes have not joined", "see their logs");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Connection::Options gloo_options(const Rendezvous& rendezvous) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->timeout = kExchange;
  const bool local = rendezvous.host == "127.0.0.1" || rendezvous.host == "localhost";
  options->devices.push_back(local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                   : c10d::ProcessGroupGloo::createDefaultDevice());
  return options;
}

}  // namespace

std::optional<Rendezvous> rendezvous_of_environment() {
  const char* size = std::getenv("WORLD_SIZE");
  if (size == nullptr || *size == 0) return std::nullopt;
  Rendezvous rendezvous;
  rendezvous.size = integer("WORLD_SIZE", 1, 1 << 16);
  rendezvous.rank = integer("RANK", 0, rendezvous.size - 1);
  rendezvous.host = variable("MASTER_ADDR");
  rendezvous.port = integer("MASTER_PORT", 1, 65535);
  return rendezvous;
}

Group meet(const Rendezvous& rendezvous, const Reception& reception) {
  if (rendezvous.size == 1) return {};
  try {
    const auto store = open_store(rendezvous);
    if (reception.listening && rendezvous.rank == 0) reception.listening(store->getPort());
    wait_for_all(*store, rendezvous, reception);
    const BrokenPipeGuard guard;
    return Group(std::make_shared<Connection>(store, rendezvous.rank, rendezvous.size, gloo_options(rendezvous)));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw Error(fmt::format("process {} of {} cannot join the others at {}:{}: {}", rendezvous.rank, rendezvous.size,
                            rendezvous.host, rendezvous.port, text.substr(0, text.find('\n'))));
  }
}

}  // namespace plumb
