// Files and directories of runs, and what was read from them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/files.h"
#include "plumb/judge/arms.h"
#include "plumb/report/tensorboard.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb::test {

class RunFiles : public testing::Test {
 protected:
  /// Writes a file below the folder; returns its path.
  std::string file(const std::string& name, const std::string& content) {
    write_file_atomic(folder_ / name, content);
    return (folder_ / name).string();
  }
  TemporaryDirectory folder_;
};

/// The runs of one place, of this arm; without a name, of the arms that their settings make.
inline RunArms gathered(const std::string& arm, const std::filesystem::path& place, const ArmOptions& options = {}) {
  return gather_arms({{arm, place.string()}}, options);
}
inline void expect_refused(const std::string& arm, const std::string& place, const ArmOptions& options,
                           const std::string& message) {
  expect_error([&] { gathered(arm, place, options); }, message);
}

/// Writes a curve that falls to a level: a value every 100 steps.
inline void write_curve(const std::filesystem::path& directory, const std::string& tag, int first, int last,
                        double level) {
  EventWriter writer(directory);
  for (int step = first; step <= last; step += 100) writer.scalar(tag, step, level + 4 - step / 128.0, 1);
}

/// Of each run that was read its arm, seed, points, last step, state and value: "a 0 3 200 finished 2.5".
inline std::string runs_in(const RunArms& arms) {
  std::string text;
  for (const ReadRun& run : arms.runs)
    text += fmt::format("{}{} {} {} {:g} {}{:g}", text.empty() ? "" : "; ", run.arm, run.seed.empty() ? "–" : run.seed,
                        run.points, run.last_step, run.state.empty() ? "" : run.state + " ", run.value);
  return text;
}

inline std::vector<std::string> notes_in(const RunArms& arms, const std::string& part) {
  std::vector<std::string> notes = arms.notes;
  std::erase_if(notes, [&](const std::string& note) { return note.find(part) == std::string::npos; });
  return notes;
}

}  // namespace plumb::test
