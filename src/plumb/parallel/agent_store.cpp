#include "plumb/parallel/agent_store.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStoreAttempt = std::chrono::seconds(3);
constexpr std::chrono::milliseconds kStorePause = std::chrono::milliseconds(50);
constexpr std::chrono::seconds kStoreAnswer(10);
constexpr uint32_t kMagic = 0x3C85F7CE;
// The first byte of a PyTorch 2 client; in PyTorch 1, it is the request to set a key.
constexpr char kValidate = 0;
constexpr char kPing = 13;
constexpr uint32_t kNonce = 0xFFFFFF50;  // read by PyTorch 1 as part of an impossible length

// Request codes of PyTorch 1; those of PyTorch 2 are larger by one.
enum class Request : uint8_t { set = 0, get = 2, check = 4 };
constexpr uint8_t kReady = 0;

template <typename Number>
void append(std::string& to, Number number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);  // in the machine's byte order, as LibTorch does
}
void append_text(std::string& to, const std::string& text) {
  append(to, static_cast<uint64_t>(text.size()));
  to += text;
}

std::string begun(Request request, bool introduced) {
  return std::string(1, static_cast<char>(static_cast<uint8_t>(request) + (introduced ? 1 : 0)));
}

std::string introduction() {
  std::string bytes(1, kValidate);
  append(bytes, kMagic);
  return bytes;
}

/// Whether a store answers a ping, as in PyTorch 2.3 and later.
bool pings(const Socket& socket) {
  std::string bytes = introduction() + kPing;
  append(bytes, kNonce);
  uint32_t answer = 0;
  return socket.send(bytes) && socket.receive(&answer, sizeof answer, Clock::now() + kStoreAnswer) && answer == kNonce;
}

/// Whether a store answers a query for a key in one of the dialects.
bool tells(const Socket& socket, bool introduced) {
  std::string bytes = (introduced ? introduction() : "") + begun(Request::check, introduced);
  append(bytes, uint64_t{1});
  append_text(bytes, "/plumb");
  uint8_t answer = 0;
  return socket.send(bytes) && socket.receive(&answer, sizeof answer, Clock::now() + kStoreAnswer) && answer <= 1;
}

}  // namespace

AgentStore::AgentStore(const std::string& host, int64_t port, double limit, const std::function<void()>& waiting) {
  const auto end = Clock::now() + std::chrono::duration<double>(limit);
  const auto connect = [&] {
    for (;;) {
      std::string reason = "no address";
      Socket socket = connect_to(host, port, kStoreAttempt, reason);
      if (socket.open()) return socket;
      if (waiting) waiting();
      if (Clock::now() > end)
        throw Error(fmt::format("torchrun's store at {}:{} does not answer: {}", host, port, reason));
      std::this_thread::sleep_for(kStorePause);
    }
  };
  socket_ = connect();
  introduced_ = true;
  if (pings(socket_)) return;
  for (const bool introduced : {false, true}) {
    socket_ = connect();
    introduced_ = introduced;
    if (tells(socket_, introduced)) return;
  }
  throw Error(fmt::format("the server at {}:{} is not a torchrun store that Plumb knows", host, port),
              "set TORCHELASTIC_USE_AGENT_STORE=False and a free MASTER_PORT");
}

void AgentStore::set(const std::string& key, const std::string& value) {
  std::string bytes = begun(Request::set, introduced_);
  append_text(bytes, "/" + key);
  append_text(bytes, value);
  request(bytes);
}

std::string AgentStore::get(const std::string& key, double limit, const std::function<void()>& waiting) {
  const auto end = Clock::now() + std::chrono::duration<double>(limit);
  while (!has(key)) {
    if (waiting) waiting();
    if (Clock::now() > end) throw Error(fmt::format("rank 0 has not joined within {:.3g} s", limit));
    std::this_thread::sleep_for(kStorePause);
  }
  std::string bytes = begun(Request::get, introduced_);
  append_text(bytes, "/" + key);
  request(bytes);
  uint64_t size = 0;
  receive(&size, sizeof size);
  constexpr uint64_t kLargest = 1U << 20U;
  if (size > kLargest) throw Error("torchrun's store gives an answer that is too long");
  std::string value(size, '\0');
  receive(value.data(), size);
  return value;
}

bool AgentStore::has(const std::string& key) {
  std::string bytes = begun(Request::check, introduced_);
  append(bytes, uint64_t{1});
  append_text(bytes, "/" + key);
  request(bytes);
  uint8_t answer = 0;
  receive(&answer, sizeof answer);
  return answer == kReady;
}

void AgentStore::request(std::string_view bytes) {
  if (!socket_.send(bytes)) throw Error("torchrun's store has closed the connection");
}

void AgentStore::receive(void* bytes, size_t size) {
  if (!socket_.receive(bytes, size, Clock::now() + kStoreAnswer)) throw Error("torchrun's store does not answer");
}

}  // namespace plumb
