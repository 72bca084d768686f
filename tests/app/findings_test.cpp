// Compares docs/findings.md with the results that it quotes.
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

std::string rounded(const Json& number) {
  const std::string text = fmt::format("{:.2f}", number.get<double>());
  if (text == "-0.00") return "0.00";
  return text.starts_with('-') ? "−" + text.substr(1) : text;
}

std::string with_limits(const Json& mean, const Json& low, const Json& high) {
  return fmt::format("{} ({} to {}", rounded(mean), rounded(low), rounded(high));
}

// Every verdict, every arm at its best and every difference is quoted with its interval.
TEST(Findings, QuoteAllArmsAndVerdicts) {
  const fs::path docs = test::source_directory() / "docs";
  const std::string page = read_file(docs / "findings.md");
  const auto expect = [&page](const std::string& text) { EXPECT_NE(page.find(text), std::string::npos) << text; };
  for (const char* name : {"multi30k_warmup.json", "bert_warmup.json", "xiong_figure3.json", "scale_quick.json",
                           "scale.json", "ulmfit.json", "finetuning.json"}) {
    const Json results = read_json(docs / "findings" / name);
    for (const Json& verdict : results["verdicts"]) {
      const Json& effect = verdict["effect"];
      expect(fmt::format("{}, {} seeds) | {} |", with_limits(effect["mean"], effect["low"], effect["high"]),
                         effect["seeds"].get<int>(), verdict["verdict"].get<std::string>()));
    }
    for (const Json& table : results["tables"]) {
      for (const Json& row : table["rows"]) {
        if (table["id"] == "sweeps")
          expect(fmt::format("{}) | {:g}", with_limits(row[5], row[6], row[7]), row[4].get<double>()));
        if (table["id"] == "warm_up") expect(with_limits(row[5], row[6], row[7]) + ") |\n");
        if (table["id"] == "scale_schemes") expect(with_limits(row[2], row[3], row[4]) + ") |");
        if (table["id"] == "transfer_recipes") expect(with_limits(row[4], row[5], row[6]) + ") |");
      }
    }
  }
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
  // Every number with two or more decimals on the page is one of the results, rounded.
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
