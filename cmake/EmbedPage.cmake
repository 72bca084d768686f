# Turns the report's page into a C++ source: cmake -DPAGE=report.html -DOUTPUT=report_template.cpp -P EmbedPage.cmake
file(READ ${PAGE} page)
string(FIND "${page}" ")plumb\"" delimiter)
if(page STREQUAL "" OR NOT delimiter EQUAL -1)
  message(FATAL_ERROR "${PAGE} is empty or contains the delimiter of the raw string")
endif()
file(WRITE ${OUTPUT} "// Made by cmake/EmbedPage.cmake from web/report.
#include \"plumb/report/template.h\"

namespace plumb {
namespace {
constexpr char kTemplate[] = R\"plumb(${page})plumb\";
}  // namespace

std::string_view report_template() { return {kTemplate, sizeof(kTemplate) - 1}; }

}  // namespace plumb
")
