// docs/findings.md compared with the results that it quotes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

void collect(const Json& json, std::vector<double>& numbers) {
  if (json.is_number()) numbers.push_back(std::abs(json.get<double>()));
  if (!json.is_structured()) return;
  for (const Json& each : json) collect(each, numbers);
}

TEST(Findings, AreThoseOfTheResults) {
  const fs::path docs = test::source_directory() / "docs";
  std::vector<double> numbers;
  for (const auto& entry : fs::directory_iterator(docs / "findings")) {
    if (entry.path().extension() == ".json") collect(read_json(entry.path()), numbers);
  }
  ASSERT_GT(numbers.size(), 1000U);
  const std::string page =
      std::regex_replace(read_file(docs / "findings.md"), std::regex(R"(arXiv \d+\.\d+|\]\([^)]*\))"), "");
  // Every number of the page with two decimals or more is one of the results, rounded.
  const std::regex quoted(R"(\d+\.(\d{2,}))");
  std::map<size_t, std::set<std::string>> rounded;  // by decimals
  size_t count = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), quoted), end; match != end; ++match, ++count) {
    const auto decimals = static_cast<size_t>((*match)[1].length());
    auto& texts = rounded[decimals];
    if (texts.empty()) {
      for (const double number : numbers) texts.insert(fmt::format("{:.{}f}", number, decimals));
    }
    EXPECT_TRUE(texts.contains(match->str())) << match->str() << " is in no results.json of docs/findings";
  }
  EXPECT_GT(count, 50U);
}

}  // namespace
}  // namespace plumb
