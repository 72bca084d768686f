// German and English side by side: noun phrases in their cases, and clauses in their orders of words.
#pragma once

#include <array>

#include "corpus/lexicon.h"

namespace plumb::corpus {

/// "ein kleiner Hund", "einen kleinen Hund", "einem kleinen Hund"; "a small dog".
struct Phrase {
  const Noun* noun = nullptr;
  std::array<std::string, 3> german;  // by Case
  std::string english;
  bool plural = false;
  size_t gender = 0;
};

enum class Determiner { definite, indefinite, possessive, none, count };

/// A noun with a determiner and adjectives. `owner`: whose it is, for a possessive; `count`: how many, in both
/// languages.
Phrase phrase_of(const Noun& noun, Determiner determiner, bool plural, const std::vector<const Adjective*>& adjectives,
                 const Phrase& owner = {}, const Words& count = {});
/// "er", "he".
Phrase pronoun_of(const Phrase& phrase);
/// The phrase with a clause about it: "der Hund, der bellt,".
Phrase related(Phrase phrase, const Words& predicate);
/// "im Garten": the preposition contracted with the article.
std::string after(const std::string& preposition, const Phrase& phrase, Case c);

/// How a tense or a modal verb is formed; the names are those of sentences.txt.
struct Tense {
  std::string_view name;
  std::string_view german[2];  // the auxiliary, singular and plural
  std::string Verb::*german_form;
  std::string_view english[2];
  std::string Verb::*english_form;
};

/// Throws Error for an unknown name.
const Tense& tense_of(std::string_view name);

/// A subject and what is said of it.
struct Clause {
  Phrase subject;
  const Verb* verb = nullptr;
  const Tense* tense = nullptr;
  Words object;
  Words rest;            // how, where and when
  bool definite = true;  // whether the object comes before the rest in German
  bool negated = false;
};

/// The clause in an order of words: main ("der Hund läuft weg"), inverted ("läuft der Hund weg"), last ("der Hund
/// wegläuft"), predicate ("läuft weg"), relative ("wegläuft"), infinitive ("wegzulaufen") or question ("läuft der Hund
/// weg", "is the dog running away"). Throws Error for another.
Words clause_in(const Clause& clause, std::string_view order);

/// A sentence of `words` separated by spaces: its first letter large, no space before a mark, no comma before another.
std::string finish(const std::string& words);

}  // namespace plumb::corpus
