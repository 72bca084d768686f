#include "plumb/text/pipeline/unicode.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/utf8.h"

namespace plumb::tokenization {
namespace {

bool is_older_than(char32_t c, int unicode_version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] != 0 && age[0] <= unicode_version;
}

bool has_category(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0; }

const icu::Normalizer2& unfiltered(NormalForm form, UErrorCode& status) {
  switch (form) {
    case NormalForm::composed:
      return *icu::Normalizer2::getNFCInstance(status);
    case NormalForm::decomposed:
      return *icu::Normalizer2::getNFDInstance(status);
    case NormalForm::compatibility_composed:
      return *icu::Normalizer2::getNFKCInstance(status);
    case NormalForm::compatibility_decomposed:
      return *icu::Normalizer2::getNFKDInstance(status);
  }
  throw Error("unknown normal form");
}

const icu::FilteredNormalizer2& normalizer_of(NormalForm form) {
  static const icu::UnicodeSet known = [] {
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeSet set(u"[:age=9.0:]", status);
    if (U_FAILURE(status)) throw Error("ICU cannot normalize text", "reinstall ICU");
    set.freeze();
    return set;
  }();
  const auto make = [](NormalForm of) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2& plain = unfiltered(of, status);
    if (U_FAILURE(status)) throw Error("ICU cannot normalize text", "reinstall ICU");
    return icu::FilteredNormalizer2(plain, known);
  };
  static const icu::FilteredNormalizer2 forms[] = {make(NormalForm::composed), make(NormalForm::decomposed),
                                                   make(NormalForm::compatibility_composed),
                                                   make(NormalForm::compatibility_decomposed)};
  return forms[static_cast<size_t>(form)];
}

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

int break_class(char32_t c) { return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK); }

}  // namespace

char32_t single_character(std::string_view text, std::string_view what) {
  size_t position = 0;
  const char32_t c = text.empty() ? 0 : next_character(text, position);
  if (text.empty() || position != text.size())
    throw Error(fmt::format("{} is not a single character: '{}'", what, text));
  return c;
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

bool is_number(char32_t c) { return has_category(c, U_GC_N_MASK); }

bool is_word_character(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return has_category(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) != 0 || c == 0x200C || c == 0x200D;
}

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7F && !is_word_character(c) ? true : c == '_';
  if (c == 0x166D || c == 0x111C9) return true;  // changed category after Unicode 8
  return has_category(c, U_GC_P_MASK) && is_older_than(c, 8);
}

bool is_bert_control(char32_t c) {
  if (c < 0x80) return (c < ' ' || c == 0x7F) && c != '\t' && c != '\n' && c != '\r';
  return has_category(c, U_GC_CC_MASK | U_GC_CO_MASK) || (has_category(c, U_GC_CF_MASK) && is_older_than(c, 8));
}

bool is_bert_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_nonspacing_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;  // became Mn later
  return c == 0x1734 || (has_category(c, U_GC_MN_MASK) && is_older_than(c, 8));
}

bool is_combining_mark(char32_t c) {
  if (c < 0x300 || c == 0x111C9) return false;
  return c == 0x1CF2 || c == 0x1CF3 || (has_category(c, U_GC_M_MASK) && is_older_than(c, 9));
}

std::string to_lowercase(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_character(text, i);
    if (c < 0x80) {
      lower.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c));
    } else {
      append_character(lower, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
      if (c == 0x130) append_character(lower, 0x307);  // İ: the only character that maps to two
    }
  }
  return lower;
}

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  std::string result;
  UErrorCode status = U_ZERO_ERROR;
  const auto source = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  icu::UnicodeString target;
  normalizer_of(form).normalize(source, target, status).toUTF8String(result);
  if (U_FAILURE(status)) throw Error("text cannot be normalized: it is too long", "split it into lines");
  return result;
}

bool GraphemeBreaks::between(char32_t before, char32_t next) {
  const int left = break_class(before);
  const int right = break_class(next);
  flags_ = left == U_GCB_REGIONAL_INDICATOR ? flags_ + 1 : 0;
  const bool extends = left == U_GCB_EXTEND || left == U_GCB_ZWJ;
  if (!extends) {
    pictograph_ = u_hasBinaryProperty(static_cast<UChar32>(before), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
  }
  const auto is_control = [](int c) { return c == U_GCB_CONTROL || c == U_GCB_CR || c == U_GCB_LF; };
  if (left == U_GCB_CR && right == U_GCB_LF) return false;
  if (is_control(left) || is_control(right)) return true;
  if (left == U_GCB_L && (right == U_GCB_L || right == U_GCB_V || right == U_GCB_LV || right == U_GCB_LVT))
    return false;
  if ((left == U_GCB_LV || left == U_GCB_V) && (right == U_GCB_V || right == U_GCB_T)) return false;
  if ((left == U_GCB_LVT || left == U_GCB_T) && right == U_GCB_T) return false;
  if (right == U_GCB_EXTEND || right == U_GCB_ZWJ || right == U_GCB_SPACING_MARK || left == U_GCB_PREPEND) return false;
  if (left == U_GCB_ZWJ && pictograph_ &&
      u_hasBinaryProperty(static_cast<UChar32>(next), UCHAR_EXTENDED_PICTOGRAPHIC) != 0) {
    return false;
  }
  return !(right == U_GCB_REGIONAL_INDICATOR && flags_ % 2 == 1);
}

std::vector<size_t> grapheme_boundaries(std::string_view text) {
  std::vector<size_t> boundaries = {0};
  GraphemeBreaks breaks;
  char32_t before = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = next_character(text, i);
    if (begin > 0) {
      const bool simple = before < 0x300 && c < 0x300 && before != '\r';  // no marks, joiners or flags below U+0300
      if (simple ? true : breaks.between(before, c)) boundaries.push_back(begin);
    }
    before = c;
  }
  if (!text.empty()) boundaries.push_back(text.size());
  return boundaries;
}

int script_of(char32_t c) {
  if (c == 0x30FC) return USCRIPT_HAN;
  if (c == ' ' || !is_older_than(c, 9)) return kAnyScript;
  if (c == 0x589 || c == 0x61C) return USCRIPT_COMMON;  // moved to other scripts later
  if (c == 0x953 || c == 0x954) return USCRIPT_DEVANAGARI;
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &status);
  if (U_FAILURE(status) || script == USCRIPT_UNKNOWN) return kAnyScript;
  if (script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA) return USCRIPT_HAN;
  return script;
}

}  // namespace plumb::tokenization
