#include "plumb/base/csv.h"

#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "support/csv.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::read_records;

class Tables : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) {
    write_file_atomic(folder_.path() / "table", content);
    return folder_.path() / "table";
  }
  test::TemporaryDirectory folder_;
};

TEST_F(Tables, LineEndsInQuotesStayAsTheyAre) {
  EXPECT_EQ(read_records(file("\xEF\xBB\xBF\"a\r\nb\",\"c\n\nd\"\r\ne,g\n\n\"\""), ','),
            (std::vector<Record>{{"a\r\nb", "c\n\nd"}, {"e", "g"}}));
  EXPECT_EQ(read_records(file("a\t\"b\r\n\n\tc\n"), '\t'), (std::vector<Record>{{"a", "\"b"}, {"", "c"}}));
}

TEST_F(Tables, QuotesWithinQuotesAreDoubled) {
  EXPECT_EQ(read_records(file("a,\"b,\"\"c\"\"\nd\",\r\n,\n\"\",x\n"), ','),
            (std::vector<Record>{{"a", "b,\"c\"\nd", ""}, {"", ""}, {"", "x"}}));
  EXPECT_EQ(read_records(file("a \"byte\"?,5\" disk,\"x\"y\r\n"), ','),
            (std::vector<Record>{{"a \"byte\"?", "5\" disk", "xy"}}));
}

TEST_F(Tables, RecordsAreTakenAsTheyAreRead) {
  size_t count = 0;
  const auto take = [&](const Record&) { ++count; };
  test::expect_error([&] { read_records(file("a,b\n1,2\n3,\"4\n"), ',', take); },
                     "table: ends within a field in quotes");
  EXPECT_EQ(count, 2U);
  test::expect_error([&] { read_records(file("a,b\n1,2\n\xFF\n"), ',', take); }, "table:3: not valid UTF-8");
  EXPECT_EQ(count, 4U);
}

TEST_F(Tables, ARecordHasALimit) {
  const std::string commas(16 << 20, ',');
  EXPECT_EQ(read_records(file(commas), '\t').at(0).at(0), commas);
  test::expect_error([&] { (void)read_records(file("a\n," + commas), ','); },
                     "table:2: a record is longer than 16 MiB");
  // A quote that nothing closes, in lines that are short.
  std::string open = "\"";
  while (open.size() <= 18U << 20) open += std::string(1 << 20, 'x') + "\n";
  test::expect_error([&] { (void)read_records(file(open), ','); }, "a record is longer than 16 MiB");
}

}  // namespace
}  // namespace plumb
