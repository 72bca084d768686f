// NumPy's format, byte by byte as specified.
#include "plumb/io/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "plumb/base/input.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(Npy, HasAHeaderThatEndsAtAMultipleOf64) {
  const test::TemporaryDirectory scratch;
  const at::Tensor matrix = at::arange(6, at::kDouble).view({3, 2}).t();  // not in C order, not in float32
  save_npy(scratch / "matrix.npy", matrix);
  const std::string bytes = read_file(scratch / "matrix.npy");
  ASSERT_EQ(bytes.size(), 128 + 6 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(bytes.substr(8, 2), std::string("\x76\x00", 2));  // 118 = 128 − 10
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(bytes.substr(10, 118), dictionary + std::string(118 - 1 - dictionary.size(), ' ') + '\n');
  const float expected[] = {0, 2, 4, 1, 3, 5};
  EXPECT_EQ(bytes.substr(128), std::string(reinterpret_cast<const char*>(expected), sizeof(expected)));
}

TEST(Npy, WritesOtherShapes) {
  const test::TemporaryDirectory scratch;
  save_npy(scratch / "vector.npy", at::ones({7}));
  EXPECT_CONTAINS(read_file(scratch / "vector.npy"), "'shape': (7,), }");
  save_npy(scratch / "empty.npy", at::ones({0, 5}));
  EXPECT_EQ(read_file(scratch / "empty.npy").size(), 128U);
  // A header whose length needs both of its bytes: 310 = 320 − 10.
  save_npy(scratch / "deep.npy", at::ones({1}).view(std::vector<int64_t>(80, 1)));
  const std::string deep = read_file(scratch / "deep.npy");
  EXPECT_EQ(deep.size(), 320 + sizeof(float));
  EXPECT_EQ(deep.substr(8, 2), "\x36\x01");
}

}  // namespace
}  // namespace plumb
