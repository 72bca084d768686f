#include "plumb/parallel/register.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

constexpr double kIntroduction = 10;  // seconds that a connection may take to introduce itself
constexpr double kServeAfterEnd = 3;  // seconds that the others may take to finish after rank 0
constexpr double kIdle = 0.05;        // a process that uses no more than this fraction of one processor is idle

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

int64_t beat_interval(double timeout) { return static_cast<int64_t>(std::clamp(timeout * 250, 10.0, 1000.0)); }

std::string describe_process(int64_t rank, const std::string& process, const std::string& host) {
  return fmt::format("rank {} (process {} on {})", rank, process, host);
}

Register::Register(const Settings& settings)
    : settings_(settings), listener_(listen_at(settings.host, settings.port)), wake_(::eventfd(0, EFD_CLOEXEC)) {
  port_ = listener_.local_port();
  thread_ = std::thread([this] { serve(); });
}

Register::~Register() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
  thread_.join();
}

std::string Register::address() const {
  const std::string address = listener_.local_address();
  return address == "::" || address == "0.0.0.0" ? "127.0.0.1" : address;
}

void Register::serve() {
  std::optional<Clock::time_point> ending;
  for (;;) {
    std::vector<pollfd> ready = {{wake_.descriptor(), static_cast<short>(ending ? 0 : POLLIN), 0},
                                 {listener_.descriptor(), POLLIN, 0}};
    for (const Peer& peer : peers_)
      ready.push_back({peer.socket.descriptor(), static_cast<short>(POLLIN | (peer.out.empty() ? 0 : POLLOUT)), 0});
    ::poll(ready.data(), ready.size(), static_cast<int>(ending ? 10 : beat_interval(settings_.timeout)));
    if (ready[0].revents != 0) ending = Clock::now();
    size_t index = 2;
    for (Peer& peer : peers_) {
      if (ready[index++].revents != 0) read_from(peer);
    }
    if (ready[1].revents != 0) accept_all();
    check(Clock::now());
    for (Peer& peer : peers_) write_to(peer);
    std::erase_if(peers_, [](const Peer& peer) { return !peer.socket.open() || (peer.closing && peer.out.empty()); });
    if (ending && (peers_.empty() || lost_ || seconds_between(*ending, Clock::now()) > kServeAfterEnd)) return;
  }
}

void Register::accept_all() {
  for (;;) {
    Socket socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    Peer& peer = peers_.emplace_back();
    peer.socket = std::move(socket);
    peer.heard = Clock::now();
  }
}

void Register::read_from(Peer& peer) {
  std::array<char, 65536> bytes;
  while (peer.socket.open()) {
    const ssize_t got = ::recv(peer.socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return end(peer);
    peer.heard = Clock::now();
    try {
      peer.in.append({bytes.data(), static_cast<size_t>(got)});
      while (const auto frame = peer.in.next()) handle(peer, *frame);
    } catch (const Error&) {  // a program with another protocol
      return end(peer);
    }
  }
}

void Register::write_to(Peer& peer) const {
  while (peer.socket.open() && !peer.out.empty()) {
    const ssize_t sent = ::send(peer.socket.descriptor(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // busy; a lost connection is noticed when reading
    peer.out.erase(0, static_cast<size_t>(sent));
  }
}

void Register::handle(Peer& peer, const Frame& frame) {
  if (peer.rank < 0) return frame.kind == FrameKind::hello ? welcome(peer, frame) : end(peer);
  const auto field = [&](size_t i) -> const std::string& {
    if (i >= frame.fields.size()) throw Error("a message lacks a field");
    return frame.fields[i];
  };
  switch (frame.kind) {
    case FrameKind::set:
      values_[field(0)] = field(1);
      return answer_waiting(field(0));
    case FrameKind::get:
      peer.awaited = field(0);
      return answer_waiting(field(0));
    case FrameKind::add: {
      std::string& value = values_[field(0)];
      int64_t sum = 0;
      std::from_chars(value.data(), value.data() + value.size(), sum);
      value = std::to_string(sum + number_in(frame, 1));
      peer.out += encode({FrameKind::value, {value}});
      return answer_waiting(field(0));
    }
    case FrameKind::left:
      return tell_all({FrameKind::gone, {std::to_string(peer.rank), field(0), field(1), field(2)}});
    case FrameKind::failed:
      peer.failure = field(0);
      return lose(peer.rank, describe_process(peer.rank, peer.process, peer.host) + " has failed: " + peer.failure);
    case FrameKind::goodbye:
      peer.goodbye = true;
      return;
    case FrameKind::beat:
      return beat(peer, frame);
    default:
      return end(peer);
  }
}

void Register::beat(Peer& peer, const Frame& frame) {
  peer.exchanges = number_in(frame, 0);
  peer.exchanging = number_in(frame, 1) != 0;
  const int64_t used = number_in(frame, 2), moved = number_in(frame, 3);
  const double seconds = static_cast<double>(used - peer.processor_time) / 1000;
  const bool computes = seconds > kIdle * seconds_between(peer.beaten, peer.heard);
  if (peer.exchanging || computes || moved != peer.moved) peer.worked = peer.heard;
  peer.processor_time = used;
  peer.moved = moved;
  peer.beaten = peer.heard;
}

void Register::welcome(Peer& peer, const Frame& hello) {
  const auto refuse = [&](const std::string& reason) {
    peer.out += encode({FrameKind::refused, {reason}});
    peer.closing = true;
  };
  if (hello.fields.empty() || hello.fields[0] != kGreeting)
    return refuse("rank 0 runs Plumb " PLUMB_VERSION ", and this process speaks another protocol");
  if (hello.fields.size() != 8 || hello.fields[1] != settings_.token)
    return refuse("another run uses this address and port");
  const int64_t rank = number_in(hello, 2), size = number_in(hello, 3);
  const std::string who = describe_process(rank, hello.fields[5], hello.fields[4]);
  if (hello.fields[7] != PLUMB_VERSION) {
    const std::string reason =
        fmt::format("{} runs Plumb {}, but rank 0 runs Plumb " PLUMB_VERSION, who, hello.fields[7]);
    refuse(reason);
    return lose(rank, reason);
  }
  if (size != settings_.size) {
    const std::string reason =
        fmt::format("{} belongs to a run of {} processes, but rank 0 to one of {}", who, size, settings_.size);
    refuse(reason);
    return lose(rank, reason);
  }
  for (const Peer& other : peers_) {
    if (other.rank == rank)
      return refuse(fmt::format("{} has already joined", describe_process(rank, other.process, other.host)));
  }
  if (rank < 0 || rank >= size || complete_) return refuse(fmt::format("there is no place for rank {}", rank));
  peer.rank = rank;
  peer.host = hello.fields[4];
  peer.process = hello.fields[5];
  peer.machine = hello.fields[6];
  peer.beaten = peer.worked = peer.heard;
  if (lost_) {
    peer.out += encode(*lost_);
    return;
  }
  const auto joined = std::count_if(peers_.begin(), peers_.end(), [](const Peer& each) { return each.rank >= 0; });
  if (joined == settings_.size) complete();
}

void Register::complete() {
  complete_ = true;
  // The address by which other machines reach this one.
  std::string outward;
  for (const Peer& peer : peers_) {
    if (peer.rank >= 0 && !is_loopback(peer.socket.remote_address())) outward = peer.socket.local_address();
  }
  std::vector<std::string> fields(static_cast<size_t>(4 * settings_.size));
  for (const Peer& peer : peers_) {
    if (peer.rank < 0) continue;
    const std::string remote = peer.socket.remote_address();
    const auto at = static_cast<size_t>(4 * peer.rank);
    fields[at] = peer.host;
    fields[at + 1] = is_loopback(remote) && !outward.empty() ? outward : remote;
    fields[at + 2] = peer.process;
    fields[at + 3] = peer.machine;
  }
  tell_all({FrameKind::complete, std::move(fields)});
}

void Register::answer_waiting(const std::string& key) {
  const auto value = values_.find(key);
  if (value == values_.end()) return;
  for (Peer& peer : peers_) {
    if (peer.awaited != key) continue;
    peer.out += encode({FrameKind::value, {value->second}});
    peer.awaited.reset();
  }
}

void Register::end(Peer& peer) {
  peer.socket.close();
  if (peer.rank < 0 || peer.goodbye) return;
  lose(peer.rank, describe_process(peer.rank, peer.process, peer.host) + " has died");
}

void Register::check(Clock::time_point now) {
  const auto gap = now - checked_;
  checked_ = now;
  if (std::chrono::duration<double>(gap).count() > kStopped) {
    for (Peer& peer : peers_) {
      peer.heard += gap;
      peer.beaten += gap;
      peer.worked += gap;
    }
    common_since_ += gap;
    begin_ += complete_ ? Clock::duration(0) : gap;
  }
  if (seconds_between(beaten_, now) * 1000 >= static_cast<double>(beat_interval(settings_.timeout))) {
    beaten_ = now;
    tell_all({FrameKind::beat, {}});
  }
  int64_t in_exchange = 0, first = -1, last = -1;
  for (Peer& peer : peers_) {
    const double silence = seconds_between(peer.heard, now);
    if (peer.rank < 0) {
      if (silence > kIntroduction) peer.closing = true;
      continue;
    }
    if (silence > settings_.timeout) {
      lose(peer.rank,
           fmt::format("{} has sent no heartbeat for {:.3g} s: it is stopped, or its machine or network is down",
                       describe_process(peer.rank, peer.process, peer.host), settings_.timeout));
    }
    in_exchange += peer.exchanging ? 1 : 0;
    first = first < 0 ? peer.exchanges : std::min(first, peer.exchanges);
    last = std::max(last, peer.exchanges);
  }
  // A process neither computes nor exchanges while others wait.
  for (Peer& peer : peers_) {
    if (in_exchange == 0) peer.worked = now;
    if (!complete_ || peer.rank < 0 || peer.exchanging || peer.goodbye) continue;
    const double idle = seconds_between(peer.worked, now);
    if (idle <= settings_.standstill) continue;
    lose(peer.rank, fmt::format("{} has done nothing for {:.3g} s, while others wait for it: it hangs, perhaps while "
                                "reading or writing a file",
                                describe_process(peer.rank, peer.process, peer.host), settings_.standstill));
  }
  if (!complete_ && seconds_between(begin_, now) > settings_.join_limit)
    lose(-1, fmt::format("{} not joined within {:.3g} s", missing(), settings_.join_limit));
  // All are alive and in the same exchange, but it does not end.
  const bool together = complete_ && in_exchange == settings_.size && first == last;
  if (!together || first != common_exchange_) {
    common_exchange_ = together ? first : -1;
    common_since_ = now;
  } else if (seconds_between(common_since_, now) > settings_.standstill) {
    lose(-1, fmt::format("all processes have been waiting for each other for {:.3g} s: two of them cannot reach each "
                         "other, though both reach rank 0",
                         settings_.standstill));
  }
}

std::string Register::missing() const {
  std::vector<std::string> ranks;
  for (int64_t rank = 0; rank < settings_.size; ++rank) {
    const bool here = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.rank == rank; });
    if (here) continue;
    if (ranks.size() == 8) {
      ranks.emplace_back("…");
      break;
    }
    ranks.push_back(std::to_string(rank));
  }
  return fmt::format("{} {} {}", ranks.size() == 1 ? "rank" : "ranks", join(ranks), ranks.size() == 1 ? "has" : "have");
}

void Register::lose(int64_t rank, const std::string& what) {
  if (lost_) return;
  lost_ = Frame{FrameKind::lost, {std::to_string(rank), what}};
  tell_all(*lost_);
}

void Register::tell_all(const Frame& frame) {
  const std::string bytes = encode(frame);
  for (Peer& peer : peers_) {
    if (peer.rank >= 0 && !peer.closing) peer.out += bytes;
  }
}

}  // namespace plumb
