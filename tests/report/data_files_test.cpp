// The files for other programs: what RFC 4180 makes special survives.
#include "plumb/report/data_files.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "support/contains.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

const Json kResults = Json::parse(R"({
  "tables": [{"id": "../a b", "title": "Rates & losses", "caption": "50% of d_model.", "columns": ["scheme", "loss"],
              "rows": [["post-ln, \"n/da\"", 1.23456789], ["x^2", null], ["c", 2.5e-7], ["d", 3]]}],
  "figures": [{"id": "loss", "x": {"label": "step"}, "y": {"label": ""}, "other_x": [{"label": "tokens"}], "series": [
    {"name": "a", "x": [1, 2], "y": [3.5, null], "low": [3, 4], "high": [5, 6], "other_x": [[10, 20]]},
    {"name": "b", "x": [1], "y": [7]}]}]
})");

TEST(DataFiles, AsCsv) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(write_csv(kResults, folder.path() / "csv"), 2U);
  EXPECT_EQ(read_file(folder.path() / "csv" / "table-..-a-b.csv"),
            "scheme,loss\n\"post-ln, \"\"n/da\"\"\",1.23456789\nx^2,\nc,2.5e-07\nd,3\n");
  EXPECT_EQ(read_file(folder.path() / "csv" / "figure-loss.csv"),
            "series,step,y,low,high,tokens\na,1,3.5,3,5,10\na,2,,4,6,20\nb,1,7,,\n");
}

TEST(DataFiles, OfAChosenFigureWithSomeOfItsSeries) {
  const test::TemporaryDirectory folder;
  Json results = kResults;
  results["figures"][0]["series"].push_back({{"name", "a, later"}, {"x", {1}}, {"y", {9}}});
  EXPECT_EQ(write_csv(results, folder.path(), {"loss", "b,a, later"}), 1U);
  EXPECT_EQ(read_file(folder.path() / "figure-loss.csv"),
            "series,step,y,low,high,tokens\nb,1,7,,\n\"a, later\",1,9,,\n");
  EXPECT_EQ(write_svg(results, folder.path(), {"loss", "a"}), 1U);
  EXPECT_LACKS(read_file(folder.path() / "figure-loss.svg"), "later");
  test::expect_error([&] { write_csv(results, folder.path(), {"lost", ""}); }, "there is no figure 'lost'");
  test::expect_error([&] { write_svg(results, folder.path(), {"loss", "a,c"}); }, "figure 'loss' has no series 'c'");
}

// A spreadsheet computes a cell that begins with =, @, + or -, unless that is a number.
TEST(DataFiles, FormulasInCsvAreText) {
  const Json rows = Json::parse(R"json([["=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "-2+3", "-", "\t=1", "\r=1,"],
                                    ["-1.5", "+2", "-1e-9", "a=b", " =1", "'=1", -3]])json");
  EXPECT_EQ(csv_text({"=1", "-x", "loss", "-1", "b", "c", "d"}, rows),
            "'=1,'-x,loss,-1,b,c,d\n"
            "'=cmd|' /C calc'!A0,'@SUM(1),'+1+1,'-2+3,'-,'\t=1,\"'\r=1,\"\n"
            "-1.5,+2,-1e-9,a=b, =1,'=1,-3\n");
}

TEST(DataFiles, DamagedResultsAreRefused) {
  const test::TemporaryDirectory folder;
  EXPECT_THROW(write_csv(Json::parse(R"({"tables": [{"id": "a"}]})"), folder.path()), Error);
}

}  // namespace
}  // namespace plumb
