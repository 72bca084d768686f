// The words of the corpus, read from the files in src/corpus/lexicon, which are part of the program.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::corpus {

/// What words stand for, such as "animal" or "fruit"; it decides which words go together.
using Kinds = std::set<std::string, std::less<>>;

enum class Case : size_t { nominative, accusative, dative };

/// A word or more of German with its English.
struct Words {
  std::string german, english;
};

struct Adjective {
  std::string predicate, attribute;  // "hoch", and "hoh" before an ending
  std::string english;
};

struct Noun {
  std::string german, weak;  // `weak`: the ending of the other cases ("der Junge, den Jungen")
  size_t gender = 0;         // der, die, das
  std::string plural;        // empty: of a mass, or of one person
  std::string english, english_plural;
  Kinds kinds;
  std::vector<const Adjective*> adjectives;
};

struct Verb {
  std::string prefix;  // "auf", which a main clause puts at its end
  std::string infinitive, present, preterite, participle;
  bool with_sein = false;
  std::string english, with_s, with_ing, past, past_participle, particle;
  bool stative = false;  // has no progressive in English
  std::string preposition;
  Case object_case = Case::accusative;
  std::vector<const Noun*> subjects, objects;
};

/// A clause within a kind of sentence, and the text before it: " , weil {b<a.last}".
struct Slot {
  std::string before, clause, owner, order;
};

/// A kind of sentence, and the tenses of its clauses (see sentences.txt).
struct Template {
  uint64_t weight = 0;
  std::vector<std::string> tenses;
  std::vector<Slot> german, english;
};

struct Lexicon {
  std::vector<Adjective> adjectives;  // in the order in which English puts them
  std::vector<Noun> nouns;            // compounds included
  std::vector<const Noun*> places;
  std::vector<Verb> verbs;
  std::map<std::string, std::vector<Words>, std::less<>> phrases;  // names, adverbs
  std::vector<Template> sentences;
  uint64_t total_weight = 0;
};

/// The lexicon. Its pointers stay valid.
const Lexicon& lexicon();

/// A file of src/corpus/lexicon. Throws Error if there is none.
std::string_view lexicon_text(std::string_view name);

/// The text with its first letter large or small; the letter is ASCII, or one of ä, ö, ü.
std::string with_first_letter(std::string text, bool large);

}  // namespace plumb::corpus
