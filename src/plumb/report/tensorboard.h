// Scalars for TensorBoard: `tensorboard --logdir RUN` draws them while the run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace plumb {

/// Writes one event file. A file is a sequence of records, each `length, crc(length), data, crc(data)` (little-endian,
/// masked CRC-32C), the data an Event message in protobuf's encoding. A record that a kill cut short is ignored by
/// readers.
class EventWriter {
 public:
  /// Opens a new file `events.out.tfevents.TIME.HOST.PID.N` in `directory`, which is made if need be. Files of earlier
  /// runs are left alone: TensorBoard joins all files of a directory, so that a resumed run continues the curves.
  /// Throws Error if the file cannot be made.
  explicit EventWriter(const std::filesystem::path& directory);

  /// Adds one point; the value is stored in float32. `wall_time` is in seconds since 1970.
  /// Throws Error if writing fails.
  void scalar(const std::string& tag, int64_t step, double value, double wall_time);

  /// Hands everything to the operating system. Throws Error if writing fails. Destruction does this too.
  void flush();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void write(const std::string& event);

  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace plumb
