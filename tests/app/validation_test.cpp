// A small part of the validation of plumb check (scripts/check/validate.py), from its predictions to its table.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "support/process.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

/// One cell of a small encoder-decoder in place of the design.
constexpr const char* kDriver = R"(
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import validate
validate.DESIGN.update(schemes=['pre-ln'], depths=[1], optimizers=['adamw'], corpora=['multi30k'], warm_ups=[0],
                       planned_steps=2000, budget='130g', seeds=[1, 2], first_rate={'adamw': 0.004}, held_out=[])
validate.LEAST_GAIN = 0.01  # runs of 60 steps learn little
validate.DESIGN['common'].update({'model.d_model': 32, 'model.feed_forward': 64, 'model.heads': 2, 'model.dropout': 0,
                                  'train.batch_tokens': 500})
sys.argv = ['validate.py'] + sys.argv[2:]
validate.main()
)";

class Validation : public test::SharedFolder<Validation> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    ASSERT_EQ(run_plumb({"data", "synthesize", "--pairs", "1000", "--vocabulary", "300", "--out", "multi30k"},
                        folder_->path())
                  .status,
              0);
    write_file_atomic(*folder_ / "driver.py", kDriver);
  }

  static Finished act(const std::string& action) {
    return test::Process(
               "/usr/bin/env",
               {"python3", "driver.py", (test::source_directory() / "scripts/check").string(), "--plumb",
                test::plumb_program(), "--work", ".", "--results", "results", "--jobs", "1", "--horizon", "60", action},
               folder_->path())
        .wait();
  }
};

TEST_F(Validation, PredictsSealsTrainsAndCompares) {
  const std::filesystem::path prediction = *folder_ / "results/predictions.jsonl";
  const std::filesystem::path truth = *folder_ / "results/truth.jsonl";
  for (const char* action : {"predict", "seal"}) {
    const Finished finished = act(action);
    ASSERT_EQ(finished.status, 0) << finished.errors;
  }
  const std::string sealed = read_file(prediction);
  EXPECT_LACKS(sealed, folder_->path().string()) << "names a folder of this machine";

  // What was changed after it was sealed is not compared.
  const std::string planned = "\"planned_steps\": 2000";
  std::string changed = sealed;
  ASSERT_NE(changed.find(planned), std::string::npos);
  write_file_atomic(prediction, changed.replace(changed.find(planned), planned.size(), "\"planned_steps\": 2001"));
  EXPECT_CONTAINS(act("truth").output, "is not sealed");
  EXPECT_FALSE(std::filesystem::exists(truth));
  write_file_atomic(prediction, sealed);

  for (const char* action : {"truth", "baselines"}) {
    const Finished finished = act(action);
    ASSERT_EQ(finished.status, 0) << finished.errors;
  }
  const std::string before = read_file(truth);
  EXPECT_CONTAINS(before, R"({"cell": "pre-ln-1-adamw-multi30k-0", "complete": true})");
  EXPECT_GE(std::ranges::count(before, '\n'), 7) << "six runs or more, and the line above";
  EXPECT_EQ(act("truth").status, 0);
  EXPECT_EQ(read_file(truth), before) << "complete, so nothing is trained again";

  const Finished table = act("table");
  ASSERT_EQ(table.status, 0) << table.errors;
  EXPECT_CONTAINS(table.output, "1 of 1 cells");
  EXPECT_CONTAINS(table.output, "| plumb check | 1 | ");
}

// The cells that vary in more have names of their own, and plans that differ.
TEST_F(Validation, CellsThatVaryAreToldApart) {
  write_file_atomic(*folder_ / "cells.py", R"(
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import validate
cells = validate.cells(varied=True)
names = {validate.name_of(cell) for cell in cells}
assert len(names) == len(cells) >= 60, (len(names), len(cells))
assert not names & {validate.name_of(cell) for cell in validate.cells()}
assert {cell['octaves'] for cell in cells} >= {-3, 3}
for cell in cells:
    planned = validate.settings(cell, validate.planned_rate(cell))
    assert ('model.d_model' in planned) != bool(cell.get('finetune')), planned
)");
  const Finished finished =
      test::Process("/usr/bin/env", {"python3", "cells.py", (test::source_directory() / "scripts/check").string()},
                    folder_->path())
          .wait();
  EXPECT_EQ(finished.status, 0) << finished.errors;
}

}  // namespace
}  // namespace plumb
