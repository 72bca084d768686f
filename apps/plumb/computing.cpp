#include "computing.h"

#include <optional>
#include <string>
#include <vector>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/memory.h"
#include "plumb/ops/threads.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/study/study.h"
#include "sections.h"
#include "variants.h"

namespace plumb::app {
namespace {

/// The keys of sections that may be repeated, or of the others, which `--set` can name.
std::vector<ManualKey> keys_of(ConfigurationReader reader, bool repeated = false) {
  std::vector<ManualKey> keys;
  for (const ConfigurationSection& section : sections_of(reader)) {
    if (section.repeated != repeated) continue;
    for (const KeyList::Key& key : section.keys) {
      keys.push_back({section.name + '.' + key.name, key.value, key.meaning, key.domain.choices, repeated});
      if (key.boolean) keys.back().values = {"true", "false"};
    }
  }
  return keys;
}

}  // namespace

void begin_computing() { ops::keep_tensor_memory(); }

Manual whole_manual(const CLI::App& app) {
  Manual manual{manual_of(app),
                keys_of(ConfigurationReader::run),
                keys_of(ConfigurationReader::finetuning),
                keys_of(ConfigurationReader::study),
                keys_of(ConfigurationReader::study, true),
                {}};
  for (const VariantKind& kind : variant_kinds()) manual.lists.push_back(listed(kind));
  return manual;
}

void compute(const Globals& globals, const std::function<void()>& run) {
  ops::set_threads(globals.threads);
  const ops::DefaultDevice device(ops::device_named(globals.device));
  run();
}

void tell_others(int argc, const char* const* argv, const Globals& globals, const std::string& reason) {
  const auto& joint = globals.joint_verbs;
  if (argc < 2 || !contains(joint, argv[1]) || globals.joins) return;
  try {
    if (const std::optional<Rendezvous> launched = rendezvous_of_environment()) refuse_to_join(*launched, reason);
  } catch (const Error&) {  // the launcher's variables are invalid: the others cannot be found
  }
}

Json report_unfinished_study(const std::filesystem::path& directory) { return report_study(directory); }

}  // namespace plumb::app
