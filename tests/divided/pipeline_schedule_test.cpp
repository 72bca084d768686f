// Schedules of pipelines, played by clocks: no tensors, no processes.
#include "plumb/divided/pipeline_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "support/errors.h"

namespace plumb {
namespace {

std::vector<PipelineSchedule> schedules() {
  std::vector<PipelineSchedule> all;
  for (const int64_t stages : {1, 2, 3, 4, 6}) {
    for (const int64_t micro_batches : {1, 2, 3, 4, 5, 8, 12, 13}) {
      all.push_back(make_pipeline_schedule("gpipe", stages, 1, micro_batches));
      for (const int64_t chunks : {1, 2, 3})
        all.push_back(make_pipeline_schedule("1f1b", stages, chunks, micro_batches));
    }
  }
  return all;
}

std::string name_of(const PipelineSchedule& schedule) {
  return fmt::format("{} stages, {} chunks, {} micro-batches", schedule.stages, schedule.chunks,
                     schedule.micro_batches);
}

/// What a task sends, and from where: the result of part p forward, or the gradient of its input backward.
using Message = std::tuple<StageTask::Pass, int64_t, int64_t>;  // pass, micro-batch, part that computed it

/// The stages as machines, with a line of messages from each to the next, and one back. Messages keep their order: the
/// first of a line leaves it only when the task that needs it begins, and blocks those behind it. A stage cannot begin
/// a task whose message would find the line full.
class Machines {
 public:
  Machines(const PipelineSchedule& schedule, size_t longest_line)
      : schedule_(schedule),
        longest_line_(longest_line),
        next_(static_cast<size_t>(schedule.stages), 0),
        clocks_(next_.size(), 0) {}

  /// The time at which the last stage ends, if a forward pass takes 1 and a backward pass 2 for all chunks of a stage;
  /// nullopt if the stages wait for each other.
  std::optional<double> end() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int64_t stage = 0; stage < schedule_.stages; ++stage) moved = step(stage) || moved;
    }
    for (size_t stage = 0; stage < next_.size(); ++stage) {
      if (next_[stage] < schedule_.tasks[stage].size()) return std::nullopt;
    }
    return *std::max_element(clocks_.begin(), clocks_.end());
  }

 private:
  struct Sent {
    Message message;
    double at;
  };
  using Line = std::tuple<StageTask::Pass, int64_t>;  // from this stage, forward or backward

  bool step(int64_t stage) {
    const auto s = static_cast<size_t>(stage);
    if (next_[s] == schedule_.tasks[s].size()) return false;
    const StageTask& task = schedule_.tasks[s][next_[s]];
    const bool forward = task.pass == StageTask::Pass::forward;
    const int64_t part = schedule_.part(stage, task.chunk);
    const int64_t before = forward ? part - 1 : part + 1, after = forward ? part + 1 : part - 1;
    const auto exists = [&](int64_t other) { return other >= 0 && other < schedule_.parts(); };
    std::deque<Sent>& in = lines_[{task.pass, (before + schedule_.stages) % schedule_.stages}];
    std::deque<Sent>& out = lines_[{task.pass, stage}];
    if (exists(before) && (in.empty() || in.front().message != Message{task.pass, task.micro_batch, before}))
      return false;
    if (exists(after) && out.size() == longest_line_) return false;
    if (exists(before)) {
      clocks_[s] = std::max(clocks_[s], in.front().at);
      in.pop_front();
    }
    clocks_[s] += (forward ? 1.0 : 2.0) / static_cast<double>(schedule_.chunks);
    if (exists(after)) out.push_back({{task.pass, task.micro_batch, part}, clocks_[s]});
    ++next_[s];
    return true;
  }

  const PipelineSchedule& schedule_;
  size_t longest_line_;
  std::vector<size_t> next_;  // [stage]: the place of its next task
  std::vector<double> clocks_;
  std::map<Line, std::deque<Sent>> lines_;
};

constexpr size_t kAnyLength = SIZE_MAX;

TEST(PipelineSchedule, HasEveryPassOnceAndForwardBeforeBackward) {
  for (const PipelineSchedule& schedule : schedules()) {
    ASSERT_EQ(std::ssize(schedule.tasks), schedule.stages);
    for (const std::vector<StageTask>& tasks : schedule.tasks) {
      std::map<std::pair<int64_t, int64_t>, size_t> forward, backward;  // by micro-batch and chunk
      for (size_t i = 0; i < tasks.size(); ++i) {
        auto& places = tasks[i].pass == StageTask::Pass::forward ? forward : backward;
        EXPECT_TRUE(places.insert({{tasks[i].micro_batch, tasks[i].chunk}, i}).second) << name_of(schedule);
      }
      ASSERT_EQ(std::ssize(forward), schedule.micro_batches * schedule.chunks) << name_of(schedule);
      ASSERT_EQ(backward.size(), forward.size()) << name_of(schedule);
      for (const auto& [which, place] : forward) EXPECT_LT(place, backward.at(which)) << name_of(schedule);
    }
  }
}

TEST(PipelineSchedule, NoStageWaitsForever) {
  for (const PipelineSchedule& schedule : schedules()) {
    EXPECT_TRUE(Machines(schedule, kAnyLength).end().has_value()) << name_of(schedule);
    // With one run of layers per stage, one message may be on its way at a time.
    if (schedule.chunks > 1) continue;
    EXPECT_TRUE(Machines(schedule, 1).end().has_value()) << name_of(schedule);
  }
}

TEST(PipelineSchedule, StagesThatAreOutOfOrderWaitForever) {  // the machines notice
  PipelineSchedule schedule = make_pipeline_schedule("gpipe", 2, 1, 2);
  std::swap(schedule.tasks[1][0], schedule.tasks[1][1]);
  EXPECT_FALSE(Machines(schedule, kAnyLength).end().has_value());
}

/// Whether the formula holds: with several chunks, micro-batches have to come in whole groups.
bool is_regular(const PipelineSchedule& schedule) {
  return schedule.chunks == 1 || schedule.micro_batches % schedule.stages == 0;
}

TEST(PipelineSchedule, TheBubbleIsThatOfTheFormula) {
  int64_t compared = 0;
  for (const PipelineSchedule& schedule : schedules()) {
    const double busy = 3.0 * static_cast<double>(schedule.micro_batches);
    const double end = Machines(schedule, kAnyLength).end().value();
    const double formula = pipeline_bubble(schedule.stages, schedule.chunks, schedule.micro_batches);
    if (is_regular(schedule)) {
      EXPECT_NEAR(1 - busy / end, formula, 1e-12) << name_of(schedule);
      ++compared;
    } else {
      EXPECT_GE(1 - busy / end, formula - 1e-12) << name_of(schedule);
    }
  }
  EXPECT_GT(compared, 80);
  EXPECT_DOUBLE_EQ(pipeline_bubble(4, 1, 8), 3.0 / 11);
  EXPECT_DOUBLE_EQ(pipeline_bubble(4, 2, 8), 3.0 / 19);
}

/// The most micro-batches, times chunks, whose activations a stage holds.
int64_t most_in_flight(const std::vector<StageTask>& tasks) {
  int64_t now = 0, most = 0;
  for (const StageTask& task : tasks) {
    now += task.pass == StageTask::Pass::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

TEST(PipelineSchedule, ActivationsInFlight) {
  for (const int64_t stages : {1, 2, 4, 6}) {
    for (const int64_t micro_batches : {1, 3, 6, 12}) {
      for (int64_t stage = 0; stage < stages; ++stage) {
        const auto s = static_cast<size_t>(stage);
        EXPECT_EQ(most_in_flight(make_pipeline_schedule("gpipe", stages, 1, micro_batches).tasks[s]), micro_batches);
        EXPECT_EQ(most_in_flight(make_pipeline_schedule("1f1b", stages, 1, micro_batches).tasks[s]),
                  std::min(stages - stage, micro_batches));
        const int64_t in_chunks = most_in_flight(make_pipeline_schedule("1f1b", stages, 3, micro_batches).tasks[s]);
        const int64_t most = std::min(2 * (stages - 1 - stage) + 2 * stages + 1, 3 * micro_batches);
        if (micro_batches % stages == 0) {
          EXPECT_EQ(in_chunks, most);
        } else {
          EXPECT_LE(in_chunks, most);
        }
      }
    }
  }
}

TEST(PipelineSchedule, ByName) {
  const StageTask f0{StageTask::Pass::forward, 0, 0}, f1{StageTask::Pass::forward, 1, 0},
      b0{StageTask::Pass::backward, 0, 0}, b1{StageTask::Pass::backward, 1, 0};
  EXPECT_EQ(make_pipeline_schedule("1f1b", 2, 1, 2).tasks,
            (std::vector<std::vector<StageTask>>{{f0, f1, b0, b1}, {f0, b0, f1, b1}}));
  EXPECT_EQ(make_pipeline_schedule("gpipe", 2, 1, 2).tasks,
            (std::vector<std::vector<StageTask>>{{f0, f1, b0, b1}, {f0, f1, b0, b1}}));
  EXPECT_EQ(test::message_of([] { make_pipeline_schedule("zb", 2, 1, 2); }), "unknown schedule of a pipeline 'zb'");
  EXPECT_EQ(test::message_of([] { make_pipeline_schedule("gpipe", 2, 2, 2); }),
            "the schedule gpipe has one run of layers in each stage, not 2");
}

}  // namespace
}  // namespace plumb
