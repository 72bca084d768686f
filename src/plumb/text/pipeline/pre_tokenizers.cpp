// Pre-tokenizers. Names and settings are those of Hugging Face's `tokenizers`.
#include <optional>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/byte_alphabet.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/metaspace.h"
#include "plumb/text/pipeline/pattern.h"
#include "plumb/text/pipeline/settings.h"
#include "plumb/text/pipeline/split.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {

Registry<Maker<PreTokenize>>& pre_tokenizers() {
  static Registry<Maker<PreTokenize>> registry("pre-tokenizer");
  return registry;
}

PreTokenize make_pre_tokenizer(const Settings& settings) {
  if (settings.is_null()) return [](std::vector<Piece>&) {};
  return pre_tokenizers().at(settings.at("type").get<std::string>()).make(settings);
}

namespace {

// Radford et al. 2019 (GPT-2).
constexpr const char* kWordsOfGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PreTokenize make_byte_level(const Settings& settings) {
  const bool prefix = settings.at("add_prefix_space").get<bool>();
  std::optional<Pattern> words;
  if (setting_or(settings, "use_regex", true)) words = Pattern(Regex(kWordsOfGpt2));
  return [prefix, words](std::vector<Piece>& pieces) {
    if (prefix) {
      for (Piece& piece : pieces) {
        if (piece.token < 0 && piece.text.front() != ' ') piece.prepend(" ");
      }
    }
    if (words) {
      split_pieces(
          pieces, [&](std::string_view text, std::vector<Span>& matches) { words->find_all(text, matches); },
          Behavior::isolated);
    }
    for (Piece& piece : pieces) {
      if (piece.token < 0) piece.replace_by(bytes_as_characters);
    }
  };
}

PreTokenize make_metaspace(const Settings& settings) {
  return [space = Metaspace(settings)](std::vector<Piece>& pieces) { space.split(pieces); };
}

PreTokenize make_split(const Settings& settings) {
  return
      [pattern = Pattern(settings.at("pattern")), behavior = behavior_named(settings.at("behavior").get<std::string>()),
       inverted = setting_or(settings, "invert", false)](std::vector<Piece>& pieces) {
        split_pieces(
            pieces, [&](std::string_view text, std::vector<Span>& matches) { pattern.find_all(text, matches); },
            behavior, inverted);
      };
}

PreTokenize make_digits(const Settings& settings) {
  const auto behavior = setting_or(settings, "individual_digits", false) ? Behavior::isolated : Behavior::contiguous;
  return [behavior](std::vector<Piece>& pieces) { split_pieces(pieces, each_character(is_number), behavior); };
}

PreTokenize make_punctuation(const Settings& settings) {
  const auto behavior = behavior_named(setting_or(settings, "behavior", std::string("Isolated")));
  return
      [behavior](std::vector<Piece>& pieces) { split_pieces(pieces, each_character(is_bert_punctuation), behavior); };
}

PreTokenize make_delimiter(const Settings& settings) {
  const char32_t delimiter = single_character(settings.at("delimiter").get<std::string>(), "'delimiter'");
  return [delimiter](std::vector<Piece>& pieces) {
    split_pieces(pieces, each_character([delimiter](char32_t c) { return c == delimiter; }), Behavior::removed);
  };
}

PreTokenize make_fixed_length(const Settings& settings) {
  const int64_t length = settings.contains("length") ? whole_number(settings.at("length")) : 5;
  if (length == 0) throw Error("'length' must be positive");
  return [length](std::vector<Piece>& pieces) {
    cut_pieces(pieces, [length](std::string_view text, std::vector<Span>& parts) {
      for (size_t i = 0; i < text.size();) {
        const size_t begin = i;
        for (int64_t count = 0; count < length && i < text.size(); ++count) next_character(text, i);
        parts.push_back({begin, i});
      }
    });
  };
}

PreTokenize make_sequence_of_splits(const Settings& settings) {
  std::vector<PreTokenize> all;
  for (const Settings& part : parts(settings, "pretokenizers")) all.push_back(make_pre_tokenizer(part));
  return [all](std::vector<Piece>& pieces) { apply_all(all, pieces); };
}

void split_like_bert(std::vector<Piece>& pieces) {
  split_pieces(pieces, each_character(is_white_space), Behavior::removed);
  split_pieces(pieces, each_character(is_bert_punctuation), Behavior::isolated);
}

void split_at_white_space(std::vector<Piece>& pieces) {
  split_pieces(pieces, each_character(is_white_space), Behavior::removed);
}

/// Cuts text into runs of word characters and runs of other characters, without white space.
void split_words_and_symbols(std::vector<Piece>& pieces) {
  const auto kind = [](char32_t c) { return is_word_character(c) ? 2 : is_white_space(c) ? 0 : 1; };
  cut_pieces(pieces, [&](std::string_view text, std::vector<Span>& parts) {
    int previous = 0;
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      const int current = kind(next_character(text, i));
      if (current != 0 && current == previous) {
        parts.back().end = i;
      } else if (current != 0) {
        parts.push_back({begin, i});
      }
      previous = current;
    }
  });
}

/// Cuts at changes of script. Characters before the first one with a script are dropped, as in `tokenizers`.
void split_scripts(std::vector<Piece>& pieces) {
  cut_pieces(pieces, [](std::string_view text, std::vector<Span>& parts) {
    std::optional<int> last;
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      const int script = script_of(next_character(text, i));
      if (script == kAnyScript) continue;
      if (last != script) {
        if (!parts.empty()) parts.back().end = begin;
        parts.push_back({begin, text.size()});
      }
      last = script;
    }
  });
}

template <typename Apply>
Maker<PreTokenize> unchanging(Apply apply) {
  return [apply](const Settings&) { return PreTokenize(apply); };
}

[[maybe_unused]] const bool kSplitsRegistered = [] {
  auto& all = pre_tokenizers();
  all.add("BertPreTokenizer", "at white space and punctuation", "", unchanging(split_like_bert));
  all.add("ByteLevel", "GPT-2's words, as characters of its alphabet of bytes", "Radford et al. 2019", make_byte_level);
  all.add("CharDelimiterSplit", "at a character", "", make_delimiter);
  all.add("Digits", "at digits", "", make_digits);
  all.add("FixedLength", "after every `length` characters", "", make_fixed_length);
  all.add("Metaspace", "at spaces, which become ▁", "Kudo & Richardson, arXiv 1808.06226", make_metaspace);
  all.add("Punctuation", "at punctuation", "", make_punctuation);
  all.add("Sequence", "one after the other", "", make_sequence_of_splits);
  all.add("Split", "at matches of a pattern", "", make_split);
  all.add("UnicodeScripts", "at changes of script", "", unchanging(split_scripts));
  all.add("Whitespace", "words, and runs of symbols", "", unchanging(split_words_and_symbols));
  all.add("WhitespaceSplit", "at white space", "", unchanging(split_at_white_space));
  return true;
}();

}  // namespace
}  // namespace plumb::tokenization
