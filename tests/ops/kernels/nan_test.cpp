// NaN passes through the kernels on every instruction set.
#include "ops/nan_cases.h"
#include "plumb/ops/kernels/instruction_set.h"

namespace plumb::testing {
namespace {

class NaNByKernels : public ::testing::Test {
 protected:
  void TearDown() override { kernels::use_instruction_set(""); }

  static void expect_all(const std::vector<NanCase>& cases) {
    const std::vector<std::string> sets = kernels::instruction_sets();
    for (size_t i = 1; i < sets.size(); ++i) {  // tests/ops/nan_test.cpp covers the best one
      SCOPED_TRACE(sets[i]);
      kernels::use_instruction_set(sets[i]);
      nan_cases::expect_all(cases);
    }
  }
};

TEST_F(NaNByKernels, OfLinearLayers) { expect_all(nan_cases::linear_layers()); }
TEST_F(NaNByKernels, OfAttention) { expect_all(nan_cases::attentions()); }
TEST_F(NaNByKernels, OfEverythingElse) { expect_all(nan_cases::others()); }

}  // namespace
}  // namespace plumb::testing
