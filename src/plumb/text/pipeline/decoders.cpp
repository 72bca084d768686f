// Decoders. Names and settings are those of Hugging Face's `tokenizers`.
#include <algorithm>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/byte_alphabet.h"
#include "plumb/text/pipeline/byte_tokens.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/metaspace.h"
#include "plumb/text/pipeline/pattern.h"
#include "plumb/text/pipeline/settings.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {

Registry<Maker<Decode>>& decoders() {
  static Registry<Maker<Decode>> registry("decoder");
  return registry;
}

namespace {

/// Used without a decoder: tokens are words.
void separate_by_spaces(std::vector<std::string>& tokens) {
  for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
}

std::string with_all_replaced(std::string text, const std::string& what, std::string_view by) {
  return what.empty() ? text : Pattern(what).replaced(text, by);
}

/// English text without the spaces that tokenization leaves before punctuation.
std::string without_artifacts(std::string text) {
  static const std::pair<const char*, const char*> kReplacements[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kReplacements) text = with_all_replaced(std::move(text), what, by);
  return text;
}

Decode make_word_piece_decoder(const Settings& settings) {
  return [prefix = setting_or(settings, "prefix", std::string("##")),
          cleanup = setting_or(settings, "cleanup", true)](std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        if (tokens[i].starts_with(prefix)) {
          tokens[i].erase(0, prefix.size());
        } else {
          tokens[i].insert(0, " ");
        }
      }
      if (cleanup) tokens[i] = without_artifacts(std::move(tokens[i]));
    }
  };
}

void join_bytes_of_characters(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    const size_t before = bytes.size();
    for (size_t i = 0; i < token.size();) {
      const int byte = byte_of_character(next_character(token, i));
      if (byte < 0) {
        bytes.resize(before);
        bytes += token;  // not in the alphabet, such as a special token
        break;
      }
      bytes.push_back(static_cast<char>(byte));
    }
  }
  tokens = {repaired_utf8(bytes)};
}

void join_byte_tokens(std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (is_valid_utf8(bytes)) {
      if (!bytes.empty()) result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), std::string(kReplacementCharacter));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = byte_of_token(token);
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      flush();
      result.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(result);
}

Decode make_word_end_decoder(const Settings& settings) {
  return [suffix = setting_or(settings, "suffix", std::string("</w>"))](std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = with_all_replaced(std::move(tokens[i]), suffix, i + 1 == tokens.size() ? "" : " ");
    }
  };
}

Decode make_strip_decoder(const Settings& settings) {
  std::string content;  // one character, in UTF-8
  append_character(content, single_character(settings.at("content").get<std::string>(), "'content'"));
  return [content, start = whole_number(settings.at("start")),
          stop = whole_number(settings.at("stop"))](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start && rest.starts_with(content); ++i) rest.remove_prefix(content.size());
      for (int64_t i = 0; i < stop && rest.ends_with(content); ++i) rest.remove_suffix(content.size());
      token = std::string(rest);
    }
  };
}

Decode make_replace_decoder(const Settings& settings) {
  return [pattern = Pattern(settings.at("pattern")),
          content = settings.at("content").get<std::string>()](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) token = pattern.replaced(token, content);
  };
}

/// Connectionist temporal classification (Graves et al. 2006): repeated tokens and padding are dropped.
Decode make_ctc_decoder(const Settings& settings) {
  return [pad = setting_or(settings, "pad_token", std::string("<pad>")),
          delimiter = setting_or(settings, "word_delimiter_token", std::string("|")),
          cleanup = setting_or(settings, "cleanup", true)](std::vector<std::string>& tokens) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      token = with_all_replaced(std::move(token), pad, "");
      if (cleanup) token = with_all_replaced(without_artifacts(std::move(token)), delimiter, " ");
    }
    std::erase(tokens, std::string());
  };
}

Decode make_metaspace_decoder(const Settings& settings) {
  return [space = Metaspace(settings)](std::vector<std::string>& tokens) { space.decode(tokens); };
}

Decode make_sequence_of_decoders(const Settings& settings) {
  std::vector<Decode> all;
  for (const Settings& part : parts(settings, "decoders")) all.push_back(make_decoder(part));
  return [all](std::vector<std::string>& tokens) { apply_all(all, tokens); };
}

void fuse(std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens = {all};
}

Maker<Decode> plain(void (*decode)(std::vector<std::string>&)) {
  return [decode](const Settings&) { return Decode(decode); };
}

[[maybe_unused]] const bool kDecodersRegistered = [] {
  auto& all = decoders();
  all.add("BPEDecoder", "a suffix ends a word", "Sennrich et al., arXiv 1508.07909", make_word_end_decoder);
  all.add("ByteFallback", "tokens of bytes", "", plain(join_byte_tokens));
  all.add("ByteLevel", "characters of GPT-2's alphabet as bytes", "Radford et al. 2019",
          plain(join_bytes_of_characters));
  all.add("CTC", "repetitions and padding dropped", "Graves et al. 2006", make_ctc_decoder);
  all.add("Fuse", "all tokens joined", "", plain(fuse));
  all.add("Metaspace", "▁ becomes a space", "Kudo & Richardson, arXiv 1808.06226", make_metaspace_decoder);
  all.add("Replace", "matches replaced", "", make_replace_decoder);
  all.add("Sequence", "one after the other", "", make_sequence_of_decoders);
  all.add("Strip", "a character at the ends dropped", "", make_strip_decoder);
  all.add("WordPiece", "a prefix continues a word", "Devlin et al., arXiv 1810.04805", make_word_piece_decoder);
  return true;
}();

}  // namespace

Decode make_decoder(const Settings& settings) {
  if (settings.is_null()) return separate_by_spaces;
  return decoders().at(settings.at("type").get<std::string>()).make(settings);
}

}  // namespace plumb::tokenization
