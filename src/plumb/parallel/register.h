// The register of a run's processes, kept by rank 0: who has joined, who is alive, and a key-value store by which they
// find each other. Only used in this folder.
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

/// Serves connections in a thread of its own. Every process keeps one open for the whole run and sends heartbeats
/// through it. When a process is lost, the register tells all the others which one and why.
class Register {
 public:
  struct Settings {
    std::string host;         // where to listen; see listen_at
    int64_t port = 0;         // 0: any free port
    int64_t size = 1;         // number of processes
    std::string token;        // only processes with the same one belong to the run
    double timeout = 60;      // seconds without a heartbeat after which a process counts as lost
    double standstill = 600;  // seconds after which one that does nothing, or an exchange that does not end, is a fault
    double join_limit = 300;  // seconds within which all must have joined
  };

  /// Starts to listen. Throws Error if the port is taken.
  explicit Register(const Settings& settings);
  /// Waits a short time for the others to finish, then closes all connections.
  ~Register();
  Register(const Register&) = delete;
  Register& operator=(const Register&) = delete;

  [[nodiscard]] int64_t port() const { return port_; }
  /// An address by which this process reaches it.
  [[nodiscard]] std::string address() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    Socket socket;
    FrameReader in;
    std::string out;
    Clock::time_point heard;
    int64_t rank = -1;  // until it has introduced itself
    std::string host, process, machine;
    std::optional<std::string> awaited;  // key
    std::string failure;                 // the reason it gave for ending
    bool goodbye = false;
    bool closing = false;  // as soon as everything is sent
    int64_t exchanges = 0;
    bool exchanging = false;
    int64_t processor_time = 0;  // milliseconds, as of the last heartbeat
    int64_t moved = 0;           // blocks and pages read and written, as of then
    Clock::time_point beaten;    // when that came
    Clock::time_point worked;    // when it last worked, or when nobody last waited
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
  // For how long all have been in the same exchange.
  int64_t common_exchange_ = -1;
  Clock::time_point common_since_ = begin_;
  std::thread thread_;
};

/// How often heartbeats are sent, in milliseconds, if one is lost after `timeout` seconds without.
int64_t beat_interval(double timeout);

/// "rank 1 (process 4711 on node2)"
std::string describe_process(int64_t rank, const std::string& process, const std::string& host);

/// A long interval between two turns of a loop that was not its own doing: this process itself was stopped. What it has
/// not heard since then says nothing about others.
constexpr double kStopped = 2;

}  // namespace plumb
