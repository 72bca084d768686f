// Statements about someone or something: qualities, comparisons, wishes, denials, habits.
#include "corpus/english.h"
#include "corpus/sentences.h"

namespace plumb::corpus {
namespace {

NounPhrase definite(const Noun& noun) {
  NounPhrase phrase;
  phrase.noun = &noun;
  const bool plural = (noun.kinds & kind::pairs) != 0;
  phrase.number = plural ? Number::plural : Number::singular;
  if ((noun.kinds & kind::relative) != 0) phrase.determiner = Determiner::my;
  return phrase;
}

}  // namespace

SentencePair description(Author& author) {
  Clause clause;
  clause.verb = &copula();
  const double draw = static_cast<double>(author.below(100)) / 100;
  const Adjective* quality = nullptr;
  while (quality == nullptr) {
    if (draw < 0.35) {
      // With an owner: "das Fahrrad des Jungen", "Annas Fahrrad".
      constexpr Kinds owned = kind::garment | kind::luggage | kind::machine | kind::pet | kind::instrument |
                              kind::device | kind::toy | kind::jewelry;
      clause.subject = definite(author.noun(Selection(owned, kind::pairs)));
      NounPhrase owner;
      if (author.chance(0.4)) {
        owner.name = &author.pick(names());
      } else {
        owner = definite(author.noun(kind::person));
        author.add_adjectives(owner, 0.3);
      }
      clause.subject.owner = {owner};
    } else if (draw < 0.5) {
      clause.subject = definite(author.noun(Selection(kind::opening)));
      clause.subject.owner = {definite(author.noun(Selection(kind::building)))};
      author.add_adjectives(clause.subject.owner.front(), 0.4);
    } else if (draw < 0.75) {
      clause.subject = author.subject(kind::person | kind::animal);
      if (clause.subject.noun == nullptr) continue;
    } else {
      clause.subject = author.object({}, kind::thing | kind::food | kind::place | kind::vehicle);
      if (clause.subject.determiner == Determiner::none || clause.subject.number == Number::singular) {
        clause.subject.determiner = author.chance(0.8) ? Determiner::definite : Determiner::demonstrative;
      }
    }
    quality = author.adjective(*clause.subject.noun, false);
    for (const Adjective* other : clause.subject.adjectives) {
      if (quality != nullptr && other->rank == quality->rank) quality = nullptr;
    }
  }
  const double degree = static_cast<double>(author.below(100)) / 100;
  const bool gradable = quality->rank != Rank::color && quality->comparative != "none";
  const Words very = !gradable       ? Words{}
                     : degree < 0.25 ? Words{"sehr", "very"}
                     : degree < 0.35 ? Words{"zu", "too"}
                     : degree < 0.45 ? Words{"ziemlich", "rather"}
                                     : Words{};
  clause.complement = {say({very.german, quality->german}), say({very.english, quality->english})};
  const Adjective* second = author.adjective(*clause.subject.noun, false);
  if (second->rank != quality->rank && author.chance(0.3)) {
    clause.complement.german += " und " + second->german;
    clause.complement.english += " and " + second->english;
  } else {
    clause.negated = degree >= 0.45 && author.chance(0.3);
  }
  if (author.chance(0.25)) clause.tense = Tense::preterite;
  return statement(clause);
}

SentencePair comparison(Author& author) {
  constexpr Kinds groups[] = {kind::person, kind::animal,     kind::vehicle, kind::furniture, kind::building,
                              kind::fruit,  kind::garment,    kind::reading, kind::room,      kind::area,
                              kind::tool,   kind::instrument, kind::water,   kind::road,      kind::luggage};
  while (true) {
    const Kinds group = author.pick(groups);
    const Noun& first = author.noun(group);
    const Noun& second = author.noun(group);
    const Adjective* quality = author.adjective(first, true);
    if (&first == &second || first.english == second.english || quality == nullptr) continue;
    if ((quality->kinds & second.kinds) == 0) continue;
    Clause clause;
    clause.verb = &copula();
    clause.subject = definite(first);
    NounPhrase other = definite(second);
    author.add_adjectives(other, 0.2);
    if (!other.adjectives.empty() && other.adjectives.front()->rank == quality->rank) continue;
    const std::string german = german_phrase(other, Case::nominative);
    const std::string english = english_phrase(other, false);
    if (author.chance(0.3)) {
      clause.complement = {say({"so", quality->german, "wie", german}), say({"as", quality->english, "as", english})};
      clause.negated = author.chance(0.5);
    } else {
      const bool much = author.chance(0.3);
      clause.complement = {say({much ? "viel" : "", comparative(*quality), "als", german}),
                           say({much ? "much" : "", english_comparative(*quality), "than", english})};
    }
    if (author.chance(0.2)) clause.tense = Tense::preterite;
    return statement(clause);
  }
}

SentencePair price(Author& author) {
  constexpr Kinds goods = kind::garment | kind::jewelry | kind::luggage | kind::furniture | kind::instrument |
                          kind::device | kind::toy | kind::reading | kind::cycle | kind::tool | kind::tableware;
  NounPhrase ware = definite(author.noun(Selection(goods, kind::pairs)));
  if (author.chance(0.3)) ware.determiner = Determiner::demonstrative;
  author.add_adjectives(ware, 0.6);
  const std::string amount = std::to_string(author.below(180) + 3);
  const bool in_past = author.chance(0.25);
  const bool only = author.chance(0.25);
  const bool plural = english_number(ware) == Number::plural;
  return {finish(say({german_phrase(ware, Case::nominative), in_past ? "kostete" : "kostet", only ? "nur" : "", amount,
                      "Euro"}),
                 "."),
          finish(say({english_phrase(ware, true),
                      in_past  ? "cost"
                      : plural ? "cost"
                               : "costs",
                      only ? "only" : "", amount, "euros"}),
                 ".")};
}

SentencePair ability(Author& author) {
  const NounPhrase subject = author.subject(kind::person);
  Clause clause = author.event(subject);
  while (clause.verb->stative) clause = author.event(subject);
  clause.modal = &author.pick(modals());
  const bool has_past = !clause.modal->english_past.empty();
  if (!clause.verb->sites || !clause.goal.empty() || author.chance(0.5)) {
    static const std::vector<Words> today = {{"heute", "today"},
                                             {"morgen", "tomorrow"},
                                             {"am Abend", "in the evening"},
                                             {"nach dem Essen", "after the meal"},
                                             {"am Wochenende", "on the weekend"}};
    static const std::vector<Words> once = {{"gestern", "yesterday"},
                                            {"letzte Woche", "last week"},
                                            {"am Sonntag", "on Sunday"},
                                            {"vor zwei Tagen", "two days ago"}};
    const bool in_past = has_past && author.chance(0.4);
    if (in_past) clause.tense = Tense::preterite;
    const Words time = author.pick(in_past ? once : today);
    if (author.chance(0.5)) {
      author.put_in_front(clause, time);
    } else {
      clause.time = time;
    }
  } else {
    clause.place = author.place(clause.verb->sites);
  }
  clause.negated = clause.place.empty() && author.chance(0.2);
  if (clause.negated && !clause.object.empty() && clause.verb->frame == Frame::accusative &&
      clause.object.front().determiner == Determiner::indefinite) {
    clause.object.front().determiner = Determiner::negative;
  }
  return statement(clause);
}

SentencePair denial(Author& author) {
  Clause clause = author.event(author.subject(kind::person), {Frame::accusative, Frame::prepositional, Frame::dative});
  NounPhrase& object = clause.object.front();
  const bool vague = object.determiner == Determiner::indefinite || object.determiner == Determiner::none ||
                     object.determiner == Determiner::numeral || object.determiner == Determiner::some ||
                     object.determiner == Determiner::several || object.determiner == Determiner::many;
  if (vague && clause.verb->frame == Frame::accusative) {
    object.determiner = Determiner::negative;
  } else if (vague) {
    object.determiner = Determiner::definite;
  }
  object.very = false;
  clause.negated = true;
  if (!clause.verb->stative && author.chance(0.4)) {
    clause.tense = Tense::perfect;
  } else if (author.chance(0.3)) {
    clause.tense = Tense::preterite;
    clause.simple = true;
  }
  return statement(clause);
}

SentencePair perfect_statement(Author& author) {
  Clause clause = author.event();
  while (clause.verb->stative) clause = author.event();
  clause.tense = Tense::perfect;
  static const std::vector<Words> since = {{"schon", "already"}, {"gerade", "just"}, {"noch nie", "never"}};
  author.add_circumstances(clause, 0.6);
  if (author.chance(0.6)) {
    clause.frequency = author.pick(since);
    clause.manner = {};
  }
  return statement(clause);
}

SentencePair frequency_statement(Author& author) {
  Clause clause = author.event();
  clause.simple = true;
  clause.frequency = author.pick(frequencies());
  author.add_circumstances(clause, 0.7);
  clause.manner = {};
  if (author.chance(0.2)) clause.tense = Tense::preterite;
  return statement(clause);
}

}  // namespace plumb::corpus
