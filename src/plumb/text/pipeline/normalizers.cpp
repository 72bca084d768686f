// Normalizers. Names and settings are those of Hugging Face's `tokenizers`.
#include <algorithm>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/byte_alphabet.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/pattern.h"
#include "plumb/text/pipeline/precompiled.h"
#include "plumb/text/pipeline/settings.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {

Registry<Maker<Normalize>>& normalizers() {
  static Registry<Maker<Normalize>> registry("normalizer");
  return registry;
}

Normalize make_normalizer(const Settings& settings) {
  if (settings.is_null()) return [](Piece&) {};
  return normalizers().at(settings.at("type").get<std::string>()).make(settings);
}

namespace {

/// Replaces each character by the text that `map` appends.
template <typename Map>
void map_characters(Piece& piece, const Map& map) {
  std::string result;
  result.reserve(piece.text.size());
  size_t beginning = 0;
  for (size_t i = 0; i < piece.text.size();) {
    const bool at_beginning = i < piece.beginning;
    map(next_character(piece.text, i), result);
    if (at_beginning) beginning = result.size();
  }
  piece.text = std::move(result);
  piece.beginning = beginning;
}

template <typename Property>
void drop_characters(Piece& piece, const Property& property) {
  map_characters(piece, [&](char32_t c, std::string& result) {
    if (!property(c)) append_character(result, c);
  });
}

void apply_form(Piece& piece, NormalForm form) {
  piece.replace_by([form](std::string_view text) { return normalized(text, form); });
  // A character that is composed of the first one and others counts as the first.
  piece.beginning = next_beginning(piece.text, piece.beginning);
}

Maker<Normalize> normal_form(NormalForm form) {
  return [form](const Settings&) { return [form](Piece& piece) { apply_form(piece, form); }; };
}

void strip_white_space(Piece& piece, bool left, bool right) {
  size_t begin = piece.text.size();
  size_t end = 0;
  for (size_t i = 0; i < piece.text.size();) {
    const size_t at = i;
    if (is_white_space(next_character(piece.text, i))) continue;
    begin = std::min(begin, at);
    end = i;
  }
  if (!left) begin = 0;
  if (!right) end = piece.text.size();
  piece = begin < end ? piece.part(begin, end) : Piece();
}

/// SentencePiece's rules for machine translation ("nmt"): drops control characters, and maps others to a space.
void nmt(Piece& piece) {
  map_characters(piece, [](char32_t c, std::string& result) {
    const bool dropped =
        (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    if (dropped) return;
    const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                       c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    append_character(result, space ? U' ' : c);
  });
}

struct BertSettings {
  bool clean, ideographs, accents, lowercase;
};

void bert_normalize(Piece& piece, const BertSettings& settings) {
  if (settings.clean) {
    map_characters(piece, [](char32_t c, std::string& result) {
      if (c == 0 || c == 0xFFFD || is_bert_control(c)) return;
      append_character(result, is_white_space(c) ? U' ' : c);
    });
  }
  if (settings.ideographs) {
    map_characters(piece, [](char32_t c, std::string& result) {
      const bool apart = is_bert_ideograph(c);
      if (apart) result += ' ';
      append_character(result, c);
      if (apart) result += ' ';
    });
  }
  if (settings.accents) {
    apply_form(piece, NormalForm::decomposed);
    drop_characters(piece, is_nonspacing_mark);
  }
  if (settings.lowercase) piece.replace_by(to_lowercase);
}

Normalize make_bert(const Settings& settings) {
  const bool lowercase = settings.at("lowercase").get<bool>();
  const BertSettings chosen{settings.at("clean_text").get<bool>(), settings.at("handle_chinese_chars").get<bool>(),
                            setting_or(settings, "strip_accents", lowercase), lowercase};
  return [chosen](Piece& piece) { bert_normalize(piece, chosen); };
}

Normalize make_sequence(const Settings& settings) {
  std::vector<Normalize> all;
  for (const Settings& part : parts(settings, "normalizers")) all.push_back(make_normalizer(part));
  return [all](Piece& piece) { apply_all(all, piece); };
}

Normalize make_replace(const Settings& settings) {
  return [pattern = Pattern(settings.at("pattern")), content = settings.at("content").get<std::string>()](
             Piece& piece) { piece.text = pattern.replaced(piece.text, content, &piece.beginning); };
}

Normalize make_prepend(const Settings& settings) {
  return [prefix = settings.at("prepend").get<std::string>()](Piece& piece) {
    if (!piece.text.empty()) piece.prepend(prefix);
  };
}

Normalize make_strip(const Settings& settings) {
  const bool left = settings.at("strip_left").get<bool>();
  const bool right = settings.at("strip_right").get<bool>();
  return [left, right](Piece& piece) { strip_white_space(piece, left, right); };
}

Normalize make_precompiled(const Settings& settings) {
  const auto& map = settings.at("precompiled_charsmap");
  if (map.is_null()) return [](Piece&) {};
  return [rules = PrecompiledRules(map.get<std::string>())](Piece& piece) {
    piece.text = rules.apply(piece.text, piece.beginning);
  };
}

template <typename Apply>
Maker<Normalize> without_settings(Apply apply) {
  return [apply](const Settings&) { return Normalize(apply); };
}

[[maybe_unused]] const bool kRegistered = [] {
  auto& all = normalizers();
  all.add("BertNormalizer", "BERT's cleaning, spaces around ideographs, accents, case", "", make_bert);
  all.add("ByteLevel", "bytes as characters of GPT-2's alphabet", "",
          without_settings([](Piece& piece) { piece.replace_by(bytes_as_characters); }));
  all.add("Lowercase", "lower case", "", without_settings([](Piece& piece) { piece.replace_by(to_lowercase); }));
  all.add("NFC", "canonical composition", "UAX #15", normal_form(NormalForm::composed));
  all.add("NFD", "canonical decomposition", "UAX #15", normal_form(NormalForm::decomposed));
  all.add("NFKC", "compatibility composition", "UAX #15", normal_form(NormalForm::compatibility_composed));
  all.add("NFKD", "compatibility decomposition", "UAX #15", normal_form(NormalForm::compatibility_decomposed));
  all.add("Nmt", "control characters and kinds of space", "", without_settings(nmt));
  all.add("Precompiled", "SentencePiece's compiled rules", "Kudo & Richardson, arXiv 1808.06226", make_precompiled);
  all.add("Prepend", "a prefix", "", make_prepend);
  all.add("Replace", "matches replaced", "", make_replace);
  all.add("Sequence", "one after the other", "", make_sequence);
  all.add("Strip", "white space at the ends dropped", "", make_strip);
  all.add("StripAccents", "marks dropped", "",
          without_settings([](Piece& piece) { drop_characters(piece, is_combining_mark); }));
  return true;
}();

}  // namespace
}  // namespace plumb::tokenization
