// German word order: finite verb second (or first, or last), rest of the verb at the end, middle field between them.
#include "corpus/clause.h"

namespace plumb::corpus {
namespace {

struct VerbForms {
  std::string finite;
  std::string prefix;  // separable; separated unless the finite verb is last
  std::string rest;    // participle or infinitive
};

std::string modal_form(const Modal& modal, Tense tense, Person person, Number number) {
  if (tense == Tense::preterite) {
    return modal.preterite + (number == Number::plural ? "n" : person == Person::second ? "st" : "");
  }
  if (number == Number::plural) return modal.plural;
  if (person != Person::second) return modal.singular;
  return modal.singular + (modal.singular.ends_with("s") ? "t" : "st");
}

VerbForms verb_forms(const Clause& clause) {
  const GermanVerb& verb = clause.verb->german;
  const GermanVerb& full = clause.verb == &copula() ? to_be() : verb;
  const Person person = clause.subject.person;
  const Number number = german_number(clause.subject);
  // In the passive, "werden" is conjugated.
  const GermanVerb& conjugated = clause.passive ? to_become() : full;
  const std::string bare = clause.passive ? verb.participle + " werden" : infinitive(full);
  if (clause.modal != nullptr) return {modal_form(*clause.modal, clause.tense, person, number), "", bare};
  const GermanVerb& auxiliary = clause.passive || full.sein ? to_be() : to_have();
  const std::string participle = clause.passive ? verb.participle + " worden" : full.participle;
  const std::string apart = clause.passive ? verb.participle : "";
  switch (clause.tense) {
    case Tense::future:
      return {present(to_become(), person, number), "", bare};
    case Tense::perfect:
      return {present(auxiliary, person, number), "", participle};
    case Tense::pluperfect:
      return {preterite(auxiliary, person, number), "", participle};
    case Tense::preterite:
      return {preterite(conjugated, person, number), conjugated.prefix, apart};
    case Tense::present:
      break;
  }
  return {present(conjugated, person, number), conjugated.prefix, apart};
}

// "einen Apfel" comes late in the middle field, "den Apfel" early, "ihn" first.
bool is_indefinite(const NounPhrase& phrase) {
  switch (phrase.determiner) {
    case Determiner::none:
    case Determiner::indefinite:
    case Determiner::negative:
    case Determiner::many:
    case Determiner::some:
    case Determiner::several:
    case Determiner::numeral:
      return phrase.noun != nullptr;
    default:
      return false;
  }
}

std::string middle_field(const Clause& clause, Gap gap) {
  std::string pronoun, definite, indefinite, prepositional;
  if (!clause.object.empty() && gap != Gap::object) {
    const NounPhrase& object = clause.object.front();
    if (clause.verb->frame == Frame::prepositional) {
      prepositional = german_phrase(clause.verb->german_preposition, object, clause.verb->preposition_case);
    } else {
      const bool dative = clause.verb->frame == Frame::dative;
      std::string& slot = object.is_pronoun() ? pronoun : is_indefinite(object) && !dative ? indefinite : definite;
      slot = german_phrase(object, dative ? Case::dative : Case::accusative);
    }
  }
  const std::string receiver = clause.receiver.empty() ? "" : german_phrase(clause.receiver.front(), Case::dative);
  const bool with_kein = !clause.object.empty() && clause.object.front().determiner == Determiner::negative;
  return say({pronoun, clause.time.german, receiver, definite, clause.frequency.german, clause.companion.german,
              clause.negated && !with_kein ? "nicht" : "", clause.manner.german, clause.place.german, indefinite,
              prepositional, clause.goal.german, clause.complement.german});
}

}  // namespace

std::string german_main(const Clause& clause, Gap gap) {
  const VerbForms verb = verb_forms(clause);
  const std::string subject = gap == Gap::subject ? "" : german_phrase(clause.subject, Case::nominative);
  const bool inverted = !clause.front.empty();
  return say({inverted ? clause.front.german : subject, verb.finite, inverted ? subject : "", middle_field(clause, gap),
              verb.prefix, verb.rest});
}

std::string german_subordinate(const Clause& clause, Gap gap) {
  const VerbForms verb = verb_forms(clause);
  const std::string subject = gap == Gap::subject ? "" : german_phrase(clause.subject, Case::nominative);
  return say({subject, middle_field(clause, gap), verb.rest, verb.prefix + verb.finite});
}

std::string german_question(const Clause& clause, std::string_view question_word, Gap gap) {
  const VerbForms verb = verb_forms(clause);
  const std::string subject = gap == Gap::subject ? "" : german_phrase(clause.subject, Case::nominative);
  return say({question_word, verb.finite, subject, middle_field(clause, gap), verb.prefix, verb.rest});
}

std::string german_infinitive(const Clause& clause) {
  return say({middle_field(clause, Gap::subject), zu_infinitive(clause.verb->german)});
}

}  // namespace plumb::corpus
