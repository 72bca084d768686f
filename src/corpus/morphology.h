// German inflection: articles, adjectives, nouns, verbs. Pure functions of the lexicon's entries.
#pragma once

#include <string>
#include <string_view>

#include "corpus/lexicon.h"

namespace plumb::corpus {

/// Which endings an adjective takes: after "der" (weak), after "ein" (mixed), alone (strong).
enum class Declension : uint8_t { strong, weak, mixed };

enum class Person : uint8_t { first, second, third };

/// "der", "die", "das", "den", "dem", "des". In the plural the gender does not matter.
std::string_view definite_article(Gender gender, Number number, Case grammatical_case);

/// "ein", "kein", "mein", "sein", "ihr" with endings: ("kein", feminine, singular, dative) → "keiner".
std::string ein_word(std::string_view stem, Gender gender, Number number, Case grammatical_case);

/// "dies-", "jed-", "welch-", "viel-", "all-" with strong endings: ("dies", neuter, singular, nominative) → "dieses".
std::string der_word(std::string_view stem, Gender gender, Number number, Case grammatical_case);

/// "der", "die", "das", "den", "dem", "denen": the relative pronoun (no genitive).
std::string_view relative_pronoun(Gender gender, Number number, Case grammatical_case);

/// "er", "ihn", "ihm", "sie", "ihr", "es", "ihnen": third person (no genitive).
std::string_view personal_pronoun(Gender gender, Number number, Case grammatical_case);

/// "e", "en", "er", "es", "em".
std::string_view adjective_ending(Declension declension, Gender gender, Number number, Case grammatical_case);

/// The positive form with its ending; "lila" and "rosa" take no ending.
std::string decline_adjective(const Adjective& adjective, Declension declension, Gender gender, Number number,
                              Case grammatical_case);

/// "größer". Throws Error if the adjective has no comparative.
std::string comparative(const Adjective& adjective);

/// The noun in its case: "Hunden", "Jungen", "Mannes".
std::string decline_noun(const Noun& noun, Number number, Case grammatical_case);

/// Preposition and definite article, contracted as usual: "im", "am", "ins", "zum", "zur", "beim", "vom".
std::string contract(std::string_view preposition, std::string_view article);

/// Without the separable prefix: "hebt", "läufst", "gehe".
std::string present(const GermanVerb& verb, Person person, Number number);
std::string preterite(const GermanVerb& verb, Person person, Number number);

/// "aufheben", and with "zu": "aufzuheben", "zu laufen".
std::string infinitive(const GermanVerb& verb);
std::string zu_infinitive(const GermanVerb& verb);

/// The auxiliaries, also used as full verbs.
const GermanVerb& to_be();
const GermanVerb& to_have();
const GermanVerb& to_become();

}  // namespace plumb::corpus
