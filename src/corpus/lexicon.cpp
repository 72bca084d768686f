#include "corpus/lexicon.h"

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb::corpus {
namespace {

using Fields = std::vector<std::string>;

/// The parts of `text` between separators, without the spaces around them.
Fields parts(const std::string& text, char separator) {
  Fields found = split(text, separator);
  for (std::string& part : found) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
  }
  return found;
}

/// The words of `text`; "_" stands for a space within one, "-" for none.
Fields words(const std::string& text) {
  Fields found = parts(text, ' ');
  std::erase(found, "");
  for (std::string& word : found) {
    std::replace(word.begin(), word.end(), '_', ' ');
    if (word == "-") word.clear();
  }
  return found;
}

/// "a/b" as its two parts; the second is `otherwise` if there is none.
Words halves(const std::string& text, char separator, const std::string& otherwise = "") {
  const Fields both = parts(text, separator);
  return {both[0], both.size() > 1 ? both[1] : otherwise};
}

/// The lines of a file without its comments. An indented line continues the one before.
Fields lines(const std::string& file) {
  Fields found;
  for (const std::string& line : split(lexicon_text(file), '\n')) {
    if (line.starts_with(' '))
      found.back() += line;
    else if (!line.empty() && line[0] != '#')
      found.push_back(line);
  }
  return found;
}

/// Passes each entry of a file of "heading: entry, entry" lines, with its heading, as lists of words.
template <typename Take>
void for_each_entry(const std::string& file, Take&& take) {
  for (const std::string& line : lines(file)) {
    const Fields columns = parts(line, ':');
    if (columns.size() != 2) throw Error("the lexicon's " + file + " has a line without a heading: " + line);
    for (const std::string& entry : parts(columns[1], ',')) take(columns[0], words(entry));
  }
}

bool is_any(const Noun& noun, const Fields& kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) { return noun.kinds.contains(kind); });
}

std::vector<const Noun*> nouns_of(const Lexicon& lexicon, const Fields& kinds) {
  std::vector<const Noun*> found;
  for (const Noun& noun : lexicon.nouns) {
    if (is_any(noun, kinds)) found.push_back(&noun);
  }
  return found;
}

// ---- English, where it is regular

bool ends_with_any(const std::string& word, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return word.ends_with(ending); });
}

bool ends_in_consonant_y(const std::string& word) {
  return word.size() > 1 && word.back() == 'y' &&
         std::string_view("aeiou").find(word.end()[-2]) == std::string_view::npos;
}

std::string with_s(const std::string& word) {
  if (ends_with_any(word, {"s", "x", "ch", "sh"})) return word + "es";
  return ends_in_consonant_y(word) ? word.substr(0, word.size() - 1) + "ies" : word + "s";
}

/// `doubled`: "stop", "stopping".
std::string with_ing(const std::string& verb, bool doubled) {
  if (verb.ends_with("ie")) return verb.substr(0, verb.size() - 2) + "ying";
  return (verb.ends_with("e") ? verb.substr(0, verb.size() - 1) : doubled ? verb + verb.back() : verb) + "ing";
}

std::string with_ed(const std::string& verb, bool doubled) {
  if (ends_in_consonant_y(verb)) return verb.substr(0, verb.size() - 1) + "ied";
  return (doubled ? verb + verb.back() : verb) + (verb.ends_with("e") ? "d" : "ed");
}

// ---- The files

void read_nouns(Lexicon& lexicon) {
  for_each_entry("nouns", [&](const std::string& heading, const Fields& f) {
    const Fields kinds = words(heading);
    const Words woman = halves(f[0], '+', "-");
    const Words german = halves(woman.german, '/');
    Noun noun{.german = german.german,
              .weak = german.english,
              .plural = f[2],
              .english = f[3],
              .kinds = {kinds.begin(), kinds.end()}};
    noun.gender = f[1] == "der" ? 0 : f[1] == "die" ? 1 : 2;
    noun.english_plural = f.size() > 4 ? f[4] : with_s(f[3]);
    lexicon.nouns.push_back(noun);
    if (woman.english == "-") return;
    lexicon.nouns.push_back(
        {noun.german + "in", "", 1, noun.german + "innen", noun.english, noun.english_plural, noun.kinds, {}});
  });
  // "Küchen kitchen Garten garden: Tisch" makes "Küchentisch" and "Gartentisch".
  const size_t simple = lexicon.nouns.size();
  for_each_entry("compounds", [&](const std::string& heading, const Fields& head) {
    const Fields firsts = words(heading);
    const auto named = [&](const Noun& noun) { return noun.german == head[0]; };
    const auto end = lexicon.nouns.begin() + simple;
    const auto found = std::find_if(lexicon.nouns.begin(), end, named);
    if (found == end) throw Error("the lexicon's compounds end with an unknown noun: " + head[0]);
    const Noun last = *found;  // a copy: the list grows
    for (size_t i = 0; i + 1 < firsts.size(); i += 2) {
      Noun noun = last;
      noun.german = firsts[i] + with_first_letter(noun.german, false);
      if (!noun.plural.empty()) noun.plural = firsts[i] + with_first_letter(noun.plural, false);
      noun.english = firsts[i + 1] + " " + noun.english;
      noun.english_plural = firsts[i + 1] + " " + noun.english_plural;
      lexicon.nouns.push_back(std::move(noun));
    }
  });
  lexicon.places = nouns_of(lexicon, {"place"});
}

void read_adjectives(Lexicon& lexicon) {
  std::vector<Fields> kinds;
  for_each_entry("adjectives", [&](const std::string& of, const Fields& f) {
    const Words german = halves(f[0], '/', parts(f[0], '/')[0]);
    lexicon.adjectives.push_back({german.german, german.english, f[1]});
    kinds.push_back(words(of));
  });
  for (Noun& noun : lexicon.nouns) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (is_any(noun, kinds[i])) noun.adjectives.push_back(&lexicon.adjectives[i]);
    }
  }
}

/// Headings: "person > accusative > fruit meal", "person > auf accusative > vehicle", "person > stative accusative >
/// pet".
void read_verbs(Lexicon& lexicon) {
  for_each_entry("verbs", [&](const std::string& heading, const Fields& f) {
    const Fields columns = parts(heading, '>');
    const bool with_sein = f[0].ends_with("!");
    const bool doubled = f[1].ends_with("*");  // "stop*": "stopped", "stopping"
    const Fields forms = parts(f[0].substr(0, f[0].size() - (with_sein ? 1 : 0)), '/');
    const Words english = halves(f[1].substr(0, f[1].size() - (doubled ? 1 : 0)), '+');
    const size_t plus = forms[0].find('+') + 1;  // 0 without a prefix
    Verb verb{.prefix = forms[0].substr(0, plus == 0 ? 0 : plus - 1), .infinitive = forms[0].substr(plus)};
    verb.with_sein = with_sein;
    const std::string stem =
        verb.infinitive.substr(0, verb.infinitive.size() - (verb.infinitive.ends_with("en") ? 2 : 1));
    verb.present = stem + (ends_with_any(stem, {"t", "d", "chn", "ffn"}) ? "et" : "t");
    const bool without_ge = stem.starts_with("be") || stem.starts_with("ver") || stem.ends_with("ier");
    verb.preterite = forms.size() > 1 ? forms[2] : verb.present + "e";
    verb.participle = forms.size() > 1 ? forms[3] : verb.prefix + (without_ge ? "" : "ge") + verb.present;
    if (forms.size() > 1) verb.present = forms[1];
    verb.english = english.german;
    verb.particle = english.english;
    verb.with_s = with_s(verb.english);
    verb.with_ing = with_ing(verb.english, doubled);
    verb.past = f.size() > 2 ? f[2] : with_ed(verb.english, doubled);
    verb.past_participle = f.size() > 3 ? f[3] : verb.past;
    verb.subjects = nouns_of(lexicon, words(columns[0]));
    if (columns.size() > 2) {
      for (const std::string& word : words(columns[1])) {
        if (word == "stative")
          verb.stative = true;
        else if (word == "dative")
          verb.object_case = Case::dative;
        else if (word != "accusative")
          verb.preposition = word;
      }
      verb.objects = nouns_of(lexicon, words(columns[2]));
    }
    lexicon.verbs.push_back(std::move(verb));
  });
}

/// "{a} , weil {b<a.last} ." as its clauses with the text before each, and last the text that remains.
std::vector<Slot> slots(const std::string& text) {
  std::vector<Slot> found;
  for (const std::string& piece : split(text, '}')) {
    const size_t open = std::min(piece.find('{'), piece.size());
    const Words order = halves(piece.substr(std::min(open + 1, piece.size())), '.', "main");
    const Words owner = halves(order.german, '<');
    found.push_back({piece.substr(0, open), owner.german, owner.english, order.english});
  }
  return found;
}

Lexicon read_lexicon() {
  Lexicon lexicon;
  read_nouns(lexicon);
  read_adjectives(lexicon);
  read_verbs(lexicon);
  for_each_entry("phrases", [&](const std::string& kind, const Fields& f) {
    const Words both = halves(join(f, " "), '=', f[0]);
    lexicon.phrases[kind].push_back(both);
  });
  for (const std::string& line : lines("sentences")) {
    const Fields f = parts(line, '|');
    lexicon.sentences.push_back({std::stoul(f[0]), words(f[1]), slots(f[2]), slots(f[3])});
    lexicon.total_weight += lexicon.sentences.back().weight;
  }
  return lexicon;
}

}  // namespace

std::string with_first_letter(std::string text, bool large) {
  // In UTF-8, "ä" and "Ä" differ by 0x20 in their second byte, as "a" and "A" do in their only one.
  char& letter = text[text[0] == '\xC3' ? 1 : 0];
  if (letter < '0' || letter > '9') letter = static_cast<char>(large ? letter & ~0x20 : letter | 0x20);
  return text;
}

const Lexicon& lexicon() {
  static const Lexicon whole = read_lexicon();
  return whole;
}

}  // namespace plumb::corpus
