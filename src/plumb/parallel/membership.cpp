#include "plumb/parallel/membership.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <utility>

#include "plumb/base/broken_pipe.h"
#include "plumb/base/json.h"
#include "plumb/base/machine.h"
#include "plumb/base/random.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"

namespace plumb {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPause(50);
constexpr milliseconds kFarewell = std::chrono::seconds(2);
constexpr milliseconds kServeAfterEnd = std::chrono::seconds(3);
constexpr double kAnswer = 15;                  // seconds within which a server must answer
constexpr double kRestart = 30;                 // seconds that an earlier attempt of a run may take to end
constexpr double kMissed = 3;                   // heartbeats that the dead misses
constexpr int64_t kLeft = -(int64_t{1} << 60);  // a heartbeat: the last one
constexpr size_t kLongestReason = 2000;         // characters of what another process says

/// Equal for processes that share processors: the machine's boot and the processors that they may use.
std::string machine_key() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string key;
  std::getline(file, key);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) key += fmt::format(" {}", cpu);
  }
  return key;
}

/// A client of the store at that place, and its server if `serve`.
c10::intrusive_ptr<c10d::TCPStore> open_store(const std::string& host, int64_t port, bool serve) {
  const BrokenPipeGuard guard;  // it starts threads
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = serve;
  options.waitWorkers = false;
  [](auto& any) {  // Debian's LibTorch is built without libuv, which newer versions use by default; older ones do not
    if constexpr (requires { any.useLibUV; }) any.useLibUV = false;
  }(options);
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

void set(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

/// Sets a key unless it is set.
void set_first(c10d::Store& store, const std::string& key, const std::string& value) {
  const std::vector<uint8_t> unset, bytes(value.begin(), value.end());
  store.compareSet(key, unset, bytes);
}

/// The value of a key; empty if it is not set.
std::string value_of(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return {};
  const std::vector<uint8_t> value = store.get(key);
  return {value.begin(), value.end()};
}

/// Whether it is known that all processes are on one machine.
bool on_one_machine(const Rendezvous& run) { return run.local_size == run.size || is_loopback(run.host); }

std::string member_key(int64_t rank) { return fmt::format("member {}", rank); }
std::string heartbeat_key(int64_t rank) { return fmt::format("heartbeat {}", rank); }

std::string silent_for(double seconds) {
  return fmt::format(" has sent no heartbeat for {:.3g} s: it is stopped, or its machine or network is down", seconds);
}

}  // namespace

struct Membership::Shared {
  explicit Shared(const Rendezvous& rendezvous)
      : run(rendezvous),
        name(fmt::format("rank {} (process {} on {})", run.rank, ::getpid(), host_name())),
        interval(std::clamp(run.timeout / 4, 0.01, 1.0)) {}

  const Rendezvous run;
  const std::string name;
  const double interval;  // between two heartbeats, in seconds
  Route route;            // to the store
  int64_t port = 0;
  std::string token = run.token;

  /// Of the thread.
  enum class Phase { none, connecting, connected, ended };

  // Only the thread uses these.
  c10::intrusive_ptr<c10d::TCPStore> server;  // null except on rank 0; set before the thread starts
  c10::intrusive_ptr<c10d::Store> store;
  bool failure_seen = false;  // the key `failure`
  bool one_is_dead = false;   // according to that
  bool done = false;          // this process needs the store no longer
  bool counted = false;       // among those that do not
  int64_t heartbeats = 0;     // of the next rank
  double silence = 0;         // of the next rank, in seconds
  Stopwatch since_heartbeat;

  std::mutex mutex;                          // of the following
  c10::intrusive_ptr<c10d::Store> for_gloo;  // set when connected, unless `ending`
  std::condition_variable changed;
  std::deque<Task> tasks;
  std::optional<std::string> lost;
  std::string rank_zero = "rank 0";
  int64_t rounds = 0;  // answers of the store
  Phase phase = Phase::none;
  bool ending = false;  // the thread is to end
  bool stuck = false;   // the thread is, in a store that does not answer

  [[nodiscard]] bool runs() const { return phase == Phase::connecting || phase == Phase::connected; }
  void work();
  c10::intrusive_ptr<c10d::Store> introduce();
  void send_heartbeat();
  void look_for_failure();
  void report(bool dead, const std::string& what);
  void fail(const std::string& what);
};

/// The thread: sends heartbeats and does what the others ask.
void Membership::Shared::work() {
  const BrokenPipeGuard guard;
  try {
    c10::intrusive_ptr<c10d::Store> second = introduce();
    std::unique_lock lock(mutex);
    if (!ending) for_gloo = std::move(second);  // else the owner, who gave up, no longer looks
    phase = Phase::connected;
    changed.notify_all();
    for (auto due = Clock::now(); !ending || !tasks.empty();) {
      Task task = [this](auto&) { send_heartbeat(); };
      if (!tasks.empty() && Clock::now() < due) {
        task = std::move(tasks.front());
        tasks.pop_front();
      } else if (Clock::now() < due) {
        changed.wait_until(lock, due, [this] { return ending || !tasks.empty(); });
        continue;
      } else {
        due = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
      }
      lock.unlock();
      task(*store);
      if ((failure_seen || done) && !std::exchange(counted, true)) store->add("ended", 1);
      lock.lock();
      ++rounds;
      changed.notify_all();
    }
  } catch (const Error& error) {
    fail(error.what());
  } catch (const std::exception&) {
    fail(phase == Phase::connected
             ? rank_zero + " has died"
             : "the server there is not a Plumb process, or has another version of LibTorch, or it has ended");
  }
  store.reset();
  server.reset();
  const std::lock_guard lock(mutex);
  phase = Phase::ended;
  changed.notify_all();
}

/// Throws Error unless the store is that of this run. Returns another client of it, for Gloo.
c10::intrusive_ptr<c10d::Store> Membership::Shared::introduce() {
  const c10::intrusive_ptr<c10d::Store> whole = server ? server : open_store(route.other, port, false);
  const Json own = {{"run", stream_of(token)}, {"size", run.size}, {"version", PLUMB_VERSION}, {"name", name}};
  std::string text = run.rank == 0 ? own.dump() : std::string();
  if (run.rank == 0) set(*whole, "plumb", text);
  for (const Stopwatch watch; text.empty(); std::this_thread::sleep_for(milliseconds(5))) {
    text = value_of(*whole, "plumb");
    if (text.empty() && watch.seconds() > kAnswer) throw Error("the server there is not a Plumb process");
  }
  const Json theirs = Json::parse(text);
  if (theirs.at("run") != own.at("run")) throw Error("another run uses this address and port");
  store = c10::make_intrusive<c10d::PrefixStore>(token, whole);
  const auto second = c10::make_intrusive<c10d::PrefixStore>(token, open_store(route.other, port, false));
  const auto size = theirs.at("size").get<int64_t>();
  const auto version = theirs.at("version").get<std::string>();
  const std::string different =
      version != PLUMB_VERSION ? fmt::format("{} runs Plumb " PLUMB_VERSION ", but rank 0 runs Plumb {}", name, version)
      : size != run.size
          ? fmt::format("{} belongs to a run of {} processes, but rank 0 to one of {}", name, run.size, size)
          : std::string();
  if (!different.empty()) {
    report(false, different);
    throw Error(different);
  }
  if (store->add(fmt::format("joined {}", run.rank), 1) > 1)
    throw Error(fmt::format("another process has already joined as rank {}", run.rank));
  second->add("present", 1);  // through this client: once all are members, rank 0 accepts no further connection
  set(*store, member_key(run.rank), Json{{"name", name}, {"machine", machine_key()}, {"rank 0", route.other}}.dump());
  const std::lock_guard lock(mutex);
  rank_zero = theirs.at("name").get<std::string>().substr(0, kLongestReason);
  return second;
}

void Membership::Shared::send_heartbeat() {
  store->add(heartbeat_key(run.rank), 1);
  look_for_failure();
  const int64_t next = (run.rank + 1) % run.size, count = store->add(heartbeat_key(next), 0);
  // If this process was stopped itself, not having heard from others meanwhile says nothing about them.
  silence = count == heartbeats ? silence + std::min(since_heartbeat.seconds(), 2 * interval) : 0;
  since_heartbeat = {};
  heartbeats = count;
  const bool dead = silence > kMissed * interval && store->add("broken", 0) > 0;
  if (count <= 0 || failure_seen || (!dead && silence <= run.timeout)) return;
  const std::string who = Json::parse(value_of(*store, member_key(next))).at("name");
  report(true, who + (dead ? " has died" : silent_for(run.timeout)));
}

void Membership::Shared::look_for_failure() {
  const std::string failure = failure_seen ? std::string() : value_of(*store, "failure");
  if (failure.empty()) return;
  failure_seen = true;
  one_is_dead = failure.front() == '-';
  fail(failure.substr(1));
}

/// Tells all others what has happened, unless they know something already.
void Membership::Shared::report(bool dead, const std::string& what) {
  set_first(*store, "failure", (dead ? "-" : "+") + what);
  look_for_failure();
}

void Membership::Shared::fail(const std::string& what) {
  const std::lock_guard lock(mutex);
  if (!lost) lost = what.substr(0, kLongestReason);
  changed.notify_all();
}

Membership::Membership(const Rendezvous& rendezvous)
    : shared_(std::make_shared<Shared>(rendezvous)), own_name_(shared_->name) {}

Membership::~Membership() {
  tell(kFarewell, [&shared = *shared_](c10d::Store& store) {
    store.add(heartbeat_key(shared.run.rank), kLeft);
    shared.done = true;
  });
  if (shared_->run.rank == 0) wait_for_others(false, kServeAfterEnd);
  end_thread();
}

void Membership::end_thread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kFarewell, [&] { return !shared_->runs() || shared_->stuck; });
  const bool ended = !shared_->runs();
  // Not left to a thread that still holds the notifier while the program ends.
  const c10::intrusive_ptr<c10d::Store> for_gloo = std::move(shared_->for_gloo);
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
}

void Membership::connect(const JoinEvents& events) {
  const Stopwatch watch;
  while (const std::optional<Error> error = failed_attempt(events)) {
    if (!shared_->run.restarts || watch.seconds() > kRestart) throw *error;
    std::this_thread::sleep_for(kPause);
  }
}

/// One attempt to connect; returns why it has failed.
std::optional<Error> Membership::failed_attempt(const JoinEvents& events) {
  end_thread();
  const Rendezvous run = shared_->run;
  shared_ = std::make_shared<Shared>(run);
  Shared& shared = *shared_;
  std::string reason;
  if (run.rank == 0) {
    if (run.port != 0 && route_to("127.0.0.1", run.port, reason)) {
      return Error(fmt::format("port {} of {} is in use by another program", run.port, run.host),
                   "choose another one with MASTER_PORT, the same for all processes");
    }
    if (run.guessable && on_one_machine(run)) secret_.emplace(run.port);  // before others can connect, who read it
    shared.server = open_store("127.0.0.1", run.port, true);
    shared.port = shared.server->getPort();
    shared.route = {.own = "127.0.0.1", .other = "127.0.0.1"};
    if (on_one_machine(run)) keep_on_loopback(shared.port);
    if (events.listening) events.listening(shared.port);
  } else {
    shared.port = run.port;
    std::optional<Route> route;
    for (const Stopwatch watch; !(route = route_to(run.host, run.port, reason));) {
      if (events.waiting) events.waiting();
      if (watch.seconds() > run.join_limit)
        return Error(fmt::format("no answer within {:.3g} s: {}", run.join_limit, reason));
      std::this_thread::sleep_for(kPause);
    }
    // LibTorch 1.13's client would terminate this process.
    if (route->speaks_first) return Error("the server there is not a Plumb process, or it has ended");
    shared.route = *route;
  }
  if (run.guessable && on_one_machine(run)) shared.token += " " + PortSecret::read(run.port);
  shared.phase = Shared::Phase::connecting;
  thread_ = std::thread([shared = shared_] { shared->work(); });
  for (const Stopwatch since;;) {
    {
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_for(lock, kPause, [&] { return shared.phase != Shared::Phase::connecting || shared.lost; });
      if (shared.lost) return Error(*shared.lost);
      if (shared.phase != Shared::Phase::connecting) return std::nullopt;
      shared.stuck = since.seconds() > kAnswer;
      if (shared.stuck) return Error("the server there does not answer");
    }
    if (events.waiting) events.waiting();
  }
}

void Membership::join(const std::function<void()>& waiting) {
  const Rendezvous& run = shared_->run;
  const Stopwatch watch;
  if (run.rank == 0) {
    Json machines = Json::array();
    std::string address;  // by which others reach this machine
    std::vector<std::string> missing;
    for (int64_t rank = 0; rank < run.size; ++rank) {
      const std::string description = await(member_key(rank), run.join_limit - watch.seconds(), waiting);
      if (description.empty()) {
        missing.push_back(std::to_string(rank));
        continue;
      }
      const Json member = Json::parse(description);
      machines.push_back(member.at("machine"));
      if (!is_loopback(member.at("rank 0"))) address = member.at("rank 0");
    }
    if (!missing.empty()) {
      throw Error(fmt::format("{} {} {} not joined within {:.3g} s", missing.size() == 1 ? "rank" : "ranks",
                              plumb::join(missing), missing.size() == 1 ? "has" : "have", run.join_limit));
    }
    const std::string all = Json{{"machines", machines}, {"address", address}}.dump();
    tell(kFarewell, [all](c10d::Store& store) { set(store, "members", all); });
    // Strangers are kept out from now on. The server lets go of its socket when it has something to answer.
    poll(kFarewell,
         [port = shared_->port](c10d::Store& store) { return stop_listening(port) && store.add("present", 0) > 0; });
    secret_.reset();
  }
  const std::string text = await("members", run.join_limit + kAnswer, waiting);
  if (text.empty()) throw Error("the other processes have not joined");
  const Json members = Json::parse(text), machines = members.at("machines");
  neighbors_ = std::count(machines.begin(), machines.end(), machines.at(static_cast<size_t>(run.rank)));
  own_address_ = shared_->route.own;
  if (is_loopback(own_address_) && members.at("address") != "") own_address_ = members.at("address");
}

c10::intrusive_ptr<c10d::Store> Membership::store_for(const std::string& group) const {
  return c10::make_intrusive<c10d::PrefixStore>("gloo " + group, shared_->for_gloo);
}

std::function<void()> Membership::notifier() const {
  return [shared = shared_] {
    const std::lock_guard lock(shared->mutex);
    shared->changed.notify_all();
  };
}

std::optional<std::string> Membership::wait(const std::function<bool()>& done, double limit) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  const Stopwatch all;
  double silence = 0;  // of the store
  for (int64_t rounds = shared.rounds; !done() && !shared.lost && all.seconds() < limit; rounds = shared.rounds) {
    const Stopwatch watch;
    shared.changed.wait_for(lock, std::chrono::duration<double>(shared.interval));
    silence = rounds == shared.rounds ? silence + std::min(watch.seconds(), 2 * shared.interval) : 0;
    if (silence <= shared.run.timeout || shared.lost) continue;
    shared.lost = shared.rank_zero + silent_for(shared.run.timeout);
    shared.stuck = true;
  }
  return done() ? std::nullopt : shared.lost;
}

/// Has the thread do something in the store. What is returned becomes true when it has; the task must own what it uses.
std::shared_ptr<std::atomic<bool>> Membership::post(const Task& task) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  const std::lock_guard lock(shared_->mutex);
  shared_->tasks.emplace_back([task, done](c10d::Store& store) {
    task(store);
    *done = true;
  });
  shared_->changed.notify_all();
  return done;
}

/// The same, waiting for it even if a process is lost; returns whether it is done within the limit.
bool Membership::tell(milliseconds limit, const Task& task) {
  const auto done = post(task);
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, limit, [&] { return *done || !shared_->runs() || shared_->stuck; }) && *done;
}

/// Waits until the thread finds in the store that something has happened, but not much longer than the limit. Calls
/// `between` repeatedly, which may throw.
void Membership::poll(milliseconds limit, const std::function<bool(c10d::Store&)>& happened,
                      const std::function<void()>& between) {
  const auto end = Clock::now() + limit;
  const auto known = std::make_shared<std::atomic<bool>>(false);
  for (milliseconds pause(1);; pause = std::min(2 * pause, 2 * kPause)) {
    tell(kFarewell, [=](c10d::Store& store) { *known = *known || happened(store); });
    if (*known || Clock::now() >= end) return;
    between();
    std::this_thread::sleep_for(pause);
  }
}

/// Waits at most `limit` seconds for a key, and returns its value; empty if it is still not set. Throws Error if a
/// process is lost.
std::string Membership::await(const std::string& key, double limit, const std::function<void()>& waiting) {
  const auto value = std::make_shared<std::string>();
  const auto is_set = [=](c10d::Store& store) { return !(*value = value_of(store, key)).empty(); };
  poll(milliseconds(static_cast<int64_t>(limit * 1000)), is_set, [&] {
    if (const auto lost = wait([] { return false; }, 0)) throw Error(*lost);
    if (waiting) waiting();
  });
  return *value;
}

std::optional<std::string> Membership::reason_of_break(const std::string& group) {
  const auto left = std::make_shared<std::string>();
  const auto done = post([&shared = *shared_, left, group](c10d::Store& store) {
    shared.look_for_failure();
    if (!shared.failure_seen) *left = value_of(store, "first to leave " + group);
    if (!shared.failure_seen && left->empty()) store.add("broken", 1);
  });
  const auto lost = wait([&] { return *done && !left->empty(); }, shared_->run.timeout + kMissed * shared_->interval);
  return lost || !*done || left->empty() ? lost : *left + " has left";
}

void Membership::leave(const std::string& group) {
  tell(kFarewell, [group, name = own_name_](c10d::Store& store) {
    set_first(store, "first to leave " + group, name);
    store.add("left " + group, 1);
  });
}

void Membership::wait_for_leaving(const std::string& group, int64_t size) {
  poll(kFarewell, [=, &shared = *shared_](c10d::Store& store) {
    return shared.failure_seen || store.add("left " + group, 0) >= size;
  });
}

void Membership::wait_for_others(bool absent, milliseconds limit) {
  poll(limit, [absent, &shared = *shared_](c10d::Store& store) {
    const int64_t all = absent ? shared.run.size : store.add("present", 0);
    return store.add("ended", 0) >= all - (shared.one_is_dead ? 1 : 0);
  });
}

void Membership::fail(const std::string& reason) {
  const std::string what = fmt::format("{} has failed: {}", own_name_, reason.substr(0, reason.find('\n')));
  tell(kFarewell, [what, &shared = *shared_](auto&) { shared.report(false, what); });
}

}  // namespace plumb
