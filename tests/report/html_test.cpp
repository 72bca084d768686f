#include "plumb/report/html.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// The text between the tags of the element with id "results".
std::string embedded(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"results\">";
  const size_t begin = html.find(open) + open.size();
  return html.substr(begin, html.find("</script", begin) - begin);
}

Json small() { return {{"schema", "plumb.study/1"}, {"title", "A < B & C"}, {"figures", Json::array()}}; }

std::string hint_of(const fs::path& directory) {
  try {
    write_report(directory);
  } catch (const Error& error) {
    EXPECT_CONTAINS(error.what(), "results.json");
    return error.hint();
  }
  return "no error";
}

TEST(RenderReport, EmbedsTheDataUnchanged) {
  const Json sample = read_json(test::source_directory() / "tests/report/sample_results.json");
  EXPECT_EQ(Json::parse(embedded(render_report(sample))), sample);
}

TEST(RenderReport, DataCannotEndItsElement) {
  Json results = small();
  const std::string markup = "</script><script>alert(1)</script><!-- <SCRIPT> ]]>";
  results["summary"] = {markup};
  const std::string plain = render_report(small());
  const std::string html = render_report(results);
  EXPECT_EQ(count(html, "</script"), count(plain, "</script"));
  EXPECT_EQ(count(html, "<!--"), count(plain, "<!--"));
  EXPECT_EQ(embedded(html).find('<'), std::string::npos);
  EXPECT_EQ(Json::parse(embedded(html))["summary"][0], markup);
}

TEST(RenderReport, DataThatLooksLikeAMarkStaysData) {
  Json results = small();
  results["title"] = "@PLUMB_RESULTS@";
  results["subtitle"] = "@PLUMB_TITLE@";
  const std::string html = render_report(results);
  EXPECT_EQ(Json::parse(embedded(html)), results);
  EXPECT_CONTAINS(html, "<title>@PLUMB_RESULTS@</title>");
}

TEST(RenderReport, TitleIsEscaped) { EXPECT_CONTAINS(render_report(small()), "<title>A &lt; B &amp; C</title>"); }

TEST(RenderReport, NeedsNoNetwork) {
  const std::string html = render_report(small());
  for (const char* part : {"src=\"http", "href=\"http", "@import", "url(http", "fetch("}) {
    EXPECT_LACKS(html, part);
  }
  EXPECT_CONTAINS(html, "Apache License") << "the license of ECharts goes with it";
}

TEST(RenderReport, WrongSchemaIsAnError) {
  EXPECT_THROW(render_report(Json{{"schema", "plumb.score/1"}}), Error);
  EXPECT_THROW(render_report(Json::array()), Error);
}

TEST(WriteReport, WritesThePageBesideTheResults) {
  const test::TemporaryDirectory directory;
  write_json(directory / "results.json", small());
  write_report(directory.path());
  EXPECT_EQ(read_file(directory / "report.html"), render_report(small()));
}

TEST(WriteReport, MissingOrBrokenResultsAreNamed) {
  const test::TemporaryDirectory directory;
  EXPECT_CONTAINS(hint_of(directory.path()), "plumb study");
  write_file_atomic(directory / "results.json", "{\"schema\": \"plumb.st");
  EXPECT_NE(hint_of(directory.path()), "no error");
  write_file_atomic(directory / "results.json", "{}");
  EXPECT_CONTAINS(hint_of(directory.path()), "plumb study");
  EXPECT_FALSE(fs::exists(directory / "report.html"));
}

}  // namespace
}  // namespace plumb
