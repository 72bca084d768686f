// Scalars for TensorBoard: `tensorboard --logdir RUN` plots them during the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace plumb {

/// Writes one event file, open only during writes, since a study has one for every run. A file is a
/// sequence of records, each `length, crc(length), data, crc(data)` (little-endian, masked CRC-32C), where the data is
/// an Event message in protobuf's encoding. Readers ignore a record truncated by a kill.
class EventWriter {
 public:
  /// Creates a new file `events.out.tfevents.TIME.HOST.PID.N` in `directory`, which is created if necessary. Files of
  /// earlier runs are kept, and their names come before it: TensorBoard joins all files of a directory in this order,
  /// so a resumed run continues the curves. Throws Error if the file cannot be created.
  explicit EventWriter(const std::filesystem::path& directory);
  /// Flushes; errors are ignored.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Marks a restart at `step`: readers drop the points of earlier files from this step on.
  void start(int64_t step, double wall_time);

  /// Adds one point, written by the next flush and stored in float32. `wall_time` is in seconds since 1970.
  void scalar(const std::string& tag, int64_t step, double value, double wall_time);

  /// Adds what was set, for TensorBoard's page of hyperparameters: names with numbers, true or false, or other texts.
  void hyperparameters(const std::vector<std::pair<std::string, std::string>>& settings, double wall_time);

  /// Writes all pending events. Throws Error if writing fails.
  void flush();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);

  std::filesystem::path path_;
  std::string pending_;
};

}  // namespace plumb
