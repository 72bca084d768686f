#include "plumb/task/masking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "plumb/base/error.h"
#include "plumb/text/visible.h"

namespace plumb {
namespace {

constexpr double kMasked = 0.8;  // of the chosen tokens
constexpr double kReplaced = 0.1;

/// The special tokens that the vocabulary has, ascending.
std::vector<int32_t> special_ids(const Specials& specials) {
  std::vector<int32_t> ids = {specials.pad, specials.bos, specials.eos, specials.unknown, specials.mask};
  std::erase_if(ids, [](int32_t id) { return id < 0; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Masker::Masker(const Tokenizer& tokenizer, const Masking& masking)
    : masking_(masking),
      specials_(tokenizer.specials()),
      vocabulary_(tokenizer.vocabulary()),
      not_text_(special_ids(specials_)) {
  if (specials_.mask < 0)
    throw Error("the vocabulary of the data has no mask token",
                "prepare the data again with `plumb data text --mask-token`");
  if (vocabulary_ <= std::ssize(not_text_)) throw Error("the vocabulary of the data has special tokens only");
  if (masking.whole_words) begins_word_ = word_beginnings(tokenizer);
}

std::vector<Masker::Unit> Masker::units_of(const std::vector<int64_t>& tokens) const {
  std::vector<Unit> units;
  for (int64_t place = 0; place < std::ssize(tokens); ++place) {
    const int64_t id = tokens[static_cast<size_t>(place)];
    if (specials_.is_control(static_cast<int32_t>(id))) continue;
    const bool continues =
        masking_.whole_words && !units.empty() && units.back().end == place && !begins_word_[static_cast<size_t>(id)];
    if (continues) {
      units.back().end = place + 1;
    } else {
      units.push_back({place, place + 1});
    }
  }
  if (units.empty()) units.push_back({0, 1});
  return units;
}

int64_t Masker::random_text(Random& random) const {
  auto id = static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary_ - std::ssize(not_text_))));
  for (const int32_t special : not_text_) {
    if (id >= special) ++id;
  }
  return id;
}

std::vector<int64_t> Masker::mask(std::vector<int64_t>& tokens, Random& random) const {
  std::vector<Unit> units = units_of(tokens);
  const auto wanted = static_cast<int64_t>(std::llround(masking_.share * static_cast<double>(units.size())));
  random.shuffle(units);
  units.resize(static_cast<size_t>(std::max<int64_t>(1, wanted)));
  std::vector<int64_t> places;
  for (const Unit& unit : units) {
    for (int64_t place = unit.begin; place < unit.end; ++place) places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  for (const int64_t place : places) {
    int64_t& token = tokens[static_cast<size_t>(place)];
    const double fate = random.uniform();
    if (fate < kMasked) {
      token = specials_.mask;
    } else if (fate < kMasked + kReplaced) {
      token = random_text(random);
    }
  }
  return places;
}

std::vector<bool> word_beginnings(const Tokenizer& tokenizer) {
  const std::vector<int32_t> special = special_ids(tokenizer.specials());
  const auto is_special = [&](int32_t id) { return std::binary_search(special.begin(), special.end(), id); };
  std::vector<bool> begins(static_cast<size_t>(tokenizer.vocabulary()), true);
  int32_t before = -1;  // any token with text
  std::string alone;
  for (int32_t id = 0; id < tokenizer.vocabulary() && before < 0; ++id) {
    if (is_special(id)) continue;
    alone = tokenizer.decode(std::array{id});
    if (has_visible_character(alone)) before = id;
  }
  if (before < 0) return begins;
  for (int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    if (!is_special(id))
      begins[static_cast<size_t>(id)] = tokenizer.decode(std::array{before, id}).starts_with(alone + " ");
  }
  return begins;
}

}  // namespace plumb
