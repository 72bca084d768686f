// Scenes: picture captions, travel, things and where they are.
#include "corpus/sentences.h"

namespace plumb::corpus {
namespace {

const Verb& resting_verb(Kinds thing) {
  const char* const name = (thing & kind::hangs) != 0 ? "hängen" : (thing & kind::stands) != 0 ? "stehen" : "liegen";
  return verb(name, (thing & kind::hangs) != 0 ? Frame::intransitive : Frame::posture);
}

/// "um 9.15 Uhr".
Words clock_time(Author& author) {
  const std::string hour = std::to_string(author.below(18) + 5);
  const size_t quarter = author.below(4);
  static const char* const german[] = {"", ".15", ".30", ".45"};
  static const char* const english[] = {":00", ":15", ":30", ":45"};
  return {"um " + hour + german[quarter] + " Uhr", "at " + hour + english[quarter]};
}

}  // namespace

SentencePair statement(const Clause& clause) {
  return {finish(german_main(clause), "."), finish(english_main(clause), ".")};
}

SentencePair question(const Clause& clause, const Words& question_word, Gap gap) {
  return {finish(german_question(clause, question_word.german, gap), "?"),
          finish(english_question(clause, question_word.english, gap), "?")};
}

SentencePair caption(Author& author) {
  Clause clause = author.event();
  author.add_circumstances(clause, 0.85);
  // "finds", "loses": momentary events, in the past tense.
  if (clause.verb->stative && clause.verb->sites != 0) clause = told(clause);
  if (!clause.place.empty() && author.chance(0.2)) {
    author.put_in_front(clause, clause.place);
    clause.place = {};
  }
  return statement(clause);
}

SentencePair caption_with_time(Author& author) {
  Clause clause = author.event();
  author.add_circumstances(clause, 0.6);
  const bool in_front = author.chance(0.6);
  author.add_time(clause, in_front);
  return statement(clause);
}

SentencePair thing_at_spot(Author& author) {
  static const Kinds rests[] = {kind::stands, kind::lies, kind::hangs};
  const Kinds rest = author.pick(rests);
  Clause clause;
  clause.subject = author.subject(rest);
  const Kinds thing = clause.subject.noun->kinds;
  clause.verb = &resting_verb(thing);
  const bool in_room = (thing & (kind::furniture | kind::hangs)) == kind::furniture;
  const Words where = in_room ? author.place(site::indoors | site::workplace) : author.spot(thing, true);
  // German prefers the place first and new information last; English keeps its order.
  const bool known =
      clause.subject.determiner == Determiner::definite || clause.subject.determiner == Determiner::demonstrative;
  if (!known && author.chance(0.75)) {
    clause.front = {where.german, ""};
    clause.place = {"", where.english};
  } else {
    clause.place = where;
  }
  if (author.chance(0.2)) clause = told(clause);
  return statement(clause);
}

SentencePair vehicle_scene(Author& author) {
  const size_t scene = author.below(4);
  Clause clause;
  if (scene == 0) {
    clause.subject = author.subject(kind::rail);
    const bool arrives = author.chance(0.5);
    clause.verb = &verb(arrives ? "ankommen" : "abfahren", Frame::intransitive);
    const Words city = author.pick(cities());
    clause.time = clock_time(author);
    clause.place = {(arrives ? "in " : "von ") + city.german, (arrives ? "in " : "from ") + city.english};
    clause.simple = true;
    if (author.chance(0.4)) clause.tense = Tense::preterite;
    return statement(clause);
  }
  if (scene == 1) {
    clause.subject = author.subject(kind::aircraft);
    clause.verb = &verb("fliegen", Frame::motion);
    NounPhrase below;
    below.noun = &author.noun(Selection(kind::area | kind::water));
    author.add_adjectives(below, 0.3);
    clause.goal = {german_phrase("über", below, Case::accusative), "over " + english_phrase(below, false)};
  } else if (scene == 2) {
    const NounPhrase subject = author.subject(kind::car);
    clause = author.event_with(subject, verb("fahren", Frame::motion));
  } else {
    clause.subject = author.subject(kind::car | kind::cycle);
    clause.verb = &verb("stehen", Frame::posture);
    NounPhrase building;
    building.noun = &author.noun(Selection(kind::building));
    author.add_adjectives(building, 0.3);
    static const std::vector<Words> sides = {{"vor", "in front of"}, {"hinter", "behind"}, {"neben", "next to"}};
    const Words side = author.pick(sides);
    clause.place = {german_phrase(side.german, building, Case::dative),
                    say({side.english, english_phrase(building, false)})};
  }
  if (author.chance(0.3)) clause = told(clause);
  return statement(clause);
}

SentencePair travel(Author& author) {
  static const std::vector<Words> means = {{"mit dem Zug", "by train"},   {"mit dem Auto", "by car"},
                                           {"mit dem Bus", "by bus"},     {"mit dem Flugzeug", "by plane"},
                                           {"mit dem Schiff", "by ship"}, {"mit dem Fahrrad", "by bicycle"}};
  Clause clause;
  clause.subject = author.subject(kind::person);
  const bool moves = author.chance(0.65);
  clause.verb = &verb(moves ? "reisen" : "bleiben", Frame::intransitive);
  static const std::vector<Words> past_stays = {{"letztes Jahr", "last year"},   {"letzten Sommer", "last summer"},
                                                {"letzten Monat", "last month"}, {"letzten Winter", "last winter"},
                                                {"im März", "in March"},         {"im August", "in August"},
                                                {"im Dezember", "in December"}};
  static const std::vector<Words> next_stays = {{"nächstes Jahr", "next year"},
                                                {"nächsten Monat", "next month"},
                                                {"nächsten Sommer", "next summer"},
                                                {"bald", "soon"},
                                                {"im nächsten Winter", "next winter"}};
  if (moves) {
    const bool in_front = author.chance(0.6);
    author.add_time(clause, in_front);
  } else {
    const bool is_past = author.chance(0.6);
    clause.tense = is_past ? Tense::preterite : Tense::future;
    clause.simple = true;
    author.put_in_front(clause, author.pick(is_past ? past_stays : next_stays));
  }
  const Words city = author.pick(cities());
  if (moves) {
    const Words by = author.pick(means);
    // German names the means before the goal, English after it.
    clause.goal = {say({by.german, "nach", city.german}), say({"to", city.english, by.english})};
  } else {
    const int count = static_cast<int>(author.below(8)) + 2;
    const Words unit = count < 4 ? Words{"Wochen", "weeks"} : Words{"Tage", "days"};
    clause.complement = {say({german_number_word(count), unit.german, "in", city.german}),
                         say({"in", city.english, "for", english_number_word(count), unit.english})};
  }
  return statement(clause);
}

SentencePair passive_scene(Author& author) {
  while (true) {
    const NounPhrase agent = author.subject(kind::person);
    Clause clause = author.event(agent, {Frame::accusative});
    const Verb& verb = *clause.verb;
    if (verb.stative || !verb.english_preposition.empty() || verb.english.base == "wear" ||
        verb.english.base == "meet" || verb.german.infinitive == "ziehen") {
      continue;
    }
    if (agent.is_pronoun()) continue;
    NounPhrase patient = clause.object.front();
    if (patient.noun == nullptr) continue;
    const bool fixed = patient.determiner == Determiner::none || patient.determiner == Determiner::his ||
                       patient.determiner == Determiner::her || patient.determiner == Determiner::their;
    if (fixed) patient.determiner = Determiner::definite;
    clause.subject = patient;
    clause.object.clear();
    clause.passive = true;
    if (author.chance(0.75)) {
      clause.companion = {german_phrase("von", agent, Case::dative), "by " + english_phrase(agent, false)};
    }
    clause.place = author.place(verb.sites);
    if (author.chance(0.35)) author.add_time(clause, true);
    return statement(clause);
  }
}

SentencePair existence(Author& author) {
  struct Setting {
    uint32_t sites;
    Kinds kinds;
  };
  static const Setting settings[] = {{site::indoors | site::workplace, kind::furniture},
                                     {site::yard, kind::plant | kind::toy},
                                     {site::town, kind::building | kind::car | kind::cycle},
                                     {site::nature, kind::wild | kind::bird | kind::tree},
                                     {site::farm, kind::farm},
                                     {site::kitchen, kind::tableware | kind::cutlery},
                                     {site::shore, kind::boat | kind::treasure | kind::bird},
                                     {site::public_room, kind::picture | kind::reading | kind::furniture}};
  const Setting& setting = author.pick(settings);
  NounPhrase thing = author.object({}, setting.kinds);
  const bool plural = thing.number == Number::plural;
  if (!plural) thing.determiner = Determiner::indefinite;
  if (plural && thing.determiner != Determiner::many && thing.determiner != Determiner::several) {
    thing.determiner = Determiner::numeral;
    thing.count = static_cast<int>(author.below(40)) + 2;
  }
  const Words where = author.place(setting.sites);
  const std::string german = german_phrase(thing, Case::accusative);
  const std::string be = english_number(thing) == Number::plural ? "are" : "is";
  const std::string english = say({"there", be, english_phrase(thing, false), where.english});
  const bool in_front = author.chance(0.5);
  return {finish(in_front ? say({where.german, "gibt es", german}) : say({"es gibt", where.german, german}), "."),
          finish(english, ".")};
}

}  // namespace plumb::corpus
