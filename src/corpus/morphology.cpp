#include "corpus/morphology.h"

#include <array>

#include "plumb/base/error.h"

namespace plumb::corpus {
namespace {

// Rows: nominative, accusative, dative, genitive. Columns: masculine, feminine, neuter, plural.
using Table = std::array<std::array<std::string_view, 4>, 4>;

std::string_view look_up(const Table& table, Gender gender, Number number, Case grammatical_case) {
  const size_t column = number == Number::plural ? 3 : static_cast<size_t>(gender);
  return table[static_cast<size_t>(grammatical_case)][column];
}

constexpr Table kDefinite = {{{"der", "die", "das", "die"},
                              {"den", "die", "das", "die"},
                              {"dem", "der", "dem", "den"},
                              {"des", "der", "des", "der"}}};
constexpr Table kEin = {{{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}, {"es", "er", "es", "er"}}};
constexpr Table kDer = {
    {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}, {"es", "er", "es", "er"}}};
constexpr Table kStrong = {
    {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}, {"en", "er", "en", "er"}}};
constexpr Table kWeak = {
    {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}, {"en", "en", "en", "en"}}};
constexpr Table kMixed = {
    {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}, {"en", "en", "en", "en"}}};
constexpr Table kRelative = {
    {{"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "denen"}, {"", "", "", ""}}};
constexpr Table kPersonal = {
    {{"er", "sie", "es", "sie"}, {"ihn", "sie", "es", "sie"}, {"ihm", "ihr", "ihm", "ihnen"}, {"", "", "", ""}}};

bool ends_with(std::string_view word, std::string_view ending) { return word.ends_with(ending); }

// "arbeit-en", "öffn-en", "zeichn-en": an e is inserted between stem and ending, as the third person shows.
bool has_linking_e(const GermanVerb& verb) { return ends_with(verb.third, "et"); }

std::string stem_of(const GermanVerb& verb) {
  const std::string& infinitive = verb.infinitive;
  return infinitive.substr(0, infinitive.size() - (ends_with(infinitive, "en") ? 2 : 1));
}

bool ends_in_sibilant(std::string_view stem) {
  return ends_with(stem, "s") || ends_with(stem, "ß") || ends_with(stem, "z") || ends_with(stem, "x");
}

std::string second_person(const GermanVerb& verb) {
  const std::string stem = stem_of(verb);
  if (has_linking_e(verb)) return verb.third.substr(0, verb.third.size() - 1) + "st";
  if (verb.third == "mag") return "magst";
  const std::string changed = verb.third.substr(0, verb.third.size() - 1);  // without -t
  if (ends_in_sibilant(changed)) return changed + "t";
  if (ends_with(stem, "t") && !ends_with(changed, "t")) return changed + "tst";  // "hält", "hältst"
  return changed + "st";
}

std::string first_person(const GermanVerb& verb) {
  if (verb.third == "mag") return "mag";
  const std::string stem = stem_of(verb);
  if (ends_with(stem, "el")) return stem.substr(0, stem.size() - 2) + "le";
  return stem + "e";
}

}  // namespace

std::string_view definite_article(Gender gender, Number number, Case grammatical_case) {
  return look_up(kDefinite, gender, number, grammatical_case);
}

std::string ein_word(std::string_view stem, Gender gender, Number number, Case grammatical_case) {
  const std::string_view ending = look_up(kEin, gender, number, grammatical_case);
  if (stem == "euer" && !ending.empty()) stem = "eur";
  return std::string(stem) + std::string(ending);
}

std::string der_word(std::string_view stem, Gender gender, Number number, Case grammatical_case) {
  return std::string(stem) + std::string(look_up(kDer, gender, number, grammatical_case));
}

std::string_view relative_pronoun(Gender gender, Number number, Case grammatical_case) {
  return look_up(kRelative, gender, number, grammatical_case);
}

std::string_view personal_pronoun(Gender gender, Number number, Case grammatical_case) {
  return look_up(kPersonal, gender, number, grammatical_case);
}

std::string_view adjective_ending(Declension declension, Gender gender, Number number, Case grammatical_case) {
  const Table& table = declension == Declension::strong ? kStrong : declension == Declension::weak ? kWeak : kMixed;
  return look_up(table, gender, number, grammatical_case);
}

std::string decline_adjective(const Adjective& adjective, Declension declension, Gender gender, Number number,
                              Case grammatical_case) {
  if (ends_with(adjective.german, "a")) return adjective.german;
  std::string stem = adjective.stem.empty() ? adjective.german : adjective.stem;
  if (ends_with(stem, "e")) stem.pop_back();
  return stem + std::string(adjective_ending(declension, gender, number, grammatical_case));
}

std::string comparative(const Adjective& adjective) {
  if (adjective.comparative == "none") throw Error("\"" + adjective.german + "\" has no comparative");
  if (!adjective.comparative.empty()) return adjective.comparative;
  return adjective.german + (ends_with(adjective.german, "e") ? "r" : "er");
}

std::string decline_noun(const Noun& noun, Number number, Case grammatical_case) {
  if (number == Number::plural) {
    const bool marked =
        grammatical_case == Case::dative && !ends_with(noun.plural, "n") && !ends_with(noun.plural, "s");
    return noun.plural + (marked ? "n" : "");
  }
  if (noun.genitive == Genitive::weak_n || noun.genitive == Genitive::weak_en) {
    if (grammatical_case == Case::nominative) return noun.german;
    return noun.german + (noun.genitive == Genitive::weak_n ? "n" : "en");
  }
  if (grammatical_case != Case::genitive || noun.genitive == Genitive::none) return noun.german;
  if (noun.genitive == Genitive::s) return noun.german + "s";
  // "der Bus", "des Busses": a final s that is doubled in the plural is doubled here, too.
  const bool doubled = ends_with(noun.german, "s") && !ends_with(noun.german, "ss") && ends_with(noun.plural, "sse");
  return noun.german + (doubled ? "ses" : "es");
}

std::string contract(std::string_view preposition, std::string_view article) {
  static constexpr std::array<std::array<std::string_view, 3>, 8> kContractions = {{{"in", "dem", "im"},
                                                                                    {"an", "dem", "am"},
                                                                                    {"in", "das", "ins"},
                                                                                    {"an", "das", "ans"},
                                                                                    {"zu", "dem", "zum"},
                                                                                    {"zu", "der", "zur"},
                                                                                    {"bei", "dem", "beim"},
                                                                                    {"von", "dem", "vom"}}};
  for (const auto& [first, second, contracted] : kContractions) {
    if (first == preposition && second == article) return std::string(contracted);
  }
  return std::string(preposition) + " " + std::string(article);
}

std::string present(const GermanVerb& verb, Person person, Number number) {
  if (&verb == &to_be()) {
    if (number == Number::plural) return person == Person::second ? "seid" : "sind";
    return person == Person::first ? "bin" : person == Person::second ? "bist" : "ist";
  }
  if (number == Number::plural) return verb.infinitive;  // the second person plural is not used
  if (person == Person::third) return verb.third;
  if (&verb == &to_become() && person == Person::second) return "wirst";
  return person == Person::first ? first_person(verb) : second_person(verb);
}

std::string preterite(const GermanVerb& verb, Person person, Number number) {
  const std::string& form = verb.preterite;
  const bool weak = ends_with(form, "e");
  if (number == Number::plural) return form + (weak ? "n" : "en");
  if (person != Person::second) return form;
  if (weak) return form + "st";
  if (ends_in_sibilant(form) || ends_with(form, "t") || ends_with(form, "d")) return form + "est";
  return form + "st";
}

std::string infinitive(const GermanVerb& verb) { return verb.prefix + verb.infinitive; }

std::string zu_infinitive(const GermanVerb& verb) {
  return verb.prefix.empty() ? "zu " + verb.infinitive : verb.prefix + "zu" + verb.infinitive;
}

const GermanVerb& to_be() {
  static const GermanVerb verb = {"sein", "", "ist", "war", "gewesen", true};
  return verb;
}

const GermanVerb& to_have() {
  static const GermanVerb verb = {"haben", "", "hat", "hatte", "gehabt"};
  return verb;
}

const GermanVerb& to_become() {
  static const GermanVerb verb = {"werden", "", "wird", "wurde", "geworden", true};
  return verb;
}

}  // namespace plumb::corpus
