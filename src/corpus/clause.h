// Language-independent sentence structure: noun phrases and clauses from which both languages are generated. German
// (order, case, agreement) and English (aspect, do-support) are functions of this structure alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "corpus/lexicon.h"
#include "corpus/morphology.h"

namespace plumb::corpus {

enum class Determiner : uint8_t {
  none,
  definite,
  indefinite,
  negative,
  demonstrative,
  every,
  which,
  my,
  our,
  his,
  her,
  their,
  many,
  some,
  several,
  all,
  numeral
};

struct Clause;

/// A noun with its modifiers, a name, or a pronoun (neither noun nor name).
struct NounPhrase {
  const Noun* noun = nullptr;
  const Name* name = nullptr;
  Number number = Number::singular;
  Determiner determiner = Determiner::definite;
  int count = 0;  // for Determiner::numeral: written in words up to twelve, then in figures
  std::vector<const Adjective*> adjectives;
  bool very = false;                // "sehr" before the first adjective
  Words attribute;                  // "mit einem roten Hut"
  std::vector<NounPhrase> owner;    // at most one: "des Mannes", "Annas"
  std::vector<NounPhrase> partner;  // at most one: "und eine Frau"
  std::vector<Clause> relative;     // at most one
  bool relative_to_object = false;  // the relative pronoun is its clause's object, not its subject

  // Pronouns only.
  Person person = Person::third;
  Gender gender = Gender::neuter;
  Referent referent = Referent::it;

  [[nodiscard]] bool is_pronoun() const { return noun == nullptr && name == nullptr; }
};

enum class Tense : uint8_t { present, preterite, perfect, pluperfect, future };

struct Clause {
  NounPhrase subject;
  const Verb* verb = nullptr;
  std::vector<NounPhrase> object;    // at most one, in the case that the verb's frame requires
  std::vector<NounPhrase> receiver;  // at most one, dative
  const Modal* modal = nullptr;
  Tense tense = Tense::present;
  bool simple = false;     // no progressive in English: habits, sequences of events
  bool past_time = false;  // a perfect with "gestern": English takes the simple past
  bool negated = false;
  bool passive = false;
  Words front;  // precedes the verb in place of the subject; the English includes its comma
  Words time, frequency, manner, companion, place, goal, complement;
  bool manner_last = false;
};

/// What a clause omits: the role of its relative or question pronoun, or the subject shared by "und".
enum class Gap : uint8_t { none, subject, object };

/// "sein" with a complement.
const Verb& copula();

/// The pronoun that refers back to the phrase.
NounPhrase pronoun_for(const NounPhrase& phrase);

/// The number that verbs agree with; "pants" and "glasses" are plural in English.
Number german_number(const NounPhrase& phrase);
Number english_number(const NounPhrase& phrase);

std::string german_phrase(const NounPhrase& phrase, Case grammatical_case);
/// With a preposition, contracted with the article where possible.
std::string german_phrase(std::string_view preposition, const NounPhrase& phrase, Case grammatical_case);
/// `subject`: pronouns are in the subject form ("he").
std::string english_phrase(const NounPhrase& phrase, bool subject);

/// Verb second: "Gestern hat der Mann das Auto gewaschen".
std::string german_main(const Clause& clause, Gap gap = Gap::none);
/// Verb last, without the conjunction: "der Mann das Auto gewaschen hat".
std::string german_subordinate(const Clause& clause, Gap gap = Gap::none);
/// Verb first, or second after `question_word`; without the question mark.
std::string german_question(const Clause& clause, std::string_view question_word, Gap gap = Gap::none);
/// "das Auto zu waschen".
std::string german_infinitive(const Clause& clause);

std::string english_main(const Clause& clause, Gap gap = Gap::none);
std::string english_question(const Clause& clause, std::string_view question_word, Gap gap = Gap::none);
/// "to wash the car".
std::string english_infinitive(const Clause& clause);

/// "null" … "zwölf", then figures.
std::string german_number_word(int count);
std::string english_number_word(int count);

/// Joins with spaces, omitting empty parts.
std::string say(std::initializer_list<std::string_view> parts);
/// Attaches commas, capitalizes, and appends `end`: "heute , lacht er" with "." → "Heute, lacht er."
std::string finish(std::string_view text, std::string_view end);

}  // namespace plumb::corpus
