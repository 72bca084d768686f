#include "plumb/decode/text_stream.h"

#include <algorithm>
#include <utility>

#include "plumb/base/utf8.h"

namespace plumb {
namespace {

// Window size in tokens. A token's text depends on few earlier ones: whether there are any, for the leading space, and
// the bytes of the same character.
constexpr size_t kContext = 16;
constexpr size_t kWindow = 64;

/// The number of bytes in a character that begins with this byte.
size_t character_bytes(unsigned char first) {
  if ((first & 0xE0) == 0xC0) return 2;
  if ((first & 0xF0) == 0xE0) return 3;
  if ((first & 0xF8) == 0xF0) return 4;
  return 1;
}

}  // namespace

size_t incomplete_tail(std::string_view text) {
  size_t end = text.size();
  for (int i = 0; i < 3 && text.substr(0, end).ends_with(kReplacementCharacter); ++i)
    end -= kReplacementCharacter.size();
  for (size_t back = 1; back <= std::min<size_t>(3, end); ++back) {
    if (is_continuation(text[end - back])) continue;
    if (character_bytes(static_cast<unsigned char>(text[end - back])) > back) end -= back;
    break;
  }
  return text.size() - end;
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stop)
    : tokenizer_(tokenizer), stop_(std::move(stop)) {
  const auto line = std::find(prompt.rbegin(), prompt.rend(), tokenizer_.specials().eos).base();
  begin_line(prompt.subspan(static_cast<size_t>(line - prompt.begin())));
}

void TextStream::begin_line(std::span<const int32_t> ids) {
  const std::string whole = tokenizer_.decode(ids);
  size_t length = std::min(ids.size(), kContext);
  do {  // until the window does not begin within a character or a word
    const std::span<const int32_t> last = ids.last(length);
    window_.assign(last.begin(), last.end());
    base_ = tokenizer_.decode(window_);
  } while (!whole.ends_with(base_) && --length > 0);
  settled_tokens_ = window_.size();
  settled_ = text_.size();
}

std::string TextStream::add(int32_t id) {
  if (stopped_) return {};
  if (id == tokenizer_.specials().eos) {
    text_ += std::exchange(tail_, {}) + '\n';
    begin_line({});
    return hand_out(false);
  }
  window_.push_back(id);
  std::string decoded = tokenizer_.decode(window_);
  if (!decoded.starts_with(std::string_view(base_).substr(0, base_.size() - incomplete_tail(base_)))) {
    // Some decoders replace a whole run of bytes if it ends within a character. Settled text stays unchanged.
    window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(settled_tokens_));
    settled_tokens_ = 0;
    base_.clear();
    decoded = tokenizer_.decode(window_);
  }
  const std::string_view more = std::string_view(decoded).substr(std::min(base_.size(), decoded.size()));
  const size_t whole = more.size() - incomplete_tail(more);
  text_.resize(settled_);
  text_ += more.substr(0, whole);
  tail_ = more.substr(whole);
  if (tail_.empty()) {
    settled_ = text_.size();
    settled_tokens_ = window_.size();
    base_ = std::move(decoded);
    if (window_.size() > kWindow) begin_line(std::vector<int32_t>(window_));
  }
  return hand_out(false);
}

std::string TextStream::finish() {
  text_ += is_valid_utf8(tail_) ? tail_ : std::string(kReplacementCharacter);
  tail_.clear();
  return hand_out(true);
}

std::string TextStream::hand_out(bool last) {
  size_t found = std::string::npos;
  for (const std::string& stop : stop_) found = std::min(found, text_.find(stop, handed_out_));
  if (found != std::string::npos) {
    stopped_ = true;
    text_.resize(found);
    tail_.clear();
  }
  const size_t end = text_.size() - (last || stopped_ ? 0 : held_back());
  const size_t begin = std::exchange(handed_out_, end);
  return text_.substr(begin, end - begin);
}

size_t TextStream::held_back() const {
  const std::string_view rest = std::string_view(text_).substr(handed_out_);
  size_t held = 0;
  for (const std::string& stop : stop_) {
    for (size_t length = std::min(stop.size() - 1, rest.size()); length > held; --length) {
      if (rest.ends_with(std::string_view(stop).substr(0, length))) held = length;
    }
  }
  return held;
}

}  // namespace plumb
