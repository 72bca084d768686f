// Made-up files of evaluation tasks in a scratch directory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/files.h"
#include "plumb/evaluate/task.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb::test {

class TaskFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories((scratch_ / name).parent_path());
    write_file_atomic(scratch_ / name, text);
  }

  [[nodiscard]] EvaluationTask load(const std::string& word) const {
    const std::vector<EvaluationTask> tasks = load_evaluation_tasks(word, scratch_ / "");
    EXPECT_EQ(tasks.size(), 1U);
    return tasks.at(0);
  }

  /// Expects loading to fail with a message that contains `part`.
  void expect_error(const std::string& word, const std::string& part) const {
    test::expect_error([&] { load_evaluation_tasks(word, scratch_ / ""); }, part);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (scratch_ / name).string(); }

  const TemporaryDirectory scratch_;
};

}  // namespace plumb::test
