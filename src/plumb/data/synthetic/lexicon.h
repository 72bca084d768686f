// What the grammar knows about words. Each table is a file (lexicon_*.cpp); inflection is in morphology.h (German) and
// english.h. A word's `kinds` say what it means, so that verbs take sensible subjects and objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::synthetic {

/// A German phrase and its English counterpart.
struct Words {
  std::string german;
  std::string english;
  [[nodiscard]] bool empty() const { return german.empty(); }
};

enum class Gender : uint8_t { masculine, feminine, neuter };
enum class Number : uint8_t { singular, plural };
enum class Case : uint8_t { nominative, accusative, dative, genitive };

/// The ending of the genitive singular; weak nouns ("der Junge", "des Jungen") take it in every case but the
/// nominative.
enum class Genitive : uint8_t { none, s, es, weak_n, weak_en };

/// The English pronoun of a noun; a referent that is `unspecified` ("das Kind") is never replaced by a pronoun.
enum class Referent : uint8_t { it, he, she, unspecified };

using Kinds = uint64_t;

/// Semantic classes of nouns; a noun has one or more.
namespace kind {
constexpr Kinds bit(int position) { return Kinds{1} << position; }
constexpr Kinds adult = bit(0), child = bit(1), relative = bit(2), worker = bit(3);
constexpr Kinds pet = bit(4), farm = bit(5), wild = bit(6), bird = bit(7), swimmer = bit(8);
constexpr Kinds car = bit(9), cycle = bit(10), rail = bit(11), boat = bit(12), aircraft = bit(13);
constexpr Kinds fruit = bit(14), vegetable = bit(15), dish = bit(16), baked = bit(17), ingredient = bit(18);
constexpr Kinds drink = bit(19), womens = bit(20);
constexpr Kinds garment = bit(21), warm = bit(22), jewellery = bit(23);
constexpr Kinds tool = bit(24), cutlery = bit(25), furniture = bit(26), surface = bit(27), container = bit(28);
constexpr Kinds tableware = bit(29), instrument = bit(30), flower = bit(31), tree = bit(32), toy = bit(33);
constexpr Kinds ball = bit(34), building = bit(35), room = bit(36), area = bit(37), water = bit(38), road = bit(39);
constexpr Kinds reading = bit(40), device = bit(41), luggage = bit(42), opening = bit(43), picture = bit(44);
constexpr Kinds machine = bit(45), writing = bit(46), present = bit(47), barrier = bit(48);
// How a thing rests: "steht", "liegt" or "hängt an der Wand".
constexpr Kinds stands = bit(50), lies = bit(51), hangs = bit(52);
// How a noun is used: without plural and indefinite article; only in the plural; in the singular,
// which English makes a plural ("Hose", "pants").
constexpr Kinds mass = bit(54), pairs = bit(55), plural_in_english = bit(56);
// What single verbs and rules ask for.
constexpr Kinds compound = bit(58);
constexpr Kinds dog = bit(59), grazer = bit(60), mount = bit(53), candle = bit(61), treasure = bit(62);
constexpr Kinds correspondence = bit(63), tale = bit(49), seat = bit(57);

constexpr Kinds person = adult | child;
constexpr Kinds animal = pet | farm | wild | bird | swimmer;
constexpr Kinds vehicle = car | cycle | rail | boat | aircraft;
constexpr Kinds food = fruit | vegetable | dish | baked;
constexpr Kinds plant = flower | tree;
constexpr Kinds place = building | room | area | water | road;
constexpr Kinds thing = garment | jewellery | tool | cutlery | furniture | container | tableware | instrument | toy |
                        ball | reading | device | luggage | picture | writing | present;
}  // namespace kind

/// Nouns with a kind of `any` and none of `none`.
struct Selection {
  Kinds any = 0;
  Kinds none = 0;
  // Implicit, so that kinds alone are a selection. NOLINTNEXTLINE(google-explicit-constructor)
  Selection(Kinds any_of, Kinds none_of = 0) : any(any_of), none(none_of) {}
  [[nodiscard]] bool accepts(Kinds kinds) const { return (kinds & any) != 0 && (kinds & none) == 0; }
};

struct Noun {
  std::string german;
  Gender gender;
  Genitive genitive;
  std::string plural;  // empty: none
  std::string english;
  std::string english_plural;  // empty: regular
  Kinds kinds;
  Referent referent = Referent::it;
};

/// A given name; the same in both languages.
struct Name {
  std::string text;
  Referent referent;
};

/// Where a place lies; a verb and the habitat of its subject restrict it.
namespace site {
constexpr uint32_t indoors = 1, yard = 2, town = 4, nature = 8, shore = 16, water = 32, public_room = 64, farm = 128;
constexpr uint32_t workplace = 256, kitchen = 512, sport = 1024, shop = 2048;
constexpr uint32_t outdoors = yard | town | nature | shore | farm;
constexpr uint32_t anywhere = indoors | outdoors | public_room | kitchen | sport;
}  // namespace site

/// A noun as a place, with the prepositions of rest (dative), of motion towards it, and of a way over it (accusative).
struct Place {
  std::string noun;
  uint32_t sites;
  std::string german_at, english_at;
  std::string german_to, english_to;      // "zu" takes the dative, the others the accusative
  std::string german_over, english_over;  // empty: no way leads over it
};

/// The order in which adjectives stand before a noun, in both languages.
enum class Rank : uint8_t { opinion, size, state, age, colour };

struct Adjective {
  std::string german;
  std::string stem;         // before an ending: "dunkel" → "dunkl"; empty: as it is
  std::string comparative;  // "größer"; empty: stem + "er"; "-": none
  std::string english;
  std::string english_comparative;  // empty: regular
  Rank rank;
  Kinds kinds;
};

/// What a verb wants beside its subject; a posture ("sitzen") wants a place.
enum class Frame : uint8_t { intransitive, posture, accusative, dative, prepositional, motion, put, ditransitive };

/// How an action can be done; an adverb names the manners it describes.
namespace manner {
constexpr uint32_t speed = 1, care = 2, joy = 4, quiet = 8, loud = 16, warmth = 32, calm = 64, peace = 128;
constexpr uint32_t curiosity = 256, on_foot = 512, cleaning = 1024;
}  // namespace manner

/// Principal parts; a separable prefix stands apart: "heben", "auf", "hebt", "hob", "aufgehoben".
struct GermanVerb {
  std::string infinitive;
  std::string prefix;
  std::string third;      // er/sie/es, present
  std::string preterite;  // er/sie/es
  std::string participle;
  bool sein = false;  // the auxiliary of the perfect
};

struct EnglishVerb {
  std::string base;
  std::string particle = {};    // "up": moves behind a pronoun ("picks it up")
  std::string past = {};        // empty: regular
  std::string participle = {};  // empty: as the past
};

struct Verb {
  GermanVerb german;
  EnglishVerb english;
  Frame frame;
  Selection subjects;
  Selection objects = 0;
  uint32_t sites = site::anywhere;
  uint32_t manners = 0;
  // The preposition of a prepositional object and its English counterpart (empty: a direct object in English; with
  // frames other than prepositional, English alone may want one: "betrachten", "look at").
  std::string german_preposition = {};
  Case preposition_case = Case::accusative;
  std::string english_preposition = {};
  bool stative = false;  // English has no progressive: "knows"
};

struct Modal {
  std::string infinitive, singular, plural, preterite;  // "wollen", "will", "wollen", "wollte"
  std::string english_singular, english_plural, english_past, english_past_plural;  // followed by the bare infinitive
};

struct Adverb {
  Words words;
  uint32_t manners;
  bool last;  // English puts it behind the object ("runs fast")
};

/// What a time expression says about the tense of its clause.
enum class TimeKind : uint8_t { now, habit, past, future, day };
struct TimeExpression {
  Words words;
  TimeKind kind;
};

const std::vector<Noun>& nouns();   // compounds included
const std::vector<Noun>& people();  // the tables behind it
const std::vector<Noun>& animals();
const std::vector<Noun>& food();
const std::vector<Noun>& belongings();
const std::vector<Noun>& household();
const std::vector<Noun>& surroundings();
std::vector<Noun> compounds(const std::vector<Noun>& simple);
const std::vector<Name>& names();
const std::vector<Words>& cities();  // with "nach" and "in": "München", "Munich"
const std::vector<Place>& places();
const std::vector<Adjective>& adjectives();
const std::vector<Verb>& verbs();            // all of the following
const std::vector<Verb>& verbs_of_motion();  // and of being somewhere
const std::vector<Verb>& verbs_of_handling();
const std::vector<Verb>& verbs_of_regard();
const std::vector<Verb>& verbs_with_others();  // dative, prepositional, two objects, putting
const std::vector<Modal>& modals();
const std::vector<Adverb>& adverbs();
const std::vector<Words>& frequencies();  // "oft", "often"
const std::vector<TimeExpression>& times();

/// The noun or verb of this name. Throws Error when the tables lack it (a mistake in a table, never of a user).
const Noun& noun(std::string_view german);
const Verb& verb(std::string_view infinitive_with_prefix, Frame frame);

}  // namespace plumb::synthetic
