// Weight files are read, not mapped: truncating a mapped file crashes the process that reads it.
#include <gtest/gtest.h>

#include "plumb/io/safetensors.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(SafetensorsFiles, ThatAreShortenedWhileTheyAreReadAreAnError) {
  const test::TemporaryDirectory directory;
  const Tensor values = testing::random_tensor({64, 1024}, 1);
  save_safetensors(directory / "file", {{"first", values}, {"second", values}});
  SafetensorsReader reader(directory / "file");
  EXPECT_TRUE(reader.read("first").equal(values));
  std::filesystem::resize_file(directory / "file", std::filesystem::file_size(directory / "file") / 2);
  EXPECT_CONTAINS(test::message_of([&] { (void)reader.read("second"); }), "tensor 'second' cannot be read");
}

}  // namespace
}  // namespace plumb
