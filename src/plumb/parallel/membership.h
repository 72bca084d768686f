// A client of the register: joins, sends heartbeats, and learns which processes are lost. Only used in this folder.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plumb/parallel/frame.h"
#include "plumb/parallel/socket.h"

namespace plumb {

/// A process of the run, according to the register.
struct Member {
  std::string host;
  std::string address;  // by which others reach it
  std::string process;  // its id
  std::string machine;  // equal for processes that share processors
};

/// The condition variable on which threads wait for news; outlives the Membership, so that others may still notify.
struct Monitor {
  std::mutex mutex;
  std::condition_variable changed;

  void notify() {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
};

class Membership {
 public:
  struct Settings {
    std::string token;
    int64_t rank = 0;
    int64_t size = 1;
    double timeout = 60;      // seconds without a heartbeat from rank 0 after which it counts as lost
    double join_limit = 300;  // seconds within which all must have joined, and rank 0 must answer a request
  };

  /// Connects to the register at `host` and joins; returns when all processes have. Calls `waiting` repeatedly until
  /// then, if it is not empty; it may throw. Throws Error if the others cannot be joined.
  Membership(const std::string& host, int64_t port, const Settings& settings, const std::function<void()>& waiting);
  /// Tells the register that this process has done its work.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  /// This process's address on its connection to the register.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }

  // The key-value store. `get` waits for the key; `get` and `add` throw Error if a process is lost, or without an
  // answer within join_limit.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  int64_t add(const std::string& key, int64_t number);

  /// Waits until `done` returns true, which is checked after each `monitor()->notify()`. Returns early, with what has
  /// happened, if a process is lost or a member of the group has left it after fewer exchanges than `exchanges`.
  std::optional<std::string> wait(const std::function<bool()>& done, const std::string& group, int64_t exchanges);
  [[nodiscard]] const std::shared_ptr<Monitor>& monitor() const { return monitor_; }

  /// A message, if the member with that rank in a group has left it.
  std::optional<std::string> left(const std::string& group, int64_t rank_in_group);

  /// A message, if a process is lost or a member of the group has left it; waits up to `limit` for the news to arrive.
  std::optional<std::string> news_within(std::chrono::milliseconds limit, const std::string& group);

  /// Reported in the heartbeats.
  void begin_exchange();
  void end_exchange();

  /// Tells the others that this process leaves a group after that many exchanges.
  void leave(const std::string& group, int64_t exchanges, int64_t rank_in_group);
  /// Waits a short time until all `size` members of a group have left it.
  void wait_for_leaving(const std::string& group, int64_t size);

  /// Tells the others that this process will end, and why.
  void fail(const std::string& reason);

 private:
  using Clock = std::chrono::steady_clock;

  void listen();
  void handle(const Frame& frame);
  void send(const Frame& frame);
  std::string answer_to(const Frame& frame);
  void lose(const std::string& what);
  /// A message, if another process has left a group after fewer exchanges than these. Requires the monitor's mutex.
  std::optional<std::string> left_before(const std::string& group, int64_t exchanges);
  [[nodiscard]] std::string has_left(int64_t rank) const;
  [[nodiscard]] std::string rank_zero() const;

  Settings settings_;
  Socket socket_;
  Socket wake_;
  std::string own_address_;
  std::vector<Member> members_;
  std::mutex sending_;
  std::mutex asking_;  // one request at a time

  std::shared_ptr<Monitor> monitor_ = std::make_shared<Monitor>();  // guards the following
  bool complete_ = false;
  bool ending_ = false;
  std::optional<std::string> lost_;
  std::optional<std::string> answer_;
  struct Gone {
    int64_t exchanges;  // before leaving
    int64_t rank_in_group;
  };
  std::map<std::string, std::map<int64_t, Gone>> gone_;  // group → rank in the run

  std::atomic<int64_t> exchanges_ = 0;
  std::atomic<int64_t> exchanging_ = 0;
  std::thread thread_;
};

}  // namespace plumb
