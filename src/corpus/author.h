// Chooses words that make sense together: subjects for verbs, objects, places, adjectives, times.
#pragma once

#include <string_view>
#include <vector>

#include "corpus/clause.h"
#include "plumb/base/random.h"

namespace plumb::corpus {

/// The corpus's only source of randomness. Every draw is a separate statement: the evaluation order of arguments is
/// unspecified, and the text must not depend on it.
class Author {
 public:
  explicit Author(Random random) : random_(random) {}

  bool chance(double probability) { return random_.uniform() < probability; }
  size_t below(size_t bound) { return static_cast<size_t>(random_.below(bound)); }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  template <typename T, size_t size>
  const T& pick(const T (&items)[size]) {
    return items[below(size)];
  }

  const Noun& noun(Selection selection);
  const Verb& verb(std::initializer_list<Frame> frames, Kinds subject);

  /// "der alte Mann", "Anna", "zwei Kinder", "mein Bruder", "wir".
  NounPhrase subject(Selection selection);
  /// A subject that a pronoun can refer to in both languages (not "das Kind": he or she?).
  NounPhrase referable_subject(Selection selection);
  /// "einen roten Apfel", "die Bücher", "sein Fahrrad" (the subject's).
  NounPhrase object(const NounPhrase& subject, Selection selection);
  void add_adjectives(NounPhrase& phrase, double probability);
  /// An adjective that applies to the noun, or null; `gradable`: only those with a comparative.
  const Adjective* adjective(const Noun& noun, bool gradable);

  /// "in the garden", "into the garden", "through the garden"; empty if no place has one of these sites.
  Words place(uint32_t sites);
  Words goal(uint32_t sites);
  Words way(uint32_t sites);
  /// "auf den Tisch" (resting: "auf dem Tisch") for things that stand, lie or hang.
  Words spot(Kinds thing, bool resting);

  /// An action with its objects, in the present tense, without time; with a place or goal only if the verb needs one.
  Clause event(const NounPhrase& subject, std::initializer_list<Frame> frames);
  Clause event(const NounPhrase& subject);
  /// Chooses the subject, too.
  Clause event(Selection subjects = kind::person | kind::animal);
  Clause event_with(const NounPhrase& subject, const Verb& verb);
  /// Adds place, manner or company: at most two of them.
  void add_circumstances(Clause& clause, double probability);
  /// Adds a time expression and sets the matching tense.
  void add_time(Clause& clause, bool in_front);
  /// Puts `words` before the rest of the clause, with a comma in English.
  void put_in_front(Clause& clause, Words words);

 private:
  NounPhrase counted(const Noun& noun);
  Words place_words(const Place& place, std::string_view german, std::string_view english, bool dative);
  const Place* choose_place(uint32_t sites, bool with_way);

  Random random_;
};

/// The kinds of nouns that a phrase represents; a name or "wir" is a person.
Kinds kinds_of(const NounPhrase& phrase);
/// The sites where a creature or object of these kinds is found.
uint32_t habitat(Kinds kinds);
/// "sein", "ihr" … for this owner; the definite article if its pronoun is unknown.
Determiner possessive_of(const NounPhrase& owner);
/// The selection, without women's clothes unless the person is a woman.
Selection wearable_by(const NounPhrase& person, Selection selection);
/// Whether the accusative ("den Mann"; "die Frau" could be the subject as well) or the meaning marks it as the object.
bool is_clearly_object(const NounPhrase& phrase);
/// The clause as a past event in a sequence: German preterite, English simple past.
Clause told(Clause clause);

}  // namespace plumb::corpus
