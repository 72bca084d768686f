#include "plumb/report/html.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/process.h"
#include "plumb/base/text.h"
#include "plumb/report/template.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSchema = "plumb.study/1";

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) c == '&' ? escaped += "&amp;" : c == '<' ? escaped += "&lt;" : escaped += c;
  return escaped;
}

/// JSON that cannot end or nest its script element: "<" occurs only in strings, where \u003c is equivalent.
std::string script_json(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

std::string text_of(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void require_schema(const Json& results, const std::string& origin = "") {
  const std::string schema = text_of(results, "schema");
  if (schema != kSchema) {
    throw Error(fmt::format("{}the results have schema \"{}\", not \"{}\"", origin, schema, kSchema),
                "create them with `plumb study`");
  }
}

/// The first browser in PATH that prints pages without a window.
std::string installed_browser() {
  const char* path = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
      const std::string program = fs::path(folder) / name;
      if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
    }
  }
  throw Error("no Chromium is installed, which prints the page",
              "install chromium or google-chrome, or print the page from another browser");
}

}  // namespace

std::string render_report(const Json& results) {
  require_schema(results);
  constexpr std::string_view kTitle = "@PLUMB_TITLE@";
  constexpr std::string_view kResults = "@PLUMB_RESULTS@";
  const std::string_view page = report_template();
  const size_t title = page.find(kTitle);
  const size_t data = page.find(kResults);
  if (title == std::string_view::npos || data == std::string_view::npos || data < title) {
    throw Error("the report template lacks its placeholders", "rebuild Plumb");
  }
  const std::string name = text_of(results, "title");
  std::string html(page.substr(0, title));
  html += html_escaped(name.empty() ? "Study" : name);
  html += page.substr(title + kTitle.size(), data - title - kTitle.size());
  html += script_json(results);
  html += page.substr(data + kResults.size());
  return html;
}

std::string printed_report(const std::string& page) {
  const ScratchDirectory scratch;
  const fs::path source = scratch.path() / "report.html", printed = scratch.path() / "report.pdf";
  std::vector<std::string> command = {installed_browser(),
                                      "--headless",
                                      "--disable-gpu",
                                      "--no-first-run",
                                      "--no-pdf-header-footer",
                                      "--user-data-dir=" + (scratch.path() / "profile").string(),
                                      "--print-to-pdf=" + printed.string(),
                                      "file://" + source.string()};
  if (::geteuid() == 0) command.insert(command.begin() + 1, "--no-sandbox");  // root has none
  write_file_atomic(source, page);
  const int status = run_process(command, {.output = "/dev/null", .errors = (scratch.path() / "errors").string()});
  std::string pdf = fs::exists(printed) ? read_file(printed) : "";
  if (status != 0 || !pdf.starts_with("%PDF-"))
    throw Error(fmt::format("{} did not print the page (exit status {})", command.front(), status),
                "a browser from snap reads nothing in /tmp: set TMPDIR to a directory in your home");
  return pdf;
}

Json read_results(const fs::path& directory) {
  const fs::path source = directory / "results.json";
  if (!fs::exists(source)) {
    throw Error(fmt::format("{}: no such file", source.string()), "create the results with `plumb study` first");
  }
  Json results = read_json(source);
  require_schema(results, source.string() + ": ");
  return results;
}

void write_report(const fs::path& directory) {
  write_file_atomic(directory / "report.html", render_report(read_results(directory)));
}

}  // namespace plumb
