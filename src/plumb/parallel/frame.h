// The messages between the processes of a run and the process that keeps their register. Only used in this folder.
//
// A frame is its length (4 bytes, little-endian, of what follows), its kind (1 byte) and its fields, each with its own
// length (4 bytes) before it.
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
  left,       // name of a group, number of exchanges, rank in it: the process has left the group after that many
  failed,     // reason: the process is about to end
  goodbye,    // the process has done its work
  // To a process.
  refused = 64,  // reason
  complete,      // all have joined; four fields for each rank: host, address, process id, machine
  value,         // the answer to `get` and `add`
  lost,          // rank, what happened
  gone,          // rank, and the fields of `left`
  // In both directions: a heartbeat. From a process: the exchanges it has begun, whether it is in one, the processor
  // time that it has used, in milliseconds, and the blocks and pages that it has read and written.
  beat = 128,
};

struct Frame {
  FrameKind kind = FrameKind::beat;
  std::vector<std::string> fields;
};

/// The first field of `hello`: what is spoken, and in which version.
constexpr std::string_view kGreeting = "plumb rendezvous 2";

/// A frame larger than this is not one of ours.
constexpr uint32_t kLargestFrame = 1U << 28U;

std::string encode(const Frame& frame);

/// Collects bytes into frames.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next complete frame. Throws Error if the bytes are no frames.
  std::optional<Frame> next();

 private:
  std::string buffer_;
};

/// The number in a field. Throws Error if the field is not a number.
int64_t number_in(const Frame& frame, size_t field);

}  // namespace plumb
