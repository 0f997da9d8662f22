// longhaul: the user's and administrator's command.
#include <csignal>

#include "cli/context.h"

namespace longhaul::cli {
namespace {

int Main(int argc, char** argv) {
  // A reader that goes away (`| head`) ends the program like any other write error.
  std::signal(SIGPIPE, SIG_DFL);
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitBadInput;
  }
  return chosen(context);
}

}  // namespace
}  // namespace longhaul::cli

int main(int argc, char** argv) { return longhaul::cli::Main(argc, argv); }
