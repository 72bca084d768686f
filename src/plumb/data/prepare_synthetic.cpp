#include "plumb/data/prepare_synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "corpus/corpus.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "plumb/data/prepare.h"
#include "plumb/data/prepare_parts.h"

namespace plumb {
namespace {

/// Throws Error if a corpus is too large to prepare directly, with its text in memory.
void check_prepared(int64_t pairs) {
  if (pairs <= corpus::kMaximumPairs) return;
  throw Error(fmt::format("a data directory of {} synthetic pairs cannot be made directly", with_thousands(pairs)),
              fmt::format("above {}, write the text with --raw PREFIX, and prepare it with `plumb data prepare`",
                          with_thousands(corpus::kMaximumPairs)));
}

/// Throws Error if the number of pairs is out of range.
void check_pairs(int64_t pairs) {
  if (pairs < 1) throw Error(fmt::format("the number of pairs must be at least 1, not {}", pairs));
  constexpr int64_t kMost = corpus::kMaximumStreamedPairs;
  if (pairs > kMost)
    throw Error(fmt::format("the number of pairs must be at most {}, not {}", with_thousands(kMost), pairs));
}

Json origin(int64_t pairs, uint64_t seed) { return {{"synthetic", {{"pairs", pairs}, {"seed", seed}}}}; }

}  // namespace

Json prepare_synthetic(const SyntheticOptions& options, const std::filesystem::path& out) {
  check_data_output(out, "translation");
  check_pairs(options.pairs);
  const int64_t usual = std::min<int64_t>(1000, options.pairs / 8);
  const int64_t valid_size = options.valid == 0 ? usual : options.valid;
  const int64_t test_size = options.test == 0 ? usual : options.test;
  if (options.valid == 0 || options.test == 0) {
    constexpr int64_t kFewest = 8;  // of which one is for validation and one for the test
    if (options.pairs < kFewest) {
      throw Error(
          fmt::format("{} synthetic pairs are too few: one in {} is held out for validation and one for the test",
                      options.pairs, kFewest),
          fmt::format("use at least {}", kFewest));
    }
  }
  // Compared separately: a sum could overflow.
  const bool fits = valid_size < options.pairs && test_size < options.pairs - valid_size;
  if (valid_size < 1 || test_size < 1 || !fits) {
    throw Error(fmt::format("{} pairs leave none for training after {} for validation and {} for the test",
                            with_thousands(options.pairs), with_thousands(valid_size), with_thousands(test_size)),
                "increase --pairs");
  }
  check_prepared(options.pairs);
  ParallelText all;
  for (corpus::SentencePair& pair : corpus::synthesize(options.pairs, options.seed)) {
    all.append(std::move(pair.source), std::move(pair.target));
  }
  auto [rest, test] = hold_out(all, test_size, options.seed);
  auto [train, valid] = hold_out(rest, valid_size, options.seed);

  Corpora corpora;
  corpora.train = std::move(train);
  corpora.valid = std::move(valid);
  corpora.tests.emplace_back("test", std::move(test));
  corpora.inputs = origin(options.pairs, options.seed);
  PrepareOptions prepare;
  prepare.tokenizer = options.tokenizer;
  prepare.joint = options.joint;
  prepare.seed = options.seed;
  prepare.source_language = "de";
  prepare.target_language = "en";
  return prepare_corpora(std::move(corpora), prepare, out);
}

Json prepare_synthetic_text(int64_t pairs, uint64_t seed, const TextOptions& options,
                            const std::filesystem::path& out) {
  check_pairs(pairs);
  TextCorpora corpora;
  for (corpus::SentencePair& pair : corpus::synthesize(pairs, seed)) corpora.train.push_back(std::move(pair.target));
  corpora.inputs = origin(pairs, seed);
  return prepare_text_lines(std::move(corpora), options, out);
}

void write_synthetic_text(int64_t pairs, uint64_t seed, const std::string& prefix) {
  check_pairs(pairs);
  write_output_file(prefix + ".de", [&](std::ostream& sources) {
    write_output_file(prefix + ".en", [&](std::ostream& targets) {
      corpus::synthesize_each(pairs, seed, [&](corpus::SentencePair&& pair) {
        sources << pair.source << '\n';
        targets << pair.target << '\n';
      });
    });
  });
}

}  // namespace plumb
