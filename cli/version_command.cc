// longhaul version
#include "absl/strings/str_cat.h"
#include "cli/context.h"
#include "cli/output.h"
#include "daemon/rpc/protocol.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

int Version(Context& context) {
  const daemon::ProtocolVersions own = daemon::OwnProtocol();
  if (context.json()) {
    PrintJsonLine(
        {{"version", own.build}, {"oldest_protocol", own.oldest}, {"newest_protocol", own.newest}});
  } else {
    Print(
        absl::StrCat("longhaul ", own.build, ", protocol ", own.oldest, " to ", own.newest, "\n"));
  }
  return kExitDone;
}

}  // namespace

void RegisterVersionCommand(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* version = app.add_subcommand("version", "version of this command");
  AddOutputOption(*version, context);
  version->callback([&chosen] { chosen = Version; });
}

}  // namespace longhaul::cli
