#include "plumb/data/synthetic/lexicon.h"

#include "plumb/base/error.h"

namespace plumb::synthetic {

const std::vector<Noun>& nouns() {
  static const std::vector<Noun> all = [] {
    std::vector<Noun> result;
    for (const auto* table : {&people(), &animals(), &food(), &belongings(), &household(), &surroundings()}) {
      result.insert(result.end(), table->begin(), table->end());
    }
    const std::vector<Noun> built = compounds(result);
    result.insert(result.end(), built.begin(), built.end());
    return result;
  }();
  return all;
}

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = [] {
    std::vector<Verb> result;
    for (const auto* table : {&verbs_of_motion(), &verbs_of_handling(), &verbs_of_regard(), &verbs_with_others()}) {
      result.insert(result.end(), table->begin(), table->end());
    }
    return result;
  }();
  return all;
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

}  // namespace plumb::synthetic
