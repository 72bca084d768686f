// Weight files are read, not mapped: truncating a mapped file crashes the process that reads it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "plumb/base/files.h"
#include "plumb/io/safetensors.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(SafetensorsFiles, AreReadWhereTheyCannotBeMapped) {
  const test::TemporaryDirectory directory;
  const Tensor values = testing::random_tensor({3, 5}, 1);
  save_safetensors(directory / "file", {{"values", values}});
  const std::string content = read_file(directory / "file");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(directory / "pipe", std::ios::binary) << content; });
  const NamedTensors read = load_safetensors(directory / "pipe");
  writer.join();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_TRUE(read[0].second.equal(values));
}

}  // namespace
}  // namespace plumb
