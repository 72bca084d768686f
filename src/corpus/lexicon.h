// The words of the grammar. Each table is a file in lexicon/; inflection is in morphology.h (German) and english.h. A
// word's `kinds` are its semantic classes, so that verbs take sensible subjects and objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::corpus {

/// Bit i for the i-th name. An unknown name does not compile.
template <size_t count>
consteval uint64_t bit_named(const std::string_view (&names)[count], std::string_view name) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == name) return uint64_t{1} << i;
  }
  throw "no such name";
}

/// A German phrase and its English counterpart.
struct Words {
  std::string german;
  std::string english;
  [[nodiscard]] bool empty() const { return german.empty(); }
};

enum class Gender : uint8_t { masculine, feminine, neuter };
enum class Number : uint8_t { singular, plural };
enum class Case : uint8_t { nominative, accusative, dative, genitive };

/// The ending of the genitive singular; weak nouns ("der Junge", "des Jungen") take it in every case except the
/// nominative.
enum class Genitive : uint8_t { none, s, es, weak_n, weak_en };

/// The English pronoun for a noun. `unspecified`: the gender is unknown ("das Kind").
enum class Referent : uint8_t { it, he, she, unspecified };

using Kinds = uint64_t;

/// Semantic classes of nouns; a noun has one or more. The lexicon files use all of these names, the grammar some.
namespace kind {
inline constexpr std::string_view kNames[] = {
    "adult", "child", "relative", "worker", "pet", "farm", "wild", "bird", "swimmer", "car", "cycle", "rail", "boat",
    "aircraft", "fruit", "vegetable", "dish", "baked", "ingredient", "drink", "womens", "garment", "warm", "jewelry",
    "tool", "cutlery", "furniture", "surface", "container", "tableware", "instrument", "flower", "tree", "toy", "ball",
    "building", "room", "area", "water", "road", "reading", "device", "luggage", "opening", "picture", "machine",
    "writing", "present", "barrier", "dog", "grazer", "mount", "candle", "treasure", "correspondence", "tale", "seat",
    // How a thing rests: "steht", "liegt" or "hängt an der Wand".
    "stands", "lies", "hangs",
    // How a noun is used: without plural or indefinite article; in the plural only; as a singular that is a plural in
    // English ("Hose", "pants").
    "mass", "pairs", "plural_in_english"};
constexpr Kinds compound = Kinds{1} << 63;  // made of two nouns

consteval Kinds named(std::string_view name) { return bit_named(kNames, name); }
constexpr Kinds adult = named("adult"), child = named("child"), pet = named("pet"), farm = named("farm"),
                wild = named("wild"), bird = named("bird"), swimmer = named("swimmer"), car = named("car"),
                cycle = named("cycle"), rail = named("rail"), boat = named("boat"), aircraft = named("aircraft"),
                fruit = named("fruit"), vegetable = named("vegetable"), dish = named("dish"), baked = named("baked"),
                garment = named("garment"), jewelry = named("jewelry"), tool = named("tool"),
                cutlery = named("cutlery"), furniture = named("furniture"), surface = named("surface"),
                container = named("container"), tableware = named("tableware"), instrument = named("instrument"),
                flower = named("flower"), tree = named("tree"), toy = named("toy"), ball = named("ball"),
                building = named("building"), room = named("room"), area = named("area"), water = named("water"),
                road = named("road"), reading = named("reading"), device = named("device"), luggage = named("luggage"),
                opening = named("opening"), picture = named("picture"), machine = named("machine"),
                writing = named("writing"), present = named("present"), treasure = named("treasure"),
                seat = named("seat"), dog = named("dog"), relative = named("relative"), worker = named("worker"),
                womens = named("womens"), stands = named("stands"), lies = named("lies"), hangs = named("hangs"),
                mass = named("mass"), pairs = named("pairs"), plural_in_english = named("plural_in_english");
constexpr Kinds person = adult | child;
constexpr Kinds animal = pet | farm | wild | bird | swimmer;
constexpr Kinds vehicle = car | cycle | rail | boat | aircraft;
constexpr Kinds food = fruit | vegetable | dish | baked;
constexpr Kinds plant = flower | tree;
constexpr Kinds place = building | room | area | water | road;
constexpr Kinds thing = garment | jewelry | tool | cutlery | furniture | container | tableware | instrument | toy |
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
  std::string plural;  // empty: no plural
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

/// Where a place is; a verb and the habitat of its subject restrict it.
namespace site {
inline constexpr std::string_view kNames[] = {"indoors",     "yard", "town",      "nature",  "shore", "water",
                                              "public_room", "farm", "workplace", "kitchen", "sport", "shop"};
consteval uint32_t named(std::string_view name) { return static_cast<uint32_t>(bit_named(kNames, name)); }
constexpr uint32_t indoors = named("indoors"), yard = named("yard"), town = named("town"), nature = named("nature"),
                   shore = named("shore"), water = named("water"), public_room = named("public_room"),
                   farm = named("farm"), workplace = named("workplace"), kitchen = named("kitchen"),
                   sport = named("sport"), shop = named("shop");
constexpr uint32_t outdoors = yard | town | nature | shore | farm;
constexpr uint32_t anywhere = indoors | outdoors | public_room | kitchen | sport;
}  // namespace site

/// A noun as a place, with its prepositions for being at it (dative), moving to it, and moving over it (accusative).
struct Place {
  std::string noun;
  uint32_t sites;
  std::string german_at, english_at;
  std::string german_to, english_to;      // "zu" takes the dative, the others the accusative
  std::string german_over, english_over;  // empty: one cannot move over it
};

/// The order of adjectives before a noun, in both languages.
enum class Rank : uint8_t { opinion, size, state, age, color };

struct Adjective {
  std::string german;
  std::string stem;         // before an ending: "dunkel" → "dunkl"; empty: unchanged
  std::string comparative;  // "größer"; empty: regular; "none": no comparative
  std::string english;
  std::string english_comparative;  // empty: regular
  Rank rank;
  Kinds kinds;
};

/// What a verb requires besides its subject; a posture ("sitzen") requires a place.
enum class Frame : uint8_t { intransitive, posture, accusative, dative, prepositional, motion, put, ditransitive };

/// How an action can be done; adverbs and verbs are matched by their manners.
namespace manner {
inline constexpr std::string_view kNames[] = {"speed", "care",  "joy",       "quiet",   "loud",    "warmth",
                                              "calm",  "peace", "curiosity", "on_foot", "cleaning"};
}  // namespace manner

/// Principal parts; a separable prefix is listed separately: "heben", "auf", "hebt", "hob", "aufgehoben".
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
  std::string particle = {};    // "up": moves after a pronoun ("picks it up")
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
  // The preposition of a prepositional object and its English counterpart (empty: a direct object in English). With
  // other frames, only English may need one: "betrachten", "look at".
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
  bool last;  // English places it after the object ("runs fast")
};

/// The tense that a time expression requires.
enum class TimeKind : uint8_t { now, habit, past, future, day };
struct TimeExpression {
  Words words;
  TimeKind kind;
};

const std::vector<Noun>& nouns();  // compounds included
const std::vector<Name>& names();
const std::vector<Words>& cities();  // with "nach" and "in": "München", "Munich"
const std::vector<Place>& places();
const std::vector<Adjective>& adjectives();
const std::vector<Verb>& verbs();
const std::vector<Modal>& modals();
const std::vector<Adverb>& adverbs();
const std::vector<Words>& frequencies();  // "oft", "often"
const std::vector<TimeExpression>& times();

/// The noun or verb with this name. Throws Error if the tables lack it, which is a bug, not a user error.
const Noun& noun(std::string_view german);
const Verb& verb(std::string_view infinitive_with_prefix, Frame frame);

}  // namespace plumb::corpus
