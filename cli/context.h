// What every command has: where the cluster is, how to print, how to end.
#ifndef LONGHAUL_CLI_CONTEXT_H_
#define LONGHAUL_CLI_CONTEXT_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace longhaul::cli {

// Exit codes.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitUnreachable = 3;

// Options that every command takes.
struct Context {
  std::string coordinator;  // host:port; empty: environment, then the local cluster in `dir`
  std::string dir;          // of the local cluster; empty: ~/.longhaul/local
  std::string token_file;
  bool insecure = false;  // plaintext to an address that is not loopback is meant
  std::string tls_ca, tls_certificate, tls_key;
  std::string coordinator_name = "coordinator";  // in its certificate
  std::string output = "text";                   // or "json"

  bool json() const { return output == "json"; }
  std::string LocalDir() const;
};

// A command is registered with the parser and says what to do when it was chosen.
using Command = std::function<int(Context&)>;

// Adds the options of Context to a subcommand that talks to a coordinator.
void AddCommonOptions(CLI::App& app, Context& context);
// Only where the local cluster is, or only how to print.
void AddDirOption(CLI::App& app, Context& context);
void AddOutputOption(CLI::App& app, Context& context);

// Prints "longhaul: <message>" on stderr and gives the exit code for the status: bad input, cannot
// reach, or failed.
int Fail(const absl::Status& status);

// Each registers its subcommands on `app` and sets `chosen` from the parser's callbacks.
void RegisterRunCommands(CLI::App& app, Context& context, Command& chosen);
void RegisterNodeCommands(CLI::App& app, Context& context, Command& chosen);
void RegisterPlanCommand(CLI::App& app, Context& context, Command& chosen);
void RegisterCheckpointCommands(CLI::App& app, Context& context, Command& chosen);
void RegisterGenerateCommand(CLI::App& app, Context& context, Command& chosen);
void RegisterLocalCommands(CLI::App& app, Context& context, Command& chosen);
void RegisterDataCommands(CLI::App& app, Context& context, Command& chosen);
void RegisterDoctorCommand(CLI::App& app, Context& context, Command& chosen);
void RegisterVersionCommand(CLI::App& app, Context& context, Command& chosen);
void RegisterCompletionCommand(CLI::App& app, Context& context, Command& chosen);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_CONTEXT_H_
