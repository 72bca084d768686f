// The messages between the processes of a run and their register. Only used in this folder.
//
// A frame is the length of the rest (4 bytes, little-endian), its kind (1 byte) and its fields, each preceded by its
// length (4 bytes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

enum class FrameKind : uint8_t {
  // From a process.
  hello = 1,  // greeting, token, rank, size, host, process id, machine, version
  set,        // key, value
  get,        // key; answered by `value` as soon as the key is set
  add,        // key, number; answered by `value`, the sum
  left,       // name of a group, number of exchanges, rank in it: the process has left it after these exchanges
  failed,     // reason: the process is about to end
  goodbye,    // the process has done its work
  // To a process.
  refused = 64,  // reason
  complete,      // all have joined; four fields for each rank: host, address, process id, machine
  value,         // the answer to `get` and `add`
  lost,          // rank, what happened
  gone,          // rank, and the fields of `left`
  // In both directions: a heartbeat. From a process: the number of exchanges it has begun, whether it is in one, the
  // processor time used, in milliseconds, and the number of blocks and pages read and written.
  beat = 128,
};

struct Frame {
  FrameKind kind = FrameKind::beat;
  std::vector<std::string> fields;
};

/// The first field of `hello`: the protocol and its version.
constexpr std::string_view kGreeting = "plumb rendezvous 2";

/// Bytes; larger frames are rejected.
constexpr uint32_t kLargestFrame = 1U << 28U;

std::string encode(const Frame& frame);

/// Assembles frames from received bytes.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next frame, if complete. Throws Error on malformed bytes.
  std::optional<Frame> next();

 private:
  std::string buffer_;
};

/// The number in a field. Throws Error if the field is not a number.
int64_t number_in(const Frame& frame, size_t field);

}  // namespace plumb
