// Compounds are built, as German builds them: first noun + linking element + head, which gives gender and inflection
// ("die Küche" + n + "der Tisch" = "der Küchentisch"). English sets two words side by side ("kitchen table").
#include <algorithm>
#include <cctype>

#include "plumb/data/synthetic/lexicon.h"

namespace plumb::synthetic {
namespace {

/// First halves (linking element included) that go with each of the heads.
struct CompoundGroup {
  std::vector<Words> first;
  std::vector<std::string> heads;
};

const std::vector<CompoundGroup>& groups() {
  static const std::vector<CompoundGroup> table = {
      {{{"Küchen", "kitchen"}, {"Garten", "garden"}, {"Büro", "office"}, {"Hotel", "hotel"}},
       {"Tisch", "Stuhl", "Lampe", "Tür", "Fenster"}},
      {{{"Wohnzimmer", "living room"}, {"Schlafzimmer", "bedroom"}, {"Keller", "basement"}},
       {"Lampe", "Tür", "Fenster", "Schrank", "Teppich"}},
      {{{"Küchen", "kitchen"}}, {"Schrank", "Regal", "Messer", "Uhr", "Schere"}},
      {{{"Garten", "garden"}}, {"Bank", "Zaun", "Mauer", "Tor"}},
      {{{"Wand", "wall"}}, {"Regal", "Uhr", "Spiegel"}},
      {{{"Holz", "wooden"}},
       {"Tisch", "Stuhl", "Bank", "Kiste", "Löffel", "Haus", "Brücke", "Zaun", "Boot", "Hütte", "Leiter"}},
      {{{"Stein", "stone"}}, {"Haus", "Brücke", "Mauer", "Bank", "Turm"}},
      {{{"Leder", "leather"}}, {"Jacke", "Tasche", "Gürtel", "Mantel", "Sessel", "Sofa", "Handschuh", "Schuh"}},
      {{{"Woll", "wool"}}, {"Mütze", "Schal", "Decke", "Socke", "Pullover", "Mantel", "Handschuh"}},
      {{{"Winter", "winter"}}, {"Mantel", "Jacke", "Stiefel", "Schuh", "Mütze"}},
      {{{"Sommer", "summer"}}, {"Kleid", "Jacke", "Schuh", "Hut", "Rock"}},
      {{{"Stroh", "straw"}}, {"Hut", "Korb"}},
      {{{"Sport", "sports"}}, {"Tasche", "Schuh", "Hose"}},
      {{{"Fußball", "soccer"},
        {"Tennis", "tennis"},
        {"Handball", "handball"},
        {"Basketball", "basketball"},
        {"Volleyball", "volleyball"},
        {"Hockey", "hockey"}},
       {"Spieler", "Spielerin", "Trainer", "Trainerin"}},
      {{{"Tennis", "tennis"}, {"Golf", "golf"}, {"Strand", "beach"}}, {"Ball"}},
      {{{"Apfel", "apple"},
        {"Kirsch", "cherry"},
        {"Erdbeer", "strawberry"},
        {"Zitronen", "lemon"},
        {"Orangen", "orange"},
        {"Pflaumen", "plum"},
        {"Birnen", "pear"},
        {"Himbeer", "raspberry"}},
       {"Kuchen", "Saft"}},
      {{{"Zitronen", "lemon"}, {"Früchte", "fruit"}, {"Pfefferminz", "peppermint"}}, {"Tee"}},
      {{{"Tomaten", "tomato"},
        {"Kartoffel", "potato"},
        {"Gemüse", "vegetable"},
        {"Zwiebel", "onion"},
        {"Kürbis", "pumpkin"},
        {"Pilz", "mushroom"},
        {"Nudel", "noodle"},
        {"Fisch", "fish"}},
       {"Suppe"}},
      {{{"Tomaten", "tomato"}, {"Kartoffel", "potato"}, {"Gurken", "cucumber"}, {"Obst", "fruit"}, {"Nudel", "pasta"}},
       {"Salat"}},
      {{{"Schokoladen", "chocolate"}, {"Nuss", "nut"}}, {"Kuchen", "Keks"}},
      {{{"Käse", "cheese"}, {"Gemüse", "vegetable"}, {"Pilz", "mushroom"}}, {"Pizza"}},
      {{{"Kaffee", "coffee"}}, {"Tasse"}},
      {{{"Wein", "wine"}, {"Wasser", "water"}, {"Bier", "beer"}}, {"Glas", "Flasche"}},
      {{{"Milch", "milk"}}, {"Flasche", "Kanne"}},
      {{{"Blumen", "flower"}}, {"Vase", "Topf", "Korb", "Wiese"}},
      {{{"Suppen", "soup"}}, {"Teller", "Topf", "Schüssel", "Löffel"}},
      {{{"Obst", "fruit"}}, {"Schüssel", "Korb", "Markt"}},
      {{{"Apfel", "apple"}, {"Kirsch", "cherry"}, {"Birn", "pear"}, {"Pflaumen", "plum"}, {"Obst", "fruit"}}, {"Baum"}},
      {{{"Rosen", "rose"}, {"Gemüse", "vegetable"}, {"Hotel", "hotel"}, {"Schul", "school"}}, {"Garten"}},
      {{{"Stadt", "city"}, {"Schloss", "castle"}}, {"Park", "Mauer", "Tor", "Museum"}},
      {{{"Dorf", "village"}}, {"Kirche", "Schule", "Straße", "Teich"}},
      {{{"Wald", "forest"}}, {"Weg", "See"}},
      {{{"Berg", "mountain"}}, {"Dorf", "Hütte", "See", "Straße"}},
      {{{"Kinder", "children's"}}, {"Buch", "Fahrrad", "Zimmer", "Bett"}},
      {{{"Schul", "school"}}, {"Bus", "Heft"}},
      {{{"Liebes", "love"}}, {"Brief", "Roman", "Gedicht"}},
      {{{"Kriminal", "crime"}}, {"Roman"}},
      {{{"Haus", "house"}, {"Auto", "car"}, {"Keller", "basement"}}, {"Schlüssel"}},
      {{{"Reise", "travel"}}, {"Tasche"}},
      {{{"Geburtstags", "birthday"}, {"Hochzeits", "wedding"}}, {"Kuchen", "Geschenk"}},
      {{{"Hochzeits", "wedding"}}, {"Kleid", "Foto", "Ring"}},
      {{{"Taschen", "pocket"}}, {"Messer"}},
      {{{"Fischer", "fishing"}}, {"Boot", "Dorf"}},
      {{{"Renn", "race"}}, {"Auto"}},
      {{{"Spielzeug", "toy"}}, {"Auto", "Eisenbahn", "Boot"}},
      {{{"Papier", "paper"}}, {"Drachen", "Hut", "Schiff"}},
      {{{"Silber", "silver"}, {"Gold", "gold"}}, {"Ring", "Münze"}},
      {{{"Glas", "glass"}}, {"Schüssel", "Tür", "Tisch"}},
  };
  return table;
}

std::string lower_first(std::string word) {
  // Umlauts and ß are two bytes; the only capital one that begins a head here would be Ä, Ö or Ü.
  if (word.size() > 1 && static_cast<unsigned char>(word[0]) == 0xC3) {
    word[1] = static_cast<char>(word[1] | 0x20);
  } else {
    word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
  }
  return word;
}

}  // namespace

std::vector<Noun> compounds(const std::vector<Noun>& simple) {
  constexpr Gender der = Gender::masculine, die = Gender::feminine;
  constexpr Kinds player = kind::adult | kind::worker;
  // Heads that occur in compounds only.
  const std::vector<Noun> bound = {
      {"Spieler", der, Genitive::s, "Spieler", "player", "", player, Referent::he},
      {"Spielerin", die, Genitive::none, "Spielerinnen", "player", "", player, Referent::she},
      {"Trainer", der, Genitive::s, "Trainer", "coach", "", player, Referent::he},
      {"Trainerin", die, Genitive::none, "Trainerinnen", "coach", "", player, Referent::she},
      {"Eisenbahn", die, Genitive::none, "Eisenbahnen", "train", "", kind::toy},
  };
  std::vector<Noun> result;
  for (const CompoundGroup& group : groups()) {
    for (const std::string& head_name : group.heads) {
      const auto named = [&](const Noun& candidate) { return candidate.german == head_name; };
      auto head = std::find_if(bound.begin(), bound.end(), named);
      if (head == bound.end()) head = std::find_if(simple.begin(), simple.end(), named);
      for (const Words& first : group.first) {
        Noun compound = *head;
        compound.german = first.german + lower_first(head->german);
        if (!head->plural.empty()) compound.plural = first.german + lower_first(head->plural);
        compound.english = first.english + " " + head->english;
        if (!head->english_plural.empty()) compound.english_plural = first.english + " " + head->english_plural;
        compound.kinds |= kind::compound;
        // A toy is no vehicle any more, nor does a paper hat warm.
        if (first.german == "Spielzeug" || first.german == "Papier")
          compound.kinds = kind::toy | kind::lies | kind::compound;
        result.push_back(std::move(compound));
      }
    }
  }
  return result;
}

}  // namespace plumb::synthetic
