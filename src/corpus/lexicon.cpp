#include "corpus/lexicon.h"

#include <algorithm>
#include <cctype>

#include "corpus/lexicon_file.h"
#include "plumb/base/error.h"

namespace plumb::corpus {
namespace {

BitNames kind_names() {
  using namespace kind;
  return {kNames,
          {{"person", person},
           {"animal", animal},
           {"vehicle", vehicle},
           {"food", food},
           {"plant", plant},
           {"place", place},
           {"thing", thing}}};
}

BitNames site_names() { return {site::kNames, {{"outdoors", site::outdoors}, {"anywhere", site::anywhere}}}; }

/// A table with one entry per row of a file.
template <typename Make>
auto read_table(std::string_view name, const Make& make) {
  std::vector<decltype(make(std::declval<const Row&>()))> table;
  for (const Row& row : LexiconFile(name).rows) table.push_back(make(row));
  return table;
}

Words words_at(const Row& row, size_t i) { return {row.text(i), row.text(i + 1)}; }

std::vector<Noun> read_nouns(std::string_view name) {
  const BitNames kinds = kind_names();
  return read_table(name, [&](const Row& row) {
    return Noun{row.text(0),
                row.one_of<Gender>(1, {"der", "die", "das"}),
                row.one_of<Genitive>(2, {"", "s", "es", "n", "en"}),
                row.text(3),
                row.text(4),
                row.text(5),
                kinds.mask(row, 6),
                row.one_of<Referent>(7, {"", "he", "she", "unspecified"})};
  });
}

std::string lower_first(std::string word) {
  // Ä, Ö and Ü are two bytes in UTF-8.
  if (word.size() > 1 && static_cast<unsigned char>(word[0]) == 0xC3) {
    word[1] = static_cast<char>(word[1] | 0x20);
  } else {
    word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
  }
  return word;
}

/// "Küchen", "kitchen" and the noun "Tisch": "Küchentisch", "kitchen table".
Noun compound_of(const Words& first, const Noun& head) {
  Noun compound = head;
  compound.german = first.german + lower_first(head.german);
  if (!head.plural.empty()) compound.plural = first.german + lower_first(head.plural);
  compound.english = first.english + " " + head.english;
  if (!head.english_plural.empty()) compound.english_plural = first.english + " " + head.english_plural;
  return compound;
}

std::vector<Noun> read_compounds(const std::vector<Noun>& simple) {
  const BitNames kinds = kind_names();
  std::vector<Noun> heads = read_nouns("heads");
  heads.insert(heads.end(), simple.begin(), simple.end());
  std::vector<Noun> result;
  for (const Row& row : LexiconFile("compounds").rows) {
    const Kinds own_kinds = kinds.mask(row, 2);
    for (const std::string& name : row.list(1)) {
      const auto head = std::find_if(heads.begin(), heads.end(), [&](const Noun& noun) { return noun.german == name; });
      if (head == heads.end()) row.fail("no noun '" + name + "'");
      for (const std::string& pair : row.list(0, ",")) {
        const size_t space = pair.find(' ');
        Noun compound = compound_of({pair.substr(0, space), pair.substr(space + 1)}, *head);
        if (own_kinds != 0) compound.kinds = own_kinds;
        compound.kinds |= kind::compound;
        result.push_back(std::move(compound));
      }
    }
  }
  return result;
}

std::vector<Place> read_places() {
  const BitNames sites = site_names();
  const auto pair_of = [](const Row& row, size_t i) {
    const std::vector<std::string> both = row.list(i);
    if (both.size() != 2) row.fail("a German and an English preposition are wanted");
    return Words{both[0], both[1]};
  };
  return read_table("places", [&](const Row& row) {
    const Words at = pair_of(row, 1);
    const Words to = pair_of(row, 2);
    const Words over = row.text(3).empty() ? Words{} : pair_of(row, 3);
    const auto where = static_cast<uint32_t>(sites.mask(row, 4));
    return Place{row.text(0), where, at.german, at.english, to.german, to.english, over.german, over.english};
  });
}

/// "auf|heben hebt hob aufgehoben", "laufen läuft lief gelaufen (sein)".
GermanVerb german_verb(const Row& row, size_t i) {
  std::vector<std::string> parts = row.list(i);
  const bool sein = parts.back() == "(sein)";
  if (sein) parts.pop_back();
  if (parts.size() != 4) row.fail("infinitive, present, preterite and participle are wanted");
  const size_t bar = parts[0].find('|');
  std::string prefix;
  if (bar != std::string::npos) {
    prefix = parts[0].substr(0, bar);
    parts[0].erase(0, bar + 1);
  }
  return {parts[0], prefix, parts[1], parts[2], parts[3], sein};
}

/// "walk", "eat ate eaten", "have (breakfast) had".
EnglishVerb english_verb(const Row& row, size_t i) {
  std::string text = row.text(i);
  EnglishVerb verb;
  if (const size_t open = text.find(" ("); open != std::string::npos) {
    const size_t close = text.find(')', open);
    if (close == std::string::npos) row.fail("no ')'");
    verb.particle = text.substr(open + 2, close - open - 2);
    text.erase(open, close + 1 - open);
  }
  const std::vector<std::string> parts = pieces(text, " ");
  if (parts.empty() || parts.size() > 3) row.fail("base, past and participle are wanted");
  verb.base = parts[0];
  if (parts.size() > 1) verb.past = parts[1];
  if (parts.size() > 2) verb.participle = parts[2];
  return verb;
}

std::vector<Verb> read_verbs() {
  const LexiconFile file("verbs");
  BitNames kinds = kind_names();
  kinds.define(file);
  const BitNames sites = site_names();
  const BitNames manners(manner::kNames, {});
  const auto selection = [&](const Row& row, size_t i) {
    return Selection(kinds.mask(row, i), kinds.excluded(row, i));
  };
  std::vector<Verb> verbs;
  for (const Row& row : file.rows) {
    Verb verb{.german = german_verb(row, 1),
              .english = english_verb(row, 2),
              .frame = row.one_of<Frame>(0, {"intransitive", "posture", "accusative", "dative", "prepositional",
                                             "motion", "put", "ditransitive"}),
              .subjects = selection(row, 3),
              .objects = selection(row, 4),
              .sites = static_cast<uint32_t>(sites.mask(row, 5)),
              .manners = static_cast<uint32_t>(manners.mask(row, 6))};
    if (const std::vector<std::string> preposition = row.list(7); !preposition.empty()) {
      if (preposition.size() != 2) row.fail("a preposition and its case are wanted");
      verb.german_preposition = preposition[0];
      verb.preposition_case = preposition[1] == "+dative" ? Case::dative : Case::accusative;
    }
    verb.english_preposition = row.text(8);
    verb.stative = row.text(9) == "stative";
    verbs.push_back(std::move(verb));
  }
  return verbs;
}

std::vector<Adjective> read_adjectives() {
  const LexiconFile file("adjectives");
  BitNames kinds = kind_names();
  kinds.define(file);
  std::vector<Adjective> adjectives;
  for (const Row& row : file.rows) {
    adjectives.push_back({row.text(0), row.text(1), row.text(2), row.text(3), row.text(4),
                          row.one_of<Rank>(5, {"opinion", "size", "state", "age", "color"}), kinds.mask(row, 6)});
  }
  return adjectives;
}

}  // namespace

const std::vector<Noun>& nouns() {
  static const std::vector<Noun> all = [] {
    std::vector<Noun> result = read_nouns("nouns");
    const std::vector<Noun> compounds = read_compounds(result);
    result.insert(result.end(), compounds.begin(), compounds.end());
    return result;
  }();
  return all;
}

const std::vector<Place>& places() {
  static const std::vector<Place> all = [] {
    const std::vector<Place> simple = read_places();
    std::vector<Place> result = simple;
    // "der Bergsee" is used like "der See".
    for (const Noun& compound : nouns()) {
      for (const Place& place : simple) {
        const std::string tail = place.noun.substr(1);
        if ((compound.kinds & kind::compound) == 0 || !compound.german.ends_with(tail)) continue;
        if ((compound.kinds & kind::place) == 0) continue;
        result.push_back(place);
        result.back().noun = compound.german;
        break;
      }
    }
    return result;
  }();
  return all;
}

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = read_verbs();
  return table;
}

const std::vector<Adjective>& adjectives() {
  static const std::vector<Adjective> table = read_adjectives();
  return table;
}

const std::vector<Name>& names() {
  static const std::vector<Name> table = read_table("names", [](const Row& row) {
    return Name{row.text(0), row.one_of<Referent>(1, {"it", "he", "she"})};
  });
  return table;
}

const std::vector<Words>& cities() {
  static const std::vector<Words> table = read_table("cities", [](const Row& row) { return words_at(row, 0); });
  return table;
}

const std::vector<Words>& frequencies() {
  static const std::vector<Words> table = read_table("frequencies", [](const Row& row) { return words_at(row, 0); });
  return table;
}

const std::vector<Modal>& modals() {
  static const std::vector<Modal> table = read_table("modals", [](const Row& row) {
    return Modal{row.text(0), row.text(1), row.text(2), row.text(3),
                 row.text(4), row.text(5), row.text(6), row.text(7)};
  });
  return table;
}

const std::vector<Adverb>& adverbs() {
  static const std::vector<Adverb> table = [] {
    const BitNames manners(manner::kNames, {});
    return read_table("adverbs", [&](const Row& row) {
      return Adverb{words_at(row, 0), static_cast<uint32_t>(manners.mask(row, 2)), row.text(3) == "last"};
    });
  }();
  return table;
}

const std::vector<TimeExpression>& times() {
  static const std::vector<TimeExpression> table = read_table("times", [](const Row& row) {
    return TimeExpression{words_at(row, 1), row.one_of<TimeKind>(0, {"now", "habit", "past", "future", "day"})};
  });
  return table;
}

const Noun& noun(std::string_view german) {
  for (const Noun& candidate : nouns()) {
    if (candidate.german == german) return candidate;
  }
  throw Error("the lexicon has no noun \"" + std::string(german) + "\"");
}

const Verb& verb(std::string_view infinitive_with_prefix, Frame frame) {
  for (const Verb& candidate : verbs()) {
    if (candidate.frame == frame && candidate.german.prefix + candidate.german.infinitive == infinitive_with_prefix) {
      return candidate;
    }
  }
  throw Error("the lexicon has no verb \"" + std::string(infinitive_with_prefix) + "\" of this frame");
}

}  // namespace plumb::corpus
