// plumb completion: prints the script with which a shell completes verbs, options and their values.
#include "completion.h"

#include <iostream>
#include <memory>

#include "../verb.h"
#include "plumb/base/files.h"

namespace plumb::app {

void add_completion(CLI::App& app, Globals& globals) {
  struct Options {
    std::string shell, out;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(app, globals, "completion", "Print a script that completes plumb's commands in a shell",
                            "source <(plumb completion bash)", [options, &app] {
                              const ManualVerb program = manual_of(app);
                              const std::string script = options->shell == "bash"  ? bash_completion(program)
                                                         : options->shell == "zsh" ? zsh_completion(program)
                                                                                   : fish_completion(program);
                              if (options->out.empty()) {
                                std::cout << script;
                              } else {
                                write_file_atomic(options->out, script);
                              }
                            });
  verb->add_option("SHELL", options->shell, "The shell")->check(CLI::IsMember({"bash", "zsh", "fish"}))->required();
  verb->add_option("--out", options->out, "File to write (default: standard output)")->type_name("FILE");
}

}  // namespace plumb::app
