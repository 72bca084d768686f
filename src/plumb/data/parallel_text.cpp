#include "plumb/data/parallel_text.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/random.h"
#include "plumb/base/text.h"
#include "plumb/data/trim.h"

namespace plumb {
namespace {

void require_text(const std::vector<std::string>& lines, const std::filesystem::path& path) {
  for (const std::string& line : lines) {
    if (!is_blank(line)) return;
  }
  throw Error(fmt::format("{}: contains no sentences", path.string()), "provide one sentence per line");
}

ParallelText read_tsv(const std::filesystem::path& path) {
  const std::vector<std::string> lines = read_lines(path);
  require_text(lines, path);
  ParallelText text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) {
      throw Error(fmt::format("{}:{}: no TAB between source and target", path.string(), i + 1),
                  "a single file must contain 'source TAB target' lines; otherwise give two files");
    }
    const std::string_view rest = line.substr(tab + 1);
    text.append(trim(line.substr(0, tab)), trim(rest.substr(0, rest.find('\t'))));
  }
  return text;
}

}  // namespace

void ParallelText::append(std::string source, std::string target) {
  sources.push_back(std::move(source));
  targets.push_back(std::move(target));
}

ParallelText read_parallel_text(const CorpusFiles& files) {
  if (files.target.empty()) return read_tsv(files.source);
  const std::vector<std::string> sources = read_lines(files.source);
  const std::vector<std::string> targets = read_lines(files.target);
  if (sources.size() != targets.size()) {
    throw Error(fmt::format("{} has {} lines but {} has {}", files.source.string(), with_thousands(std::ssize(sources)),
                            files.target.string(), with_thousands(std::ssize(targets))),
                "line i of one file must be the translation of line i of the other");
  }
  require_text(sources, files.source);
  require_text(targets, files.target);
  ParallelText text;
  for (size_t i = 0; i < sources.size(); ++i) text.append(trim(sources[i]), trim(targets[i]));
  return text;
}

int64_t drop_empty(ParallelText& text) {
  ParallelText kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!text.sources[i].empty() && !text.targets[i].empty()) {
      kept.append(std::move(text.sources[i]), std::move(text.targets[i]));
    }
  }
  const auto dropped = static_cast<int64_t>(text.size() - kept.size());
  text = std::move(kept);
  return dropped;
}

std::pair<ParallelText, ParallelText> hold_out(const ParallelText& text, int64_t pairs, uint64_t seed) {
  std::unordered_map<std::string_view, size_t> group_of;
  std::vector<std::vector<size_t>> groups;  // the pairs of each distinct target, in order of its first appearance
  for (size_t i = 0; i < text.size(); ++i) {
    const auto [entry, is_new] = group_of.emplace(text.targets[i], groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(i);
  }
  Random(seed, "hold out").shuffle(groups);
  std::vector<bool> is_held(text.size());
  int64_t count = 0;
  for (const auto& group : groups) {
    if (count + std::ssize(group) > pairs) continue;
    for (const size_t i : group) is_held[i] = true;
    count += std::ssize(group);
  }
  std::pair<ParallelText, ParallelText> result;
  for (size_t i = 0; i < text.size(); ++i) {
    (is_held[i] ? result.second : result.first).append(text.sources[i], text.targets[i]);
  }
  return result;
}

}  // namespace plumb
