// Logs that are read again while programs write into them.
#include "plumb/judge/log_file.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>

#include "plumb/base/error.h"
#include "plumb/judge/records_report.h"
#include "plumb/report/tensorboard.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// Names, settings and values of runs.
std::string text_of(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const RunRecord& run : runs) {
    text += fmt::format("{} {}:", run.name, run.state);
    for (const auto& [key, value] : run.settings) text += fmt::format(" {}={}", key, value);
    for (const auto& [metric, values] : run.series) {
      text += fmt::format(" {}", metric);
      for (const RunRecord::Value& one : values) text += fmt::format(" {}@{}", one.value, one.step);
    }
    text += '\n';
  }
  return text;
}

class GrowingLog : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
    return folder_ / name;
  }
  test::TemporaryDirectory folder_;
};

// A program may have written a line up to any byte, in one of quotes, too.
TEST_F(GrowingLog, IsReadAsIfAtOnceWhereverItWasCut) {
  const LogKeys keys{{}, {LinePattern("step {step}: loss {loss}")}};
  for (const auto& [name, content] :
       {std::pair<std::string, std::string>{"a.csv", "step,run,loss\n1,\"a, \"\"b\n\"\"\",2.5\r\n2,c,nan\n2,c,1.25\n"},
        {"b.tsv", "loss\tname\n1\tx\n\n2\t\"y\n"},
        {"c.jsonl", "{\"step\": 1, \"m\": {\"loss\": 2.5}}\n{\"step\": 2, \"m\": {\"loss\": NaN}, \"é\": [1]}\n"},
        {"d.log", "begin\nstep 1: loss 2.5\nstep 20: loss 1.25\nend"},
        {"e.json", "[{\"step\": 1, \"loss\": 2}, {\"step\": 2, \"loss\": 1}]"}}) {
    LogFile log(folder_ / name, name, keys);
    for (size_t size = 0; size <= content.size(); ++size) {
      const auto read = [&](LogFile& file) {
        try {
          return text_of(file.records());
        } catch (const Error& error) {
          return std::string(error.what());
        }
      };
      LogFile fresh(write(name, content.substr(0, size)), name, keys);
      EXPECT_EQ(read(log), read(fresh)) << name << " " << size;
    }
  }
}

TEST_F(GrowingLog, WhatHasBeenReadIsNotReadAgain) {
  std::string table = "step,loss\n1,7\n";
  for (int step = 2; step < 1000; ++step) table += fmt::format("{},5\n", step);
  LogFile log(write("a.csv", table), "a", {});
  EXPECT_EQ(log.records().at(0).series.at("loss").size(), 999U);
  table[table.find('7')] = '8';
  write("a.csv", table + "1000,6\n");
  const std::vector<RunRecord::Value>& values = log.records().at(0).series.at("loss");
  ASSERT_EQ(values.size(), 1000U);
  EXPECT_EQ(values.front().value, 7);
  EXPECT_EQ(values.back().value, 6);
  // Lightning's logger writes its table again when it has a new column; a program may begin another log.
  write("a.csv", "step,loss,acc\n" + table.substr(table.find('\n') + 1));
  EXPECT_THROW(log.records(), Error);  // lines without the new column
  write("a.csv", table + "1000,6\n");
  EXPECT_EQ(log.records().at(0).series.at("loss").front().value, 8);
  write("a.csv", "step,loss\n1,3\n");
  EXPECT_EQ(text_of(log.records()), "a : loss 3@1\n");
}

TEST_F(GrowingLog, OfADirectoryTheFilesThatHaveChangedAreRead) {
  write("a.csv", "step,loss\n1,3\n2,2\n");
  write("b.jsonl", "{\"step\": 1, \"loss\": 3}\n");
  const std::vector<std::string> places = {folder_.path().string()};
  LogFiles known;
  EXPECT_EQ(text_of(read_all_records(places, &known)), text_of(read_all_records(places)));
  write("b.jsonl", "{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 1}\n");
  write("c.csv", "step,loss\n1,4\n");
  EXPECT_EQ(text_of(read_all_records(places, &known)), text_of(read_all_records(places)));
  EXPECT_EQ(known.files.size(), 3U);
  std::filesystem::remove(folder_ / "a.csv");
  EXPECT_EQ(read_all_records(places, &known).size(), 2U);
}

TEST_F(GrowingLog, EventFilesThatHaveChangedAreReadAgain) {
  EventWriter writer(folder_.path());
  writer.scalar("loss", 1, 3, 1);
  writer.flush();
  EventFiles known;
  EXPECT_EQ(read_event_files(folder_.path(), known).series.at("loss").size(), 1U);
  known.begin()->second.record.series["kept"] = {{1, 2}};
  EXPECT_EQ(read_event_files(folder_.path(), known).series.size(), 2U);
  writer.scalar("loss", 2, 2, 2);
  writer.flush();
  const RunRecord grown = read_event_files(folder_.path(), known);
  EXPECT_EQ(grown.series.size(), 1U);
  EXPECT_EQ(grown.series.at("loss").size(), 2U);
}

}  // namespace
}  // namespace plumb
