#include "plumb/base/base64.h"

#include <gtest/gtest.h>

#include <utility>

namespace plumb {
namespace {

/// The test vectors of RFC 4648, section 10, and bytes that cover every digit.
TEST(Base64, TestVectors) {
  for (const auto& [bytes, text] : {std::pair("", ""),
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xFB\xFF\xBF", "+/+/"}}) {
    EXPECT_EQ(base64_of(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
  EXPECT_EQ(bytes_of_base64("Zg?="), std::nullopt);
}

TEST(Base64, AllBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  EXPECT_EQ(bytes_of_base64(base64_of(bytes)), bytes);
}

}  // namespace
}  // namespace plumb
