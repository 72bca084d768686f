// plumb config: the keys of configurations with their defaults and meanings. words.cpp answers it from the manual.
#include <iostream>
#include <memory>

#include "computing.h"
#include "verb.h"
#include "words.h"

namespace plumb::app {

namespace {

void add_config(CLI::App& app, Globals& globals) {
  const auto part = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, globals, "config", "Print a configuration with all defaults and what each key means",
                            "plumb config > model.toml", [part, &app] {
                              std::cout << answered(whole_manual(app), {"config", *part});
                            });
  suggest(verb->add_option("PART", *part,
                           "A section or key, such as train, model.norm or warm_up, or all keys of a kind of "
                           "configuration: run, finetune or study (default: run)"),
          {"run", "finetune", "study"});
}

const bool kConfigRegistered = register_verb({Heading::tools, 20, add_config});

}  // namespace
}  // namespace plumb::app
