// Scalars for TensorBoard: `tensorboard --logdir RUN` plots them during the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace plumb {

/// Writes one event file, which is open only while it is written to: a study has one for every run. A file is a
/// sequence of records, each `length, crc(length), data, crc(data)` (little-endian, masked CRC-32C), where the data is
/// an Event message in protobuf's encoding. Readers ignore a record truncated by a kill.
class EventWriter {
 public:
  /// Creates a new file `events.out.tfevents.TIME.HOST.PID.N` in `directory`, which is created if necessary. Files of
  /// earlier runs are kept: TensorBoard joins all files of a directory, so a resumed run continues the curves. Throws
  /// Error if the file cannot be created.
  explicit EventWriter(const std::filesystem::path& directory);
  /// Writes what was added; errors are ignored.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Adds the start of a session: readers drop what earlier files have from this step on, which is written again.
  void start(int64_t step, double wall_time);

  /// Adds one point, which the next flush writes; the value is stored in float32. `wall_time` is in seconds since 1970.
  void scalar(const std::string& tag, int64_t step, double value, double wall_time);

  /// Writes what was added. Throws Error if writing fails.
  void flush();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);

  std::filesystem::path path_;
  std::string pending_;
};

}  // namespace plumb
