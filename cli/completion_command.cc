// longhaul completion bash
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/context.h"
#include "cli/option_values.h"
#include "cli/output.h"

namespace longhaul::cli {
namespace {

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}

std::vector<const CLI::App*> SubcommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The words that an option's value is one of ("text json"), as its help shows them in braces; empty
// if it may be anything.
std::string ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return absl::StrReplaceAll(type.substr(open + 1, close - open - 1), {{",", " "}});
}

// Words that may follow the path of subcommands `app` was reached by.
std::string Words(const CLI::App& app) {
  std::set<std::string> words;
  for (const CLI::App* sub : SubcommandsOf(app)) words.insert(sub->get_name());
  for (const CLI::Option* option : OptionsOf(app)) {
    for (const std::string& name : option->get_lnames()) words.insert("--" + name);
    if (option->get_positional() && !ValuesOf(*option).empty()) words.insert(ValuesOf(*option));
  }
  return absl::StrJoin(words, " ");
}

// "run" or "node" where the command takes the name of one, which a coordinator knows; else empty.
std::string NamedThing(const CLI::App& app) {
  for (const CLI::Option* option : OptionsOf(app)) {
    const std::string name = option->get_single_name();
    if (option->get_positional() && (name == "run" || name == "node")) return name;
  }
  return "";
}

void AddCases(const CLI::App& app, const std::string& path, std::string& script) {
  absl::StrAppend(&script, "    '", path, "') words='", Words(app), "' names='", NamedThing(app),
                  "' ;;\n");
  for (const CLI::App* sub : SubcommandsOf(app)) {
    AddCases(*sub, path.empty() ? sub->get_name() : absl::StrCat(path, " ", sub->get_name()),
             script);
  }
}

// By option: the words it may be followed by. Options of one name mean the same in every command.
void AddValues(const CLI::App& app, std::map<std::string, std::string>& values) {
  for (const CLI::Option* option : OptionsOf(app)) {
    if (ValuesOf(*option).empty()) continue;
    for (const std::string& name : option->get_lnames()) values["--" + name] = ValuesOf(*option);
  }
  for (const CLI::App* sub : SubcommandsOf(app)) AddValues(*sub, values);
}

std::string ValueCases(const CLI::App& app) {
  std::map<std::string, std::string> values;
  AddValues(app, values);
  std::string cases;
  for (const auto& [option, words] : values) {
    absl::StrAppend(&cases, "    ", option, ") words='", words, "' ;;\n");
  }
  return cases;
}

// Prints the names of runs or nodes, if a coordinator gives them within a second. Only what looks
// like a name: the shell would carry out what hides in other text.
constexpr char kNamesFunction[] = R"sh(_longhaul_names() {
  local given=() i value name
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --coordinator | --coordinator-name | --dir | --token-file | --tls-*)
        value=${COMP_WORDS[i + 1]}
        [ "$value" = = ] && value=${COMP_WORDS[i + 2]}
        given+=("${COMP_WORDS[i]}" "${value/#\~\//$HOME/}") ;;
      --insecure) given+=(--insecure) ;;
    esac
  done
  timeout 1 "${COMP_WORDS[0]}" "$1" ls "${given[@]}" 2>/dev/null </dev/null | {
    read -r
    while read -r name _ && [ -n "$name" ]; do
      [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] && printf '%s\n' "$name"
    done
  }
}
)sh";

constexpr char kValuesStart[] = R"sh(_longhaul() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local path='' word words='' names='' whole
  if [ "$current" = = ]; then
    current=''
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case $before in
)sh";

constexpr char kCommandsStart[] = R"sh(  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) break ;; esac
    path="${path:+$path }$word"
  done
  whole=$path
  while :; do
    case $path in
)sh";

constexpr char kEnd[] = R"sh(    esac
    [ -n "$words" ] && break
    case $path in *' '*) path=${path% *} ;; *) break ;; esac
  done
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  case $current in -*) return ;; esac
  if [ -n "$names" ] && [ "$path" = "$whole" ]; then
    case $before in
      -*) ;;
      *)
        mapfile -t COMPREPLY < <(compgen -W "$(_longhaul_names "$names")" -- "$current")
        return ;;
    esac
  fi
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
}
complete -o filenames -F _longhaul longhaul
)sh";

// Made from the parser itself, so that it cannot fall behind.
std::string BashCompletion(const CLI::App& app) {
  std::string commands;
  AddCases(app, "", commands);
  return absl::StrCat("# bash completion for longhaul; use: source <(longhaul completion bash)\n",
                      kNamesFunction, kValuesStart, ValueCases(app), kCommandsStart, commands,
                      kEnd);
}

}  // namespace

void RegisterCompletionCommand(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* completion = app.add_subcommand("completion", "print a shell completion script");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "of which the script is")
      ->required()
      ->check(OneOf({"bash"}));
  completion->callback([&app, &chosen, shell] {
    chosen = [&app, shell](Context&) {
      Print(BashCompletion(app));
      return kExitDone;
    };
  });
}

}  // namespace longhaul::cli
