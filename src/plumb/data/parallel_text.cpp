#include "plumb/data/parallel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/random.h"
#include "plumb/base/text.h"
#include "plumb/data/trim.h"

namespace plumb {
namespace {

Error no_sentences(const std::filesystem::path& path) {
  return Error(fmt::format("{}: contains no sentences", path.string()), "provide one sentence per line");
}

void visit_tsv(const std::filesystem::path& path, const PairVisitor& visit) {
  LineReader lines(path);
  bool any = false;
  int64_t without_tab = 0;  // the first line without a TAB: an error only if some line has text
  while (const auto line = lines.next()) {
    any = any || !is_blank(*line);
    const size_t tab = line->find('\t');
    if (tab == std::string_view::npos && without_tab == 0) without_tab = lines.count();
    if (any && without_tab > 0) {
      throw Error(fmt::format("{}:{}: no TAB between source and target", path.string(), without_tab),
                  "a single file must contain 'source TAB target' lines; otherwise give two files");
    }
    if (tab == std::string_view::npos) continue;
    const std::string_view rest = line->substr(tab + 1);
    visit(trim(line->substr(0, tab)), trim(rest.substr(0, rest.find('\t'))));
  }
  if (!any) throw no_sentences(path);
}

void visit_two_files(const CorpusFiles& files, const PairVisitor& visit) {
  LineReader sources(files.source), targets(files.target);
  bool source_text = false, target_text = false;
  auto source = sources.next(), target = targets.next();
  for (; source && target; source = sources.next(), target = targets.next()) {
    source_text = source_text || !is_blank(*source);
    target_text = target_text || !is_blank(*target);
    visit(trim(*source), trim(*target));
  }
  while (source) source = sources.next();
  while (target) target = targets.next();
  if (sources.count() != targets.count()) {
    throw Error(fmt::format("{} has {} lines but {} has {}", files.source.string(), with_thousands(sources.count()),
                            files.target.string(), with_thousands(targets.count())),
                "line i of one file must be the translation of line i of the other");
  }
  if (!source_text) throw no_sentences(files.source);
  if (!target_text) throw no_sentences(files.target);
}

void visit_pairs(const CorpusFiles& files, const PairVisitor& visit) {
  files.target.empty() ? visit_tsv(files.source, visit) : visit_two_files(files, visit);
}

}  // namespace

void ParallelText::append(std::string source, std::string target) {
  sources.push_back(std::move(source));
  targets.push_back(std::move(target));
}

PairStream stream_parallel_text(const CorpusFiles& files) {
  const auto again = [](const std::filesystem::path& path) { return std::filesystem::is_regular_file(path); };
  if (again(files.source) && (files.target.empty() || again(files.target)))
    return [files](const PairVisitor& visit) { visit_pairs(files, visit); };
  const auto text = std::make_shared<const ParallelText>(read_parallel_text(files));
  return [text](const PairVisitor& visit) {
    for (size_t i = 0; i < text->size(); ++i) visit(text->sources[i], text->targets[i]);
  };
}

ParallelText read_parallel_text(const CorpusFiles& files) {
  ParallelText text;
  visit_pairs(files, [&](std::string_view source, std::string_view target) {
    text.append(std::string(source), std::string(target));
  });
  return text;
}

std::pair<ParallelText, ParallelText> hold_out(const ParallelText& text, int64_t pairs, uint64_t seed) {
  std::vector<uint64_t> targets;
  for (const std::string& target : text.targets) targets.push_back(stream_of(target));
  const std::vector<bool> is_held = choose_held_out(targets, pairs, seed);
  std::pair<ParallelText, ParallelText> result;
  for (size_t i = 0; i < text.size(); ++i) {
    (is_held[i] ? result.second : result.first).append(text.sources[i], text.targets[i]);
  }
  return result;
}

std::vector<bool> choose_held_out(std::span<const uint64_t> targets, int64_t pairs, uint64_t seed) {
  std::vector<size_t> order(targets.size());  // grouped by target, each group in the order of the text
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(targets[a], a) < std::pair(targets[b], b); });
  std::vector<size_t> groups;  // the start of each group in `order`, by first appearance in the text
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || targets[order[i]] != targets[order[i - 1]]) groups.push_back(i);
  }
  std::sort(groups.begin(), groups.end(), [&](size_t a, size_t b) { return order[a] < order[b]; });
  Random(seed, "hold out").shuffle(groups);
  std::vector<bool> is_held(targets.size());
  for (size_t group = 0; group < groups.size() && pairs > 0; ++group) {
    const size_t begin = groups[group];
    size_t end = begin + 1;
    while (end < order.size() && targets[order[end]] == targets[order[begin]]) ++end;
    const auto size = static_cast<int64_t>(end - begin);
    if (size > pairs) continue;
    for (size_t i = begin; i < end; ++i) is_held[order[i]] = true;
    pairs -= size;
  }
  return is_held;
}

}  // namespace plumb
