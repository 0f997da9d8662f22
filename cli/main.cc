// longhaul: the user's and administrator's command.
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/context.h"
#include "cli/output.h"
#include "daemon/rpc/grpc_log.h"
#include "run/nearest.h"

namespace longhaul::cli {
namespace {

// What is wrong with the words that name the command; empty if nothing is.
std::string UnknownCommand(const CLI::App& app, int argc, char** argv) {
  const CLI::App* parent = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::vector<std::string> known;
    const CLI::App* found = nullptr;
    for (const CLI::App* command : parent->get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(command->get_name());
      if (word == known.back()) found = command;
    }
    if (known.empty() || word.empty() || word[0] == '-') return "";
    if (found == nullptr) {
      return absl::StrCat("unknown command '", word, "' of ", parent->get_name(),
                          "; the nearest is '", run::Nearest(word, known), "'; ", app.get_name(),
                          " --help lists all");
    }
    parent = found;
  }
  return "";
}

int Main(int argc, char** argv) {
  ReserveStandardStreams();
  // A reader that goes away (`| head`) ends the program quietly, as is usual.
  std::signal(SIGPIPE, SIG_DFL);
  daemon::SilenceGrpc();
  CLI::App app{"Longhaul trains one model across data centres.", "longhaul"};
  app.require_subcommand(1);
  app.fallthrough(false);
  Context context;
  Command chosen;
  RegisterLocalCommands(app, context, chosen);
  RegisterRunCommands(app, context, chosen);
  RegisterNodeCommands(app, context, chosen);
  RegisterPlanCommand(app, context, chosen);
  RegisterCheckpointCommands(app, context, chosen);
  RegisterGenerateCommand(app, context, chosen);
  RegisterDoctorCommand(app, context, chosen);
  RegisterCompletionCommand(app, context, chosen);
  RegisterVersionCommand(app, context, chosen);
  if (const std::string unknown = UnknownCommand(app, argc, argv); !unknown.empty()) {
    std::fprintf(stderr, "longhaul: %s\n", Printable(unknown).c_str());
    return kExitBadInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err) == 0 ? kExitDone : kExitBadInput;
    Print(out.str());
    std::fputs(err.str().c_str(), stderr);
    return OutputGood() ? code : kExitFailed;
  }
  const int code = chosen(context);
  return code == kExitDone && !OutputGood() ? kExitFailed : code;
}

}  // namespace
}  // namespace longhaul::cli

int main(int argc, char** argv) { return longhaul::cli::Main(argc, argv); }
