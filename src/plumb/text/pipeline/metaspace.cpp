#include "plumb/text/pipeline/metaspace.h"

#include <fmt/format.h>

#include "plumb/base/text.h"
#include "plumb/text/pipeline/settings.h"
#include "plumb/text/pipeline/split.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {
namespace {

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result(text);
  replace_all(result, what, by);
  return result;
}

}  // namespace

Metaspace::Metaspace(const Settings& settings) : symbol_(settings.at("replacement").get<std::string>()) {
  single_character(symbol_, "'replacement'");
  const std::string scheme = setting_or(settings, "prepend_scheme", std::string("always"));
  if (scheme == "always") {
    prepend_ = Prepend::always;
  } else if (scheme == "first") {
    prepend_ = Prepend::first;
  } else if (scheme == "never") {
    prepend_ = Prepend::never;
  } else {
    throw Error(fmt::format("unknown 'prepend_scheme' '{}'", scheme), "known: always, first, never");
  }
  // Files from before version 0.14 of `tokenizers`.
  if (!settings.contains("prepend_scheme") && !setting_or(settings, "add_prefix_space", true))
    prepend_ = Prepend::never;
  split_ = setting_or(settings, "split", true);
}

void Metaspace::split(std::vector<Piece>& pieces) const {
  for (Piece& piece : pieces) {
    if (piece.token >= 0) continue;
    piece.replace_by([this](std::string_view text) { return replaced(text, " ", symbol_); });
    const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && piece.beginning > 0);
    if (wanted && !piece.text.starts_with(symbol_)) piece.prepend(symbol_);
  }
  if (!split_) return;
  cut_pieces(pieces, [this](std::string_view text, std::vector<Span>& parts) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t next = std::min(text.find(symbol_, begin + 1), text.size());
      parts.push_back({begin, next});
      begin = next;
    }
  });
}

void Metaspace::decode(std::vector<std::string>& tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replaced(tokens[i], symbol_, i == 0 && prepend_ != Prepend::never ? "" : " ");
  }
}

}  // namespace plumb::tokenization
