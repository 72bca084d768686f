// The public data sets that `plumb data get` knows: addresses, licenses, and checksums of what is published.

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/data/download.h"

namespace plumb {
namespace {

/// Multi30k (Elliott et al., arXiv 1605.00459), task 1, raw text: German–English image captions.
PublicDataSet multi30k() {
  return {"multi30k",
          "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
          "non-commercial research; the captions stem from Flickr30k",
          {
              {"train.de", 29000, 2110398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"},
              {"train.en", 29000, 1801238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"},
              {"val.de", 1014, 75981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"},
              {"val.en", 1014, 63297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"},
              {"test_2016_flickr.de", 1000, 70649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"},
              {"test_2016_flickr.en", 1000, 62076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"},
              {"test_2017_flickr.de", 1000, 64059, "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081"},
              {"test_2017_flickr.en", 1000, 55242, "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98"},
          }};
}

/// The plays that language models are often tried on (Karpathy's char-rnn).
PublicDataSet shakespeare() {
  return {"shakespeare",
          "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare",
          "public domain",
          {{"tinyshakespeare.txt", 40000, 1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            "input.txt"}}};
}

/// TREC's questions by the kind of their answer (Li & Roth 2002), in Latin-1: LABEL:SUBLABEL QUESTION.
PublicDataSet trec() {
  return {"trec",
          "https://cogcomp.seas.upenn.edu/Data/QA/QC",
          "not stated",
          {
              {"train_5500.label", 5452, 335858, "9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
               "train_5500.label"},
              {"TREC_10.label", 500, 23354, "033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
               "TREC_10.label"},
          }};
}

}  // namespace

const std::vector<PublicDataSet>& public_data_sets() {
  static const std::vector<PublicDataSet> sets = {multi30k(), shakespeare(), trec()};
  return sets;
}

const PublicDataSet& public_data_set(const std::string& name) {
  std::vector<std::string> names;
  for (const PublicDataSet& set : public_data_sets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw Error("no data set is called '" + name + "'", "known: " + join(names));
}

}  // namespace plumb
