#include "plumb/parallel/connection.h"

#include <atomic>
#include <exception>
#include <thread>

namespace plumb {

Connection::Connection(std::shared_ptr<Membership> membership, std::string name, int64_t rank, int64_t size,
                       MakeBackend make)
    : membership_(std::move(membership)), name_(std::move(name)), rank_(rank), size_(size), make_(std::move(make)) {
  const auto made = std::make_shared<c10::intrusive_ptr<Backend>>();
  try {
    in_thread([=, make = make_, store = membership_->store_for(name_)] { *made = make(store, rank, size); });
  } catch (const std::exception& error) {
    throw lost(error);
  }
  backend_ = std::move(*made);
}

Connection::~Connection() {
  leave();
  if (failed_) {
    abandon(std::move(backend_));
  } else {
    membership_->wait_for_leaving(name_, size_);
  }
}

void Connection::leave() {
  if (!left_) membership_->leave(name_);
  left_ = true;
}

void Connection::finish(const Work& work, bool single) {
  if (single) return in_thread([work] { work->wait(); });  // it has no future, and may be waited for only once
  const auto done = std::make_shared<std::atomic<bool>>(false);
  work->getFuture()->addCallback([done, notify = membership_->notifier()](auto&) {
    *done = true;
    notify();
  });
  if (const auto what = membership_->wait([&] { return done->load(); })) throw Error(*what);
  work->wait();
}

void Connection::in_thread(const std::function<void()>& work) {
  struct State {
    std::exception_ptr error;
    std::atomic<bool> done = false;
  };
  const auto state = std::make_shared<State>();
  std::thread([work, state, notify = membership_->notifier()] {
    const BrokenPipeGuard guard;
    try {
      work();
    } catch (...) {
      state->error = std::current_exception();
    }
    state->done = true;
    notify();
  }).detach();
  if (const auto what = membership_->wait([&] { return state->done.load(); })) throw Error(*what);
  if (state->error) std::rethrow_exception(state->error);
}

std::shared_ptr<Connection> Connection::among(const std::string& name, int64_t rank, int64_t size) {
  return std::make_shared<Connection>(membership_, name_ + name, rank, size, make_);
}

Error Connection::lost(const std::exception& error) {
  failed_ = true;
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));               // LibTorch's stack trace follows on further lines
  if (dynamic_cast<const Error*>(&error) == nullptr) {  // Gloo's, which does not know which process it was
    if (const auto known = membership_->reason_of_break(name_)) what = *known;
  }
  return Error("lost another process of this run: " + what, "see that process's log; rerun to resume");
}

}  // namespace plumb
