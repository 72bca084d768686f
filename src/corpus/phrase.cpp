// Noun phrases in both languages.
#include <array>
#include <cctype>
#include <initializer_list>

#include "corpus/clause.h"
#include "corpus/english.h"

namespace plumb::corpus {
namespace {

Declension declension_after(const NounPhrase& phrase) {
  switch (phrase.determiner) {
    case Determiner::definite:
      // "Annas kleiner Hund": a name in the genitive replaces the article.
      return !phrase.owner.empty() && phrase.owner.front().name != nullptr ? Declension::strong : Declension::weak;
    case Determiner::demonstrative:
    case Determiner::every:
    case Determiner::which:
    case Determiner::all:
      return Declension::weak;
    case Determiner::indefinite:
      return phrase.number == Number::plural ? Declension::strong : Declension::mixed;
    case Determiner::negative:
    case Determiner::my:
    case Determiner::our:
    case Determiner::his:
    case Determiner::her:
    case Determiner::their:
      return Declension::mixed;
    default:
      return Declension::strong;
  }
}

bool has_owner_name(const NounPhrase& phrase) { return !phrase.owner.empty() && phrase.owner.front().name != nullptr; }

std::string german_name_genitive(const std::string& name) {
  const char last = name.back();
  return name + (last == 's' || last == 'x' || last == 'z' ? "'" : "s");
}

std::string german_determiner(const NounPhrase& phrase, Case c) {
  const Gender g = phrase.noun->gender;
  const Number n = phrase.number;
  if (has_owner_name(phrase)) return german_name_genitive(phrase.owner.front().name->text);
  switch (phrase.determiner) {
    case Determiner::none:
      return "";
    case Determiner::definite:
      return std::string(definite_article(g, n, c));
    case Determiner::indefinite:
      return n == Number::plural ? "" : ein_word("ein", g, n, c);
    case Determiner::negative:
      return ein_word("kein", g, n, c);
    case Determiner::demonstrative:
      return der_word("dies", g, n, c);
    case Determiner::every:
      return der_word("jed", g, n, c);
    case Determiner::which:
      return der_word("welch", g, n, c);
    case Determiner::my:
      return ein_word("mein", g, n, c);
    case Determiner::our:
      return ein_word("unser", g, n, c);
    case Determiner::his:
      return ein_word("sein", g, n, c);
    case Determiner::her:
    case Determiner::their:
      return ein_word("ihr", g, n, c);
    case Determiner::many:
      return der_word("viel", g, n, c);
    case Determiner::some:
      return der_word("einig", g, n, c);
    case Determiner::several:
      return der_word("mehrer", g, n, c);
    case Determiner::all:
      return der_word("all", g, n, c);
    case Determiner::numeral:
      return german_number_word(phrase.count);
  }
  return "";
}

std::string german_pronoun(const NounPhrase& phrase, Case c) {
  if (phrase.person == Person::third) return std::string(personal_pronoun(phrase.gender, phrase.number, c));
  // Columns: ich, du, wir; rows: nominative, accusative, dative.
  static constexpr std::array<std::array<std::string_view, 3>, 3> kForms = {
      {{"ich", "du", "wir"}, {"mich", "dich", "uns"}, {"mir", "dir", "uns"}}};
  const size_t column = phrase.number == Number::plural ? 2 : phrase.person == Person::first ? 0 : 1;
  return std::string(kForms[static_cast<size_t>(c)][column]);
}

// The phrase after its determiner.
std::string german_rest(const NounPhrase& phrase, Case c) {
  std::string text;
  bool first = true;
  for (const Adjective* adjective : phrase.adjectives) {
    text = say({text, first && phrase.very ? "sehr" : "",
                decline_adjective(*adjective, declension_after(phrase), phrase.noun->gender, phrase.number, c)});
    first = false;
  }
  text = say({text, decline_noun(*phrase.noun, phrase.number, c)});
  if (!phrase.owner.empty() && !has_owner_name(phrase)) {
    text = say({text, german_phrase(phrase.owner.front(), Case::genitive)});
  }
  text = say({text, phrase.attribute.german});
  if (!phrase.partner.empty()) text = say({text, "und", german_phrase(phrase.partner.front(), c)});
  if (!phrase.relative.empty()) {
    const Clause& clause = phrase.relative.front();
    const Gap gap = phrase.relative_to_object ? Gap::object : Gap::subject;
    const bool dative = phrase.relative_to_object && clause.verb->frame == Frame::dative;
    const Case pronoun_case = dative ? Case::dative : phrase.relative_to_object ? Case::accusative : Case::nominative;
    text = say({text, ",", relative_pronoun(phrase.noun->gender, phrase.number, pronoun_case),
                german_subordinate(clause, gap), ","});
  }
  return text;
}

std::string english_determiner(const NounPhrase& phrase, std::string_view next_word) {
  // The number of this noun alone, without the partner: "a man and a woman" is plural, "a man" is not.
  const bool plural = phrase.number == Number::plural || (phrase.noun->kinds & kind::plural_in_english) != 0;
  const bool counted = (phrase.noun->kinds & kind::mass) == 0 && !plural;
  switch (phrase.determiner) {
    case Determiner::none:
      return "";
    case Determiner::definite:
      return "the";
    case Determiner::indefinite:
      return counted ? std::string(english_article(next_word)) : "";
    // The verb expresses "kein": "is not eating an apple", "does not drink any milk".
    case Determiner::negative:
      return counted ? std::string(english_article(next_word)) : "any";
    case Determiner::demonstrative:
      return plural ? "these" : "this";
    case Determiner::every:
      return "every";
    case Determiner::which:
      return "which";
    case Determiner::my:
      return "my";
    case Determiner::our:
      return "our";
    case Determiner::his:
      return "his";
    case Determiner::her:
      return "her";
    case Determiner::their:
      return "their";
    case Determiner::many:
      return "many";
    case Determiner::some:
      return "some";
    case Determiner::several:
      return "several";
    case Determiner::all:
      return "all the";
    case Determiner::numeral:
      return english_number_word(phrase.count);
  }
  return "";
}

std::string english_pronoun(const NounPhrase& phrase, bool subject) {
  if (phrase.person == Person::second) return "you";
  if (phrase.person == Person::first) {
    if (phrase.number == Number::plural) return subject ? "we" : "us";
    return subject ? "I" : "me";
  }
  if (phrase.number == Number::plural) return subject ? "they" : "them";
  if (phrase.referent == Referent::he) return subject ? "he" : "him";
  if (phrase.referent == Referent::she) return subject ? "she" : "her";
  return "it";
}

void append_capitalized(std::string& result, std::string_view text) {
  const size_t start = result.size();
  result += text;
  if (result.size() > start + 1 && static_cast<unsigned char>(result[start]) == 0xC3) {
    result[start + 1] = static_cast<char>(result[start + 1] & ~0x20);  // ä → Ä, ö → Ö, ü → Ü
  } else if (result.size() > start) {
    result[start] = static_cast<char>(std::toupper(static_cast<unsigned char>(result[start])));
  }
}

}  // namespace

NounPhrase pronoun_for(const NounPhrase& phrase) {
  if (phrase.is_pronoun()) return phrase;
  NounPhrase pronoun;
  pronoun.number = phrase.partner.empty() ? phrase.number : Number::plural;
  if (phrase.name != nullptr) {
    pronoun.referent = phrase.name->referent;
    pronoun.gender = pronoun.referent == Referent::he ? Gender::masculine : Gender::feminine;
  } else {
    pronoun.referent = phrase.noun->referent;
    pronoun.gender = phrase.noun->gender;
    // "die Hose" is "sie" in German, but "pants" are "they" in English: marked by `unspecified`.
    if ((phrase.noun->kinds & kind::plural_in_english) != 0) pronoun.referent = Referent::unspecified;
  }
  return pronoun;
}

Number german_number(const NounPhrase& phrase) { return phrase.partner.empty() ? phrase.number : Number::plural; }

Number english_number(const NounPhrase& phrase) {
  const bool plural_noun = phrase.noun != nullptr && (phrase.noun->kinds & kind::plural_in_english) != 0;
  return plural_noun ? Number::plural : german_number(phrase);
}

std::string german_phrase(const NounPhrase& phrase, Case c) {
  if (phrase.is_pronoun()) return german_pronoun(phrase, c);
  if (phrase.name != nullptr) {
    return phrase.partner.empty() ? phrase.name->text
                                  : say({phrase.name->text, "und", german_phrase(phrase.partner.front(), c)});
  }
  return say({german_determiner(phrase, c), german_rest(phrase, c)});
}

std::string german_phrase(std::string_view preposition, const NounPhrase& phrase, Case c) {
  const bool article = phrase.noun != nullptr && phrase.determiner == Determiner::definite && !has_owner_name(phrase);
  // "in dem Haus, das ...": not contracted before a relative clause.
  if (!article || !phrase.relative.empty()) return say({preposition, german_phrase(phrase, c)});
  return say({contract(preposition, german_determiner(phrase, c)), german_rest(phrase, c)});
}

std::string english_phrase(const NounPhrase& phrase, bool subject) {
  if (phrase.is_pronoun()) {
    const bool pair = phrase.referent == Referent::unspecified && phrase.number == Number::singular;
    return pair ? (subject ? "they" : "them") : english_pronoun(phrase, subject);
  }
  std::string text;
  if (phrase.name != nullptr) {
    text = phrase.name->text;
  } else {
    bool first = true;
    for (const Adjective* adjective : phrase.adjectives) {
      text = say({text, first && phrase.very ? "very" : "", adjective->english});
      first = false;
    }
    text = say({text, phrase.number == Number::plural ? english_plural(*phrase.noun) : phrase.noun->english});
    const NounPhrase* owner = phrase.owner.empty() ? nullptr : &phrase.owner.front();
    if (owner != nullptr && (owner->name != nullptr || (owner->noun->kinds & (kind::person | kind::animal)) != 0)) {
      text = say({english_possessive(english_phrase(*owner, false), owner->number), text});
    } else {
      text = say({english_determiner(phrase, text), text});
      if (owner != nullptr) text = say({text, "of", english_phrase(*owner, false)});
    }
    text = say({text, phrase.attribute.english});
  }
  if (!phrase.partner.empty()) text = say({text, "and", english_phrase(phrase.partner.front(), subject)});
  if (!phrase.relative.empty()) {
    const Gap gap = phrase.relative_to_object ? Gap::object : Gap::subject;
    const bool person = (phrase.noun->kinds & kind::person) != 0 && !phrase.relative_to_object;
    text = say({text, person ? "who" : "that", english_main(phrase.relative.front(), gap)});
  }
  return text;
}

std::string german_number_word(int count) {
  static constexpr std::array<std::string_view, 13> kWords = {"null",   "ein",  "zwei", "drei", "vier", "fünf", "sechs",
                                                              "sieben", "acht", "neun", "zehn", "elf",  "zwölf"};
  return count < 13 ? std::string(kWords[static_cast<size_t>(count)]) : std::to_string(count);
}

std::string english_number_word(int count) {
  static constexpr std::array<std::string_view, 13> kWords = {
      "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};
  return count < 13 ? std::string(kWords[static_cast<size_t>(count)]) : std::to_string(count);
}

std::string say(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += ' ';
    text += part;
  }
  return text;
}

std::string finish(std::string_view text, std::string_view end) {
  std::string result;
  bool start = true;
  bool comma = false;  // pending; dropped before another comma and before the end of a sentence
  size_t position = 0;
  while (position < text.size()) {
    size_t next = text.find(' ', position);
    if (next == std::string_view::npos) next = text.size();
    const std::string_view word = text.substr(position, next - position);
    position = next + 1;
    if (word.empty()) continue;
    if (word == ",") {
      comma = true;
      continue;
    }
    if (word == "." || word == "?" || word == "!") {
      comma = false;
      result += word;
      start = true;
      continue;
    }
    if (comma) result += ',';
    comma = false;
    if (!result.empty()) result += ' ';
    if (start) {
      append_capitalized(result, word);
    } else {
      result += word;
    }
    start = false;
  }
  return result + std::string(end);
}

}  // namespace plumb::corpus
