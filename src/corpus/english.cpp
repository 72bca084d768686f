#include "corpus/english.h"

#include <algorithm>
#include <array>

namespace plumb::corpus {
namespace {

bool is_vowel(char letter) { return std::string_view("aeiou").find(letter) != std::string_view::npos; }

bool ends_with_any(std::string_view word, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return word.ends_with(ending); });
}

bool ends_in_consonant_y(std::string_view word) {
  return word.size() > 1 && word.back() == 'y' && !is_vowel(word[word.size() - 2]);
}

// "stop", "run": one syllable that ends in consonant, vowel, consonant.
bool doubles_last_letter(std::string_view word) {
  if (word.size() < 3) return false;
  int syllables = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    if (is_vowel(word[i]) && (i == 0 || !is_vowel(word[i - 1]))) ++syllables;
  }
  const char last = word.back();
  const char before = word[word.size() - 2];
  const char first = word[word.size() - 3];
  const bool pattern = !is_vowel(last) && last != 'w' && last != 'x' && last != 'y' && is_vowel(before) &&
                       (!is_vowel(first) || word.find("qu") != std::string_view::npos);
  // "forget" and "begin" have two syllables, the last of which is stressed.
  return pattern && (syllables == 1 || word == "forget" || word == "begin");
}

std::string with_s(const std::string& word) {
  if (ends_with_any(word, {"s", "x", "z", "ch", "sh"})) return word + "es";
  if (ends_in_consonant_y(word)) return word.substr(0, word.size() - 1) + "ies";
  return word + "s";
}

std::string with_ed(const std::string& base) {
  if (base.ends_with("e")) return base + "d";
  if (ends_in_consonant_y(base)) return base.substr(0, base.size() - 1) + "ied";
  if (doubles_last_letter(base)) return base + base.back() + "ed";
  return base + "ed";
}

}  // namespace

std::string_view english_article(std::string_view next_word) {
  constexpr std::array<std::string_view, 2> silent = {"hour", "honest"};
  constexpr std::array<std::string_view, 5> consonantal = {"uni", "use", "eu", "one", "unit"};
  const auto begins = [&](std::string_view start) { return next_word.starts_with(start); };
  if (std::any_of(silent.begin(), silent.end(), begins)) return "an";
  // "uni-" is pronounced "yoo-", but "unimportant" is "un" + "important".
  if (std::any_of(consonantal.begin(), consonantal.end(), begins) && !next_word.starts_with("unim") &&
      !next_word.starts_with("unin")) {
    return "a";
  }
  return !next_word.empty() && is_vowel(next_word.front()) ? "an" : "a";
}

std::string english_plural(const Noun& noun) {
  if (!noun.english_plural.empty()) return noun.english_plural;
  if ((noun.kinds & kind::plural_in_english) != 0) return noun.english;
  return with_s(noun.english);
}

std::string english_possessive(const std::string& noun, Number number) {
  return noun + (number == Number::plural && noun.ends_with("s") ? "'" : "'s");
}

std::string english_comparative(const Adjective& adjective) {
  if (!adjective.english_comparative.empty() && adjective.english_comparative != "none") {
    return adjective.english_comparative;
  }
  const std::string& base = adjective.english;
  if (base.size() > 6 || ends_with_any(base, {"ous", "ful", "est", "ent"})) {
    if (!ends_in_consonant_y(base)) return "more " + base;
  }
  if (ends_in_consonant_y(base)) return base.substr(0, base.size() - 1) + "ier";
  if (base.ends_with("e")) return base + "r";
  if (doubles_last_letter(base)) return base + base.back() + "er";
  return base + "er";
}

std::string third_person(const std::string& base) {
  if (base == "have") return "has";
  if (base == "go" || base == "do") return base + "es";
  return with_s(base);
}

std::string progressive(const std::string& base) {
  if (base.ends_with("ie")) return base.substr(0, base.size() - 2) + "ying";
  if (base.ends_with("e") && !ends_with_any(base, {"ee", "oe", "ye"})) return base.substr(0, base.size() - 1) + "ing";
  if (doubles_last_letter(base)) return base + base.back() + "ing";
  return base + "ing";
}

std::string past(const EnglishVerb& verb) { return verb.past.empty() ? with_ed(verb.base) : verb.past; }

std::string past_participle(const EnglishVerb& verb) { return verb.participle.empty() ? past(verb) : verb.participle; }

}  // namespace plumb::corpus
