#include "plumb/data/synthetic/lexicon.h"

namespace plumb::synthetic {
namespace {

constexpr Gender der = Gender::masculine, die = Gender::feminine, das = Gender::neuter;
constexpr Genitive none = Genitive::none, s = Genitive::s, es = Genitive::es, n = Genitive::weak_n,
                   en = Genitive::weak_en;
using namespace kind;

}  // namespace

const std::vector<Noun>& animals() {
  static const std::vector<Noun> table = {
      {"Hund", der, es, "Hunde", "dog", "", pet | dog},
      {"Katze", die, none, "Katzen", "cat", "", pet},
      {"Hamster", der, s, "Hamster", "hamster", "", pet},
      {"Kaninchen", das, s, "Kaninchen", "rabbit", "", pet},
      {"Dackel", der, s, "Dackel", "dachshund", "", pet | dog},
      {"Pferd", das, es, "Pferde", "horse", "", farm | grazer | mount},
      {"Pony", das, s, "Ponys", "pony", "", farm | grazer | mount},
      {"Kuh", die, none, "Kühe", "cow", "", farm | grazer},
      {"Schaf", das, es, "Schafe", "sheep", "sheep", farm | grazer},
      {"Ziege", die, none, "Ziegen", "goat", "", farm | grazer},
      {"Schwein", das, es, "Schweine", "pig", "", farm},
      {"Esel", der, s, "Esel", "donkey", "", farm | grazer | mount},
      {"Huhn", das, es, "Hühner", "chicken", "", farm},
      {"Hahn", der, es, "Hähne", "rooster", "", farm},
      {"Gans", die, none, "Gänse", "goose", "geese", farm},
      {"Ente", die, none, "Enten", "duck", "", bird},
      {"Vogel", der, s, "Vögel", "bird", "", bird},
      {"Papagei", der, s, "Papageien", "parrot", "", bird},
      {"Eule", die, none, "Eulen", "owl", "", bird},
      {"Adler", der, s, "Adler", "eagle", "", bird},
      {"Storch", der, es, "Störche", "stork", "", bird},
      {"Möwe", die, none, "Möwen", "seagull", "", bird},
      {"Taube", die, none, "Tauben", "pigeon", "", bird},
      {"Schwan", der, es, "Schwäne", "swan", "", bird},
      {"Rabe", der, n, "Raben", "raven", "", bird},
      {"Schmetterling", der, s, "Schmetterlinge", "butterfly", "", bird},
      {"Biene", die, none, "Bienen", "bee", "", bird},
      {"Fuchs", der, es, "Füchse", "fox", "", wild},
      {"Wolf", der, es, "Wölfe", "wolf", "wolves", wild},
      {"Bär", der, en, "Bären", "bear", "", wild},
      {"Hirsch", der, es, "Hirsche", "deer", "deer", wild},
      {"Igel", der, s, "Igel", "hedgehog", "", wild},
      {"Hase", der, n, "Hasen", "hare", "", wild},
      {"Eichhörnchen", das, s, "Eichhörnchen", "squirrel", "", wild},
      {"Maus", die, none, "Mäuse", "mouse", "mice", wild},
      {"Affe", der, n, "Affen", "monkey", "", wild},
      {"Elefant", der, en, "Elefanten", "elephant", "", wild},
      {"Löwe", der, n, "Löwen", "lion", "", wild},
      {"Tiger", der, s, "Tiger", "tiger", "", wild},
      {"Zebra", das, s, "Zebras", "zebra", "", wild},
      {"Fisch", der, es, "Fische", "fish", "fish", swimmer},
      {"Frosch", der, es, "Frösche", "frog", "", swimmer},
      {"Schildkröte", die, none, "Schildkröten", "turtle", "", swimmer},
      {"Delfin", der, s, "Delfine", "dolphin", "", swimmer},
      {"Otter", der, s, "Otter", "otter", "", swimmer},
  };
  return table;
}

const std::vector<Noun>& food() {
  constexpr Kinds solid = ingredient | lies;
  static const std::vector<Noun> table = {
      {"Apfel", der, s, "Äpfel", "apple", "", fruit | lies},
      {"Birne", die, none, "Birnen", "pear", "", fruit | lies},
      {"Banane", die, none, "Bananen", "banana", "", fruit | lies},
      {"Orange", die, none, "Orangen", "orange", "", fruit | lies},
      {"Erdbeere", die, none, "Erdbeeren", "strawberry", "", fruit | lies},
      {"Kirsche", die, none, "Kirschen", "cherry", "", fruit | lies},
      {"Pflaume", die, none, "Pflaumen", "plum", "", fruit | lies},
      {"Pfirsich", der, s, "Pfirsiche", "peach", "", fruit | lies},
      {"Himbeere", die, none, "Himbeeren", "raspberry", "", fruit | lies},
      {"Zitrone", die, none, "Zitronen", "lemon", "", solid},
      {"Tomate", die, none, "Tomaten", "tomato", "tomatoes", vegetable | solid},
      {"Kartoffel", die, none, "Kartoffeln", "potato", "potatoes", vegetable | solid},
      {"Karotte", die, none, "Karotten", "carrot", "", vegetable | solid},
      {"Gurke", die, none, "Gurken", "cucumber", "", vegetable | solid},
      {"Zwiebel", die, none, "Zwiebeln", "onion", "", solid},
      {"Kürbis", der, es, "Kürbisse", "pumpkin", "", vegetable | solid},
      {"Pilz", der, es, "Pilze", "mushroom", "", vegetable | solid},
      {"Kuchen", der, s, "Kuchen", "cake", "", baked | stands},
      {"Brötchen", das, s, "Brötchen", "bread roll", "", baked | lies},
      {"Keks", der, es, "Kekse", "cookie", "", baked | lies},
      {"Brezel", die, none, "Brezeln", "pretzel", "", baked | lies},
      {"Brot", das, es, "", "bread", "", baked | mass},
      {"Pizza", die, none, "Pizzas", "pizza", "", dish | baked},
      {"Pfannkuchen", der, s, "Pfannkuchen", "pancake", "", dish},
      {"Suppe", die, none, "Suppen", "soup", "", dish | stands},
      {"Salat", der, s, "Salate", "salad", "", dish | stands},
      {"Wurst", die, none, "Würste", "sausage", "", dish | lies},
      {"Ei", das, es, "Eier", "egg", "", dish | solid},
      {"Käse", der, s, "", "cheese", "", dish | mass},
      {"Reis", der, es, "", "rice", "", dish | mass},
      {"Gemüse", das, s, "", "vegetables", "", dish | mass | plural_in_english},
      {"Schokolade", die, none, "", "chocolate", "", dish | mass},
      {"Honig", der, s, "", "honey", "", dish | mass},
      {"Wasser", das, s, "", "water", "", drink | mass},
      {"Milch", die, none, "", "milk", "", drink | mass},
      {"Kaffee", der, s, "", "coffee", "", drink | mass},
      {"Tee", der, s, "", "tea", "", drink | mass},
      {"Saft", der, es, "", "juice", "", drink | mass},
      {"Limonade", die, none, "", "lemonade", "", drink | mass},
      {"Kakao", der, s, "", "cocoa", "", drink | mass},
  };
  return table;
}

}  // namespace plumb::synthetic
