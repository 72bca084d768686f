// The register of a run's processes, kept by rank 0: which have joined and are alive, and a key-value store with which
// they find each other. Only used in this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "plumb/parallel/frame.h"
#include "plumb/parallel/socket.h"

namespace plumb {

/// Serves connections in its own thread. Every process keeps one open for the whole run and sends heartbeats through
/// it. When a process is lost, the register tells all others which one and why.
class Register {
 public:
  struct Settings {
    std::string host;         // where to listen; see listen_at
    int64_t port = 0;         // 0: any free port
    int64_t size = 1;         // number of processes
    std::string token;        // the same in all processes of the run
    double timeout = 60;      // seconds without a heartbeat after which a process counts as lost
    double standstill = 600;  // seconds after which an idle process, or an exchange that does not end, is an error
    double join_limit = 300;  // seconds within which all must have joined
  };

  /// Starts listening. Throws Error if the port is taken.
  explicit Register(const Settings& settings);
  /// Waits a short time for the others to finish, then closes all connections.
  ~Register();
  Register(const Register&) = delete;
  Register& operator=(const Register&) = delete;

  [[nodiscard]] int64_t port() const { return port_; }
  /// An address at which this process reaches it.
  [[nodiscard]] std::string address() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    Socket socket;
    FrameReader in;
    std::string out;
    Clock::time_point heard;
    int64_t rank = -1;  // −1 until it has introduced itself
    std::string host, process, machine;
    std::optional<std::string> awaited;  // key
    std::string failure;                 // the reason that it gave for ending
    bool goodbye = false;
    bool closing = false;  // once everything is sent
    int64_t exchanges = 0;
    bool exchanging = false;
    int64_t processor_time = 0;  // milliseconds, at the last heartbeat
    int64_t moved = 0;           // blocks and pages read and written, at the last heartbeat
    Clock::time_point beaten;    // when the last heartbeat came
    Clock::time_point worked;    // the last time at which it worked or no process was in an exchange
  };

  void serve();
  void accept_all();
  void read_from(Peer& peer);
  void write_to(Peer& peer) const;
  void handle(Peer& peer, const Frame& frame);
  static void beat(Peer& peer, const Frame& frame);
  void welcome(Peer& peer, const Frame& hello);
  void complete();
  void answer_waiting(const std::string& key);
  void end(Peer& peer);
  void check(Clock::time_point now);
  void lose(int64_t rank, const std::string& what);
  void tell_all(const Frame& frame);
  [[nodiscard]] std::string missing() const;

  Settings settings_;
  Socket listener_;
  Socket wake_;  // ends the thread's wait
  int64_t port_ = 0;
  std::list<Peer> peers_;
  std::map<std::string, std::string> values_;
  bool complete_ = false;
  std::optional<Frame> lost_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point checked_ = begin_;
  Clock::time_point beaten_ = begin_;
  // The exchange that all processes are in (−1: none), and since when.
  int64_t common_exchange_ = -1;
  Clock::time_point common_since_ = begin_;
  std::thread thread_;
};

/// The milliseconds between heartbeats, if a process counts as lost after `timeout` seconds without one.
int64_t beat_interval(double timeout);

/// "rank 1 (process 4711 on node2)"
std::string describe_process(int64_t rank, const std::string& process, const std::string& host);

/// Seconds between two iterations of a polling loop above which this process itself was stopped. Not having heard from
/// others meanwhile then says nothing about them.
constexpr double kStopped = 2;

}  // namespace plumb
