// longhaul: the user's and administrator's command.
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>

#include "cli/context.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "daemon/command_line.h"
#include "daemon/rpc/grpc_log.h"
#include "daemon/rpc/protocol.h"

namespace longhaul::cli {
namespace {

int Main(int argc, char** argv) {
  ReserveStandardStreams();
  // A reader that goes away (`| head`) ends the program quietly, as is usual.
  std::signal(SIGPIPE, SIG_DFL);
  daemon::SilenceGrpc();
  CLI::App app{"Longhaul trains one model across data centres.", "longhaul"};
  app.formatter(HelpFormatter());
  app.set_version_flag("--version", "longhaul " + daemon::OwnProtocol().build);
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
  RegisterDataCommands(app, context, chosen);
  RegisterDoctorCommand(app, context, chosen);
  RegisterCompletionCommand(app, context, chosen);
  RegisterVersionCommand(app, context, chosen);
  if (const std::string unknown = daemon::UnknownCommand(app, argc, argv); !unknown.empty()) {
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
