#include "sections.h"

#include <utility>

#include "plumb/study/config.h"
#include "plumb/study/transfer_stages.h"
#include "plumb/train/finetune.h"

namespace plumb::app {

std::vector<ConfigurationSection> sections_of(ConfigurationReader reader) {
  std::vector<ConfigurationSection> all = {{"model", list_keys(ModelConfig())},
                                           {"train", list_keys(TrainConfig())},
                                           {"train.groups", list_keys(ParameterGroup()), true},
                                           {"train.corpora", list_keys(CorpusWeight()), true},
                                           {"task", list_keys(TaskConfig())}};
  const auto add = [&all](const std::string& name, std::vector<KeyList::Key> keys, bool repeated = false) {
    all.push_back({name, std::move(keys), repeated});
  };
  add("watch", list_keys(WatchConfig()));
  if (reader != ConfigurationReader::study) {
    add("data", list_keys(DataSection()));
    add("initial", list_keys(InitialSection()));
    add("plan", list_keys(PlanSection()));
    if (reader == ConfigurationReader::finetuning) add("finetune", list_keys(FinetuneConfig()));
    return all;
  }
  add("study", list_keys(StudyHead()));
  add("study.axis", list_keys(StudyAxis()), true);
  add("study.arm", list_keys(StudyPairing()), true);
  add("study.claim", list_keys(StudyClaim()), true);
  add("data", list_keys(StudyData()));
  for (const std::string& name : study_part_names()) {
    KeyList keys;
    Options(study_parts().at(name).options).visit(keys);
    add(name, keys.keys());
  }
  add("transfer.model", list_keys(TransferModel()), true);
  return all;
}

}  // namespace plumb::app
