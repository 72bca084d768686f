#include "plumb/train/processes.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/timing.h"

namespace plumb {
namespace {

constexpr std::chrono::milliseconds kJoin = std::chrono::minutes(5);
// One process may score or save while the others wait; one that has died is noticed by its closed connection at once.
constexpr std::chrono::milliseconds kExchange = std::chrono::hours(24 * 7);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == 0) {
    throw Error(fmt::format("WORLD_SIZE is set, but {} is not", name),
                "processes that meet by their environment need RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
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

/// Without LibTorch's stack trace, and what it may mean.
Error lost(const std::exception& error) {
  const std::string text = error.what();
  return Error("lost another process of this run: " + text.substr(0, text.find('\n')),
               "what ended it stands in its own messages; the run goes on from its last checkpoint");
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

struct ProcessGroup::Connection {
  Connection(const Rendezvous& rendezvous, const Reception& reception) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(rendezvous.port);
    options.isServer = rendezvous.rank == 0;
    options.numWorkers = static_cast<size_t>(rendezvous.size);
    options.waitWorkers = false;
    options.timeout = kJoin;
    store = c10::make_intrusive<c10d::TCPStore>(rendezvous.host, options);
    if (reception.listening && rendezvous.rank == 0) reception.listening(store->getPort());
    // Each says that it has come before any waits inside of Gloo, where nobody could ask after the others.
    store->add("come", 1);
    const Stopwatch watch;
    while (store->add("come", 0) < rendezvous.size) {
      if (reception.waiting) reception.waiting();
      if (watch.seconds() > std::chrono::duration<double>(kJoin).count())
        throw Error("the other processes have not come");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const auto gloo = c10d::ProcessGroupGloo::Options::create();
    gloo->timeout = kExchange;
    const bool local = rendezvous.host == "127.0.0.1" || rendezvous.host == "localhost";
    gloo->devices.push_back(local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                  : c10d::ProcessGroupGloo::createDefaultDevice());
    group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rendezvous.rank),
                                                        static_cast<int>(rendezvous.size), gloo);
  }

  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
};

namespace {

/// Linear and its own adjoint, so its derivative is the same operation, to any order.
class Summed : public torch::autograd::Function<Summed> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t group) {
    ctx->saved_data["group"] = group;
    Tensor sum = x.detach().contiguous().clone();
    reinterpret_cast<ProcessGroup*>(group)->sum(sum);
    return sum;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grad) {
    return {Summed::apply(grad[0], ctx->saved_data["group"].toInt()), Tensor()};
  }
};

}  // namespace

ProcessGroup::ProcessGroup(const Rendezvous& rendezvous, const Reception& reception)
    : rank_(rendezvous.rank), size_(rendezvous.size) {
  try {
    connection_ = std::make_unique<Connection>(rendezvous, reception);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format("process {} of {} cannot join the others at {}:{}: {}", rank_, size_, rendezvous.host,
                            rendezvous.port, std::string(error.what()).substr(0, std::strcspn(error.what(), "\n"))));
  }
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::sum(Tensor x) {
  const Stopwatch watch;
  std::vector<Tensor> tensors{x.detach()};
  try {
    connection_->group->allreduce(tensors)->wait();
  } catch (const std::exception& error) {
    throw lost(error);
  }
  cost_.seconds += watch.seconds();
  cost_.bytes += x.numel() * static_cast<int64_t>(x.element_size());
  ++cost_.calls;
}

Tensor ProcessGroup::summed(const Tensor& x) { return Summed::apply(x, reinterpret_cast<int64_t>(this)); }

void ProcessGroup::take_from_first(Tensor x) {
  const Tensor values = x.detach();
  if (rank_ != 0) values.zero_();
  sum(values);
}

std::string ProcessGroup::take_from_first(const std::string& text) {
  const Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  take_from_first(size);
  const Tensor bytes = at::zeros({size.item<int64_t>()}, at::kByte);
  if (rank_ == 0) std::memcpy(bytes.data_ptr<uint8_t>(), text.data(), text.size());
  sum(bytes);
  return {reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()), static_cast<size_t>(bytes.numel())};
}

}  // namespace plumb
