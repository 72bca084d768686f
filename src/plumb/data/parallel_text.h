// Raw parallel text: sentence i of one language translates sentence i of the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb {

/// Two files with one sentence per line, or one file of "source TAB target" lines if `target` is empty.
struct CorpusFiles {
  std::filesystem::path source, target;
};

struct ParallelText {
  std::vector<std::string> sources, targets;  // of equal size

  [[nodiscard]] size_t size() const { return sources.size(); }
  void append(std::string source, std::string target);
  bool operator==(const ParallelText&) const = default;
};

/// Receives a pair; the text is only valid during the call.
using PairVisitor = std::function<void(std::string_view source, std::string_view target)>;

/// Sentence pairs that can be read several times: each call passes all of them to the visitor, in order.
using PairStream = std::function<void(const PairVisitor&)>;

/// The pairs of a corpus, as `read_parallel_text` reads them, but read from the files by each call of the result, which
/// also throws the errors. Files that can be read only once, such as pipes, are read here and kept in memory.
PairStream stream_parallel_text(const CorpusFiles& files);

/// Reads a corpus; white space around sentences is removed, and columns of a TSV file after the second are ignored.
/// Throws Error if a file is missing or has no text, a line is not UTF-8 or has no TAB (the error names the line), or
/// the files differ in length.
ParallelText read_parallel_text(const CorpusFiles& files);

/// Splits `text` into (rest, held out): at most `pairs` pairs, chosen by `seed`, are held out. Pairs with the same
/// target sentence stay together, so that no held-out target is trained on.
std::pair<ParallelText, ParallelText> hold_out(const ParallelText& text, int64_t pairs, uint64_t seed);

/// Makes the choice of `hold_out` from one number per pair, equal for equal targets: true if the pair is held out.
/// Needs about 16 to 24 bytes per pair besides `targets`.
std::vector<bool> choose_held_out(std::span<const uint64_t> targets, int64_t pairs, uint64_t seed);

}  // namespace plumb
