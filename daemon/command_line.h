// What both programs say of words on their command line that name no command.
#ifndef LONGHAUL_DAEMON_COMMAND_LINE_H_
#define LONGHAUL_DAEMON_COMMAND_LINE_H_

#include <string>

#include "CLI/CLI.hpp"

namespace longhaul::daemon {

// What is wrong with the words that name the command of `app`, with the nearest one if
// one is near; empty if nothing is. Finds a wrong word also beside --help, at which the parser
// itself stops.
std::string UnknownCommand(const CLI::App& app, int argc, const char* const* argv);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_COMMAND_LINE_H_
