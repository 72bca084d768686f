// English clauses: aspect, auxiliaries, do-support, and the order subject, verb, object, manner, place, time.
#include "corpus/clause.h"
#include "corpus/english.h"

namespace plumb::corpus {
namespace {

struct VerbForms {
  std::string auxiliary;  // may be empty; inverted in questions, followed by "not"
  std::string between;    // "allowed to", "being", "have been"
  std::string main;
};

bool is_third_singular(const NounPhrase& subject) {
  return subject.person == Person::third && english_number(subject) == Number::singular;
}

std::string be_present(const NounPhrase& subject) {
  if (is_third_singular(subject)) return "is";
  return subject.person == Person::first && subject.number == Number::singular ? "am" : "are";
}

std::string be_past(const NounPhrase& subject) {
  const bool singular = english_number(subject) == Number::singular && subject.person != Person::second;
  return singular ? "was" : "were";
}

// "wants to" has no auxiliary; "is allowed to" and "can" consist of an auxiliary and a rest.
VerbForms modal_forms(const Clause& clause, bool needs_auxiliary) {
  const Modal& modal = *clause.modal;
  const bool third = is_third_singular(clause.subject);
  const bool is_past = clause.tense == Tense::preterite;
  const std::string& form = is_past
                                ? (be_past(clause.subject) == "was" ? modal.english_past : modal.english_past_plural)
                                : (third ? modal.english_singular : modal.english_plural);
  const size_t space = form.find(' ');
  std::string first = form.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : form.substr(space + 1);
  const std::string main = clause.verb == &copula() ? "be"
                           : clause.passive         ? past_participle(clause.verb->english)
                                                    : clause.verb->english.base;
  const std::string passive = clause.passive ? "be" : "";
  if (first == "are") first = be_present(clause.subject);
  const bool full_verb =
      first == "want" || first == "wants" || first == "wanted" || first == "have" || first == "has" || first == "had";
  if (!full_verb) return {first, say({rest, passive}), main};
  if (!needs_auxiliary) return {"", say({form, passive}), main};
  const std::string base = first.starts_with("want") ? "want to" : "have to";
  return {is_past ? "did" : third ? "does" : "do", say({base, passive}), main};
}

VerbForms verb_forms(const Clause& clause, bool needs_auxiliary) {
  if (clause.modal != nullptr) return modal_forms(clause, needs_auxiliary);
  const EnglishVerb& verb = clause.verb->english;
  const NounPhrase& subject = clause.subject;
  const bool third = is_third_singular(subject);
  const std::string have = third ? "has" : "have";
  const bool simple_past = clause.tense == Tense::preterite || (clause.tense == Tense::perfect && clause.past_time);
  if (clause.verb == &copula()) {
    if (simple_past) return {be_past(subject), "", ""};
    if (clause.tense == Tense::perfect) return {have, "", "been"};
    if (clause.tense == Tense::pluperfect) return {"had", "", "been"};
    if (clause.tense == Tense::future) return {"will", "", "be"};
    return {be_present(subject), "", ""};
  }
  const std::string participle = past_participle(verb);
  const bool is_progressive = !clause.simple && !clause.verb->stative;
  if (clause.passive) {
    if (simple_past) return {be_past(subject), "", participle};
    if (clause.tense == Tense::perfect) return {have, "been", participle};
    if (clause.tense == Tense::pluperfect) return {"had", "been", participle};
    if (clause.tense == Tense::future) return {"will", "be", participle};
    return {be_present(subject), is_progressive ? "being" : "", participle};
  }
  if (clause.tense == Tense::future) return {"will", "", verb.base};
  if (clause.tense == Tense::pluperfect) return {"had", "", participle};
  if (clause.tense == Tense::perfect && !clause.past_time) return {have, "", participle};
  if (simple_past) {
    if (is_progressive && clause.tense == Tense::preterite) return {be_past(subject), "", progressive(verb.base)};
    return needs_auxiliary ? VerbForms{"did", "", verb.base} : VerbForms{"", "", past(verb)};
  }
  if (is_progressive) return {be_present(subject), "", progressive(verb.base)};
  if (needs_auxiliary) return {third ? "does" : "do", "", verb.base};
  return {"", "", third ? third_person(verb.base) : verb.base};
}

// Everything after the verb.
std::string tail(const Clause& clause, Gap gap) {
  const Verb& verb = *clause.verb;
  std::string text = verb.english.particle;
  if (!clause.object.empty()) {
    const NounPhrase& phrase = clause.object.front();
    const std::string object = gap == Gap::object ? "" : english_phrase(phrase, false);
    const bool to_receiver = verb.english_preposition == "to" || phrase.is_pronoun();
    if (!clause.receiver.empty()) {
      const std::string receiver = english_phrase(clause.receiver.front(), false);
      text = to_receiver ? say({text, object, "to", receiver}) : say({text, receiver, object});
    } else if (!verb.english_preposition.empty()) {
      text = say({text, verb.english_preposition, object});
    } else {
      text = phrase.is_pronoun() ? say({object, text}) : say({text, object});
    }
  }
  return say({text, clause.goal.english, clause.complement.english, clause.manner_last ? clause.manner.english : "",
              clause.companion.english, clause.place.english, clause.time.english});
}

std::string predicate(const Clause& clause, const VerbForms& verb, bool with_auxiliary, Gap gap) {
  const std::string not_ = clause.negated ? "not" : "";
  return say({with_auxiliary ? verb.auxiliary : "", not_, clause.frequency.english, verb.between,
              clause.manner_last ? "" : clause.manner.english, verb.main, tail(clause, gap)});
}

// Joins "can not" to one word; "Can he not" is unchanged.
std::string join_cannot(std::string text) {
  const size_t position = text.find("can not ");
  if (position != std::string::npos) text.erase(position + 3, 1);
  return text;
}

}  // namespace

std::string english_main(const Clause& clause, Gap gap) {
  const VerbForms verb = verb_forms(clause, clause.negated);
  const std::string subject = gap == Gap::subject ? "" : english_phrase(clause.subject, true);
  return say({clause.front.english, subject, join_cannot(predicate(clause, verb, true, gap))});
}

std::string english_question(const Clause& clause, std::string_view question_word, Gap gap) {
  if (gap == Gap::subject) return say({question_word, english_main(clause, gap)});
  const VerbForms verb = verb_forms(clause, true);
  return say(
      {question_word, verb.auxiliary, english_phrase(clause.subject, true), predicate(clause, verb, false, gap)});
}

std::string english_infinitive(const Clause& clause) {
  return say({"to", clause.verb->english.base, tail(clause, Gap::none)});
}

const Verb& copula() {
  static const Verb verb = {to_be(), {"be", "", "was", "been"}, Frame::intransitive, kind::person};
  return verb;
}

}  // namespace plumb::corpus
