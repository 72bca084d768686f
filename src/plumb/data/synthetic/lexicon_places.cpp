#include "plumb/data/synthetic/lexicon.h"

namespace plumb::synthetic {
namespace {

constexpr Gender der = Gender::masculine, die = Gender::feminine, das = Gender::neuter;
constexpr Genitive none = Genitive::none, s = Genitive::s, es = Genitive::es;
}  // namespace

const std::vector<Noun>& surroundings() {
  using namespace kind;
  static const std::vector<Noun> table = {
      {"Haus", das, es, "Häuser", "house", "", building},
      {"Hütte", die, none, "Hütten", "hut", "", building},
      {"Turm", der, es, "Türme", "tower", "", building},
      {"Kirche", die, none, "Kirchen", "church", "", building},
      {"Schule", die, none, "Schulen", "school", "", building},
      {"Museum", das, s, "Museen", "museum", "", building},
      {"Bibliothek", die, none, "Bibliotheken", "library", "", building},
      {"Café", das, s, "Cafés", "café", "", building},
      {"Restaurant", das, s, "Restaurants", "restaurant", "", building},
      {"Bahnhof", der, es, "Bahnhöfe", "train station", "", building},
      {"Flughafen", der, s, "Flughäfen", "airport", "", building},
      {"Krankenhaus", das, es, "Krankenhäuser", "hospital", "", building},
      {"Supermarkt", der, es, "Supermärkte", "supermarket", "", building},
      {"Laden", der, s, "Läden", "shop", "", building},
      {"Bäckerei", die, none, "Bäckereien", "bakery", "", building},
      {"Theater", das, s, "Theater", "theater", "", building},
      {"Kino", das, s, "Kinos", "movie theater", "", building},
      {"Hotel", das, s, "Hotels", "hotel", "", building},
      {"Schloss", das, es, "Schlösser", "castle", "", building},
      {"Scheune", die, none, "Scheunen", "barn", "", building},
      {"Zelt", das, es, "Zelte", "tent", "", building},
      {"Werkstatt", die, none, "Werkstätten", "workshop", "", room},
      {"Garage", die, none, "Garagen", "garage", "", room},
      {"Küche", die, none, "Küchen", "kitchen", "", room},
      {"Wohnzimmer", das, s, "Wohnzimmer", "living room", "", room},
      {"Schlafzimmer", das, s, "Schlafzimmer", "bedroom", "", room},
      {"Badezimmer", das, s, "Badezimmer", "bathroom", "", room},
      {"Zimmer", das, s, "Zimmer", "room", "", room},
      {"Büro", das, s, "Büros", "office", "", room},
      {"Keller", der, s, "Keller", "basement", "", room},
      {"Flur", der, es, "Flure", "hallway", "", room},
      {"Balkon", der, s, "Balkone", "balcony", "", room},
      {"Terrasse", die, none, "Terrassen", "terrace", "", room},
      {"Garten", der, s, "Gärten", "garden", "", area},
      {"Hof", der, es, "Höfe", "yard", "", area},
      {"Park", der, s, "Parks", "park", "", area},
      {"Wald", der, es, "Wälder", "forest", "", area},
      {"Wiese", die, none, "Wiesen", "meadow", "", area},
      {"Feld", das, es, "Felder", "field", "", area},
      {"Berg", der, es, "Berge", "mountain", "", area},
      {"Hügel", der, s, "Hügel", "hill", "", area},
      {"Tal", das, es, "Täler", "valley", "", area},
      {"Strand", der, es, "Strände", "beach", "", area},
      {"Insel", die, none, "Inseln", "island", "", area},
      {"Fluss", der, es, "Flüsse", "river", "", water},
      {"See", der, s, "Seen", "lake", "", water},
      {"Meer", das, es, "Meere", "sea", "", water},
      {"Teich", der, es, "Teiche", "pond", "", water},
      {"Schwimmbad", das, es, "Schwimmbäder", "swimming pool", "", water},
      {"Straße", die, none, "Straßen", "street", "", road},
      {"Weg", der, es, "Wege", "path", "", road},
      {"Brücke", die, none, "Brücken", "bridge", "", road},
      {"Marktplatz", der, es, "Marktplätze", "market square", "", area},
      {"Markt", der, es, "Märkte", "market", "", area},
      {"Stadt", die, none, "Städte", "city", "", area},
      {"Dorf", das, es, "Dörfer", "village", "", area},
      {"Spielplatz", der, es, "Spielplätze", "playground", "", area},
      {"Sportplatz", der, es, "Sportplätze", "sports field", "", area},
      {"Bauernhof", der, es, "Bauernhöfe", "farm", "", area},
      {"Hafen", der, s, "Häfen", "harbor", "", area},
      {"Zoo", der, s, "Zoos", "zoo", "", area},
  };
  return table;
}

namespace {

const std::vector<Place>& simple_places() {
  using namespace site;
  static const std::vector<Place> table = {
      {"Haus", indoors, "in", "in", "in", "into", "", ""},
      {"Hütte", indoors, "in", "in", "in", "into", "", ""},
      {"Kirche", public_room, "in", "in", "in", "into", "", ""},
      {"Schule", public_room, "in", "at", "zu", "to", "", ""},
      {"Museum", public_room, "in", "in", "in", "into", "durch", "through"},
      {"Bibliothek", public_room, "in", "in", "in", "into", "", ""},
      {"Café", public_room, "in", "in", "in", "into", "", ""},
      {"Restaurant", public_room, "in", "in", "in", "into", "", ""},
      {"Bahnhof", town, "an", "at", "zu", "to", "", ""},
      {"Flughafen", town, "an", "at", "zu", "to", "", ""},
      {"Krankenhaus", workplace, "in", "in", "in", "into", "", ""},
      {"Supermarkt", shop, "in", "in", "in", "into", "durch", "through"},
      {"Laden", shop, "in", "in", "in", "into", "", ""},
      {"Bäckerei", shop, "in", "in", "zu", "to", "", ""},
      {"Theater", public_room, "in", "in", "in", "into", "", ""},
      {"Kino", public_room, "in", "in", "in", "into", "", ""},
      {"Hotel", public_room, "in", "in", "in", "into", "", ""},
      {"Schloss", public_room, "in", "in", "in", "into", "", ""},
      {"Scheune", farm, "in", "in", "in", "into", "", ""},
      {"Zelt", indoors, "in", "in", "in", "into", "", ""},
      {"Werkstatt", workplace, "in", "in", "in", "into", "", ""},
      {"Garage", workplace, "in", "in", "in", "into", "", ""},
      {"Küche", kitchen, "in", "in", "in", "into", "durch", "through"},
      {"Wohnzimmer", indoors, "in", "in", "in", "into", "durch", "through"},
      {"Schlafzimmer", indoors, "in", "in", "in", "into", "", ""},
      {"Zimmer", indoors, "in", "in", "in", "into", "durch", "through"},
      {"Büro", workplace, "in", "in", "in", "into", "", ""},
      {"Keller", indoors, "in", "in", "in", "into", "", ""},
      {"Flur", indoors, "in", "in", "in", "into", "durch", "through"},
      {"Balkon", yard, "auf", "on", "auf", "onto", "", ""},
      {"Terrasse", yard, "auf", "on", "auf", "onto", "über", "across"},
      {"Garten", yard, "in", "in", "in", "into", "durch", "through"},
      {"Hof", yard, "in", "in", "in", "into", "über", "across"},
      {"Park", nature, "in", "in", "in", "into", "durch", "through"},
      {"Wald", nature, "in", "in", "in", "into", "durch", "through"},
      {"Wiese", nature | farm, "auf", "in", "auf", "into", "über", "across"},
      {"Feld", nature | farm, "auf", "in", "auf", "into", "über", "across"},
      {"Berg", nature, "auf", "on", "auf", "up", "", ""},
      {"Hügel", nature, "auf", "on", "auf", "up", "", ""},
      {"Tal", nature, "in", "in", "in", "into", "durch", "through"},
      {"Strand", shore, "an", "on", "zu", "to", "über", "across"},
      {"Insel", nature | shore, "auf", "on", "auf", "onto", "über", "across"},
      {"Fluss", water, "in", "in", "zu", "to", "", ""},
      {"See", water, "in", "in", "zu", "to", "", ""},
      {"Meer", water, "in", "in", "zu", "to", "", ""},
      {"Teich", water, "in", "in", "zu", "to", "", ""},
      {"Straße", town, "auf", "on", "auf", "onto", "über", "across"},
      {"Weg", town | nature, "auf", "on", "auf", "onto", "", ""},
      {"Brücke", town, "auf", "on", "auf", "onto", "über", "across"},
      {"Marktplatz", town, "auf", "in", "zu", "to", "über", "across"},
      {"Markt", shop, "auf", "at", "zu", "to", "über", "across"},
      {"Stadt", town, "in", "in", "in", "into", "durch", "through"},
      {"Dorf", town, "in", "in", "in", "into", "durch", "through"},
      {"Spielplatz", yard, "auf", "on", "zu", "to", "über", "across"},
      {"Sportplatz", sport, "auf", "on", "zu", "to", "über", "across"},
      {"Bauernhof", farm, "auf", "on", "zu", "to", "über", "across"},
      {"Hafen", shore, "in", "in", "zu", "to", "", ""},
      {"Zoo", town, "in", "at", "in", "to", "durch", "through"},
  };
  return table;
}

}  // namespace

const std::vector<Place>& places() {
  static const std::vector<Place> all = [] {
    std::vector<Place> result = simple_places();
    // "der Bergsee" is used like "der See".
    for (const Noun& compound : nouns()) {
      for (const Place& place : simple_places()) {
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

}  // namespace plumb::synthetic
