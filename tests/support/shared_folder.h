// Suites of tests that share a folder, such as one with a trained model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/fast_directory.h"
#include "support/process.h"

namespace plumb::test {

/// Its SetUpTestSuite makes the folder: folder_.emplace().
template <typename Suite>
class SharedFolder : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  static inline std::optional<FastDirectory> folder_;
};

/// The words of a command line, with --set for each of these assignments.
inline std::vector<std::string> with_keys(std::vector<std::string> words, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) words.insert(words.end(), {"--set", assignment});
  return words;
}

/// Runs the command line "plumb WORDS < INPUT". Between apostrophes, a word may have spaces.
inline Finished run_plumb_on(const std::string& words, const std::string& input) {
  std::vector<std::string> arguments;
  bool quoted = false, begins = true;
  for (const char c : words) {
    if (c == '\'') quoted = !quoted;
    if (c == ' ' && !quoted) begins = true;
    if (c == '\'' || (c == ' ' && !quoted)) continue;
    if (begins) arguments.emplace_back();
    begins = false;
    arguments.back() += c;
  }
  return run_plumb(arguments, ".", input);
}

}  // namespace plumb::test
