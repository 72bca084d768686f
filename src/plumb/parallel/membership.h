// One process's side of the register: it joins, sends heartbeats, and learns who is lost. Only used in this folder.
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

/// A process of the run, as the register knows it.
struct Member {
  std::string host;
  std::string address;  // by which others reach it
  std::string process;  // its id
  std::string machine;  // equal where processes share processors
};

/// What a thread that waits for a member's news sleeps on; outlives the member, so that others may still notify.
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
    double join_limit = 300;  // seconds
  };

  /// Connects to the register at `host` and joins; returns when all processes have. Calls `waiting` repeatedly until
  /// then, if it is not empty; it may throw. Throws Error if the others cannot be joined.
  Membership(const std::string& host, int64_t port, const Settings& settings, const std::function<void()>& waiting);
  /// Takes its leave, unless the run has failed.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  /// This process's own address on the way to the register.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }

  // The key-value store. All throw Error if another process is lost; `get` waits for the key, and its limit is that of
  // joining.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  int64_t add(const std::string& key, int64_t number);

  /// Waits until `done` returns true, which is checked after each `monitor()->notify()`. If, before that, a process is
  /// lost, or a member of the named group has left it after fewer exchanges than `exchanges`, returns what has
  /// happened.
  std::optional<std::string> wait(const std::function<bool()>& done, const std::string& group, int64_t exchanges);
  [[nodiscard]] const std::shared_ptr<Monitor>& monitor() const { return monitor_; }

  /// The member with that rank in a group, if it has left it.
  std::optional<std::string> left(const std::string& group, int64_t rank_in_group);

  /// What has happened, if a process is lost or a member of the group has left, allowing the news a moment to arrive.
  std::optional<std::string> news_within(std::chrono::milliseconds limit, const std::string& group);

  /// For the heartbeats: an exchange begins or ends.
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
  /// Who has left a group after fewer exchanges than these. Under the monitor's mutex.
  std::optional<std::string> left_before(const std::string& group, int64_t exchanges);
  [[nodiscard]] std::string has_left(int64_t rank) const;
  [[nodiscard]] std::string rank_zero() const;

  Settings settings_;
  Socket socket_;
  Socket wake_;
  std::string own_address_;
  std::vector<Member> members_;
  std::mutex sending_;
  std::mutex asking_;  // one question at a time

  std::shared_ptr<Monitor> monitor_ = std::make_shared<Monitor>();  // of the following
  bool complete_ = false;
  bool ending_ = false;
  std::optional<std::string> lost_;
  std::optional<std::string> answer_;
  struct Gone {
    int64_t exchanges;  // before it left
    int64_t rank_in_group;
  };
  std::map<std::string, std::map<int64_t, Gone>> gone_;  // group → rank in the run

  std::atomic<int64_t> exchanges_ = 0;
  std::atomic<int64_t> exchanging_ = 0;
  std::thread thread_;
};

}  // namespace plumb
