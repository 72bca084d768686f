// PythonRandom compared with CPython 3.11.
#include "plumb/evaluate/python_random.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

using Numbers = std::vector<size_t>;

/// Python's results for a seed: two calls of random(); after seeding again, sample() of 3 from 10, 4 from 1000, 8 from
/// 60 and 8 from 600, in this order; after seeding again, choices() of 7 from 7.
struct OfPython {
  uint64_t seed;
  double first, second;
  Numbers of_10, of_1000, of_60, of_600, choices;
};

const OfPython kOfPython[] = {{0,
                               0.8444218515250481,
                               0.7579544029403025,
                               {6, 9, 0},
                               {265, 988, 523, 497},
                               {25, 58, 50, 53, 19, 30, 22, 37},
                               {223, 516, 142, 288, 143, 97, 256, 545},
                               {5, 5, 2, 1, 3, 2, 5}},
                              {1234,
                               0.9664535356921388,
                               0.4407325991753527,
                               {7, 1, 0},
                               {92, 932, 965, 961},
                               {51, 37, 2, 42, 44, 5, 6, 49},
                               {363, 242, 17, 31, 16, 354, 495, 474},
                               {6, 3, 0, 6, 6, 4, 4}},
                              {(uint64_t{1} << 40) + 7,
                               0.6137037779936511,
                               0.8149162973309487,
                               {9, 7, 4},
                               {970, 630, 129, 529},
                               {24, 33, 46, 23, 25, 28, 54, 56},
                               {230, 455, 184, 140, 543, 585, 166, 32},
                               {4, 5, 6, 3, 3, 6, 0}}};

TEST(PythonRandom, DrawsWhatPythonDraws) {
  for (const OfPython& expected : kOfPython) {
    PythonRandom numbers(expected.seed);
    EXPECT_EQ(numbers.uniform(), expected.first);
    EXPECT_EQ(numbers.uniform(), expected.second);
    PythonRandom samples(expected.seed);
    EXPECT_EQ(samples.sample(10, 3), expected.of_10);
    EXPECT_EQ(samples.sample(1000, 4), expected.of_1000);
    EXPECT_EQ(samples.sample(60, 8), expected.of_60);
    EXPECT_EQ(samples.sample(600, 8), expected.of_600);
    EXPECT_EQ(PythonRandom(expected.seed).choices(7), expected.choices);
  }
}

TEST(PythonRandom, RefusesMoreThanThereAre) { EXPECT_THROW(PythonRandom(1).sample(3, 4), Error); }

}  // namespace
}  // namespace plumb
