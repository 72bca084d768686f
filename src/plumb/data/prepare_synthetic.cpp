// The synthetic corpus as a data directory.
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/data/prepare.h"
#include "plumb/data/synthetic/corpus.h"

namespace plumb {

Json prepare_synthetic(const SyntheticOptions& options, const std::filesystem::path& out) {
  check_output_directory(out, "data");
  if (options.valid < 1 || options.test < 1 || options.pairs <= options.valid + options.test) {
    throw Error(fmt::format("{} pairs leave none for training beside {} for validation and {} for the test",
                            with_thousands(options.pairs), with_thousands(options.valid), with_thousands(options.test)),
                "raise --pairs");
  }
  ParallelText all;
  for (SentencePair& pair : synthesize_corpus(options.pairs, options.seed)) {
    all.append(std::move(pair.source), std::move(pair.target));
  }
  auto [rest, test] = hold_out(all, options.test, options.seed);
  auto [train, valid] = hold_out(rest, options.valid, options.seed);

  Corpora corpora;
  corpora.train = std::move(train);
  corpora.valid = std::move(valid);
  corpora.tests.emplace_back("test", std::move(test));
  corpora.inputs = {{"synthetic", {{"pairs", options.pairs}, {"seed", options.seed}}}};
  PrepareOptions prepare;
  prepare.tokenizer = options.tokenizer;
  prepare.joint = options.joint;
  prepare.seed = options.seed;
  prepare.source_language = "de";
  prepare.target_language = "en";
  return prepare_corpora(std::move(corpora), prepare, out);
}

}  // namespace plumb
