// Databases that a program is writing, or that somebody made to be read by others.
#include "plumb/judge/trackio.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <memory>

#include "plumb/base/input.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Writer {
 public:
  explicit Writer(const fs::path& file) {
    sqlite3* opened = nullptr;
    sqlite3_open(file.c_str(), &opened);
    handle_.reset(opened);
  }
  void run(const std::string& statements) {
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(handle_.get(), statements.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  }

 private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

constexpr const char* kTable =
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT);";
/// 500 steps of a run, whose loss is 2.
constexpr const char* kRows =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO metrics (run_name, "
    "step, "
    "metrics) SELECT 'a', i, '{\"loss\": 2.0, \"pad\": \"' || hex(zeroblob(100)) || '\"}' FROM n;";

class Databases : public testing::Test {
 protected:
  [[nodiscard]] fs::path file(const std::string& name = "a.db") const { return folder_.path() / name; }
  void make(const std::string& statements) { Writer(file()).run(statements); }

  static std::pair<double, size_t> last_of(const fs::path& database) {
    const auto values = read_trackio(database).at(0).series.at("loss");
    return {values.back().value, values.size()};
  }
  static constexpr std::pair<double, size_t> kAll = {2.0, 500};
  test::TemporaryDirectory folder_;
};

// What is not committed may already be in the file, and what was there before in the journal beside it.
TEST_F(Databases, OfAProgramThatIsWriting) {
  Writer writer(file());
  writer.run(std::string("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1;") + kTable + kRows);
  EXPECT_EQ(last_of(file()), kAll);
  writer.run("BEGIN; UPDATE metrics SET metrics = '{\"loss\": 1.0}' WHERE id = 500;");
  EXPECT_EQ(last_of(file()), kAll);
  writer.run("UPDATE metrics SET metrics = replace(metrics, '2.0', '1.0');");
  ASSERT_GT(fs::file_size(file("a.db-journal")), 512U);
  // As it was left when a program was killed there.
  fs::copy(file(), file("killed.db"));
  fs::copy(file("a.db-journal"), file("killed.db-journal"));
  test::expect_error([&] { read_trackio(file("killed.db")); }, "killed.db: is being written, or a writer was killed");
  EXPECT_TRUE(fs::exists(file("killed.db-journal")));
  writer.run("ROLLBACK");
  EXPECT_EQ(last_of(file()), kAll);
}

TEST_F(Databases, WithAWriteAheadLog) {
  auto writer = std::make_unique<Writer>(file());
  writer->run(std::string("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;") + kTable + kRows);
  ASSERT_GT(fs::file_size(file("a.db-wal")), 0U);
  EXPECT_EQ(last_of(file()), kAll);
  writer.reset();
  ASSERT_FALSE(fs::exists(file("a.db-wal")));
  EXPECT_EQ(last_of(file()), kAll);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);  // nothing was made beside it
}

TEST_F(Databases, ValuesThatAreComputedAreRefused) {
  for (const char* column : {"metrics TEXT AS (hex(zeroblob(900000000)))", "metrics TEXT AS ('{}') STORED"}) {
    fs::remove(file());
    make(std::string("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, ") + column +
         "); CREATE TABLE rest (a)");
    test::expect_error([&] { read_trackio(file()); }, "columns of metrics are computed");
  }
  fs::remove(file());
  make("CREATE VIEW metrics AS SELECT 1 AS id, 'a' AS run_name, 1 AS step, '{}' AS metrics");
  test::expect_error([&] { read_trackio(file()); }, "has no table of metrics");
  fs::remove(file());
  make("CREATE VIRTUAL TABLE metrics USING fts4(id, run_name, step, text)");
  test::expect_error([&] { read_trackio(file()); }, "columns of metrics are computed");
}

TEST_F(Databases, ChecksOfTheTableAreNotMade) {
  make(std::string("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT, "
                   "CHECK (length(hex(zeroblob(step * 10))) >= 0));") +
       kRows + "PRAGMA ignore_check_constraints = ON; UPDATE metrics SET step = 400000 + step;");
  EXPECT_EQ(last_of(file()), kAll);
}

TEST_F(Databases, ALongValueIsRefused) {
  make(std::string(kTable) + "INSERT INTO metrics VALUES (1, 'a', 1, zeroblob(70000000))");
  test::expect_error([&] { read_trackio(file()); }, "too big");
}

TEST_F(Databases, DamageIsFound) {
  make(std::string(kTable) + kRows);
  std::string bytes = read_file(file());
  bytes.replace(bytes.size() - 4096, 16, std::string(16, '\xFF'));
  std::ofstream(file(), std::ios::binary) << bytes;
  test::expect_error([&] { read_trackio(file()); }, "a.db: ");
}

}  // namespace
}  // namespace plumb
