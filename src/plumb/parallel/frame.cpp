#include "plumb/parallel/frame.h"

#include <charconv>
#include <cstring>

#include "plumb/base/error.h"

namespace plumb {
namespace {

void append_length(std::string& to, size_t length) {
  for (unsigned shift = 0; shift < 32; shift += 8) to += static_cast<char>(length >> shift & 0xFFU);
}

uint32_t length_at(const std::string& bytes, size_t at) {
  uint32_t length = 0;
  for (unsigned i = 0; i < 4; ++i) length |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << 8U * i;
  return length;
}

[[noreturn]] void refuse() { throw Error("received bytes that are not a message of a Plumb process"); }

}  // namespace

std::string encode(const Frame& frame) {
  std::string body(1, static_cast<char>(frame.kind));
  for (const std::string& field : frame.fields) {
    append_length(body, field.size());
    body += field;
  }
  std::string bytes;
  append_length(bytes, body.size());
  return bytes + body;
}

std::optional<Frame> FrameReader::next() {
  if (buffer_.size() < 4) return std::nullopt;
  const size_t size = length_at(buffer_, 0);
  if (size == 0 || size > kLargestFrame) refuse();
  if (buffer_.size() < 4 + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(buffer_[4]), {}};
  const size_t end = 4 + size;
  for (size_t at = 5; at < end;) {
    if (end - at < 4) refuse();
    const size_t length = length_at(buffer_, at);
    at += 4;
    if (end - at < length) refuse();
    frame.fields.push_back(buffer_.substr(at, length));
    at += length;
  }
  buffer_.erase(0, end);
  return frame;
}

int64_t number_in(const Frame& frame, size_t field) {
  int64_t value = 0;
  if (field >= frame.fields.size()) refuse();
  const std::string& text = frame.fields[field];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse();
  return value;
}

}  // namespace plumb
