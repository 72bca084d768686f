// Tensors in a file without a name, and a file of which one tensor is read at a time.
#include "plumb/io/spilled_tensors.h"
#include "plumb/base/input.h"

#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

NamedTensors some_tensors() {
  return {{"matrix", testing::random_tensor({3, 5}, 1)},
          {"none", at::empty({0, 4})},
          {"number", at::scalar_tensor(7, at::kLong)},
          {"column", testing::random_tensor({4, 6}, 2).to(at::kFloat).select(1, 2)}};
}

void expect_equal(const NamedTensors& found, const NamedTensors& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].first, wanted[i].first);
    EXPECT_EQ(found[i].second.scalar_type(), wanted[i].second.scalar_type());
    EXPECT_TRUE(at::equal(found[i].second, wanted[i].second)) << wanted[i].first;
  }
}

TEST(SpilledTensors, AreCopiesAndLeaveNoFile) {
  const test::TemporaryDirectory folder;
  for (const std::filesystem::path& place : {folder.path(), std::filesystem::path()}) {
    const NamedTensors tensors = some_tensors();
    NamedTensors found;
    {
      SpilledTensors spilled(place);
      for (const auto& [name, tensor] : tensors) spilled.add(name, tensor);
      found = spilled.all();
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    expect_equal(found, tensors);
    tensors[0].second.zero_();
    expect_equal(found, some_tensors());
  }
}

TEST(SpilledTensors, MakeTheSameFile) {
  const test::TemporaryDirectory folder;
  SpilledTensors spilled(folder.path());
  for (const auto& [name, tensor] : some_tensors()) spilled.add(name, tensor);
  save_safetensors(folder / "spilled", spilled.all());
  save_safetensors(folder / "whole", some_tensors());
  EXPECT_EQ(read_file(folder / "spilled"), read_file(folder / "whole"));
}

TEST(SpilledTensors, NeedAFolder) {
  const std::string message = test::message_of([] { SpilledTensors spilled("/nonexistent/folder"); });
  EXPECT_CONTAINS(message, "/nonexistent/folder: no file can be created");
}

TEST(SafetensorsReader, ReadsOneTensorAtATime) {
  const test::TemporaryDirectory folder;
  save_safetensors(folder / "file", some_tensors());
  SafetensorsReader reader(folder / "file");
  for (const char* name : {"column", "matrix", "none", "number", "matrix"}) {
    for (const auto& [wanted, tensor] : some_tensors()) {
      if (wanted == name) expect_equal({{name, reader.read(name)}}, {{name, tensor}});
    }
  }
  EXPECT_CONTAINS(test::message_of([&] { static_cast<void>(reader.read("other")); }), "tensor 'other' is missing");
}

TEST(SafetensorsReader, FindsDamage) {
  const test::TemporaryDirectory folder;
  save_safetensors(folder / "file", some_tensors());
  std::string content = read_file(folder / "file");
  content.back() = static_cast<char>(content.back() ^ 1);  // of the last tensor
  write_file_atomic(folder / "file", content);
  SafetensorsReader reader(folder / "file");
  static_cast<void>(reader.read("matrix"));
  EXPECT_CONTAINS(test::message_of([&] { static_cast<void>(reader.read("column")); }), "'column' is damaged");
  write_file_atomic(folder / "file", content.substr(0, content.size() - 1));
  EXPECT_CONTAINS(test::message_of([&] { SafetensorsReader shorter(folder / "file"); }), "truncated");
}

}  // namespace
}  // namespace plumb
