// Questions and requests.
#include "corpus/sentences.h"

namespace plumb::corpus {
namespace {

NounPhrase someone(Author& author) {
  NounPhrase phrase;
  if (author.chance(0.2)) {
    phrase.person = Person::second;
    return phrase;
  }
  return author.subject(kind::person);
}

/// "wer": a third person in the singular.
NounPhrase who() {
  static const Name name = {"wer", Referent::unspecified};
  NounPhrase phrase;
  phrase.name = &name;
  return phrase;
}

}  // namespace

SentencePair yes_no_question(Author& author) {
  const NounPhrase subject = someone(author);
  Clause clause = author.event(subject);
  author.add_circumstances(clause, 0.6);
  if (author.chance(0.25)) {
    clause.modal = &author.pick(modals());
    clause.manner = {};
    if (clause.verb->stative) clause.modal = nullptr;
  } else if (!clause.verb->stative && author.chance(0.3)) {
    clause.tense = Tense::perfect;
  }
  return question(clause, {});
}

SentencePair open_question(Author& author) {
  const size_t form = author.below(6);
  if (form == 0) {
    Clause clause = author.event_with(who(), author.verb({Frame::accusative, Frame::motion}, kind::adult));
    author.add_circumstances(clause, 0.6);
    clause.companion = {};
    if (!clause.verb->stative && author.chance(0.4)) {
      clause.tense = Tense::perfect;
      clause.past_time = true;
      clause.simple = true;
    }
    return question(clause, {"wer", "who"}, Gap::subject);
  }
  const NounPhrase subject = someone(author);
  if (form == 1 || form == 2) {
    Clause clause = author.event(subject, {Frame::accusative});
    NounPhrase& object = clause.object.front();
    const bool person = (object.noun->kinds & kind::person) != 0;
    if (!is_clearly_object(object)) return question(clause, {});
    author.add_circumstances(clause, 0.5);
    if (form == 1 && !person) return question(clause, {"was", "what"}, Gap::object);
    object.determiner = Determiner::which;
    object.very = false;
    return question(clause, {german_phrase(object, Case::accusative), english_phrase(object, false)}, Gap::object);
  }
  Clause clause = author.event(subject, {Frame::accusative, Frame::intransitive, Frame::posture});
  if (form == 3) {
    while (clause.verb->sites == 0 || clause.verb->stative) {
      clause = author.event(subject, {Frame::accusative, Frame::intransitive});
    }
    clause.place = {};
    return question(clause, {"wo", "where"});
  }
  if (form == 4) {
    author.add_circumstances(clause, 0.5);
    return question(clause, {"warum", "why"});
  }
  while (clause.verb->stative) clause = author.event(subject, {Frame::accusative, Frame::intransitive});
  clause.tense = author.chance(0.5) ? Tense::future : Tense::perfect;
  clause.past_time = true;
  clause.simple = true;
  return question(clause, {"wann", "when"});
}

SentencePair counting_question(Author& author) {
  while (true) {
    const NounPhrase subject = someone(author);
    Clause clause = author.event(subject, {Frame::accusative});
    NounPhrase& object = clause.object.front();
    if (object.number == Number::singular || (object.noun->kinds & (kind::pairs | kind::relative)) != 0) continue;
    if (!is_clearly_object(object)) continue;
    object.determiner = Determiner::none;
    object.very = false;
    author.add_circumstances(clause, 0.7);
    clause.simple = true;
    if (author.chance(0.4) && !clause.verb->stative) {
      clause.tense = Tense::perfect;
      clause.past_time = true;
    } else {
      clause.simple = clause.verb->stative;
    }
    return question(
        clause, {"wie viele " + german_phrase(object, Case::accusative), "how many " + english_phrase(object, false)},
        Gap::object);
  }
}

SentencePair request(Author& author) {
  static const Name formal = {"Sie", Referent::unspecified};
  Clause clause;
  clause.subject.name = &formal;
  clause.subject.number = Number::plural;
  Clause event = author.event_with(
      clause.subject, author.verb({Frame::accusative, Frame::put, Frame::ditransitive, Frame::dative}, kind::adult));
  while (event.verb->stative) event = author.event_with(clause.subject, author.verb({Frame::accusative}, kind::adult));
  for (auto* phrases : {&event.object, &event.receiver}) {
    for (NounPhrase& phrase : *phrases) {
      // "their" would refer to other people.
      if (phrase.determiner == Determiner::their) phrase.determiner = Determiner::my;
    }
  }
  if (author.chance(0.4)) event.place = event.goal.empty() ? author.place(event.verb->sites) : Words{};
  const std::string english = english_infinitive(event).substr(3);  // without "to "
  return {finish(german_question(event, "bitte"), "!"), finish("please " + english, "!")};
}

}  // namespace plumb::corpus
