// longhaul completion bash
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/context.h"
#include "cli/output.h"

namespace longhaul::cli {
namespace {

// Words that may follow the path of subcommands `app` was reached by.
std::string Words(const CLI::App& app) {
  std::set<std::string> words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.insert(sub->get_name());
  }
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) words.insert("--" + name);
  }
  return absl::StrJoin(words, " ");
}

void AddCases(const CLI::App& app, const std::string& path, std::string& script) {
  absl::StrAppend(&script, "    '", path, "') words='", Words(app), "' ;;\n");
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    AddCases(*sub, path.empty() ? sub->get_name() : absl::StrCat(path, " ", sub->get_name()),
             script);
  }
}

// Made from the parser itself, so that it cannot fall behind.
std::string BashCompletion(const CLI::App& app) {
  std::string cases;
  AddCases(app, "", cases);
  return absl::StrCat(
      "# bash completion for longhaul; use: source <(longhaul completion bash)\n"
      "_longhaul() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path='' word words=''\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in -*) break ;; esac\n"
      "    path=\"${path:+$path }$word\"\n"
      "  done\n"
      "  while :; do\n"
      "    case $path in\n",
      cases,
      "    esac\n"
      "    [ -n \"$words\" ] && break\n"
      "    case $path in *' '*) path=${path% *} ;; *) break ;; esac\n"
      "  done\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  case $current in\n"
      "    -*) ;;\n"
      "    *) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _longhaul longhaul\n");
}

}  // namespace

void RegisterCompletionCommand(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* completion = app.add_subcommand("completion", "print a shell completion script");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  completion->callback([&app, &chosen, shell] {
    chosen = [&app, shell](Context&) {
      Print(BashCompletion(app));
      return kExitDone;
    };
  });
}

}  // namespace longhaul::cli
