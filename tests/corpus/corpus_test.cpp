// The built-in corpus: its grammar against hand-written forms, and invariants of every sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "corpus/clause.h"
#include "corpus/corpus.h"
#include "corpus/english.h"
#include "corpus/lexicon.h"
#include "corpus/lexicon_file.h"
#include "corpus/morphology.h"
#include "corpus/sentences.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb::corpus {
namespace {

constexpr std::array kCases = {Case::nominative, Case::accusative, Case::dative, Case::genitive};

const Adjective& adjective(std::string_view german) {
  for (const Adjective& candidate : adjectives()) {
    if (candidate.german == german) return candidate;
  }
  throw Error("no adjective");
}

NounPhrase phrase(std::string_view german, Determiner determiner, std::string_view quality = "",
                  Number number = Number::singular) {
  NounPhrase result;
  result.noun = &noun(german);
  result.determiner = determiner;
  result.number = number;
  if (!quality.empty()) result.adjectives = {&adjective(quality)};
  return result;
}

std::string all_cases(const NounPhrase& of) {
  std::vector<std::string> forms;
  for (const Case c : kCases) forms.push_back(german_phrase(of, c));
  return join(forms, " / ");
}

Clause clause_of(const NounPhrase& subject, const Verb& verb, const NounPhrase& object) {
  Clause clause;
  clause.subject = subject;
  clause.verb = &verb;
  clause.object = {object};
  return clause;
}

std::set<std::string> word_forms(const std::vector<SentencePair>& pairs, std::string SentencePair::*side) {
  std::set<std::string> forms;
  for (const SentencePair& pair : pairs) {
    for (std::string word : split(pair.*side, ' ')) {
      while (!word.empty() && std::string_view(".,?!").find(word.back()) != std::string_view::npos) word.pop_back();
      std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
      if (!word.empty()) forms.insert(word);
    }
  }
  return forms;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

class SyntheticCorpus : public testing::Test {
 protected:
  static const std::vector<SentencePair>& pairs() {
    static const std::vector<SentencePair> corpus = synthesize(20000, 1);
    return corpus;
  }
};

TEST_F(SyntheticCorpus, HasAsManyDistinctPairsAsAskedFor) {
  EXPECT_EQ(pairs().size(), 20000U);
  std::set<std::string> sources;
  for (const SentencePair& pair : pairs()) sources.insert(pair.source);
  EXPECT_EQ(sources.size(), pairs().size());
  EXPECT_EQ(synthesize(60000, 3).size(), 60000U);
  EXPECT_TRUE(synthesize(0, 1).empty());
}

TEST_F(SyntheticCorpus, RefusesImpossibleCounts) {
  EXPECT_THROW(synthesize(-1, 1), Error);
  EXPECT_THROW(synthesize(kMaximumPairs + 1, 1), Error);
  EXPECT_THROW(synthesize_each(-1, 1, [](SentencePair&&) {}), Error);
  EXPECT_THROW(synthesize_each(kMaximumStreamedPairs + 1, 1, [](SentencePair&&) {}), Error);
}

TEST_F(SyntheticCorpus, IsAFunctionOfItsSeedAndAPrefixOfALargerOne) {
  const auto again = synthesize(3000, 1);
  for (size_t i = 0; i < again.size(); ++i) {
    ASSERT_EQ(again[i].source, pairs()[i].source);
    ASSERT_EQ(again[i].target, pairs()[i].target);
  }
  const auto other = synthesize(3000, 2);
  size_t equal = 0;
  for (size_t i = 0; i < other.size(); ++i) equal += other[i].source == again[i].source ? 1 : 0;
  EXPECT_LT(equal, 3U);
}

// The same bytes with every compiler and machine: only a change of grammar or lexicon may change this number.
TEST_F(SyntheticCorpus, HasTheSameBytesEverywhere) {
  uint64_t hash = stream_of("");
  for (const SentencePair& pair : pairs()) hash = hash * 31 + stream_of(pair.source + "\t" + pair.target);
  EXPECT_EQ(hash, 15223739729580481708U);
}

TEST_F(SyntheticCorpus, HasALargeVocabulary) {
  EXPECT_GE(word_forms(pairs(), &SentencePair::source).size(), 3000U);
  EXPECT_GE(word_forms(pairs(), &SentencePair::target).size(), 1800U);
}

TEST_F(SyntheticCorpus, SentencesAreOfModerateLength) {
  int64_t german = 0, english = 0;
  for (const SentencePair& pair : pairs()) {
    const auto words = [](const std::string& text) { return static_cast<int64_t>(split(text, ' ').size()); };
    ASSERT_GE(words(pair.source), 2);
    ASSERT_LE(words(pair.source), 26);
    ASSERT_LE(words(pair.target), 26);
    german += words(pair.source);
    english += words(pair.target);
  }
  const auto count = static_cast<int64_t>(pairs().size());
  EXPECT_GE(german, 9 * count);
  EXPECT_LE(english, 13 * count);
}

TEST_F(SyntheticCorpus, IsCleanText) {
  for (const SentencePair& pair : pairs()) {
    for (const std::string& text : {pair.source, pair.target}) {
      ASSERT_TRUE(is_utf8(text)) << text;
      ASSERT_EQ(text.find("  "), std::string::npos) << text;
      for (const char* const wrong : {" ,", " .", ",,", ",.", " ?", " !", "..", "\t"}) {
        ASSERT_EQ(text.find(wrong), std::string::npos) << text;
      }
      ASSERT_NE(std::string_view(".?!").find(text.back()), std::string_view::npos) << text;
      ASSERT_FALSE(text.front() >= 'a' && text.front() <= 'z') << text;
    }
    ASSERT_EQ(pair.source.back(), pair.target.back()) << pair.source;
  }
}

// An article that cannot precede its noun in any case or number reveals an error.
TEST_F(SyntheticCorpus, EveryArticleAgreesWithItsNoun) {
  std::map<std::string, std::set<std::string>> allowed;  // noun form → articles directly before it
  for (const Noun& entry : nouns()) {
    for (const Number number : {Number::singular, Number::plural}) {
      if (number == Number::plural && entry.plural.empty()) continue;
      for (const Case c : kCases) {
        auto& set = allowed[decline_noun(entry, number, c)];
        set.insert(std::string(definite_article(entry.gender, number, c)));
        if (number == Number::singular) set.insert(ein_word("ein", entry.gender, number, c));
        set.insert(ein_word("kein", entry.gender, number, c));
      }
    }
  }
  const std::set<std::string> articles = {"der",   "die",   "das",   "den",   "dem",  "des",   "ein",    "eine",
                                          "einen", "einem", "eines", "einer", "kein", "keine", "keinen", "keinem"};
  size_t checked = 0;
  for (const SentencePair& pair : pairs()) {
    const std::vector<std::string> words = split(pair.source, ' ');
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      std::string word = words[i + 1];
      while (!word.empty() && std::string_view(".,?!").find(word.back()) != std::string_view::npos) word.pop_back();
      const auto known = allowed.find(word);
      const bool relative_pronoun = i > 0 && words[i - 1].back() == ',';
      if (relative_pronoun || articles.count(words[i]) == 0 || known == allowed.end()) continue;
      ASSERT_TRUE(known->second.count(words[i]) == 1) << words[i] << " " << word << ": " << pair.source;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10000U);
}

TEST_F(SyntheticCorpus, EveryEnglishArticleSuitsTheNextSound) {
  size_t checked = 0;
  for (const SentencePair& pair : pairs()) {
    const std::vector<std::string> words = split(pair.target, ' ');
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] != "a" && words[i] != "an") continue;
      const bool vowel = std::string_view("aeiou").find(words[i + 1][0]) != std::string_view::npos;
      const bool exception =
          words[i + 1].starts_with("honest") || words[i + 1].starts_with("hour") || words[i + 1].starts_with("used");
      ASSERT_EQ(words[i] == "an", vowel != exception) << pair.target;
      ++checked;
    }
  }
  EXPECT_GT(checked, 5000U);
}

TEST(Lexicon, NamesTheLineOfAMistake) {
  constexpr std::string_view kNames[] = {"tool", "toy", "tree"};
  const BitNames names(kNames, {{"thing", 3}});
  const Row row({"Hammer", "thing -toy !tree", "tol"}, "lexicon/nouns.txt:7");
  EXPECT_EQ(names.mask(row, 1), 1U);
  EXPECT_EQ(names.excluded(row, 1), 4U);
  EXPECT_EQ(row.text(3), "");
  try {
    (void)names.mask(row, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "lexicon/nouns.txt:7: 'tol' is no known name");
  }
  EXPECT_THROW((void)row.one_of<Gender>(0, {"der", "die", "das"}), Error);
  EXPECT_THROW(lexicon_text("none"), Error);
}

TEST(SyntheticGrammar, DeclinesArticleAdjectiveAndNoun) {
  EXPECT_EQ(all_cases(phrase("Hund", Determiner::definite, "klein")),
            "der kleine Hund / den kleinen Hund / dem kleinen Hund / des kleinen Hundes");
  EXPECT_EQ(all_cases(phrase("Katze", Determiner::definite, "klein")),
            "die kleine Katze / die kleine Katze / der kleinen Katze / der kleinen Katze");
  EXPECT_EQ(all_cases(phrase("Haus", Determiner::definite, "klein")),
            "das kleine Haus / das kleine Haus / dem kleinen Haus / des kleinen Hauses");
  EXPECT_EQ(all_cases(phrase("Hund", Determiner::definite, "klein", Number::plural)),
            "die kleinen Hunde / die kleinen Hunde / den kleinen Hunden / der kleinen Hunde");
  EXPECT_EQ(all_cases(phrase("Junge", Determiner::indefinite, "müde")),
            "ein müder Junge / einen müden Jungen / einem müden Jungen / eines müden Jungen");
  EXPECT_EQ(all_cases(phrase("Frau", Determiner::indefinite, "alt")),
            "eine alte Frau / eine alte Frau / einer alten Frau / einer alten Frau");
  EXPECT_EQ(all_cases(phrase("Zimmer", Determiner::indefinite, "dunkel")),
            "ein dunkles Zimmer / ein dunkles Zimmer / einem dunklen Zimmer / eines dunklen Zimmers");
  EXPECT_EQ(all_cases(phrase("Kind", Determiner::indefinite, "jung", Number::plural)),
            "junge Kinder / junge Kinder / jungen Kindern / junger Kinder");
  EXPECT_EQ(all_cases(phrase("Kaffee", Determiner::none, "kalt")),
            "kalter Kaffee / kalten Kaffee / kaltem Kaffee / kalten Kaffees");
  EXPECT_EQ(all_cases(phrase("Milch", Determiner::none, "kalt")),
            "kalte Milch / kalte Milch / kalter Milch / kalter Milch");
  EXPECT_EQ(all_cases(phrase("Wasser", Determiner::none, "kalt")),
            "kaltes Wasser / kaltes Wasser / kaltem Wasser / kalten Wassers");
  EXPECT_EQ(all_cases(phrase("Auto", Determiner::negative, "teuer", Number::plural)),
            "keine teuren Autos / keine teuren Autos / keinen teuren Autos / keiner teuren Autos");
  EXPECT_EQ(all_cases(phrase("Bus", Determiner::demonstrative, "lila")),
            "dieser lila Bus / diesen lila Bus / diesem lila Bus / dieses lila Busses");
  EXPECT_EQ(
      all_cases(phrase("Lehrerin", Determiner::many, "jung", Number::plural)),
      "viele junge Lehrerinnen / viele junge Lehrerinnen / vielen jungen Lehrerinnen / vieler junger Lehrerinnen");
  EXPECT_EQ(all_cases(phrase("Mauer", Determiner::his, "hoch")),
            "seine hohe Mauer / seine hohe Mauer / seiner hohen Mauer / seiner hohen Mauer");
}

TEST(SyntheticGrammar, ComparesAndContracts) {
  EXPECT_EQ(comparative(adjective("klein")), "kleiner");
  EXPECT_EQ(comparative(adjective("jung")), "jünger");
  EXPECT_EQ(comparative(adjective("müde")), "müder");
  EXPECT_EQ(comparative(adjective("teuer")), "teurer");
  EXPECT_THROW(comparative(adjective("rot")), Error);
  EXPECT_EQ(contract("in", "dem"), "im");
  EXPECT_EQ(contract("zu", "der"), "zur");
  EXPECT_EQ(contract("an", "das"), "ans");
  EXPECT_EQ(contract("auf", "dem"), "auf dem");
  EXPECT_EQ(contract("in", "der"), "in der");
  EXPECT_EQ(german_phrase("in", phrase("Garten", Determiner::definite, "alt"), Case::dative), "im alten Garten");
  EXPECT_EQ(german_phrase("in", phrase("Garten", Determiner::indefinite), Case::accusative), "in einen Garten");
}

TEST(SyntheticGrammar, BuildsCompounds) {
  const Noun& table = noun("Küchentisch");
  EXPECT_EQ(table.gender, Gender::masculine);
  EXPECT_EQ(decline_noun(table, Number::plural, Case::dative), "Küchentischen");
  EXPECT_EQ(table.english, "kitchen table");
  EXPECT_EQ(noun("Fußballspielerin").plural, "Fußballspielerinnen");
  EXPECT_EQ(english_plural(noun("Küchenmesser")), "kitchen knives");
  std::set<std::string> names;
  for (const Noun& entry : nouns()) EXPECT_TRUE(names.insert(entry.german).second) << entry.german << " twice";
}

TEST(SyntheticGrammar, ConjugatesVerbs) {
  using enum Person;
  const auto forms = [](const GermanVerb& verb) {
    return join({present(verb, first, Number::singular), present(verb, second, Number::singular),
                 present(verb, third, Number::singular), present(verb, third, Number::plural),
                 preterite(verb, third, Number::singular), preterite(verb, third, Number::plural)},
                " ");
  };
  EXPECT_EQ(forms(verb("laufen", Frame::motion).german), "laufe läufst läuft laufen lief liefen");
  EXPECT_EQ(forms(verb("arbeiten", Frame::intransitive).german),
            "arbeite arbeitest arbeitet arbeiten arbeitete arbeiteten");
  EXPECT_EQ(forms(verb("lesen", Frame::accusative).german), "lese liest liest lesen las lasen");
  EXPECT_EQ(forms(verb("halten", Frame::accusative).german), "halte hältst hält halten hielt hielten");
  EXPECT_EQ(forms(verb("einladen", Frame::accusative).german), "lade lädst lädt laden lud luden");
  EXPECT_EQ(forms(verb("streicheln", Frame::accusative).german),
            "streichle streichelst streichelt streicheln streichelte streichelten");
  EXPECT_EQ(forms(verb("mögen", Frame::accusative).german), "mag magst mag mögen mochte mochten");
  EXPECT_EQ(forms(to_be()), "bin bist ist sind war waren");
  EXPECT_EQ(forms(to_have()), "habe hast hat haben hatte hatten");
  EXPECT_EQ(forms(to_become()), "werde wirst wird werden wurde wurden");
  EXPECT_EQ(zu_infinitive(verb("aufheben", Frame::accusative).german), "aufzuheben");
  EXPECT_EQ(zu_infinitive(verb("essen", Frame::accusative).german), "zu essen");
}

TEST(SyntheticGrammar, PlacesSeparableVerbs) {
  Clause clause = clause_of(phrase("Frau", Determiner::definite), verb("aufheben", Frame::accusative),
                            phrase("Stein", Determiner::definite));
  EXPECT_EQ(german_main(clause), "die Frau hebt den Stein auf");
  EXPECT_EQ(english_main(clause), "the woman is picking up the stone");
  EXPECT_EQ(german_subordinate(clause), "die Frau den Stein aufhebt");
  EXPECT_EQ(german_question(clause, ""), "hebt die Frau den Stein auf");
  EXPECT_EQ(english_question(clause, ""), "is the woman picking up the stone");
  EXPECT_EQ(german_infinitive(clause), "den Stein aufzuheben");
  clause.front = {"heute", "today ,"};
  EXPECT_EQ(german_main(clause), "heute hebt die Frau den Stein auf");
  clause.front = {};
  clause.object = {pronoun_for(clause.object.front())};
  EXPECT_EQ(german_main(clause), "die Frau hebt ihn auf");
  EXPECT_EQ(english_main(clause), "the woman is picking it up");
  clause.tense = Tense::perfect;
  EXPECT_EQ(german_main(clause), "die Frau hat ihn aufgehoben");
  EXPECT_EQ(german_subordinate(clause), "die Frau ihn aufgehoben hat");
  EXPECT_EQ(english_main(clause), "the woman has picked it up");
  clause.tense = Tense::present;
  clause.modal = &modals().front();
  EXPECT_EQ(german_main(clause), "die Frau will ihn aufheben");
  clause.negated = true;
  EXPECT_EQ(german_main(clause), "die Frau will ihn nicht aufheben");
  EXPECT_EQ(english_main(clause), "the woman does not want to pick it up");
}

TEST(SyntheticGrammar, OrdersTensesVoicesAndNegation) {
  Clause clause = clause_of(phrase("Kind", Determiner::definite, "", Number::plural), verb("essen", Frame::accusative),
                            phrase("Apfel", Determiner::negative));
  clause.negated = true;
  EXPECT_EQ(german_main(clause), "die Kinder essen keinen Apfel");
  EXPECT_EQ(english_main(clause), "the children are not eating an apple");
  clause.simple = true;
  EXPECT_EQ(english_main(clause), "the children do not eat an apple");
  clause.tense = Tense::preterite;
  EXPECT_EQ(german_main(clause), "die Kinder aßen keinen Apfel");
  EXPECT_EQ(english_main(clause), "the children did not eat an apple");

  Clause passive;
  passive.subject = phrase("Auto", Determiner::definite);
  passive.verb = &verb("waschen", Frame::accusative);
  passive.passive = true;
  EXPECT_EQ(german_main(passive), "das Auto wird gewaschen");
  EXPECT_EQ(english_main(passive), "the car is being washed");
  passive.tense = Tense::perfect;
  EXPECT_EQ(german_main(passive), "das Auto ist gewaschen worden");
  EXPECT_EQ(english_main(passive), "the car has been washed");
}

TEST(SyntheticGrammar, WritesRelativeClauses) {
  NounPhrase man = phrase("Mann", Determiner::definite, "alt");
  man.relative = {clause_of(man, verb("tragen", Frame::accusative), phrase("Hut", Determiner::indefinite, "rot"))};
  Clause main;
  main.subject = man;
  main.verb = &verb("lachen", Frame::intransitive);
  const SentencePair pair = statement(main);
  EXPECT_EQ(pair.source, "Der alte Mann, der einen roten Hut trägt, lacht.");
  EXPECT_EQ(pair.target, "The old man who is wearing a red hat is laughing.");
}

TEST(SyntheticGrammar, InflectsEnglish) {
  EXPECT_EQ(english_article("apple"), "an");
  EXPECT_EQ(english_article("hour"), "an");
  EXPECT_EQ(english_article("uniform"), "a");
  EXPECT_EQ(english_article("used"), "a");
  EXPECT_EQ(english_article("unimportant"), "an");
  EXPECT_EQ(english_article("hat"), "a");
  EXPECT_EQ(progressive("run"), "running");
  EXPECT_EQ(progressive("swim"), "swimming");
  EXPECT_EQ(progressive("write"), "writing");
  EXPECT_EQ(progressive("lie"), "lying");
  EXPECT_EQ(progressive("open"), "opening");
  EXPECT_EQ(progressive("draw"), "drawing");
  EXPECT_EQ(progressive("eat"), "eating");
  EXPECT_EQ(progressive("travel"), "traveling");
  EXPECT_EQ(third_person("watch"), "watches");
  EXPECT_EQ(third_person("carry"), "carries");
  EXPECT_EQ(third_person("play"), "plays");
  EXPECT_EQ(third_person("have"), "has");
  EXPECT_EQ(past({"hop"}), "hopped");
  EXPECT_EQ(past({"carry"}), "carried");
  EXPECT_EQ(past({"visit"}), "visited");
  EXPECT_EQ(past_participle({"eat", "", "ate", "eaten"}), "eaten");
  EXPECT_EQ(english_plural(noun("Stadt")), "cities");
  EXPECT_EQ(english_plural(noun("Kirche")), "churches");
  EXPECT_EQ(english_plural(noun("Kind")), "children");
  EXPECT_EQ(english_possessive("boys", Number::plural), "boys'");
  EXPECT_EQ(english_possessive("children", Number::plural), "children's");
  EXPECT_EQ(english_comparative(adjective("schmutzig")), "dirtier");
  EXPECT_EQ(english_comparative(adjective("interessant")), "more interesting");
  EXPECT_EQ(english_comparative(adjective("nass")), "wetter");
}

}  // namespace
}  // namespace plumb::corpus
