// This process as a member of a run. The processes meet in a c10d::TCPStore, a key-value store that rank 0 serves, and
// learn from it which of them is lost; Gloo finds its addresses there, too. Only used in this folder.
//
// Keys of the store: `plumb` names the run, its size and the version of Plumb. All others begin with the run's token,
// so that another run, or an earlier attempt of this one, cannot write to them. Each rank r describes itself as `member
// r`; when all have, rank 0 sets `members`. Each process counts `heartbeat r` up, and watches that of the next rank.
// `failure` is set once, by the first process that fails or misses another one: what has happened. A rank is missed if
// its heartbeat stands still for Rendezvous::timeout. `broken` counts the processes that have lost a connection of
// Gloo, which does not know which rank was at its other end: a rank is then missed after three heartbeats already, so
// that nobody waits long for the silent one. `ended` counts those that need the store no longer, for which rank 0 waits
// a short time before it ends.
//
// One thread does all of this, with a client of its own: a blocked client cannot be interrupted, and that of LibTorch
// 1.13 is useless after a time-out. Whoever waits for an exchange is woken by a failure, and judges rank 0 by itself:
// if the store's connection breaks, it has died; if the store does not answer for Rendezvous::timeout, it is stopped or
// cut off. Time during which this process was stopped itself does not count.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/parallel/network.h"
#include "plumb/parallel/rendezvous.h"

namespace plumb {

class Membership {
 public:
  explicit Membership(const Rendezvous& rendezvous);
  /// Tells the others that this process has done its work. Rank 0 waits a short time for them to do so too.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Connects to the run's store, which rank 0 serves from now on, and begins to send heartbeats. Throws Error if there
  /// is no such store, or the process does not belong to the run.
  void connect(const JoinEvents& events);
  /// Returns when all processes have joined; calls `waiting` repeatedly until then. Throws Error if they do not.
  void join(const std::function<void()>& waiting);

  /// This process, as others name it: "rank 1 (process 4711 on node2)".
  [[nodiscard]] const std::string& own_name() const { return own_name_; }
  /// The address by which others reach this process.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }
  /// The number of processes that share this one's processors, itself included.
  [[nodiscard]] int64_t neighbors() const { return neighbors_; }

  /// A client of the store for Gloo, which may wait in it.
  [[nodiscard]] c10::intrusive_ptr<c10d::Store> store_for(const std::string& group) const;

  /// Waits until `done` returns true, which is checked after each call of `notifier()`, but at most `limit` seconds.
  /// Returns early, with what has happened, if a process is lost.
  std::optional<std::string> wait(const std::function<bool()>& done,
                                  double limit = std::numeric_limits<double>::infinity());
  /// May be called after the membership has ended.
  [[nodiscard]] std::function<void()> notifier() const;

  /// What has happened, if Gloo has lost a connection of a group: a process is lost or has left the group. Waits for
  /// the key `failure` at most as long as for a heartbeat; nullopt if it is not set.
  std::optional<std::string> reason_of_break(const std::string& group);

  /// Tells the others that this process leaves a group.
  void leave(const std::string& group);
  /// Waits a short time until all members of a group have left it.
  void wait_for_leaving(const std::string& group, int64_t size);

  /// Tells the others that this process will end, and why.
  void fail(const std::string& reason);
  /// On rank 0, waits until the others need the store no longer; `absent`: also those that have not connected yet.
  void wait_for_others(bool absent, std::chrono::milliseconds limit);

 private:
  struct Shared;
  using Task = std::function<void(c10d::Store&)>;

  std::optional<Error> failed_attempt(const JoinEvents& events);
  std::shared_ptr<std::atomic<bool>> post(const Task& task);
  bool tell(std::chrono::milliseconds limit, const Task& task);
  void poll(
      std::chrono::milliseconds limit, const std::function<bool(c10d::Store&)>& happened,
      const std::function<void()>& between = [] {});
  std::string await(const std::string& key, double limit, const std::function<void()>& waiting);

  void end_thread();

  std::optional<PortSecret> secret_;  // on rank 0, until all have joined
  std::shared_ptr<Shared> shared_;
  std::thread thread_;  // alone uses the store, in which it may be stuck
  std::string own_name_, own_address_ = "127.0.0.1";
  int64_t neighbors_ = 1;
};

}  // namespace plumb
