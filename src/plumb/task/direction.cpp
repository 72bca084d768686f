#include "plumb/task/direction.h"

#include <algorithm>

#include "plumb/base/key_list.h"
#include "plumb/base/toml_text.h"

namespace plumb {

Domain directions() { return one_of({"forward", "backward"}); }

bool reads_backward(const TaskConfig& config) {
  const auto given = config.options.find(config.name);
  if (given == config.options.end()) return false;
  KeyList list;
  Options(given->second).visit(list);
  return std::any_of(list.keys().begin(), list.keys().end(), [](const KeyList::Key& key) {
    return key.name == "direction" && key.value == toml_text(std::string("backward"));
  });
}

void classify_backward(TaskConfig& config) {
  Config::from_string("[task.classification]\ndirection = \"backward\"\n", "direction").read("task", config);
}

}  // namespace plumb
