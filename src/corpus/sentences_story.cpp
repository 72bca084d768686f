// Two-step stories: shared subjects, pronouns that refer back, sequences of tenses.
#include "corpus/sentences.h"

namespace plumb::corpus {
namespace {

/// Someone who does two different things.
struct Steps {
  Clause first, second;
};

Steps two_steps(Author& author, Kinds subjects) {
  const NounPhrase subject = author.referable_subject(subjects);
  Clause first = author.event(subject);
  while (first.verb->stative) first = author.event(subject);
  Clause second = author.event(subject);
  while (second.verb->stative || second.verb == first.verb) second = author.event(subject);
  return {first, second};
}

}  // namespace

SentencePair shared_subject(Author& author) {
  auto [first, second] = two_steps(author, kind::person);
  author.add_circumstances(first, 0.3);
  author.add_circumstances(second, 0.3);
  first = told(first);
  second = told(second);
  static const std::vector<Words> opening = {{"gestern", "yesterday"},
                                             {"am Morgen", "in the morning"},
                                             {"am Abend", "in the evening"},
                                             {"am nächsten Tag", "the next day"},
                                             {"zuerst", "first"},
                                             {"eines Tages", "one day"}};
  if (author.chance(0.35)) author.put_in_front(first, author.pick(opening));
  return {finish(say({german_main(first), "und", german_main(second, Gap::subject)}), "."),
          finish(say({english_main(first), "and", english_main(second, Gap::subject)}), ".")};
}

SentencePair two_sentences(Author& author) {
  auto [first, second] = two_steps(author, kind::person | kind::animal);
  author.add_circumstances(first, 0.5);
  author.add_circumstances(second, 0.3);
  first = told(first);
  second = told(second);
  static const std::vector<Words> links = {{"dann", "then"},
                                           {"danach", "after that ,"},
                                           {"später", "later ,"},
                                           {"kurz darauf", "shortly afterwards ,"},
                                           {"eine Stunde später", "an hour later ,"},
                                           {"am nächsten Morgen", "the next morning ,"},
                                           {"schließlich", "finally ,"}};
  second.subject = pronoun_for(first.subject);
  second.front = author.pick(links);
  return {finish(say({german_main(first), ".", german_main(second)}), "."),
          finish(say({english_main(first), ".", english_main(second)}), ".")};
}

SentencePair same_object(Author& author) {
  struct Pair {
    const char* first;
    const char* second;
    Kinds objects;
  };
  static const Pair pairs[] = {{"kaufen", "essen", kind::fruit | kind::baked},
                               {"pflücken", "essen", kind::fruit},
                               {"backen", "verkaufen", kind::baked},
                               {"backen", "essen", kind::baked},
                               {"waschen", "essen", kind::fruit | kind::vegetable},
                               {"waschen", "schneiden", kind::vegetable},
                               {"schälen", "kochen", kind::vegetable},
                               {"finden", "aufheben", kind::treasure},
                               {"reparieren", "verkaufen", kind::car | kind::cycle},
                               {"waschen", "parken", kind::car},
                               {"kaufen", "anziehen", kind::garment},
                               {"ausziehen", "waschen", kind::garment},
                               {"spülen", "abtrocknen", kind::tableware | kind::cutlery},
                               {"suchen", "finden", kind::tool | kind::toy | kind::jewelry},
                               {"holen", "benutzen", kind::tool},
                               {"malen", "aufhängen", kind::picture},
                               {"kaufen", "aufhängen", kind::picture},
                               {"füttern", "streicheln", kind::pet | kind::farm},
                               {"fotografieren", "zeichnen", kind::building | kind::wild | kind::bird | kind::tree},
                               {"kaufen", "lesen", kind::reading},
                               {"schreiben", "lesen", kind::writing},
                               {"kaufen", "einpacken", kind::present},
                               {"pflanzen", "gießen", kind::plant},
                               {"begrüßen", "umarmen", kind::adult},
                               {"abholen", "begrüßen", kind::adult},
                               {"einschalten", "ausschalten", kind::device},
                               {"anrufen", "einladen", kind::adult},
                               {"putzen", "schließen", kind::opening},
                               {"fangen", "werfen", kind::ball}};
  while (true) {
    const Pair& pair = author.pick(pairs);
    const NounPhrase subject = author.subject(kind::person);
    const Verb& first = verb(pair.first, Frame::accusative);
    const Verb& second = verb(pair.second, Frame::accusative);
    const Kinds kinds = kinds_of(subject);
    if (!first.subjects.accepts(kinds) || !second.subjects.accepts(kinds)) continue;
    const NounPhrase object = author.object(subject, pair.objects);
    if (object.determiner == Determiner::none && (object.noun->kinds & kind::plural_in_english) != 0) continue;
    if (object.number == Number::singular && object.noun->referent == Referent::unspecified) continue;
    Clause start = told(author.event_with(subject, first));
    start.object = {object};
    Clause end = told(author.event_with(subject, second));
    end.object = {pronoun_for(object)};
    const Words where = author.place(first.sites);
    if (author.chance(0.5)) start.place = where;
    static const std::vector<Words> opening = {{"gestern", "yesterday"},
                                               {"letzte Woche", "last week"},
                                               {"am Sonntag", "on Sunday"},
                                               {"nach der Arbeit", "after work"}};
    if (author.chance(0.3)) author.put_in_front(start, author.pick(opening));
    if (author.chance(0.3)) {
      end.time = {"dann", ""};
      end.front = {"", "then"};
    }
    return {finish(say({german_main(start), "und", german_main(end, Gap::subject)}), "."),
            finish(say({english_main(start), "and", english_main(end, Gap::subject)}), ".")};
  }
}

SentencePair after_that(Author& author) {
  auto [first, second] = two_steps(author, kind::person);
  first.tense = Tense::pluperfect;
  second = told(second);
  author.add_circumstances(second, 0.5);
  second.subject = pronoun_for(first.subject);
  author.put_in_front(second, {"nachdem " + german_subordinate(first) + " ,", "after " + english_main(first) + " ,"});
  return statement(second);
}

SentencePair before_that(Author& author) {
  auto [first, second] = two_steps(author, kind::person);
  author.add_circumstances(second, 0.4);
  second.subject = pronoun_for(first.subject);
  first.simple = second.simple = true;
  if (author.chance(0.6)) {
    first = told(first);
    second = told(second);
  }
  author.put_in_front(second, {"bevor " + german_subordinate(first) + " ,", "before " + english_main(first) + " ,"});
  return statement(second);
}

SentencePair two_scenes(Author& author) {
  Clause first = author.event();
  Clause second = author.event();
  while (first.verb->stative) first = author.event();
  while (second.verb->stative || second.subject.noun == first.subject.noun) second = author.event();
  author.add_circumstances(first, 0.4);
  author.add_circumstances(second, 0.4);
  return {finish(say({german_main(first), ",", "und", german_main(second)}), "."),
          finish(say({english_main(first), ",", "and", english_main(second)}), ".")};
}

}  // namespace plumb::corpus
