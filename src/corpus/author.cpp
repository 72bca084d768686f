#include "corpus/author.h"

#include <algorithm>

#include "corpus/grammar.h"

namespace plumb::corpus {
namespace {

const Verb kToBe{.infinitive = "sein", .present = "ist", .preterite = "war", .participle = "gewesen", .english = "be"};

Words joined(const Words& first, const Words& second) {
  return {first.german + " " + second.german, first.english + " " + second.english};
}

/// Every draw is a separate statement: the evaluation order of arguments is unspecified, and the text must not depend
/// on it.
class Author {
 public:
  explicit Author(Random& random) : random_(random) {}

  Words sentence();

 private:
  bool chance(double probability) { return random_.uniform() < probability; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(random_.below(items.size()))];
  }
  const Words& phrase(std::string_view kind) { return pick(lexicon_.phrases.find(kind)->second); }

  Phrase thing(const Noun& noun, const Phrase* owner = nullptr);
  Phrase anyone(const Noun& noun);
  Words place();
  const Tense& tense(std::string_view name);
  /// What `given` does, or what anyone does.
  Clause event(const Phrase* given, const Tense& tense);
  /// What `given` is like, or what anything is like.
  Clause description(const Phrase* given, const Tense& tense);

  Random& random_;
  const Lexicon& lexicon_ = lexicon();
};

Phrase Author::thing(const Noun& noun, const Phrase* owner) {
  std::vector<const Adjective*> adjectives;
  for (const double probability : {0.4, 0.1}) {
    if (noun.adjectives.empty() || !chance(probability)) break;
    const Adjective* const next = pick(noun.adjectives);
    if (adjectives.empty() || next > adjectives.back()) adjectives.push_back(next);
  }
  const double draw = random_.uniform();
  const bool mass = noun.kinds.contains("mass");
  if (mass) return phrase_of(noun, draw < 0.5 ? Determiner::none : Determiner::definite, false, adjectives);
  if (draw < 0.35) return phrase_of(noun, Determiner::indefinite, false, adjectives);
  if (draw < 0.65) return phrase_of(noun, Determiner::definite, false, adjectives);
  if (draw < 0.75 && owner != nullptr) return phrase_of(noun, Determiner::possessive, false, adjectives, *owner);
  if (draw < 0.85) return phrase_of(noun, Determiner::definite, true, adjectives);
  if (draw < 0.9) return phrase_of(noun, Determiner::none, true, adjectives);
  const std::string digits = std::to_string(random_.below(400) + 13);
  const Words count = chance(0.7) ? phrase("count") : Words{digits, digits};
  return phrase_of(noun, Determiner::count, true, adjectives, {}, count);
}

Phrase Author::anyone(const Noun& noun) {
  if (!noun.kinds.contains("person") || noun.gender == 2 || !chance(0.2)) return thing(noun);
  const Words& name = phrase(noun.gender == 0 ? "man" : "woman");
  return {&noun, {name.german, name.german, name.german}, name.english, false, noun.gender};
}

Words Author::place() {
  const bool city = chance(0.12);
  if (city) return joined({"in", "in"}, phrase("city"));
  const Noun& noun = *pick(lexicon_.places);
  const Words preposition = noun.kinds.contains("auf")  ? Words{"auf", "on"}
                            : noun.kinds.contains("an") ? Words{"an", "at"}
                                                        : Words{"in", "in"};
  const Phrase where = thing(noun);
  return {after(preposition.german, where, Case::dative), preposition.english + " " + where.english};
}

const Tense& Author::tense(std::string_view name) {
  const double draw = random_.uniform();
  if (name == "any") name = draw < 0.55 ? "present" : draw < 0.8 ? "preterite" : draw < 0.93 ? "perfect" : "future";
  if (name == "modal") name = draw < 0.4 ? "ability" : draw < 0.7 ? "duty" : "advice";
  return tense_of(name);
}

Clause Author::event(const Phrase* given, const Tense& tense) {
  const Verb* verb = &pick(lexicon_.verbs);
  while (given != nullptr && !std::binary_search(verb->subjects.begin(), verb->subjects.end(), given->noun))
    verb = &pick(lexicon_.verbs);
  const Phrase subject = given != nullptr ? *given : anyone(*pick(verb->subjects));
  Clause clause{subject, verb, &tense};
  if (!verb->objects.empty()) {
    const Phrase object = thing(*pick(verb->objects), &subject);
    clause.object = {after(verb->preposition, object, verb->object_case), object.english};
    clause.definite = object.english.starts_with("the ");
  }
  clause.negated = clause.definite && verb->preposition.empty() && chance(0.06);
  if (subject.noun->kinds.contains("person") && !verb->stative && chance(0.25)) clause.rest = phrase("manner");
  if (chance(0.5)) clause.rest = joined(clause.rest, place());
  if (given == nullptr && chance(0.1)) {
    const Tense& then = tense_of(tense.name == "present" ? "present" : "preterite");
    clause.subject = related(subject, clause_in(event(&subject, then), "relative"));
  }
  return clause;
}

Clause Author::description(const Phrase* given, const Tense& tense) {
  const Noun* noun = given != nullptr ? given->noun : &pick(lexicon_.nouns);
  while (noun->adjectives.empty()) noun = &pick(lexicon_.nouns);
  const Phrase subject = given != nullptr ? *given : thing(*noun);
  const Adjective& adjective = *pick(noun->adjectives);
  const Words very = chance(0.3) ? Words{"sehr", "very"} : Words{};
  const bool negated = chance(0.1);
  return {subject, &kToBe, &tense, joined(very, {adjective.predicate, adjective.english}), {}, false, negated};
}

Words Author::sentence() {
  uint64_t draw = random_.below(lexicon_.total_weight);
  const Template* chosen = lexicon_.sentences.data();
  while (draw >= chosen->weight) draw -= (chosen++)->weight;

  Words time;
  std::vector<const Tense*> tenses;
  for (std::string name : chosen->tenses) {
    if (name == "time") {
      static const std::vector<std::string> kinds = {"present", "habit", "preterite", "future"};
      name = pick(kinds);
      time = phrase(name);
    }
    tenses.push_back(&tense(name));
  }
  std::map<std::string, Clause> clauses;
  const auto clause_of = [&](const Slot& slot) {
    if (const auto known = clauses.find(slot.clause); known != clauses.end()) return known->second;
    const Phrase owner = slot.owner.empty() ? Phrase{} : pronoun_of(clauses.at(slot.owner).subject);
    const Phrase* const given = slot.owner.empty() ? nullptr : &owner;
    const Tense& tense = *tenses[std::min(clauses.size(), tenses.size() - 1)];
    return clauses.emplace(slot.clause, slot.clause == "d" ? description(given, tense) : event(given, tense))
        .first->second;
  };
  const auto in = [&](std::string Words::*language) {
    std::string text;
    for (const Slot& slot : language == &Words::german ? chosen->german : chosen->english) {
      text += slot.before;
      if (slot.clause == "t")
        text += time.*language;
      else if (!slot.clause.empty()) {
        Clause clause = clause_of(slot);
        if (slot.order == "timed")
          clause.rest = {time.german + " " + clause.rest.german, clause.rest.english + " " + time.english};
        text += clause_in(clause, slot.order == "timed" ? "main" : slot.order).*language;
      }
    }
    return finish(text);
  };
  std::string german = in(&Words::german);
  return {std::move(german), in(&Words::english)};
}

}  // namespace

Words write_sentence(Random& random) { return Author(random).sentence(); }

}  // namespace plumb::corpus
