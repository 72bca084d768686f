// The gate of a series of candidates, against scripts/gate_power.py, and its ledger.
#include "plumb/judge/gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/judge/ledger.h"
#include "support/csv.h"
#include "support/errors.h"
#include "support/paths.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::string said(const GateAnswer& answer) { return answer.next.empty() ? answer.decision : answer.next; }

// 80 candidates in a series that drifts, of which the script kept 9: it asks for the same runs and decides alike.
TEST(Gate, AnswersAsTheSimulatedRule) {
  Gate gate({}, "0");
  int kept = 0;
  bool header = true;
  test::read_records(test::source_directory() / "tests/golden/gate/series.csv", ',', [&](const Record& row) {
    if (std::exchange(header, false)) return;
    gate.add(row[1], std::stod(row[2]));
    const GateAnswer answer = gate.answer(row[0]);
    EXPECT_EQ(said(answer), row[3]) << row[0] << ' ' << answer.reason;
    kept += answer.decision == "keep" ? 1 : 0;
  });
  EXPECT_EQ(kept, 9);
}

/// A series of which five seeds of the base are known: mean 2.3, s² = 0.00025.
Gate gate_with_base(const GateRule& rule = {}) {
  Gate gate(rule, "base");
  for (const double loss : {2.3, 2.32, 2.28, 2.31, 2.29}) gate.add("base", loss);
  return gate;
}

// The first look, after three of twelve seeds, may err 0.05 · 100/(100 · 101) · (3/12)³. The common variance is
// (4 · 0.00025 + 2 · 0.0001)/6, and the base's own, which is larger, counts for it.
TEST(Gate, ALookIsAnInterval) {
  Gate gate = gate_with_base();
  for (const double loss : {2.2, 2.21, 2.19}) gate.add("new", loss);
  const GateAnswer answer = gate.answer("new");
  EXPECT_NEAR(answer.confidence, 1 - 2 * 0.05 * 100 / (100 * 101) / 64, 1e-12);
  EXPECT_NEAR(answer.gain.mean, 0.1, 1e-12);
  EXPECT_NEAR((answer.gain.high - answer.gain.low) / 2,
              student_t_quantile(1 - 0.05 / 101 / 64, 6) * std::sqrt(2e-4 / 3 + 5e-5), 1e-9);
}

TEST(Gate, IsKeptOnlyBesideNewerSeedsOfTheBest) {
  Gate gate = gate_with_base();
  EXPECT_EQ(gate.answer("new").next, "new");
  std::vector<std::string> next;
  std::map<std::string, int> runs;
  while (gate.answer("new").next != "") {
    next.push_back(gate.answer("new").next);
    gate.add(next.back(),
             (next.back() == "base" ? 2.3 : 1.8) + 0.01 * (++runs[next.back()] % 4) + 1e-4 * runs[next.back()]);
  }
  EXPECT_EQ(next, (std::vector<std::string>{"new", "new", "new", "base", "base", "base"}));
  EXPECT_EQ(gate.answer("new").decision, "keep");
  EXPECT_EQ(gate.best(), "new");
  gate.add("new", 1.79);  // a late run changes nothing
  EXPECT_EQ(gate.answer("new").decision, "keep");
  EXPECT_THROW(static_cast<void>(gate.answer("base")), UsageError);
}

TEST(Gate, GivesUpWhatIsHopeless) {
  Gate gate = gate_with_base();
  gate.add("worse", 2.5);
  EXPECT_EQ(gate.answer("worse").decision, "reject");
  EXPECT_CONTAINS(gate.answer("worse").reason, "hopeless after 1 seed");
  gate.add("broken", std::nan(""));
  EXPECT_EQ(gate.answer("broken").reason, "1 of 1 runs failed");
  EXPECT_EQ(gate.best(), "base");
  constexpr double kFailed = std::numeric_limits<double>::infinity();
  Gate fragile = gate_with_base();
  fragile.add("base", INFINITY);
  for (const double loss : {kFailed, 2.2}) fragile.add("new", loss);
  EXPECT_EQ(fragile.answer("new").decision, "reject");  // fails more often than the base
}

TEST(Gate, AsksForAFreshSeedOfAnOldBest) {
  Gate gate = gate_with_base();
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(gate.answer("c" + std::to_string(i)).next, "c" + std::to_string(i));
    gate.add("c" + std::to_string(i), 2.6 + 0.01 * i);
  }
  EXPECT_EQ(gate.answer("c9").next, "c9");
  gate.add("c9", 2.7);
  EXPECT_EQ(gate.answer("c10").next, "base");
  EXPECT_CONTAINS(gate.answer("c10").reason, "candidates old");
  gate.add("base", 2.301);
  EXPECT_EQ(gate.answer("c10").next, "c10");
}

// Three later seeds of the base lie 0.2 lower: those before count no longer, and a candidate as low is not better.
TEST(Gate, LeavesOutWhatIsBeforeADrift) {
  Gate gate = gate_with_base();
  for (const double loss : {2.1, 2.11, 2.09}) gate.add("base", loss);
  for (const double loss : {2.1, 2.12, 2.08}) gate.add("same", loss);
  EXPECT_LT(gate.answer("same").gain.mean, 0.02);
  EXPECT_NE(gate.answer("same").decision, "keep");
}

TEST(Gate, EqualRunsAndImpossibleRulesAreErrors) {
  Gate gate({}, "base");
  gate.add("base", 2.3);
  gate.add("base", 2.3);
  test::expect_error([&] { gate.add("base", 2.3); }, "end with the same value");
  Gate broken({}, "base");
  broken.add("base", std::nan(""));
  broken.add("base", std::nan(""));
  test::expect_error([&] { broken.add("base", std::nan("")); }, "none ended well");
  EXPECT_THROW(Gate({.error = 0}, "base"), UsageError);
  EXPECT_THROW(Gate({.margin = std::nan("")}, "base"), UsageError);
  EXPECT_THROW(Gate({.seeds = 2}, "base"), UsageError);
}

class GateLedger : public testing::Test {
 protected:
  test::TemporaryDirectory folder_;
  fs::path path_ = folder_.path() / "gate.jsonl";
  std::vector<std::string> notes_;

  GateAnswer ask(const std::vector<GateRun>& runs, const GateRequest& other = {.metric = "loss"}) {
    GateRequest request = other;
    request.base = "base";
    request.candidate = "new";
    request.runs = runs;
    notes_.clear();
    return ask_gate(path_, request, notes_);
  }
};

TEST_F(GateLedger, KeepsRunsOnce) {
  EXPECT_EQ(ask({}).next, "base");
  const std::vector<GateRun> base = {{"base", "1", 2.3}, {"base", "2", 2.32}, {"base", "3", 2.28}};
  EXPECT_EQ(ask(base).next, "new");
  EXPECT_EQ(ask({{"new", "", 2.31}, {"new", "", INFINITY}}).decision, "reject");
  EXPECT_EQ(ask({{"new", "", 2.31}, {"new", "", INFINITY}, {"base", "3", 2.28}}).decision, "reject");
  EXPECT_EQ(read_lines(path_).size(), 6u);
  test::expect_error([&] { ask({{"base", "1", 2.4}}); }, "the ledger has 2.3 for seed 1 of base, not 2.4");
  EXPECT_EQ(read_lines(path_).size(), 6u);
}

TEST_F(GateLedger, AnotherSeriesIsRefused) {
  ask({});
  EXPECT_THROW(ask({}, {.metric = "accuracy"}), UsageError);
  EXPECT_THROW(ask({}, {.larger_is_better = true}), UsageError);
  EXPECT_THROW(ask({}, {.margin = 0.1}), UsageError);
  EXPECT_THROW(ask({}, {.best = "old"}), UsageError);
  EXPECT_EQ(ask({}, {}).next, "base");  // what is not said is as before
  path_ = folder_.path() / "second";
  EXPECT_THROW(ask({}, {.metric = "quux"}), UsageError);
  EXPECT_EQ(ask({}, {.metric = "quux", .larger_is_better = true, .seeds = 5}).next, "base");
  path_ = folder_.path() / "results.tsv";
  write_file_atomic(path_, "idea\tloss\n");
  test::expect_error([&] { ask({}); }, "is no ledger");
  EXPECT_EQ(read_file(path_), "idea\tloss\n");
}

// A process that is killed while it writes leaves a part of a line, at any byte.
TEST_F(GateLedger, ATornLineIsSkipped) {
  ask({{"base", "1", 2.3}});
  const std::string whole = read_file(path_);
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file_atomic(path_, std::string_view(whole).substr(0, size));
    ask({{"base", "1", 2.3}, {"base", "ä", 2.4}});
    ask({});
    const size_t begun = size > 0 && whole[size - 1] != '\n' && whole[size] != '\n' ? 1 : 0;
    EXPECT_EQ(notes_.size(), begun) << size;
    EXPECT_EQ(read_lines(path_).size(), 3 + begun) << size;
  }
}

TEST_F(GateLedger, SeveralMayAppend) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      std::vector<std::string> notes;
      for (int i = 0; i < 25; ++i) {
        GateRequest request{.base = "base", .candidate = "new", .metric = "loss"};
        const int seed = 25 * thread + i;
        request.runs = {{"base", std::to_string(seed), 2 + 0.001 * seed}};
        ask_gate(path_, request, notes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_lines(path_).size(), 101u);
  ask({});
  EXPECT_TRUE(notes_.empty());
}

}  // namespace
}  // namespace plumb
