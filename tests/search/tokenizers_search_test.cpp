// Random tokenizer folders beside `transformers`, in the virtual environment that PLUMB_PEERS names.
#include <cstdlib>

#include "search/search.h"
#include "support/paths.h"
#include "support/tokenizer_case.h"

namespace plumb {
namespace {

TEST(TokenizersSearch, FoldersReadAsTransformersReadsThem) {
  const char* peers = std::getenv("PLUMB_PEERS");
  if (peers == nullptr || *peers == '\0') GTEST_SKIP() << "PLUMB_PEERS names no virtual environment with transformers";
  const std::string script = (test::source_directory() / "scripts/search/tokenizers.py").string();
  constexpr uint64_t kBatch = 40;  // loading the package takes seconds
  test::search("tokenizers", 1, [&](Random&, uint64_t number) {
    const test::TemporaryDirectory scratch;
    const std::string options = " --seed " + std::to_string(test::search_seed()) + " --first " +
                                std::to_string(number * kBatch) + " --cases " + std::to_string(kBatch);
    const std::string output = (scratch / "cases.json").string();
    const std::string command =
        '\'' + std::string(peers) + "/bin/python' '" + script + '\'' + options + " > '" + output + "' 2> /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const Json cases = read_json(output);
    for (const Json& test_case : cases.at("cases")) {
      test::expect_as_transformers_reads(test_case);
      if (::testing::Test::HasFailure()) return;
    }
  });
}

}  // namespace
}  // namespace plumb
