// Sentences with a subordinate clause: relative clauses, reasons, conditions, purposes.
#include "corpus/sentences.h"

namespace plumb::corpus {
namespace {

/// An impersonal clause: "es regnet", "die Sonne scheint", "es ist kalt".
struct Weather {
  const char* verb;  // empty: "es ist" with a complement
  Words complement;
  const char* subject;  // empty: "es"
};

Clause weather(const Weather& kind_of_weather) {
  Clause clause;
  if (kind_of_weather.subject[0] != '\0') {
    static const Noun sun = {"Sonne", Gender::feminine, Genitive::none, "", "sun", "", 0};
    static const Noun wind = {"Wind", Gender::masculine, Genitive::es, "", "wind", "", 0};
    clause.subject.noun = kind_of_weather.subject == std::string_view("Sonne") ? &sun : &wind;
  }
  clause.verb = kind_of_weather.verb[0] == '\0' ? &copula() : &verb(kind_of_weather.verb, Frame::intransitive);
  clause.complement = kind_of_weather.complement;
  return clause;
}

const std::vector<Weather>& bad_weather() {
  static const std::vector<Weather> table = {{"regnen", {}, ""},           {"schneien", {}, ""},
                                             {"wehen", {}, "Wind"},        {"", {"kalt", "cold"}, ""},
                                             {"", {"dunkel", "dark"}, ""}, {"", {"sehr windig", "very windy"}, ""},
                                             {"", {"neblig", "foggy"}, ""}};
  return table;
}

const std::vector<Weather>& good_weather() {
  static const std::vector<Weather> table = {{"scheinen", {}, "Sonne"},
                                             {"", {"warm", "warm"}, ""},
                                             {"", {"sehr heiß", "very hot"}, ""},
                                             {"", {"sonnig", "sunny"}, ""}};
  return table;
}

/// A feeling, and the actions that it motivates.
struct Motive {
  Words state;
  std::vector<const Verb*> actions;
};

const std::vector<Motive>& motives() {
  constexpr Frame none = Frame::intransitive, object = Frame::accusative;
  static const std::vector<Motive> table = {
      {{"hungrig", "hungry"}, {&verb("essen", object), &verb("kochen", object), &verb("frühstücken", none)}},
      {{"durstig", "thirsty"}, {&verb("trinken", object)}},
      {{"müde", "tired"}, {&verb("schlafen", none), &verb("einschlafen", none), &verb("liegen", Frame::posture)}},
      {{"glücklich", "happy"},
       {&verb("lachen", none), &verb("tanzen", none), &verb("singen", none), &verb("lächeln", none)}},
      {{"fleißig", "hardworking"}, {&verb("arbeiten", none), &verb("aufräumen", none), &verb("putzen", object)}},
      {{"neugierig", "curious"}, {&verb("lesen", object), &verb("öffnen", object), &verb("auspacken", object)}},
      {{"gelangweilt", "bored"}, {&verb("fernsehen", none), &verb("zeichnen", none), &verb("lesen", object)}},
      {{"hilfsbereit", "helpful"}, {&verb("helfen", Frame::dative), &verb("tragen", object)}},
      {{"ungeduldig", "impatient"}, {&verb("auspacken", object), &verb("anrufen", object)}},
  };
  return table;
}

Clause feeling(const NounPhrase& who, const Words& state) {
  Clause clause;
  clause.subject = who;
  clause.verb = &copula();
  clause.complement = state;
  return clause;
}

const Verb& fitting(Author& author, const Motive& motive, const NounPhrase& subject) {
  std::vector<const Verb*> able;
  for (const Verb* action : motive.actions) {
    if (action->subjects.accepts(kinds_of(subject))) able.push_back(action);
  }
  return able.empty() ? verb("lachen", Frame::intransitive) : *author.pick(able);
}

void set_past(Clause& clause) {
  clause.tense = Tense::preterite;
  clause.simple = true;
}

Words subordinate(const Words& conjunction, const Clause& clause) {
  return {say({conjunction.german, german_subordinate(clause)}), say({conjunction.english, english_main(clause)})};
}

/// Puts the subordinate clause before or after the main clause.
SentencePair combined(Author& author, Clause main, const Words& dependent) {
  if (author.chance(0.4)) {
    author.put_in_front(main, {dependent.german + " ,", dependent.english + " ,"});
    return statement(main);
  }
  // English has a comma before "although", but not before "because" and "when".
  const bool comma = dependent.english.starts_with("although");
  return {finish(say({german_main(main), ",", dependent.german}), "."),
          finish(say({english_main(main), comma ? "," : "", dependent.english}), ".")};
}

Clause outdoor_event(Author& author, const NounPhrase& subject) {
  while (true) {
    Clause clause = author.event(subject, {Frame::intransitive, Frame::posture, Frame::motion, Frame::accusative});
    clause.place = clause.goal.empty() ? author.place(clause.verb->sites & (site::outdoors | site::sport)) : Words{};
    if (!clause.verb->stative && (!clause.place.empty() || !clause.goal.empty())) return clause;
  }
}

}  // namespace

SentencePair relative_subject(Author& author) {
  NounPhrase subject = author.subject(kind::person | kind::animal);
  while (subject.noun == nullptr || !subject.partner.empty() || (subject.noun->kinds & kind::relative) != 0) {
    subject = author.subject(kind::person | kind::animal);
  }
  subject.attribute = {};
  Clause relative = author.event(subject);
  Clause main = author.event(subject);
  while (main.verb == relative.verb) main = author.event(subject);
  author.add_circumstances(relative, 0.3);
  author.add_circumstances(main, 0.4);
  const bool in_past = author.chance(0.3);
  if (in_past) {
    set_past(relative);
    set_past(main);
  }
  main.subject.relative = {relative};
  return statement(main);
}

SentencePair relative_object(Author& author) {
  while (true) {
    const NounPhrase subject = author.subject(kind::person);
    Clause relative = author.event(subject, {Frame::accusative});
    NounPhrase head = relative.object.front();
    if (relative.verb->german.infinitive == "haben" || head.determiner == Determiner::his) continue;
    const Adjective* quality = author.adjective(*head.noun, false);
    if (!is_clearly_object(head)) continue;
    if (quality == nullptr || (head.noun->kinds & kind::relative) != 0) continue;
    if (!head.adjectives.empty() && head.adjectives.front()->rank == quality->rank) continue;
    head.determiner = Determiner::definite;
    author.add_circumstances(relative, 0.4);
    if (!relative.verb->stative && author.chance(0.4)) relative.tense = Tense::perfect;
    Clause main;
    main.verb = &copula();
    main.subject = head;
    main.subject.relative = {relative};
    main.subject.relative_to_object = true;
    const bool gradable = quality->rank != Rank::color && quality->comparative != "none";
    const bool very = gradable && author.chance(0.4);
    main.complement = {say({very ? "sehr" : "", quality->german}), say({very ? "very" : "", quality->english})};
    return statement(main);
  }
}

SentencePair reason(Author& author) {
  const NounPhrase subject = author.referable_subject(kind::person);
  const size_t form = author.below(4);
  if (form == 0) {
    // The reason is the weather.
    const bool good = author.chance(0.5);
    Clause main =
        good ? outdoor_event(author, subject) : author.event_with(subject, verb("bleiben", Frame::intransitive));
    if (!good) main.place = author.place(site::indoors);
    Clause cause = weather(author.pick(good ? good_weather() : bad_weather()));
    if (author.chance(0.3)) {
      set_past(main);
      cause.tense = Tense::preterite;
    }
    return combined(author, main, subordinate({"weil", "because"}, cause));
  }
  if (form == 1) {
    // The reason is something to do there.
    Clause cause = author.event(pronoun_for(subject), {Frame::accusative});
    while (cause.verb->stative) cause = author.event(pronoun_for(subject), {Frame::accusative});
    static const char* const willing[] = {"wollen", "müssen"};
    const std::string_view wish = author.pick(willing);
    for (const Modal& modal : modals()) {
      if (modal.infinitive == wish) cause.modal = &modal;
    }
    Clause main = author.event_with(subject, verb("gehen", Frame::motion));
    main.goal = author.goal(cause.verb->sites & ~static_cast<uint32_t>(site::sport));
    if (main.goal.empty()) main.goal = {"nach Hause", "home"};
    if (author.chance(0.4)) {
      set_past(main);
      set_past(cause);
    }
    return {finish(say({german_main(main), ",", "weil", german_subordinate(cause)}), "."),
            finish(say({english_main(main), "because", english_main(cause)}), ".")};
  }
  const Motive& motive = author.pick(motives());
  Clause main = author.event_with(subject, fitting(author, motive, subject));
  author.add_circumstances(main, 0.6);
  Clause cause = feeling(pronoun_for(subject), motive.state);
  if (author.chance(0.4)) {
    set_past(main);
    set_past(cause);
  }
  return {finish(say({german_main(main), ",", "weil", german_subordinate(cause)}), "."),
          finish(say({english_main(main), "because", english_main(cause)}), ".")};
}

SentencePair meanwhile(Author& author) {
  const NounPhrase first = author.subject(kind::person);
  const NounPhrase second = author.subject(kind::person | kind::pet);
  Clause background = author.event(first);
  Clause main = author.event(second);
  while (background.verb->stative) background = author.event(first);
  while (main.verb->stative || main.verb == background.verb) main = author.event(second);
  author.add_circumstances(main, 0.5);
  if (author.chance(0.5)) {
    set_past(main);
    background.tense = Tense::preterite;  // "while the woman was cooking"
  }
  return combined(author, main, subordinate({"während", "while"}, background));
}

SentencePair content_clause(Author& author) {
  static const std::vector<Verb> saying = {
      {{"sehen", "", "sieht", "sah", "gesehen"}, {"see", "", "saw", "seen"}, Frame::intransitive, kind::person},
      {{"wissen", "", "weiß", "wusste", "gewusst"}, {"know", "", "knew", "known"}, Frame::intransitive, kind::person},
      {{"sagen", "", "sagt", "sagte", "gesagt"}, {"say", "", "said"}, Frame::intransitive, kind::person},
      {{"glauben", "", "glaubt", "glaubte", "geglaubt"}, {"believe"}, Frame::intransitive, kind::person},
      {{"denken", "", "denkt", "dachte", "gedacht"}, {"think", "", "thought"}, Frame::intransitive, kind::person},
      {{"hoffen", "", "hofft", "hoffte", "gehofft"}, {"hope"}, Frame::intransitive, kind::person},
      {{"bemerken", "", "bemerkt", "bemerkte", "bemerkt"}, {"notice"}, Frame::intransitive, kind::person},
      {{"vermuten", "", "vermutet", "vermutete", "vermutet"}, {"suspect"}, Frame::intransitive, kind::person}};
  Clause main;
  main.subject = author.subject(kind::person);
  while (main.subject.is_pronoun() && main.subject.number == Number::singular)
    main.subject = author.subject(kind::person);
  main.verb = &author.pick(saying);
  main.simple = true;
  Clause content = author.event();
  while (content.subject.noun == main.subject.noun) content = author.event();
  author.add_circumstances(content, 0.6);
  if (author.chance(0.4)) {
    main.tense = Tense::preterite;
    content.tense = Tense::preterite;
  }
  return {finish(say({german_main(main), ",", "dass", german_subordinate(content)}), "."),
          finish(say({english_main(main), "that", english_main(content)}), ".")};
}

SentencePair condition(Author& author) {
  const NounPhrase subject = author.referable_subject(kind::person);
  Clause main, when;
  if (author.chance(0.5)) {
    const bool good = author.chance(0.6);
    when = weather(author.pick(good ? good_weather() : bad_weather()));
    main = good ? outdoor_event(author, subject) : author.event_with(subject, verb("bleiben", Frame::intransitive));
    if (!good) main.place = author.place(site::indoors);
    if (author.chance(0.3)) {
      main.frequency = author.pick(frequencies());
      main.manner = {};
    }
  } else {
    const Motive& motive = author.pick(motives());
    when = feeling(subject, motive.state);
    main = author.event_with(pronoun_for(subject), fitting(author, motive, subject));
    author.add_circumstances(main, 0.5);
    when.simple = main.simple = true;
    author.put_in_front(main, {"wenn " + german_subordinate(when) + " ,", "when " + english_main(when) + " ,"});
    return statement(main);
  }
  when.simple = main.simple = true;
  return combined(author, main, subordinate({"wenn", "when"}, when));
}

SentencePair purpose(Author& author) {
  struct Errand {
    uint32_t sites;
    std::vector<const Verb*> actions;
  };
  constexpr Frame none = Frame::intransitive, object = Frame::accusative;
  static const std::vector<Errand> errands = {
      {site::shop, {&verb("kaufen", object), &verb("verkaufen", object), &verb("einkaufen", none)}},
      {site::kitchen,
       {&verb("kochen", object), &verb("backen", object), &verb("spülen", object), &verb("schneiden", object)}},
      {site::yard,
       {&verb("gießen", object), &verb("pflücken", object), &verb("spielen", none), &verb("pflanzen", object)}},
      {site::nature,
       {&verb("fotografieren", object), &verb("zeichnen", object), &verb("beobachten", object),
        &verb("trainieren", none)}},
      {site::workplace, {&verb("reparieren", object), &verb("arbeiten", none), &verb("benutzen", object)}},
      {site::public_room, {&verb("lesen", object), &verb("kennenlernen", object), &verb("lernen", none)}},
      {site::farm, {&verb("füttern", object), &verb("streicheln", object), &verb("bürsten", object)}},
      {site::shore, {&verb("sammeln", object), &verb("angeln", none), &verb("fotografieren", object)}},
      {site::indoors, {&verb("schlafen", none), &verb("fernsehen", none), &verb("packen", object)}},
  };
  while (true) {
    const NounPhrase subject = author.subject(kind::person);
    const Errand& errand = author.pick(errands);
    const Verb& action = *author.pick(errand.actions);
    if (!action.subjects.accepts(kinds_of(subject))) continue;
    Clause main = author.event_with(subject, verb("gehen", Frame::motion));
    main.goal = author.goal(errand.sites);
    const Clause aim = author.event_with(subject, action);
    if (author.chance(0.5)) author.add_time(main, true);
    // A participle would separate the goal from the purpose clause; the preterite has the same meaning.
    if (main.tense == Tense::perfect) main.tense = Tense::preterite;
    return {finish(say({german_main(main), ",", "um", german_infinitive(aim)}), "."),
            finish(say({english_main(main), english_infinitive(aim)}), ".")};
  }
}

SentencePair concession(Author& author) {
  const NounPhrase subject = author.referable_subject(kind::person);
  Clause obstacle;
  Clause main = outdoor_event(author, subject);
  if (author.chance(0.6)) {
    obstacle = weather(author.pick(bad_weather()));
  } else {
    static const std::vector<Words> states = {{"müde", "tired"},
                                              {"krank", "sick"},
                                              {"hungrig", "hungry"},
                                              {"sehr müde", "very tired"},
                                              {"durstig", "thirsty"}};
    obstacle = feeling(pronoun_for(subject), author.pick(states));
  }
  if (author.chance(0.4)) {
    set_past(main);
    obstacle.tense = Tense::preterite;
  }
  if (obstacle.subject.is_pronoun() && obstacle.verb == &copula() && obstacle.subject.referent != Referent::it) {
    return {finish(say({german_main(main), ",", "obwohl", german_subordinate(obstacle)}), "."),
            finish(say({english_main(main), ", although", english_main(obstacle)}), ".")};
  }
  return combined(author, main, subordinate({"obwohl", "although"}, obstacle));
}

}  // namespace plumb::corpus
