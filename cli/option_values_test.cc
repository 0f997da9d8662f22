#include "cli/option_values.h"

#include <string>

#include "cli/context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is wrong with the words; empty if nothing is.
std::string ErrorOf(CLI::App& app, const std::string& words) {
  try {
    app.parse(words, /*program_name_included=*/false);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(OptionValues, AreSaidInHelpAndInErrors) {
  CLI::App app{"test", "test"};
  app.formatter(HelpFormatter());
  std::string form, shell, name;
  int stages = 0;
  app.add_option("--format", form, "a form")->check(OneOf({"llmc", "megatron", "raw"}));
  app.add_option("--shell", shell, "a shell")->check(OneOf({"bash"}));
  app.add_option("--stages", stages, "a number")->check(Within(1, 64));
  app.add_option("--name", name, "a name");
  EXPECT_EQ(ErrorOf(app, "--format llmc --shell bash --stages 64"), "");
  EXPECT_EQ(ErrorOf(app, "--format a"), "--format: must be llmc, megatron or raw, not a");
  EXPECT_EQ(ErrorOf(app, "--shell zsh"), "--shell: must be bash, not zsh");
  EXPECT_THAT(ErrorOf(app, "--stages 65"), HasSubstr("not in range 1 to 64"));
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("--format {llmc,megatron,raw}"));
  EXPECT_THAT(help, HasSubstr("--stages 1 to 64 "));
  EXPECT_THAT(help, HasSubstr("--name TEXT "));
}

TEST(OptionValues, TheLocalClusterHasNoneOfAnotherCoordinator) {
  CLI::App app{"test", "longhaul"};
  Context context;
  Command chosen;
  RegisterLocalCommands(app, context, chosen);
  for (const char* command : {"up", "down"}) {
    const std::string help = app.get_subcommand(command)->help();
    EXPECT_THAT(help, HasSubstr("--dir")) << command;
    EXPECT_THAT(help, HasSubstr("--output")) << command;
    EXPECT_THAT(help, Not(HasSubstr("--coordinator"))) << command;
    EXPECT_THAT(help, Not(HasSubstr("--tls"))) << command;
    EXPECT_THAT(help, Not(HasSubstr("--token"))) << command;
  }
}

}  // namespace
}  // namespace longhaul::cli
