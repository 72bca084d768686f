// The public interface of the library: checks cmake/PublicHeaders.cmake against the headers, and docs/library.md
// against
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "plumb/base/contains.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> public_headers() {
  std::vector<std::string> headers;
  const std::regex entry("^  ([a-z0-9_/]+\\.h)$");
  for (const std::string& line : read_lines(test::source_directory() / "cmake" / "PublicHeaders.cmake")) {
    std::smatch match;
    if (std::regex_match(line, match, entry)) headers.push_back(match[1]);
  }
  return headers;
}

std::string source_of(const std::string& header) {
  return read_file(test::source_directory() / "src" / "plumb" / header);
}

TEST(PublicHeaders, IncludeOnlyPublicHeaders) {
  const std::vector<std::string> headers = public_headers();
  ASSERT_GT(headers.size(), 50U);
  const std::regex include(R"re((?:^|\n)\s*#\s*include\s+["<]((?:plumb|corpus)/[^">]*)[">])re");
  for (const std::string& header : headers) {
    const std::string text = source_of(header);
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
      const std::string included = (*match)[1];
      const bool found = included.starts_with("plumb/") && contains(headers, included.substr(6));
      EXPECT_TRUE(found) << header << " includes \"" << included << "\", which is not public";
    }
  }
}

TEST(PublicHeaders, LeaveOutWhatIsInternal) {
  for (const std::string& header : public_headers()) {
    for (const std::string internal : {"ops/kernels/", "ops/fused/", "ops/reference/", "study/", "text/sentencepiece/"})
      EXPECT_FALSE(header.starts_with(internal)) << header;
  }
}

/// Public headers must not require libraries that only the implementation uses.
TEST(PublicHeaders, NameNoLibraryOfTheImplementation) {
  const std::regex private_library(
      R"re(#\s*include\s+<(Eigen|toml\+\+|unicode|zlib|openssl|google/protobuf|hwy|oneapi|dnnl|sentencepiece|CLI)[/.])re");
  for (const std::string& header : public_headers())
    EXPECT_FALSE(std::regex_search(source_of(header), private_library)) << header;
}

TEST(PublicHeaders, SayWhatTheyAreFor) {
  for (const std::string& header : public_headers()) EXPECT_TRUE(source_of(header).starts_with("// ")) << header;
}

TEST(PublicHeaders, AreListedInTheDocumentation) {
  std::vector<std::string> listed;
  const std::regex row("^\\| `plumb/([a-z0-9_/]+\\.h)` \\| .+ \\|$");
  for (const std::string& line : read_lines(test::source_directory() / "docs" / "library.md")) {
    std::smatch match;
    if (std::regex_match(line, match, row)) listed.push_back(match[1]);
  }
  std::vector<std::string> headers = public_headers();
  std::sort(headers.begin(), headers.end());
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(join(listed), join(headers)) << "docs/library.md and cmake/PublicHeaders.cmake";
}

}  // namespace
}  // namespace plumb
