#include "plumb/parallel/membership.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "plumb/base/error.h"
#include "plumb/base/machine.h"
#include "plumb/parallel/register.h"

namespace plumb {
namespace {

constexpr std::chrono::milliseconds kAttempt = std::chrono::seconds(3);
constexpr std::chrono::milliseconds kPause = std::chrono::milliseconds(50);
constexpr std::chrono::milliseconds kFarewell = std::chrono::seconds(2);
constexpr double kAnswer = 15;  // seconds within which a register sends its first heartbeat

/// Equal for processes that share processors: the machine's boot and the processors that they may use.
std::string machine_key() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string key;
  std::getline(file, key);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) key += fmt::format(" {}", cpu);
    }
  }
  return key;
}

/// The fields of a heartbeat that show whether this process is working.
std::vector<std::string> work_so_far() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  int64_t milliseconds = 0;
  for (const timeval& each : {used.ru_utime, used.ru_stime})
    milliseconds += static_cast<int64_t>(each.tv_sec) * 1000 + each.tv_usec / 1000;
  return {std::to_string(milliseconds), std::to_string(used.ru_majflt + used.ru_inblock + used.ru_oublock)};
}

Socket connected(const std::string& host, int64_t port, double limit, const std::function<void()>& waiting) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    std::string reason = "no address";
    Socket socket = connect_to(host, port, kAttempt, reason);
    if (socket.open()) return socket;
    if (waiting) waiting();
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limit)
      throw Error(fmt::format("no answer within {:.3g} s: {}", limit, reason));
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Membership::Membership(const std::string& host, int64_t port, const Settings& settings,
                       const std::function<void()>& waiting)
    : settings_(settings),
      socket_(connected(host, port, settings.join_limit, waiting)),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      own_address_(socket_.local_address()) {
  send({FrameKind::hello,
        {std::string(kGreeting), settings.token, std::to_string(settings.rank), std::to_string(settings.size),
         host_name(), std::to_string(::getpid()), machine_key(), PLUMB_VERSION}});
  thread_ = std::thread([this] { listen(); });
  const auto limit = Clock::now() + std::chrono::duration<double>(settings.join_limit + kAnswer);
  try {
    std::unique_lock lock(monitor_->mutex);
    while (!complete_ && !lost_) {
      monitor_->changed.wait_for(lock, kPause);
      lock.unlock();
      if (waiting) waiting();
      lock.lock();
      if (Clock::now() > limit) lost_ = "the other processes have not joined";
    }
    if (lost_) throw Error(*lost_);
  } catch (const std::exception& error) {
    fail(error.what());
    {
      const std::lock_guard lock(monitor_->mutex);
      ending_ = true;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
    thread_.join();
    throw;
  }
}

Membership::~Membership() {
  {
    const std::lock_guard lock(monitor_->mutex);
    ending_ = true;
  }
  send({FrameKind::goodbye, {}});
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
  thread_.join();
}

void Membership::listen() {
  const auto interval = std::chrono::milliseconds(beat_interval(settings_.timeout));
  FrameReader in;
  bool answered = false;
  auto heard = Clock::now(), beaten = heard, turned = heard;
  for (;;) {
    std::array<pollfd, 2> ready = {{{wake_.descriptor(), POLLIN, 0}, {socket_.descriptor(), POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), static_cast<int>(interval.count()));
    const auto now = Clock::now();
    if (std::chrono::duration<double>(now - turned).count() > kStopped) heard += now - turned;
    turned = now;
    if (ready[0].revents != 0) return;
    if (ready[1].revents != 0) {
      std::array<char, 65536> bytes;
      const ssize_t got = ::recv(socket_.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
        return lose(answered ? rank_zero() + " has died" : "the server there is not a Plumb process, or it has ended");
      }
      try {
        if (got > 0) in.append({bytes.data(), static_cast<size_t>(got)});
        while (const auto frame = in.next()) {
          answered = true;
          handle(*frame);
        }
      } catch (const Error&) {
        return lose("the server there is not a Plumb process");
      }
      if (got > 0) heard = now;
    }
    const double silence = std::chrono::duration<double>(now - heard).count();
    if (silence > settings_.timeout || (!answered && silence > kAnswer)) {
      return lose(answered ? fmt::format("{} has sent no heartbeat for {:.3g} s: it is stopped, or its machine or "
                                         "network is down",
                                         rank_zero(), settings_.timeout)
                           : "the server there does not answer");
    }
    if (now - beaten >= interval) {
      beaten = now;
      Frame beat{FrameKind::beat, {std::to_string(exchanges_.load()), exchanging_.load() > 0 ? "1" : "0"}};
      for (std::string& field : work_so_far()) beat.fields.push_back(std::move(field));
      send(beat);
    }
  }
}

std::string Membership::rank_zero() const {
  return members_.empty() ? "rank 0" : describe_process(0, members_[0].process, members_[0].host);
}

void Membership::handle(const Frame& frame) {
  const std::lock_guard lock(monitor_->mutex);
  switch (frame.kind) {
    case FrameKind::refused:
      if (!lost_ && !frame.fields.empty()) lost_ = frame.fields[0];
      break;
    case FrameKind::complete:
      if (frame.fields.size() != static_cast<size_t>(4 * settings_.size)) throw Error("a register of another size");
      for (size_t i = 0; i < frame.fields.size(); i += 4)
        members_.push_back({frame.fields[i], frame.fields[i + 1], frame.fields[i + 2], frame.fields[i + 3]});
      complete_ = true;
      break;
    case FrameKind::value:
      if (!frame.fields.empty()) answer_ = frame.fields[0];
      break;
    case FrameKind::lost:
      if (!lost_ && frame.fields.size() == 2) lost_ = frame.fields[1];
      break;
    case FrameKind::gone:
      if (frame.fields.size() == 4)
        gone_[frame.fields[1]][number_in(frame, 0)] = {number_in(frame, 2), number_in(frame, 3)};
      break;
    default:
      break;
  }
  monitor_->changed.notify_all();
}

void Membership::send(const Frame& frame) {
  const std::lock_guard lock(sending_);
  [[maybe_unused]] const bool sent = socket_.send(encode(frame));  // a lost connection is noticed when reading
}

void Membership::lose(const std::string& what) {
  const std::lock_guard lock(monitor_->mutex);
  if (!lost_ && !ending_) lost_ = what;
  monitor_->changed.notify_all();
}

std::string Membership::answer_to(const Frame& frame) {
  const std::lock_guard one(asking_);
  send(frame);
  std::unique_lock lock(monitor_->mutex);
  const bool heard = monitor_->changed.wait_for(lock, std::chrono::duration<double>(settings_.join_limit),
                                                [&] { return answer_ || lost_; });
  if (lost_ && !answer_) throw Error(*lost_);
  if (!heard) throw Error(fmt::format("rank 0 has not answered within {:.3g} s", settings_.join_limit));
  std::string answer = std::move(*answer_);
  answer_.reset();
  return answer;
}

void Membership::set(const std::string& key, const std::string& value) { send({FrameKind::set, {key, value}}); }

std::string Membership::get(const std::string& key) { return answer_to({FrameKind::get, {key}}); }

int64_t Membership::add(const std::string& key, int64_t number) {
  return std::stoll(answer_to({FrameKind::add, {key, std::to_string(number)}}));
}

std::optional<std::string> Membership::left_before(const std::string& group, int64_t exchanges) {
  for (const auto& [rank, gone] : gone_[group]) {
    if (rank != settings_.rank && gone.exchanges < exchanges) return has_left(rank);
  }
  return std::nullopt;
}

std::optional<std::string> Membership::left(const std::string& group, int64_t rank_in_group) {
  const std::lock_guard lock(monitor_->mutex);
  for (const auto& [rank, gone] : gone_[group]) {
    if (gone.rank_in_group == rank_in_group) return has_left(rank);
  }
  return std::nullopt;
}

std::string Membership::has_left(int64_t rank) const {
  const Member& member = members_.at(static_cast<size_t>(rank));
  return describe_process(rank, member.process, member.host) + " has left";
}

std::optional<std::string> Membership::wait(const std::function<bool()>& done, const std::string& group,
                                            int64_t exchanges) {
  std::optional<std::string> what;
  std::unique_lock lock(monitor_->mutex);
  monitor_->changed.wait(lock, [&] {
    if (done()) return true;
    what = lost_ ? lost_ : left_before(group, exchanges);
    return what.has_value();
  });
  return what;
}

std::optional<std::string> Membership::news_within(std::chrono::milliseconds limit, const std::string& group) {
  std::optional<std::string> what;
  std::unique_lock lock(monitor_->mutex);
  monitor_->changed.wait_for(lock, limit, [&] {
    what = lost_ ? lost_ : left_before(group, INT64_MAX);
    return what.has_value();
  });
  return what;
}

void Membership::begin_exchange() {
  ++exchanges_;
  ++exchanging_;
}

void Membership::end_exchange() { --exchanging_; }

void Membership::leave(const std::string& group, int64_t exchanges, int64_t rank_in_group) {
  send({FrameKind::left, {group, std::to_string(exchanges), std::to_string(rank_in_group)}});
}

void Membership::wait_for_leaving(const std::string& group, int64_t size) {
  std::unique_lock lock(monitor_->mutex);
  monitor_->changed.wait_for(lock, kFarewell,
                             [&] { return lost_ || static_cast<int64_t>(gone_[group].size()) >= size; });
}

void Membership::fail(const std::string& reason) { send({FrameKind::failed, {reason.substr(0, reason.find('\n'))}}); }

}  // namespace plumb
