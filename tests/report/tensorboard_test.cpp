#include "plumb/report/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/report/crc32c.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

// An independent reader: records follow TensorFlow's description of the file, and messages protobuf's wire format.

uint64_t fixed(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Field number → value: integers for varint and fixed types, bytes for the others.
struct Message {
  std::map<int, uint64_t> numbers;
  std::map<int, std::string> bytes;
};

uint64_t varint(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.at(0));
    rest.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

Message parse(std::string_view rest) {
  Message message;
  while (!rest.empty()) {
    const uint64_t key = varint(rest);
    const int field = static_cast<int>(key >> 3);
    const auto type = key & 7;
    const size_t size = type == 1 ? 8 : type == 5 ? 4 : type == 2 ? varint(rest) : 0;
    if (type == 0) {
      message.numbers[field] = varint(rest);
    } else if (type == 2) {
      message.bytes[field] = std::string(rest.substr(0, size));
    } else {
      message.numbers[field] = fixed(rest.substr(0, size));
    }
    rest.remove_prefix(size);
  }
  return message;
}

std::vector<Message> read_events(const fs::path& path) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  std::vector<Message> events;
  while (!rest.empty()) {
    const std::string_view length = rest.substr(0, 8);
    const auto size = static_cast<size_t>(fixed(length));
    const std::string_view data = rest.substr(12, size);
    EXPECT_EQ(fixed(rest.substr(8, 4)), masked_crc32c(length));
    EXPECT_EQ(fixed(rest.substr(12 + size, 4)), masked_crc32c(data));
    events.push_back(parse(data));
    rest.remove_prefix(16 + size);
  }
  return events;
}

TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
}

TEST(Crc32c, MaskRotatesAndAdds) {
  // 0xE3069283 rotated right by 15 is 0x2507C60D; plus 0xA282EAD8 is 0xC78AB0E5.
  EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5U);
}

TEST(EventWriter, ScalarsCanBeReadAgain) {
  const test::TemporaryDirectory directory;
  fs::path path;
  {
    EventWriter writer(directory / "events");
    path = writer.path();
    writer.scalar("train/loss", 7, 2.5, 1700000000.25);
    writer.scalar("train/loss", 3000000000, std::numeric_limits<double>::quiet_NaN(), 1700000001.0);
  }
  EXPECT_EQ(path.filename().string().rfind("events.out.tfevents.", 0), 0U);
  const std::vector<Message> events = read_events(path);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].bytes.at(3), "brain.Event:2");
  EXPECT_GT(std::bit_cast<double>(events[0].numbers.at(1)), 1.6e9);

  EXPECT_EQ(std::bit_cast<double>(events[1].numbers.at(1)), 1700000000.25);
  EXPECT_EQ(events[1].numbers.at(2), 7U);
  const Message point = parse(parse(events[1].bytes.at(5)).bytes.at(1));
  EXPECT_EQ(point.bytes.at(1), "train/loss");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(point.numbers.at(2))), 2.5F);

  EXPECT_EQ(events[2].numbers.at(2), 3000000000U);
  const Message last = parse(parse(events[2].bytes.at(5)).bytes.at(1));
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(static_cast<uint32_t>(last.numbers.at(2)))));
}

TEST(EventWriter, ZeroIsStillAPoint) {
  const test::TemporaryDirectory directory;
  EventWriter writer(directory.path());
  writer.scalar("accuracy", 0, 0.0, 1.0);
  writer.flush();
  const Message point = parse(parse(read_events(writer.path()).at(1).bytes.at(5)).bytes.at(1));
  EXPECT_EQ(point.numbers.at(2), 0U);
}

TEST(EventWriter, AResumedRunWritesANewFile) {
  const test::TemporaryDirectory directory;
  EventWriter first(directory.path());
  first.scalar("loss", 1, 1.0, 1.0);
  first.flush();
  const std::string before = read_file(first.path());
  EventWriter second(directory.path());
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(read_file(first.path()), before);
}

// TensorBoard reads files in the order of their names.
TEST(EventWriter, ALaterFileIsReadLaterAlthoughTheClockWentBack) {
  const test::TemporaryDirectory directory;
  std::vector<std::string> names = {"events.out.tfevents.4000000000.host.1.0"};
  write_file_atomic(directory / names[0], "");
  for (const char* other : {"events.out.tfevents.none", "events.out.tfevents.", "events.out.tfevents.5.host"})
    write_file_atomic(directory / other, "");
  write_file_atomic(directory / "notes.5000000000", "");
  for (int file = 0; file < 3; ++file) names.push_back(EventWriter(directory.path()).path().filename().string());
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_TRUE(names[3].starts_with("events.out.tfevents.4000000003.")) << names[3];
}

// TensorBoard: Event.session_log is field 7, SessionLog.status field 1, START is 1.
TEST(EventWriter, ASessionSaysFromWhichStepItsPointsCount) {
  const test::TemporaryDirectory directory;
  EventWriter writer(directory.path());
  writer.start(12, 1700000000.25);
  writer.flush();
  const Message event = read_events(writer.path()).at(1);
  EXPECT_EQ(event.numbers.at(2), 12U);
  EXPECT_EQ(parse(event.bytes.at(7)).numbers.at(1), 1U);
}

TEST(EventWriter, UnusableDirectoryIsAnError) {
  const test::TemporaryDirectory directory;
  write_file_atomic(directory / "run", "a file, not a directory");
  EXPECT_THROW(EventWriter writer(directory / "run"), Error);
}

}  // namespace
}  // namespace plumb
