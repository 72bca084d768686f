#include "corpus/grammar.h"

#include "plumb/base/error.h"

namespace plumb::corpus {
namespace {

// By case, and by gender or, last, the plural.
using Endings = const char* const[3][4];
constexpr Endings kDefinite = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}};
constexpr Endings kEin = {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}};
// Of adjectives: after "der", after "ein", and where no word before them shows the case.
constexpr Endings kAfterDer = {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}};
constexpr Endings kAfterEin = {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}};
constexpr Endings kAlone = {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}};
constexpr Endings kPronouns = {{"er", "sie", "es", "sie"}, {"ihn", "sie", "es", "sie"}, {"ihm", "ihr", "ihm", "ihnen"}};
constexpr const char* kEnglishPronouns[] = {"he", "she", "it", "they"};
constexpr const char* kEnglishPossessives[] = {"his", "her", "its", "their"};

constexpr const char* kSein[2][2] = {{"ist", "sind"}, {"war", "waren"}};  // in place of "hat", "hatte"

constexpr Tense kTenses[] = {
    {"present", {"", ""}, &Verb::present, {"is", "are"}, &Verb::with_ing},
    {"habit", {"", ""}, &Verb::present, {"", ""}, &Verb::with_s},
    {"preterite", {"", ""}, &Verb::preterite, {"", ""}, &Verb::past},
    {"perfect", {"hat", "haben"}, &Verb::participle, {"has", "have"}, &Verb::past_participle},
    {"pluperfect", {"hatte", "hatten"}, &Verb::participle, {"had", "had"}, &Verb::past_participle},
    {"future", {"wird", "werden"}, &Verb::infinitive, {"will", "will"}, &Verb::english},
    {"ability", {"kann", "können"}, &Verb::infinitive, {"can", "can"}, &Verb::english},
    {"duty", {"muss", "müssen"}, &Verb::infinitive, {"must", "must"}, &Verb::english},
    {"advice", {"sollte", "sollten"}, &Verb::infinitive, {"should", "should"}, &Verb::english},
};

size_t german_form(const Phrase& phrase) { return phrase.plural ? 3 : phrase.gender; }
bool is_person(const Phrase& phrase) { return phrase.noun != nullptr && phrase.noun->kinds.contains("person"); }
size_t english_form(const Phrase& phrase) { return phrase.plural ? 3 : is_person(phrase) ? phrase.gender : 2; }

/// The words that are not empty, separated by spaces.
std::string say(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty() && !word.empty()) text += ' ';
    text += word;
  }
  return text;
}

/// "rot" → "roten"; "müde" → "müden"; "lila" stays as it is.
std::string declined(const std::string& adjective, const std::string& ending) {
  if (adjective.ends_with("a")) return adjective;
  return adjective + (adjective.ends_with("e") ? ending.substr(1) : ending);
}

std::string declined(const Noun& noun, bool plural, Case c) {
  if (!plural) return noun.german + (c == Case::nominative ? "" : noun.weak);
  const bool has_ending = noun.plural.ends_with("n") || noun.plural.ends_with("s");
  return noun.plural + (c == Case::dative && !has_ending ? "n" : "");
}

std::string german_in(const Clause& clause, std::string_view order) {
  const Verb& v = *clause.verb;
  const size_t several = clause.subject.plural ? 1 : 0;
  const std::string no = clause.negated ? "nicht" : "";
  const std::string middle = clause.definite ? say({clause.object.german, no, clause.rest.german})
                                             : say({clause.rest.german, no, clause.object.german});
  std::string finite(clause.tense->german[several]);
  std::string end;
  if (finite.empty()) {
    finite = v.*clause.tense->german_form;
    if (several == 1 && clause.tense->german_form == &Verb::present)
      finite = v.infinitive == "sein" ? "sind" : v.infinitive;
    else if (several == 1)
      finite += finite.ends_with("e") ? "n" : "en";
    end = v.prefix;
  } else {
    if (v.with_sein && finite.starts_with("ha")) finite = kSein[finite.starts_with("hatte") ? 1 : 0][several];
    end = (clause.tense->german_form == &Verb::infinitive ? v.prefix : "") + v.*clause.tense->german_form;
  }
  const std::string joined = end == v.prefix ? end + finite : say({end, finite});  // "wegläuft", "weggelaufen ist"
  const std::string& subject = clause.subject.german[0];
  if (order == "main") return say({subject, finite, middle, end});
  if (order == "inverted" || order == "question") return say({finite, subject, middle, end});
  if (order == "last") return say({subject, middle, joined});
  if (order == "predicate") return say({finite, middle, end});
  if (order == "relative") return say({middle, joined});
  if (order == "infinitive")
    return say({middle, v.prefix.empty() ? "zu " + v.infinitive : v.prefix + "zu" + v.infinitive});
  throw Error("the corpus has a sentence with an unknown order: " + std::string(order));
}

std::string english_in(const Clause& clause, std::string_view order) {
  const Verb& v = *clause.verb;
  const size_t several = clause.subject.plural ? 1 : 0;
  const std::string rest = say({v.particle, clause.object.english, clause.rest.english});
  if (order == "infinitive") return say({"to", v.english, rest});
  const bool is_past = clause.tense->english_form == &Verb::past;
  std::string auxiliary(clause.tense->english[several]);
  std::string main = v.*clause.tense->english_form;
  const bool asked = order == "question";
  if (v.english == "be" && auxiliary.empty())
    auxiliary = is_past ? (several == 1 ? "were" : "was") : several == 1 ? "are" : "is";
  if (v.english == "be" && clause.tense->english_form != &Verb::english) main.clear();
  const bool progressive = clause.tense->english_form == &Verb::with_ing;
  if (progressive && v.stative) auxiliary.clear();
  if (auxiliary.empty() && (asked || clause.negated)) {
    auxiliary = is_past ? "did" : several == 1 ? "do" : "does";
    main = v.english;
  } else if (auxiliary.empty() && !is_past) {
    main = several == 1 ? v.english : v.with_s;
  }
  const std::string predicate = say({clause.negated ? "not" : "", main, rest});
  if (order == "predicate" || order == "relative") return say({auxiliary, predicate});
  const std::string& subject = clause.subject.english;
  return asked ? say({auxiliary, subject, predicate}) : say({subject, auxiliary, predicate});
}

}  // namespace

Phrase phrase_of(const Noun& noun, Determiner determiner, bool plural, const std::vector<const Adjective*>& adjectives,
                 const Phrase& owner, const Words& count) {
  Phrase phrase{.noun = &noun, .plural = plural, .gender = noun.gender};
  const bool ein = determiner == Determiner::indefinite || determiner == Determiner::possessive;
  const std::string stem = determiner == Determiner::indefinite ? "ein"
                           : owner.plural || owner.gender == 1  ? "ihr"
                                                                : "sein";
  const Endings& endings = determiner == Determiner::definite ? kAfterDer : ein ? kAfterEin : kAlone;
  for (size_t c = 0; c < 3; ++c) {
    const size_t form = german_form(phrase);
    std::string& text = phrase.german[c];
    if (ein)
      text = stem + kEin[c][form];
    else
      text = determiner == Determiner::definite ? kDefinite[c][form] : count.german;
    for (const Adjective* adjective : adjectives) text = say({text, declined(adjective->attribute, endings[c][form])});
    text = say({text, declined(noun, plural, static_cast<Case>(c))});
  }
  phrase.english = plural ? noun.english_plural : noun.english;
  for (size_t i = adjectives.size(); i-- > 0;) phrase.english = say({adjectives[i]->english, phrase.english});
  const bool vowel = std::string_view("aeiou").find(phrase.english[0]) != std::string_view::npos;
  const bool an = (vowel && !phrase.english.starts_with("used")) || phrase.english.starts_with("honest");
  const std::string_view articles[] = {"the", an ? "an" : "a", kEnglishPossessives[english_form(owner)], "",
                                       count.english};
  phrase.english = say({articles[static_cast<size_t>(determiner)], phrase.english});
  return phrase;
}

Phrase pronoun_of(const Phrase& phrase) {
  Phrase pronoun = phrase;
  for (size_t c = 0; c < 3; ++c) pronoun.german[c] = kPronouns[c][german_form(phrase)];
  pronoun.english = kEnglishPronouns[english_form(phrase)];
  return pronoun;
}

Phrase related(Phrase phrase, const Words& predicate) {
  phrase.german[0] = say({phrase.german[0], ",", kDefinite[0][german_form(phrase)], predicate.german, ","});
  phrase.english = say({phrase.english, is_person(phrase) ? "who" : "that", predicate.english});
  return phrase;
}

std::string after(const std::string& preposition, const Phrase& phrase, Case c) {
  static constexpr std::string_view kContracted[][2] = {
      {"in dem ", "im "}, {"in das ", "ins "}, {"an dem ", "am "}, {"an das ", "ans "}, {"von dem ", "vom "}};
  const std::string text = say({preposition, phrase.german[static_cast<size_t>(c)]});
  for (const auto& [whole, contracted] : kContracted) {
    if (text.starts_with(whole)) return std::string(contracted) + text.substr(whole.size());
  }
  return text;
}

const Tense& tense_of(std::string_view name) {
  for (const Tense& tense : kTenses) {
    if (tense.name == name) return tense;
  }
  throw Error("the corpus has a sentence in an unknown tense: " + std::string(name));
}

Words clause_in(const Clause& clause, std::string_view order) {
  return {german_in(clause, order), english_in(clause, order)};
}

std::string finish(const std::string& words) {
  std::string text;
  for (const char letter : words) {
    const bool mark = std::string_view(",.?").find(letter) != std::string_view::npos;
    if (mark && text.ends_with(' ')) text.pop_back();
    if (mark && text.ends_with(',')) text.pop_back();
    if (letter != ' ' || !text.ends_with(' ')) text += letter;
  }
  return with_first_letter(text, true);
}

}  // namespace plumb::corpus
