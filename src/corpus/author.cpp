#include "corpus/author.h"

#include <algorithm>

#include "plumb/base/error.h"

namespace plumb::corpus {

Kinds kinds_of(const NounPhrase& phrase) {
  if (phrase.noun != nullptr) return phrase.noun->kinds;
  return kind::adult | kind::child;
}

uint32_t habitat(Kinds kinds) {
  using namespace site;
  if ((kinds & kind::person) != 0) return ~0U;
  uint32_t sites = 0;
  if ((kinds & kind::pet) != 0) sites |= indoors | yard | nature | town | kitchen | shore;
  if ((kinds & kind::farm) != 0) sites |= farm | yard;
  if ((kinds & kind::wild) != 0) sites |= nature;
  if ((kinds & kind::bird) != 0) sites |= nature | yard | shore | town;
  if ((kinds & kind::swimmer) != 0) sites |= water | shore;
  if ((kinds & (kind::car | kind::cycle | kind::rail)) != 0) sites |= town;
  if ((kinds & kind::boat) != 0) sites |= water;
  if ((kinds & kind::ball) != 0) sites |= yard | sport | shore;
  return sites;
}

Determiner possessive_of(const NounPhrase& owner) {
  if (german_number(owner) == Number::plural) {
    return owner.person == Person::first ? Determiner::our : Determiner::their;
  }
  if (owner.person == Person::first) return Determiner::my;
  if (owner.person == Person::second) return Determiner::definite;
  const Referent referent = owner.name != nullptr   ? owner.name->referent
                            : owner.noun != nullptr ? owner.noun->referent
                                                    : owner.referent;
  if (referent == Referent::he) return Determiner::his;
  if (referent == Referent::she) return Determiner::her;
  return Determiner::definite;
}

Selection wearable_by(const NounPhrase& person, Selection selection) {
  if (possessive_of(person) != Determiner::her) selection.none |= kind::womens;
  return selection;
}

bool is_clearly_object(const NounPhrase& phrase) {
  const bool person = phrase.noun != nullptr && (phrase.noun->kinds & kind::person) != 0;
  return !person || (phrase.number == Number::singular && phrase.noun->gender == Gender::masculine);
}

Clause told(Clause clause) {
  clause.tense = Tense::preterite;
  clause.simple = true;
  return clause;
}

const Noun& Author::noun(Selection selection) {
  // Limits compounds, which would outnumber simple words (those for people are all players or coaches).
  const bool compound = chance((selection.any & kind::person) != 0 ? 0.06 : 0.25);
  std::vector<const Noun*> fitting, others;
  for (const Noun& candidate : nouns()) {
    if (!selection.accepts(candidate.kinds)) continue;
    ((candidate.kinds & kind::compound) != 0) == compound ? fitting.push_back(&candidate)
                                                          : others.push_back(&candidate);
  }
  const auto& chosen = fitting.empty() ? others : fitting;
  if (chosen.empty()) throw Error("the lexicon has no noun for a verb's object");
  return *chosen[below(chosen.size())];
}

const Verb& Author::verb(std::initializer_list<Frame> frames, Kinds subject) {
  std::vector<const Verb*> fitting;
  for (const Verb& candidate : verbs()) {
    const bool wanted = std::find(frames.begin(), frames.end(), candidate.frame) != frames.end();
    if (wanted && candidate.subjects.accepts(subject)) fitting.push_back(&candidate);
  }
  if (fitting.empty()) throw Error("the lexicon has no verb for a subject");
  return *fitting[below(fitting.size())];
}

const Adjective* Author::adjective(const Noun& noun, bool gradable) {
  std::vector<const Adjective*> fitting;
  for (const Adjective& candidate : adjectives()) {
    if ((candidate.kinds & noun.kinds) == 0 || (gradable && candidate.comparative == "none")) continue;
    const bool of_body = candidate.rank == Rank::size || candidate.rank == Rank::age;
    if ((noun.kinds & kind::relative) != 0 && of_body) continue;  // no "kleine Großmutter"
    // "groß" and "dick" have two translations; the first that fits is used.
    const bool repeated = std::any_of(fitting.begin(), fitting.end(),
                                      [&](const Adjective* other) { return other->german == candidate.german; });
    if (!repeated) fitting.push_back(&candidate);
  }
  return fitting.empty() ? nullptr : fitting[below(fitting.size())];
}

void Author::add_adjectives(NounPhrase& phrase, double probability) {
  if (phrase.noun == nullptr || !chance(probability)) return;
  const Adjective* first = adjective(*phrase.noun, false);
  if (first == nullptr) return;
  phrase.adjectives = {first};
  if (chance(0.2)) {
    const Adjective* second = adjective(*phrase.noun, false);
    // Nothing has two colors, or is "old and new"; "nice sad" sounds odd, "nice old" does not.
    const auto plain = [](const Adjective* one) { return one->rank != Rank::opinion && one->rank != Rank::state; };
    if (second->rank < first->rank && plain(first)) phrase.adjectives = {second, first};
    if (second->rank > first->rank && plain(second)) phrase.adjectives = {first, second};
  }
  const Adjective& foremost = *phrase.adjectives.front();
  phrase.very = foremost.rank != Rank::color && foremost.comparative != "none" && chance(0.08);
}

NounPhrase Author::counted(const Noun& noun) {
  NounPhrase phrase;
  phrase.noun = &noun;
  if ((noun.kinds & kind::mass) != 0) {
    phrase.determiner = chance(0.7) ? Determiner::none : Determiner::definite;
    return phrase;
  }
  const bool is_relative = (noun.kinds & kind::relative) != 0;
  const bool plural = !noun.plural.empty() && (noun.kinds & kind::plural_in_english) == 0 &&
                      ((noun.kinds & kind::pairs) != 0 || chance(0.25));
  if (!plural) {
    if (is_relative) {
      phrase.determiner = chance(0.7) ? Determiner::my : Determiner::our;
    } else {
      const double draw = random_.uniform();
      phrase.determiner = draw < 0.46   ? Determiner::definite
                          : draw < 0.92 ? Determiner::indefinite
                                        : Determiner::demonstrative;
    }
    return phrase;
  }
  phrase.number = Number::plural;
  if (is_relative) {
    phrase.determiner = chance(0.5) ? Determiner::my : Determiner::our;
    return phrase;
  }
  if ((noun.kinds & kind::pairs) != 0) {
    phrase.determiner = chance(0.7) ? Determiner::indefinite : Determiner::definite;
    return phrase;
  }
  static const std::vector<Determiner> choices = {
      Determiner::definite, Determiner::definite,     Determiner::indefinite, Determiner::numeral,
      Determiner::numeral,  Determiner::numeral,      Determiner::many,       Determiner::some,
      Determiner::several,  Determiner::demonstrative};
  phrase.determiner = pick(choices);
  if (phrase.determiner == Determiner::numeral) {
    const size_t small = below(4) + 2;
    const size_t large = below(24) + 3;
    phrase.count = static_cast<int>(chance(0.75) ? small : large);
  }
  return phrase;
}

NounPhrase Author::subject(Selection selection) {
  NounPhrase phrase;
  const bool human = selection.accepts(kind::adult) && selection.accepts(kind::child);
  const double draw = random_.uniform();
  if (human && draw < 0.14) {
    phrase.name = &pick(names());
    return phrase;
  }
  if (human && draw < 0.19) {
    phrase.person = Person::first;
    phrase.number = chance(0.5) ? Number::singular : Number::plural;
    phrase.referent = Referent::it;
    return phrase;
  }
  phrase = counted(noun(selection));
  add_adjectives(phrase, 0.35);
  const bool person = (phrase.noun->kinds & kind::person) != 0;
  const bool is_relative = (phrase.noun->kinds & kind::relative) != 0;
  if (person && !is_relative && phrase.number == Number::singular) {
    if (chance(0.09)) {
      // "mit einem roten Hut", "mit einer dunklen Brille".
      NounPhrase worn = counted(noun(wearable_by(phrase, kind::garment | kind::jewelry)));
      worn.determiner = Determiner::indefinite;
      if ((worn.noun->kinds & kind::pairs) == 0) worn.number = Number::singular;
      add_adjectives(worn, 0.7);
      // "in a coat", but "with a hat".
      const bool clothes =
          (worn.noun->kinds & kind::garment) != 0 && (worn.noun->kinds & (kind::lies | kind::pairs)) == 0;
      phrase.attribute = {german_phrase(clothes ? "in" : "mit", worn, Case::dative),
                          (clothes ? "in " : "with ") + english_phrase(worn, false)};
    } else if (phrase.determiner != Determiner::demonstrative && phrase.adjectives.empty() && chance(0.07)) {
      NounPhrase partner = counted(noun(selection));
      const bool alike = (partner.noun->kinds & kind::person) != 0 && partner.noun != phrase.noun &&
                         partner.noun->english != phrase.noun->english && (partner.noun->kinds & kind::relative) == 0;
      if (alike) {
        partner.number = Number::singular;
        partner.determiner = phrase.determiner;
        phrase.partner = {partner};
      }
    }
  }
  return phrase;
}

NounPhrase Author::referable_subject(Selection selection) {
  while (true) {
    NounPhrase phrase = subject(selection);
    const bool plural = german_number(phrase) == Number::plural;
    if (phrase.noun == nullptr || plural || phrase.noun->referent != Referent::unspecified) return phrase;
  }
}

NounPhrase Author::object(const NounPhrase& subject, Selection selection) {
  while (true) {
    NounPhrase phrase = counted(noun(wearable_by(subject, selection)));
    // Nobody meets himself.
    if (phrase.noun == subject.noun) continue;
    const bool is_relative = (phrase.noun->kinds & kind::relative) != 0;
    const bool owned = (phrase.noun->kinds &
                        (kind::garment | kind::jewelry | kind::luggage | kind::cycle | kind::pet | kind::device)) != 0;
    const Determiner possessive = possessive_of(subject);
    if ((is_relative || (owned && phrase.number == Number::singular && chance(0.25))) &&
        (kinds_of(subject) & kind::person) != 0 && possessive != Determiner::definite) {
      phrase.determiner = possessive;
    }
    add_adjectives(phrase, 0.35);
    return phrase;
  }
}

Words Author::place_words(const Place& place, std::string_view german, std::string_view english, bool dative) {
  NounPhrase phrase;
  phrase.noun = &corpus::noun(place.noun);
  phrase.determiner = chance(0.85) ? Determiner::definite : Determiner::indefinite;
  add_adjectives(phrase, 0.22);
  const Case c = dative ? Case::dative : Case::accusative;
  return {german_phrase(german, phrase, c), say({english, english_phrase(phrase, false)})};
}

const Place* Author::choose_place(uint32_t sites, bool with_way) {
  std::vector<const Place*> fitting;
  for (const Place& candidate : places()) {
    if ((candidate.sites & sites) != 0 && !(with_way && candidate.german_over.empty())) fitting.push_back(&candidate);
  }
  return fitting.empty() ? nullptr : fitting[below(fitting.size())];
}

Words Author::place(uint32_t sites) {
  const Place* place = choose_place(sites, false);
  return place == nullptr ? Words{} : place_words(*place, place->german_at, place->english_at, true);
}

Words Author::goal(uint32_t sites) {
  const Place* place = choose_place(sites, false);
  if (place == nullptr) return {};
  return place_words(*place, place->german_to, place->english_to, place->german_to == "zu");
}

Words Author::way(uint32_t sites) {
  const Place* place = choose_place(sites, true);
  return place == nullptr ? Words{} : place_words(*place, place->german_over, place->english_over, false);
}

Words Author::spot(Kinds thing, bool resting) {
  const Case c = resting ? Case::dative : Case::accusative;
  if ((thing & kind::hangs) != 0) {
    const bool over = chance(0.4);
    if (!over) return resting ? Words{"an der Wand", "on the wall"} : Words{"an die Wand", "on the wall"};
    NounPhrase phrase;
    phrase.noun = &noun(Selection(kind::surface, kind::seat | kind::compound));
    return {german_phrase("über", phrase, c), "over " + english_phrase(phrase, false)};
  }
  static const std::vector<Words> sides = {
      {"auf", "on"}, {"auf", "on"}, {"auf", "on"}, {"unter", "under"}, {"neben", "next to"}};
  const Words side = pick(sides);
  NounPhrase phrase;
  phrase.noun = &noun(Selection(kind::surface, side.german == "unter" ? kind::lies : 0));
  phrase.determiner = chance(0.85) ? Determiner::definite : Determiner::indefinite;
  add_adjectives(phrase, 0.3);
  return {german_phrase(side.german, phrase, c), say({side.english, english_phrase(phrase, false)})};
}

Clause Author::event_with(const NounPhrase& subject, const Verb& verb) {
  Clause clause;
  clause.subject = subject;
  clause.verb = &verb;
  if (verb.objects.any != 0) clause.object = {object(subject, verb.objects)};
  const bool wearing = verb.english.base == "wear" || verb.german.infinitive == "ziehen";
  if (wearing && clause.object.front().number == Number::plural) {
    NounPhrase& worn = clause.object.front();
    if ((worn.noun->kinds & (kind::garment | kind::jewelry)) != 0 && (worn.noun->kinds & kind::pairs) == 0) {
      worn.number = Number::singular;  // nobody puts on four hats
      worn.determiner = Determiner::indefinite;
    }
  }
  if (verb.frame == Frame::prepositional && (clause.object.front().noun->kinds & kind::seat) != 0 &&
      clause.object.front().number == Number::plural) {
    clause.object.front().number = Number::singular;
    clause.object.front().determiner = Determiner::indefinite;
  }
  const bool gathering = verb.english.base == "collect" || verb.german.infinitive == "pflücken";
  if (gathering && clause.object.front().number == Number::singular) {
    NounPhrase& gathered = clause.object.front();
    gathered.number = Number::plural;
  }
  const uint32_t sites = verb.sites & habitat(kinds_of(subject));
  if (verb.frame == Frame::posture) clause.place = place(sites);
  if (verb.frame == Frame::motion) {
    const double draw = random_.uniform();
    clause.goal = draw < 0.5 ? way(sites) : goal(sites);
    if (clause.goal.empty()) clause.goal = goal(sites);
  }
  if (verb.frame == Frame::put) clause.goal = spot(clause.object.front().noun->kinds, false);
  if (verb.frame == Frame::ditransitive) {
    NounPhrase receiver = object(subject, kind::person);
    // "gives the friendly teacher from her own class ..." stays short.
    while (receiver.adjectives.size() > 1) receiver.adjectives.pop_back();
    clause.receiver = {receiver};
  }
  return clause;
}

Clause Author::event(const NounPhrase& subject, std::initializer_list<Frame> frames) {
  const Verb& chosen = verb(frames, kinds_of(subject));
  return event_with(subject, chosen);
}

Clause Author::event(const NounPhrase& subject) {
  const double draw = random_.uniform();
  const bool person = (kinds_of(subject) & kind::person) != 0;
  if (!person)
    return event(subject,
                 {Frame::intransitive, Frame::posture, Frame::motion, Frame::accusative, Frame::prepositional});
  if (draw < 0.26) return event(subject, {Frame::intransitive, Frame::posture, Frame::motion});
  if (draw < 0.70) return event(subject, {Frame::accusative});
  return event(subject, {Frame::dative, Frame::prepositional, Frame::put, Frame::ditransitive});
}

Clause Author::event(Selection subjects) {
  // People do most things, animals some, vehicles few.
  const double draw = random_.uniform();
  const Kinds people_or_animals = subjects.any & (draw < 0.78 ? kind::person : kind::animal);
  const NounPhrase chosen = subject(people_or_animals != 0 ? Selection(people_or_animals) : subjects);
  return event(chosen);
}

void Author::add_circumstances(Clause& clause, double probability) {
  const Verb& verb = *clause.verb;
  const bool free_place = clause.place.empty() && clause.goal.empty() && verb.frame != Frame::put;
  if (free_place && chance(probability)) clause.place = place(verb.sites & habitat(kinds_of(clause.subject)));
  if (verb.manners != 0 && chance(clause.place.empty() ? probability * 0.5 : probability * 0.2)) {
    std::vector<const Adverb*> fitting;
    for (const Adverb& adverb : adverbs()) {
      const bool several = german_number(clause.subject) == Number::plural;
      if (adverb.last && (kinds_of(clause.subject) & kind::person) == 0) continue;
      if (several && adverb.words.german == "allein") continue;
      if ((adverb.manners & verb.manners) != 0) fitting.push_back(&adverb);
    }
    if (!fitting.empty()) {
      const Adverb& chosen = *fitting[below(fitting.size())];
      clause.manner = chosen.words;
      clause.manner_last = chosen.last;
    }
  }
  const Determiner possessive = possessive_of(clause.subject);
  const bool sociable =
      verb.frame == Frame::intransitive || verb.frame == Frame::posture || verb.frame == Frame::motion;
  const bool person = (kinds_of(clause.subject) & kind::person) != 0;
  if (sociable && person && clause.manner.empty() && possessive != Determiner::definite && chance(0.15)) {
    NounPhrase companion;
    companion.noun = &noun(Selection(kind::relative | (verb.frame == Frame::motion ? kind::dog : 0)));
    if (companion.noun == clause.subject.noun) return;
    companion.determiner = possessive;
    clause.companion = {german_phrase("mit", companion, Case::dative), "with " + english_phrase(companion, false)};
  }
}

void Author::put_in_front(Clause& clause, Words words) {
  clause.front = std::move(words);
  if (clause.front.english.find(',') == std::string::npos) clause.front.english += " ,";
}

void Author::add_time(Clause& clause, bool in_front) {
  const TimeExpression* chosen = &pick(times());
  while (clause.verb->stative && chosen->kind == TimeKind::now) chosen = &pick(times());
  const TimeExpression& expression = *chosen;
  switch (expression.kind) {
    case TimeKind::now:
      break;
    case TimeKind::habit:
      clause.simple = true;
      break;
    case TimeKind::future:
      clause.tense = Tense::future;
      break;
    case TimeKind::past:
    case TimeKind::day:
      clause.past_time = true;
      clause.simple = true;
      clause.tense = chance(0.6) ? Tense::preterite : Tense::perfect;
      break;
  }
  if (in_front) {
    put_in_front(clause, expression.words);
  } else {
    clause.time = expression.words;
  }
}

}  // namespace plumb::corpus
