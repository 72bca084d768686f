// plumb completion: prints the script with which a shell completes verbs, options and their values. The scripts ask
// `plumb __complete` for what may come next (candidates.h).
#include <iostream>
#include <memory>

#include "../verb.h"
#include "plumb/base/files.h"

namespace plumb::app {
namespace {

constexpr const char* kBash = R"bash(# Completion of plumb's commands in bash. Written by `plumb completion bash`.
_plumb() {
  local -a reply
  local kind current cut
  mapfile -t reply < <("${COMP_WORDS[0]/#\~/$HOME}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  kind=${reply[0]} current=${reply[1]}
  COMPREPLY=("${reply[@]:2}")
  if [[ $kind == file || $kind == directory ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
      compgen -P "${current%"${current##*=}"}" -A "$kind" -- "${current##*=}")
    compopt -o filenames 2>/dev/null
  fi
  [[ $kind == key ]] && compopt -o nospace 2>/dev/null
  for cut in = :; do  # what is before the last "=" or ":" is on the line already
    [[ $COMP_WORDBREAKS == *$cut* && $current == *$cut* ]] && COMPREPLY=("${COMPREPLY[@]#"${current%"$cut"*}$cut"}")
  done
}
complete -F _plumb plumb
)bash";

constexpr const char* kZsh = R"zsh(#compdef plumb
# Completion of plumb's commands in zsh. Written by `plumb completion zsh`.
_plumb() {
  local -a reply candidates suffix
  reply=("${(@f)$(${~words[1]} __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  candidates=("${(@)reply[3,-1]}")
  [[ $reply[1] == key ]] && suffix=(-S '')
  (( $#candidates )) && _describe plumb candidates $suffix
  if [[ $reply[1] == (file|directory) ]]; then
    compset -P '*='
    if [[ $reply[1] == file ]]; then _files; else _files -/; fi
  fi
}
_plumb "$@"
)zsh";

constexpr const char* kFish = R"fish(# Completion of plumb's commands in fish. Written by `plumb completion fish`.
function __plumb_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l reply ($words[1] __complete fish $words[2..-1] "$current" 2>/dev/null)
    set -l before (string match -r '^.*=' -- "$current")
    set -l name (string replace -r '^.*=' '' -- "$current")
    switch "$reply[1]"
        case file
            printf '%s\n' "$before"(__fish_complete_path "$name")
        case directory
            printf '%s\n' "$before"(__fish_complete_directories "$name")
    end
    printf '%s\n' $reply[3..-1]
end
complete -c plumb -f -a '(__plumb_complete)'
)fish";

struct CompletionArguments {
  std::string shell, out;
};

void add_completion(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<CompletionArguments>();
  CLI::App* verb =
      add_verb(app, globals, "completion", "Print a script that completes plumb's commands in a shell",
               "source <(plumb completion bash)", [arguments] {
                 const char* script = arguments->shell == "bash" ? kBash : arguments->shell == "zsh" ? kZsh : kFish;
                 if (arguments->out.empty()) {
                   std::cout << script;
                 } else {
                   write_output_file(arguments->out, script);
                 }
               });
  verb->add_option("SHELL", arguments->shell, "The shell")->check(CLI::IsMember({"bash", "zsh", "fish"}))->required();
  verb->add_option("--out", arguments->out, "File to write (default: standard output)")->type_name("FILE");
}

const bool kCompletionRegistered = register_verb({Heading::tools, 50, add_completion});

}  // namespace
}  // namespace plumb::app
