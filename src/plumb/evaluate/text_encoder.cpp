#include "plumb/evaluate/text_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/generate_text.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

using Ids = std::vector<int32_t>;

Ids part(const Ids& ids, size_t begin, size_t end) {
  return {ids.begin() + static_cast<int64_t>(begin), ids.begin() + static_cast<int64_t>(end)};
}

/// The beginning of a text, for messages.
std::string excerpt(std::string_view text) {
  constexpr size_t kLongest = 60;
  const std::u32string characters = to_utf32(text);
  return characters.size() <= kLongest ? std::string(text) : to_utf8(characters.substr(0, kLongest)) + "…";
}

}  // namespace

int32_t TextEncoder::prefix() const { return token_before_text(tokenizer_.specials()); }

Ids TextEncoder::encode_bare(std::string_view text) const {
  return kind_ == EvaluatedText::whole ? tokenizer_.encode(text) : encode_prompt(tokenizer_, std::string(text));
}

Ids TextEncoder::encode_whole(std::string_view text) const {
  Ids ids = tokenizer_.encode_as_input(text);
  const bool twice = ids.size() > 1 && ids[0] == ids[1] && ids[0] == prefix();
  return twice ? tokenizer_.encode(text) : ids;
}

Ids TextEncoder::encode(std::string_view text) const {
  if (kind_ == EvaluatedText::whole) return encode_whole(text);
  Ids ids = encode_bare(text);
  ids.insert(ids.begin(), prefix());
  return ids;
}

TokenRequest TextEncoder::request(std::string_view context, std::string_view continuation) const {
  TokenRequest result;
  if (context.empty()) {
    result.continuation = encode_bare(continuation);
    result.context = {prefix()};
    const bool twice = !result.continuation.empty() && result.continuation.front() == result.context.front();
    if (twice) result.continuation.erase(result.continuation.begin());
  } else {
    const std::string whole = std::string(context).append(continuation);
    const Ids ids = encode(whole);
    result.context = encode(without_trailing_space(context));
    result.continuation = part(ids, std::min(result.context.size(), ids.size()), ids.size());
    if (result.context.empty()) result.context = {prefix()};
  }
  if (result.continuation.empty()) {
    throw Error(
        fmt::format("the continuation '{}' of '{}' has no token by itself", excerpt(continuation), excerpt(context)));
  }
  return result;
}

Ids TextEncoder::prompt(std::string_view text, int64_t longest) const {
  const bool whole = kind_ == EvaluatedText::whole;
  Ids ids = whole ? encode_whole(text) : encode_bare(text);
  if (whole && ids.empty()) ids = {prefix()};
  const int64_t surplus = std::ssize(ids) - (whole ? longest : longest - 1);
  if (surplus > 0) ids.erase(ids.begin(), ids.begin() + surplus);
  return ids;
}

std::vector<TokenRequest> TextEncoder::windows(std::string_view text, int64_t longest) const {
  Ids ids = kind_ == EvaluatedText::whole ? encode(text) : encode_bare(text);
  if (ids.empty()) throw Error(fmt::format("the text '{}' has no token", excerpt(text)));
  const auto limit = static_cast<size_t>(longest);
  std::vector<TokenRequest> windows;
  const size_t first = std::min(limit, ids.size());
  windows.push_back({{prefix()}, part(ids, 0, first)});
  for (size_t done = first; done < ids.size();) {
    const size_t end = std::min(done + limit, ids.size());
    windows.push_back({part(ids, end - limit - 1, done), part(ids, done, end)});
    done = end;
  }
  return windows;
}

int64_t TextEncoder::lost_bytes(std::string_view text) const {
  std::array<int64_t, 256> missing{};
  for (const char byte : text) ++missing[static_cast<unsigned char>(byte)];
  bool begun = false;
  for (const std::string& line : kind_ == EvaluatedText::lines ? split(text, '\n') : std::vector{std::string(text)}) {
    Ids ids = tokenizer_.encode(line);
    if (ids.empty()) continue;
    if (std::exchange(begun, true)) --missing['\n'];  // EOS
    std::erase(ids, tokenizer_.specials().unknown);
    for (const char byte : tokenizer_.decode(ids)) --missing[static_cast<unsigned char>(byte)];
  }
  int64_t lost = 0;
  for (const int64_t count : missing) lost += std::max<int64_t>(count, 0);
  return lost;
}

TokenRequest shortened(TokenRequest request, int64_t longest) {
  const auto continued = std::ssize(request.continuation);
  if (continued > longest) {
    throw Error(
        fmt::format("a continuation of {} tokens is longer than the {} that the model can read", continued, longest),
        "leave this item out, or raise --max-length if the model can read more");
  }
  const int64_t surplus = std::ssize(request.context) + continued - (longest + 1);
  if (surplus > 0) request.context.erase(request.context.begin(), request.context.begin() + surplus);
  return request;
}

}  // namespace plumb
