#include "plumb/text/pipeline/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb::tokenization {
namespace {

struct Part {
  Span span;
  bool is_match;
};

/// The matches and the parts between them.
void all_parts(std::string_view text, const std::vector<Span>& matches, bool inverted, std::vector<Part>& parts) {
  parts.clear();
  size_t end = 0;
  for (const Span& match : matches) {
    if (match.begin > end) parts.push_back({{end, match.begin}, inverted});
    parts.push_back({match, !inverted});
    end = match.end;
  }
  if (end < text.size()) parts.push_back({{end, text.size()}, inverted});
}

void merge_parts(const std::vector<Part>& parts, Behavior behavior, std::vector<Span>& spans) {
  bool previous = false;
  switch (behavior) {
    case Behavior::removed:
      for (const Part& part : parts) {
        if (!part.is_match) spans.push_back(part.span);
      }
      return;
    case Behavior::isolated:
      for (const Part& part : parts) spans.push_back(part.span);
      return;
    case Behavior::contiguous:
    case Behavior::merged_with_previous:
      for (const Part& part : parts) {
        const bool merges = behavior == Behavior::contiguous ? part.is_match == previous : part.is_match && !previous;
        if (merges && !spans.empty()) {
          spans.back().end = part.span.end;
        } else {
          spans.push_back(part.span);
        }
        previous = part.is_match;
      }
      return;
    case Behavior::merged_with_next:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->is_match && !previous && !spans.empty()) {
          spans.back().begin = part->span.begin;
        } else {
          spans.push_back(part->span);
        }
        previous = part->is_match;
      }
      std::reverse(spans.begin(), spans.end());
      return;
  }
}

}  // namespace

Behavior behavior_named(const std::string& name) {
  static const std::pair<const char*, Behavior> known[] = {{"Removed", Behavior::removed},
                                                           {"Isolated", Behavior::isolated},
                                                           {"MergedWithPrevious", Behavior::merged_with_previous},
                                                           {"MergedWithNext", Behavior::merged_with_next},
                                                           {"Contiguous", Behavior::contiguous}};
  if (const Behavior* behavior = find_value(known, name)) return *behavior;
  throw Error(fmt::format("unknown behavior '{}' of a split", name),
              "known: Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

void cut_pieces(std::vector<Piece>& pieces,
                const std::function<void(std::string_view, std::vector<Span>& parts)>& cut) {
  std::vector<Piece> result;
  result.reserve(pieces.size() * 4);
  std::vector<Span> parts;
  for (Piece& piece : pieces) {
    if (piece.token >= 0) {
      result.push_back(std::move(piece));
      continue;
    }
    parts.clear();
    cut(piece.text, parts);
    if (parts.size() == 1 && parts[0] == Span{0, piece.text.size()}) {
      result.push_back(std::move(piece));
      continue;
    }
    for (const Span& part : parts) {
      if (part.begin < part.end) result.push_back(piece.part(part.begin, part.end));
    }
  }
  pieces = std::move(result);
}

void split_pieces(std::vector<Piece>& pieces, const Find& find, Behavior behavior, bool inverted) {
  std::vector<Span> matches;
  std::vector<Part> parts;
  cut_pieces(pieces, [&](std::string_view text, std::vector<Span>& spans) {
    matches.clear();
    find(text, matches);
    all_parts(text, matches, inverted, parts);
    merge_parts(parts, behavior, spans);
  });
}

}  // namespace plumb::tokenization
