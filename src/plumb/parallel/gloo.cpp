#include "plumb/parallel/gloo.h"

namespace plumb {
namespace {

// One process may score or save while the others wait. Heartbeats, not this time-out, detect a lost process.
constexpr std::chrono::milliseconds kExchange = std::chrono::hours(24 * 7);

/// Gloo with connections whose time-out can change, and which can be closed.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;

  void set_timeout(std::chrono::milliseconds timeout) {
    options_->timeout = timeout;
    for (const auto& context : contexts_) context->setTimeout(timeout);
  }
  /// Otherwise, threads would spin: Gloo's on incoming data that nobody consumes, the store's when its server has
  /// ended.
  void close() {
    for (const auto& context : contexts_) context->closeConnections();
    store_.reset();
  }
};

}  // namespace

MakeBackend make_gloo(GlooDevices devices, std::chrono::milliseconds timeout) {
  return [devices = std::move(devices), timeout](const c10::intrusive_ptr<c10d::Store>& store, int64_t rank,
                                                 int64_t size) {
    const auto own = c10d::ProcessGroupGloo::Options::create();
    own->timeout = timeout;
    own->devices = devices;
    auto gloo = c10::make_intrusive<Gloo>(store, static_cast<int>(rank), static_cast<int>(size), own);
    gloo->barrier()->wait();  // a connected rank might leave while others are still connecting
    gloo->set_timeout(kExchange);
    return c10::intrusive_ptr<Backend>(std::move(gloo));
  };
}

void abandon(c10::intrusive_ptr<Backend> backend) {
  if (auto* gloo = dynamic_cast<Gloo*>(backend.get())) gloo->close();
  static_cast<void>(backend.release());
}

}  // namespace plumb
