#include "plumb/base/quantity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(Quantity, RoundsWithoutExponents) {
  EXPECT_EQ(rounded(0.0341, 2), "0.034");
  EXPECT_EQ(rounded(34.2, 2), "34");
  EXPECT_EQ(rounded(110.4, 2), "110");
  EXPECT_EQ(rounded(32'123'456, 2), "32,000,000");
  EXPECT_EQ(rounded(-1553, 3), "-1,550");
  EXPECT_EQ(rounded(INFINITY, 3), "inf");
}

TEST(Quantity, ReadsUnits) {
  EXPECT_EQ(parse_quantity("2048", "x"), 2048);
  EXPECT_EQ(parse_quantity("0.25M", "x"), 250000);
  EXPECT_EQ(parse_quantity("300B", "x"), 300e9);
  EXPECT_EQ(parse_quantity("25 GB", "x"), 25e9);
  EXPECT_EQ(parse_quantity("80GiB", "x"), 85899345920.0);
  EXPECT_EQ(parse_quantity("2PB", "x"), 2e15);
  EXPECT_EQ(parse_quantity("1PiB", "x"), 1125899906842624.0);
  EXPECT_EQ(parse_quantity("1e3k", "x"), 1e6);
  for (const char* text : {"", "GiB", "-1", "nan", "inf", "3X", "3 G B", "3GiBs"}) {
    EXPECT_THROW(parse_quantity(text, "--memory"), Error) << text;
  }
}

TEST(Quantity, WritesThreeDigits) {
  EXPECT_EQ(with_unit(43646976), "43.6 M");
  EXPECT_EQ(with_unit(279.7e9), "280 B");
  EXPECT_EQ(with_unit(1.374e9), "1.37 B");
  EXPECT_EQ(with_unit(12), "12");
  EXPECT_EQ(with_unit(6.3e23), "6.3e+23");
  EXPECT_EQ(with_bytes(85899345920.0), "80 GiB");
  EXPECT_EQ(with_bytes(1536), "1.50 KiB");
  EXPECT_EQ(with_bytes(0), "0 B");
}

}  // namespace
}  // namespace plumb
