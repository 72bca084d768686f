#include "plumb/parallel/connection.h"

#include <atomic>
#include <thread>

#include "plumb/parallel/register_store.h"

namespace plumb {
namespace {

// One process may score or save while the others wait. Heartbeats, not this time-out, detect a lost process.
constexpr std::chrono::milliseconds kExchange = std::chrono::hours(24 * 7);
constexpr std::chrono::milliseconds kNews = std::chrono::seconds(2);

/// A connection being made in a separate thread: if another process is lost meanwhile, Gloo would keep waiting.
struct Connecting {
  c10::intrusive_ptr<Gloo> gloo;
  std::exception_ptr error;
  std::atomic<bool> done = false;
};

/// The message without LibTorch's stack trace, which follows on further lines.
std::string first_line_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

void Gloo::set_timeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
  for (const auto& context : contexts_) context->setTimeout(timeout);
}

void Gloo::close() {
  for (const auto& context : contexts_) context->closeConnections();
}

Connection::Connection(std::shared_ptr<Assembly> assembly, std::string name, int64_t rank, int64_t size,
                       Options options)
    : assembly_(std::move(assembly)), name_(std::move(name)), rank_(rank), size_(size), time_out_(options->timeout) {
  Membership& membership = *assembly_->membership;
  const auto connecting = std::make_shared<Connecting>();
  std::thread([connecting, monitor = membership.monitor(), rank, size, options = std::move(options),
               store = c10::intrusive_ptr<c10d::Store>(
                   c10::make_intrusive<RegisterStore>(assembly_->membership, "gloo " + name_ + "/"))] {
    const BrokenPipeGuard guard;  // Gloo starts threads
    try {
      auto gloo = c10::make_intrusive<Gloo>(store, static_cast<int>(rank), static_cast<int>(size), options);
      gloo->barrier()->wait();  // a connected rank might leave while others are still connecting
      gloo->set_timeout(kExchange);
      connecting->gloo = std::move(gloo);
    } catch (...) {
      connecting->error = std::current_exception();
    }
    connecting->done = true;
    monitor->notify();
  }).detach();
  const auto what = membership.wait([&] { return connecting->done.load(); }, name_, 0);
  if (what) throw Error("lost another process of this run: " + *what, "see that process's log; rerun to resume");
  if (connecting->error) {
    try {
      std::rethrow_exception(connecting->error);
    } catch (const std::exception& error) {
      throw lost(error);
    }
  }
  gloo_ = std::move(connecting->gloo);
}

Connection::~Connection() {
  leave();
  if (failed_) {
    gloo_->close();  // otherwise, Gloo's thread would spin on incoming data that nobody consumes
    // Leaked: a failed operation may block one of Gloo's threads, for which its destructor would wait.
    static_cast<void>(gloo_.release());
  } else {
    assembly_->membership->wait_for_leaving(name_, size_);
  }
}

void Connection::leave() {
  if (!left_) assembly_->membership->leave(name_, exchanges_, rank_);
  left_ = true;
}

void Connection::begin(bool single) {
  if (failed_) throw Error("lost another process of this run", "rerun to resume");
  if (!single) ++exchanges_;
  assembly_->membership->begin_exchange();
}

void Connection::end(int64_t bytes, double seconds) {
  assembly_->membership->end_exchange();
  cost_.seconds += seconds;
  cost_.bytes += bytes;
  ++cost_.calls;
}

void Connection::finish(const Work& work, bool single) {
  struct State {
    std::atomic<bool> done = false;
    std::exception_ptr error;  // of a message
  };
  const auto state = std::make_shared<State>();
  const auto tell = [state, monitor = assembly_->membership->monitor()] {
    state->done = true;
    monitor->notify();
  };
  if (single) {  // has no future, and may be waited for only once
    std::thread([work, state, tell] {
      const BrokenPipeGuard guard;
      try {
        work->wait();
      } catch (...) {
        state->error = std::current_exception();
      }
      tell();
    }).detach();
  } else {
    work->getFuture()->addCallback([tell](auto&) { tell(); });
  }
  // A message of a rank that has left since may still be on its way.
  const auto what = assembly_->membership->wait([&] { return state->done.load(); }, name_, single ? 0 : exchanges_);
  if (what) throw Error(*what);
  if (state->error) std::rethrow_exception(state->error);
  if (!single) work->wait();
}

std::shared_ptr<Connection> Connection::among(const std::string& name, int64_t rank, int64_t size) {
  const Options own = gloo_->getOptions();  // its time-out is that of exchanges
  Options options = c10d::ProcessGroupGloo::Options::create();
  options->timeout = time_out_;
  options->devices = own->devices;
  options->threads = own->threads;
  return std::make_shared<Connection>(assembly_, name_ + name, rank, size, std::move(options));
}

void Connection::require_present(int64_t rank) {
  if (const auto what = assembly_->membership->left(name_, rank)) throw lost(Error(*what));
}

Error Connection::lost(const std::exception& error) {
  failed_ = true;
  std::string what = first_line_of(error);
  if (dynamic_cast<const Error*>(&error) == nullptr) {  // Gloo's: the register knows which process it was
    if (const auto known = assembly_->membership->news_within(kNews, name_)) what = *known;
  }
  return Error("lost another process of this run: " + what, "see that process's log; rerun to resume");
}

}  // namespace plumb
