// Chooses words that make sense together: subjects for verbs, objects, places, adjectives, times.
#pragma once

#include <string_view>
#include <vector>

#include "corpus/clause.h"
#include "plumb/base/random.h"

namespace plumb::corpus {

/// All randomness of the corpus. Every draw is a separate statement, because the order in which a compiler
/// evaluates arguments is free, and the text must not depend on it.
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
  /// One that a pronoun can refer to in both languages ("das Kind" cannot: he or she?).
  NounPhrase referable_subject(Selection selection);
  /// "einen roten Apfel", "die Bücher", "sein Fahrrad" (the subject's).
  NounPhrase object(const NounPhrase& subject, Selection selection);
  void add_adjectives(NounPhrase& phrase, double probability);
  /// An adjective that applies to the noun, or null.
  const Adjective* adjective(const Noun& noun, bool gradable);

  /// Where, whereto, which way: each empty if no such place is known.
  Words place(uint32_t sites);
  Words goal(uint32_t sites);
  Words way(uint32_t sites);
  /// "auf den Tisch" (at rest: "auf dem Tisch") for things that stand, lie or hang.
  Words spot(Kinds thing, bool resting);

  /// An action with its objects, in the present, without place and time.
  Clause event(const NounPhrase& subject, std::initializer_list<Frame> frames);
  Clause event(const NounPhrase& subject);
  /// With its own subject.
  Clause event(Selection subjects = kind::person | kind::animal);
  Clause event_with(const NounPhrase& subject, const Verb& verb);
  /// Place, manner, company: at most two.
  void add_circumstances(Clause& clause, double probability);
  /// A time expression and the tense that goes with it.
  void add_time(Clause& clause, bool in_front);
  /// English without, German in the first position.
  void put_in_front(Clause& clause, Words words);

 private:
  NounPhrase counted(const Noun& noun);
  Words place_words(const Place& place, std::string_view german, std::string_view english, bool dative);
  const Place* choose_place(uint32_t sites, bool with_way);

  Random random_;
};

/// The kinds of nouns that a phrase represents; a name or "wir" is a person.
Kinds kinds_of(const NounPhrase& phrase);
/// Where such a creature or object is found.
uint32_t habitat(Kinds kinds);
/// "sein", "ihr" … of this owner; the definite article if none is certain.
Determiner possessive_of(const NounPhrase& owner);
/// The selection without dresses and skirts unless a woman is meant.
Selection wearable_by(const NounPhrase& person, Selection selection);
/// Whether the accusative shows that the phrase is the object ("den Mann"; "die Frau" could be the subject as well), or
/// its meaning does.
bool is_clearly_object(const NounPhrase& phrase);
/// Past events in order: preterite, English simple past.
Clause told(Clause clause);

}  // namespace plumb::corpus
