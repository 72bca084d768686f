// Lines of text logs as programs print them, read by patterns.
#include "plumb/judge/log_lines.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace plumb {
namespace {

Row matched(const std::string& pattern, const std::string& line) {
  return LinePattern(pattern).match(line).value_or(Row{{"no", "match"}});
}

TEST(LinePattern, ReadsLinesOfTextLogs) {
  EXPECT_EQ(matched("step {step}: train loss {train}, val loss {val}", "step 250: train loss 2.4102, val loss 2.5127"),
            (Row{{"step", "250"}, {"train", "2.4102"}, {"val", "2.5127"}}));  // nanoGPT
  EXPECT_EQ(matched("s:{step} tel:{val_loss}", "s:250 tel:4.5463"), (Row{{"step", "250"}, {"val_loss", "4.5463"}}));
  EXPECT_EQ(matched("epoch: {epoch}, {} - valid loss: {valid_loss}",
                    "epoch: 3, lr: 1.00e+00 - train loss: 2.31 - valid loss: 1.25, valid WER: 9.0"),
            (Row{{"epoch", "3"}, {"valid_loss", "1.25"}}));  // SpeechBrain
  EXPECT_EQ(matched("iteration {step}/ {} | lm loss: {loss} |",
                    " iteration      100/   500000 | consumed samples: 25600 | lm loss: 6.1E+00 | loss scale: 1.0 |"),
            (Row{{"step", "100"}, {"loss", "6.1E+00"}}));  // Megatron-LM
  EXPECT_EQ(matched("{step} loss {loss}", "7 loss nan"), (Row{{"step", "7"}, {"loss", "nan"}}));
}

TEST(LinePattern, LeavesOtherLinesAlone) {
  for (const char* line : {"", "number of parameters: 10.65M", "step 250: train loss 2.4", "Step 250: val loss 2"})
    EXPECT_FALSE(LinePattern("step {step}: train loss {train}, val loss {val}").match(line)) << line;
}

TEST(LinePattern, SaysWhatIsWrongWithAPattern) {
  for (const char* pattern : {"loss", "{} loss {}", "loss {loss", "{step}{loss}"})
    EXPECT_THROW(LinePattern{pattern}, UsageError) << pattern;
}

}  // namespace
}  // namespace plumb
