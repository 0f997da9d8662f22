#include "daemon/command_line.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "run/nearest.h"

namespace longhaul::daemon {

std::string UnknownCommand(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* parent = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::vector<std::string> known;
    const CLI::App* found = nullptr;
    for (const CLI::App* command : parent->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(command->get_name());
      if (word == known.back()) found = command;
    }
    if (word == "--help" || word == "-h") continue;
    if (known.empty() || word.empty() || word[0] == '-') return "";
    if (found == nullptr) {
      const std::string& nearest = run::Nearest(word, known);
      return absl::StrCat(
          "unknown command '", word, "' of ", parent->get_name(),
          run::IsNear(word, nearest) ? absl::StrCat("; the nearest is '", nearest, "'") : "", "; ",
          app.get_name(), " --help lists all");
    }
    parent = found;
  }
  return "";
}

}  // namespace longhaul::daemon
